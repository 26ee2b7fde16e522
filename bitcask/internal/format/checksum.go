package format

import (
	"encoding/binary"

	"github.com/klauspost/crc32"
)

// ChecksumSeed holds the part of a checksum seed that is fixed for a segment. Every checksum in a
// segment starts from the store id, the segment id and the offset of what it covers, so a block of
// another store, another segment or another offset never verifies, however intact it is.
//
// The polynomial is IEEE: klauspost/crc32 has an AVX-512 path for it, and for
// Castagnoli it equals the standard library.
type ChecksumSeed uint32

func NewChecksumSeed(store [16]byte, segment uint32) ChecksumSeed {
	var b [20]byte
	copy(b[:], store[:])
	binary.LittleEndian.PutUint32(b[16:], segment)
	return ChecksumSeed(crc32.ChecksumIEEE(b[:]))
}

// Sum is the checksum of data that starts at offset. The start value differs
// for any two offsets of a segment: multiplying by an odd number is one-to-one.
func (s ChecksumSeed) Sum(offset uint32, data []byte) uint32 {
	return crc32.Update(s.Start(offset), crc32.IEEETable, data)
}

// Verifies reports whether a whole record, which begins with its checksum and stands at offset, is what was written.
func (s ChecksumSeed) Verifies(record []byte, offset uint32) bool {
	return binary.LittleEndian.Uint32(record) == s.Sum(offset, record[RecordCRCSize:])
}

// Start is the checksum of nothing at offset, to be carried on with extend.
func (s ChecksumSeed) Start(offset uint32) uint32 { return uint32(s) + offset*0x9E3779B1 }

func ExtendSum(sum uint32, data []byte) uint32 { return crc32.Update(sum, crc32.IEEETable, data) }
