package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/keydir"
)

// A segment file begins with
//
//	 0        8         10      12      16          32         36       40
//	+--------+---------+-------+-------+-----------+----------+--------+
//	| magic  | version | flags | id u32| store id  | nonce u32| crc u32|
//	+--------+---------+-------+-------+-----------+----------+--------+
//
// continues with frames, and, once sealed, ends with a footer frame. The crc covers bytes 0 to 36.
// The nonce is random: copies of a store give the same ids to other segments. 0: written by a build
// without nonces.
const (
	segmentMagic      = "STAVESEG"
	segmentVersion    = 1
	SegmentHeaderSize = 40
	flagMerged        = 1 // written by a merge

	// MaxSegmentID keeps the id of pending locations free.
	MaxSegmentID = keydir.PendingSegment - 1
)

// Footer is the body of the footer frame.
//
//	 0            8           16           24         30          32
//	+------------+-----------+------------+----------+-----------+
//	| records u64| minSeq u64| maxSeq u64 | time i48 | nonce u16 |
//	+------------+-----------+------------+----------+-----------+
//
// time, in Unix ms, is not before the last commit in the segment and not after the first one of a
// later segment; 0: unknown. It is only the clock's word: nothing relies on it. nonce is random:
// copies of a store continue the same segment. That of a merged segment is 0, for its header has
// one.
type Footer struct {
	Records        uint64
	MinSeq, MaxSeq uint64
	Time           int64
	Nonce          uint16
}

// Stamp is time and nonce as they stand in the file.
func (ft Footer) Stamp() uint64 { return uint64(ft.Time)<<16>>16 | uint64(ft.Nonce)<<48 }

// ParseFooter reads the body of a footer frame.
func ParseFooter(body []byte) Footer {
	return Footer{
		Records: binary.LittleEndian.Uint64(body),
		MinSeq:  binary.LittleEndian.Uint64(body[8:]),
		MaxSeq:  binary.LittleEndian.Uint64(body[16:]),
		Time:    int64(binary.LittleEndian.Uint64(body[24:])<<16) >> 16,
		Nonce:   binary.LittleEndian.Uint16(body[30:]),
	}
}

// Same reports whether two footers are about the same records.
func (ft Footer) Same(other Footer) bool {
	return ft.Records == other.Records && ft.MinSeq == other.MinSeq && ft.MaxSeq == other.MaxSeq
}

const (
	footerBodySize = 32
	FooterSize     = FrameHeaderSize + footerBodySize
)

func EncodeSegmentHeader(store [16]byte, id, nonce uint32, merged bool) []byte {
	b := make([]byte, SegmentHeaderSize)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint16(b[8:], segmentVersion)
	if merged {
		binary.LittleEndian.PutUint16(b[10:], flagMerged)
	}
	binary.LittleEndian.PutUint32(b[12:], id)
	copy(b[16:32], store[:])
	binary.LittleEndian.PutUint32(b[32:], nonce)
	binary.LittleEndian.PutUint32(b[36:], crc32.ChecksumIEEE(b[:36]))
	return b
}

func CheckSegmentHeader(b []byte, name string, store [16]byte, id uint32) (nonce uint32, merged bool, err error) {
	if len(b) < SegmentHeaderSize || string(b[:8]) != segmentMagic {
		return 0, false, &failure.CorruptError{File: name, Offset: 0, Reason: "not a segment header"}
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != segmentVersion {
		if binary.LittleEndian.Uint32(b[36:]) == crc32.ChecksumIEEE(b[:36]) {
			return 0, false, fmt.Errorf("%s: version %d: %w", name, v, failure.ErrVersion)
		}
	}
	if binary.LittleEndian.Uint32(b[36:]) != crc32.ChecksumIEEE(b[:36]) {
		return 0, false, &failure.CorruptError{File: name, Offset: 0, Reason: "segment header checksum"}
	}
	flags := binary.LittleEndian.Uint16(b[10:])
	if flags&^flagMerged != 0 {
		return 0, false, fmt.Errorf("%s: unknown flags %#x: %w", name, flags, failure.ErrVersion)
	}
	if !bytes.Equal(b[16:32], store[:]) {
		return 0, false, fmt.Errorf("%s: %w", name, failure.ErrForeign)
	}
	if got := binary.LittleEndian.Uint32(b[12:]); got != id {
		return 0, false, &failure.CorruptError{File: name, Offset: 12, Reason: fmt.Sprintf("header of segment %d", got)}
	}
	return binary.LittleEndian.Uint32(b[32:]), flags&flagMerged != 0, nil
}

// SealedInfo binds a manifest entry to the bytes of a sealed segment.
type SealedInfo struct {
	ID             uint32
	Length         uint64
	MinSeq, MaxSeq uint64
	Records        uint64
}

func (si SealedInfo) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, si.ID)
	b = binary.LittleEndian.AppendUint64(b, si.Length)
	b = binary.LittleEndian.AppendUint64(b, si.MinSeq)
	b = binary.LittleEndian.AppendUint64(b, si.MaxSeq)
	return binary.LittleEndian.AppendUint64(b, si.Records)
}

const SealedInfoSize = 4 + 4*8

func ParseSealedInfo(b []byte) SealedInfo {
	return SealedInfo{
		ID:      binary.LittleEndian.Uint32(b),
		Length:  binary.LittleEndian.Uint64(b[4:]),
		MinSeq:  binary.LittleEndian.Uint64(b[12:]),
		MaxSeq:  binary.LittleEndian.Uint64(b[20:]),
		Records: binary.LittleEndian.Uint64(b[28:]),
	}
}
