package format

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// Remains are the bytes that recovery has truncated: the rest of a write that a crash cut short, and everything after
// it. They are kept in a file of their own, synced before the truncation, unless they are all zeros. Nothing in the
// store refers to them: they can be deleted at any time. Salvage reads them.
//
//	header: magic "STAVETRN" | version u16 | flags u16 | segment id u32 (0: MANIFEST) | store id 16 | offset u64 |
//	        next sequence u64 | length u64 | crc u32
//	bytes:  as they stood from offset on
//
// The store id is that of the store that made the segment, as in its header. Next sequence is where the log continued:
// that number has been given twice, to a record in the remains and to one in the log.
const (
	remainsMagic      = "STAVETRN"
	remainsVersion    = 1
	RemainsHeaderSize = 8 + 2 + 2 + 4 + 16 + 8 + 8 + 8 + 4
	RemainsTemp       = "TORN.new"
	remainsInfix      = ".torn-"
)

// RemainsName names the remains of a file from an offset on. The higher n is, the later they were kept: one more than
// the highest of those that were there before.
func RemainsName(id uint32, offset int64, n int) string {
	name := ManifestName
	if id != 0 {
		name = strings.TrimSuffix(DataName(id), DataSuffix)
	}
	name += remainsInfix + strconv.FormatInt(offset, 10)
	if n > 1 {
		name += "." + strconv.Itoa(n)
	}
	return name
}

// ParseRemainsName is the inverse of RemainsName.
func ParseRemainsName(name string) (id uint32, offset int64, n int, ok bool) {
	file, rest, found := strings.Cut(name, remainsInfix)
	at, number, many := strings.Cut(rest, ".")
	n = 1
	offset, err := strconv.ParseInt(at, 10, 64)
	if many && err == nil {
		n, err = strconv.Atoi(number)
	}
	if file != ManifestName && err == nil {
		id, _, found = ParseName(file + DataSuffix)
	}
	if !found || err != nil || RemainsName(id, offset, n) != name {
		return 0, 0, 0, false
	}
	return id, offset, n, true
}

// RemainsHeader is what a file of remains says about its bytes.
type RemainsHeader struct {
	ID      uint32
	Store   [16]byte
	Offset  int64
	NextSeq uint64
	Length  int64
}

func (h *RemainsHeader) Encode() []byte {
	b := make([]byte, 0, RemainsHeaderSize)
	b = append(b, remainsMagic...)
	b = binary.LittleEndian.AppendUint16(b, remainsVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, h.ID)
	b = append(b, h.Store[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Offset))
	b = binary.LittleEndian.AppendUint64(b, h.NextSeq)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Length))
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// ParseRemainsHeader is the inverse of Encode, for a file of size bytes.
func ParseRemainsHeader(b []byte, name string, size int64) (h RemainsHeader, err error) {
	end := RemainsHeaderSize - 4
	if len(b) < RemainsHeaderSize || string(b[:8]) != remainsMagic || binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return h, &failure.CorruptError{File: name, Offset: 0, Reason: "not a header of remains"}
	}
	if v, flags := binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:]); v != remainsVersion || flags != 0 {
		return h, fmt.Errorf("%s: version %d, flags %#x: %w", name, v, flags, failure.ErrVersion)
	}
	h = RemainsHeader{
		ID: binary.LittleEndian.Uint32(b[12:]), Store: [16]byte(b[16:]), Offset: int64(binary.LittleEndian.Uint64(b[32:])),
		NextSeq: binary.LittleEndian.Uint64(b[40:]), Length: int64(binary.LittleEndian.Uint64(b[48:])),
	}
	if h.Offset < 0 || h.Length < 0 || h.Length > size-RemainsHeaderSize || h.Offset > MaxSegmentLength-h.Length || h.NextSeq == 0 {
		return h, &failure.CorruptError{File: name, Offset: 0, Reason: "header of remains with impossible lengths"}
	}
	return h, nil
}
