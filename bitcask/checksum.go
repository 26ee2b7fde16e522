package bitcask

import (
	"encoding/binary"

	"github.com/klauspost/crc32"
)

// seal holds the part of a checksum seed that is fixed for a segment. Every
// checksum in a segment starts from the store id, the segment id and the
// offset of what it covers, so a block of another store, another segment or
// another place never verifies, however intact it is.
//
// The polynomial is IEEE: klauspost/crc32 has an AVX-512 path for it, and for
// Castagnoli it equals the standard library.
type seal uint32

func makeSeal(store [16]byte, segment uint32) seal {
	var b [20]byte
	copy(b[:], store[:])
	binary.LittleEndian.PutUint32(b[16:], segment)
	return seal(crc32.ChecksumIEEE(b[:]))
}

// sum is the checksum of data that starts at offset. The start value differs
// for any two offsets of a segment: multiplying by an odd number is one-to-one.
func (s seal) sum(offset uint32, data []byte) uint32 {
	return crc32.Update(s.start(offset), crc32.IEEETable, data)
}

// start is the checksum of nothing at offset, to be carried on with extend.
func (s seal) start(offset uint32) uint32 { return uint32(s) + offset*0x9E3779B1 }

func extend(sum uint32, data []byte) uint32 { return crc32.Update(sum, crc32.IEEETable, data) }
