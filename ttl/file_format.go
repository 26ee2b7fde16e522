package ttl

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/crc32"
)

// The checkpoint is a header and blocks, back to back to the end of the file. Integers are little-endian, checksums
// CRC-32 with the IEEE polynomial.
//
//	header, 80 bytes
//	+--------+---------+----------+----------+----------+----------+
//	| magic  | version | store id | complete | reserved | entries  |
//	|        |         |          | up to    |          | in file  |
//	+--------+---------+----------+----------+----------+----------+
//	0        8         12         28         60         68         76
//	+----------+
//	| checksum |
//	| of these |
//	+----------+
//	76         80
//
//	complete up to: the mark of a state of the log
//	+---------+----------+---------+---------+---------+
//	| opening | sequence | segment | length  | end     |
//	|         |          | id      | of that | crc     |
//	+---------+----------+---------+---------+---------+
//	28        36         44        48        56        60
//
//	block, 8 bytes and entries
//	+--------------+----------+---------+---------+-----
//	| length of    | checksum | entry   | entry   | ...
//	| the entries  |          |         |         |
//	+--------------+----------+---------+---------+-----
//	0              4          8
//
//	entry, 16 bytes and key
//	+----------+-----------+--------+------------+
//	| deadline | namespace | length | key        |
//	|          |           | of key |            |
//	+----------+-----------+--------+------------+
//	0          8           12       16
//
// A block's checksum covers the header's checksum, the block's offset in the file (8 bytes), the length field and the
// entries, in this order: a block of another store, of an earlier checkpoint or from elsewhere in the file never
// passes. No block is empty, so zeros never pass as one.
const (
	magic   = "STAVETTL"
	version = 2

	headerSize      = 80 // bytes, of version 2 and any later one; the last four are the checksum
	firstHeaderSize = 48 // bytes, of version 1
	blockHeaderSize = 8  // bytes
	entrySize       = 16 // bytes, without the key

	// blockSize is the length in bytes at which a block is written. Blocks are longer by part of their last entry.
	blockSize = 64 << 10
)

// ErrVersion means that the file has a format version that this program does not know. It is not damage.
var ErrVersion = errors.New("unknown version of the TTL file")

// ErrForeign means that the file belongs to another store.
var ErrForeign = errors.New("TTL file of another store")

// CorruptError reports where a TTL file is damaged. I7: damage is an error with file and offset. The log has the
// deadlines.
type CorruptError struct {
	File   string
	Offset int64  // Of the header or block that is damaged, in bytes.
	Reason string // Such as "checksum".
}

// Error names file, offset and reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: corrupt at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Mark identifies the state of the log that a checkpoint describes. The owner of a log knows whether it has been in
// that state.
type Mark struct {
	Opening  uint64 // The writer that gave the sequence.
	Sequence uint64 // Of the newest record.
	Segment  uint32 // That it ends in.
	Length   uint64 // Of that segment, in bytes.
	Sum      uint32 // Of the last of these bytes.
}

// header is the decoded file header.
type header struct {
	store [16]byte
	upTo  Mark
	count uint64
}

// encode returns the bytes of the header, its checksum included.
func (h header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = append(b, h.store[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.upTo.Opening)
	b = binary.LittleEndian.AppendUint64(b, h.upTo.Sequence)
	b = binary.LittleEndian.AppendUint32(b, h.upTo.Segment)
	b = binary.LittleEndian.AppendUint64(b, h.upTo.Length)
	b = binary.LittleEndian.AppendUint32(b, h.upTo.Sum)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h.count)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// headerSum returns the checksum in an encoded header.
func headerSum(b []byte) uint32 { return binary.LittleEndian.Uint32(b[headerSize-4:]) }

// decodeHeader decodes a header. It returns an error for an unknown version and a reason for damage.
func decodeHeader(b []byte) (h header, reason string, err error) {
	if len(b) < len(magic)+4 || string(b[:len(magic)]) != magic {
		return h, "magic", nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		size := headerSize
		if v == 1 {
			size = firstHeaderSize
		}
		if len(b) < size || crc32.ChecksumIEEE(b[:size-4]) != binary.LittleEndian.Uint32(b[size-4:]) {
			return h, "header checksum", nil // it was another version that was written
		}
		return h, "", fmt.Errorf("%w: %d, this program knows %d", ErrVersion, v, version)
	}
	if len(b) < headerSize {
		return h, "truncated", nil
	}
	if crc32.ChecksumIEEE(b[:headerSize-4]) != headerSum(b) {
		return h, "header checksum", nil
	}
	if binary.LittleEndian.Uint64(b[60:]) != 0 {
		return h, "reserved bytes", nil
	}
	copy(h.store[:], b[12:])
	h.upTo = Mark{
		Opening: binary.LittleEndian.Uint64(b[28:]), Sequence: binary.LittleEndian.Uint64(b[36:]), Segment: binary.LittleEndian.Uint32(b[44:]),
		Length: binary.LittleEndian.Uint64(b[48:]), Sum: binary.LittleEndian.Uint32(b[56:]),
	}
	h.count = binary.LittleEndian.Uint64(b[68:])
	return h, "", nil
}

// blockSum computes the checksum of a block at an offset.
func blockSum(headerSum uint32, offset int64, entries []byte) uint32 {
	var place [12]byte
	binary.LittleEndian.PutUint64(place[:], uint64(offset))
	binary.LittleEndian.PutUint32(place[8:], uint32(len(entries)))
	sum := crc32.Update(headerSum, crc32.IEEETable, place[:])
	return crc32.Update(sum, crc32.IEEETable, entries)
}

// sealBlock fills in the first bytes of a block whose entries are in place.
func sealBlock(block []byte, headerSum uint32, offset int64) {
	binary.LittleEndian.PutUint32(block, uint32(len(block)-blockHeaderSize))
	sum := blockSum(headerSum, offset, block[blockHeaderSize:])
	binary.LittleEndian.PutUint32(block[4:], sum)
}

// appendEntry appends the bytes of an entry.
func appendEntry(b []byte, e Entry) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Deadline))
	b = binary.LittleEndian.AppendUint32(b, e.Namespace)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Key)))
	return append(b, e.Key...)
}

// decodeEntries appends the entries of a block whose checksum is right. ok is false if they do not end where the block
// ends.
func decodeEntries(dst []Entry, block []byte) (_ []Entry, ok bool) {
	text := string(block) // One copy, of which all keys are parts.
	for at := 0; at < len(block); {
		rest := block[at:]
		if len(rest) < entrySize {
			return dst, false
		}
		e := Entry{Deadline: int64(binary.LittleEndian.Uint64(rest)), Namespace: binary.LittleEndian.Uint32(rest[8:])}
		n := binary.LittleEndian.Uint32(rest[12:])
		if uint64(n) > uint64(len(rest)-entrySize) {
			return dst, false
		}
		end := at + entrySize + int(n)
		e.Key = text[at+entrySize : end]
		dst = append(dst, e)
		at = end
	}
	return dst, true
}
