package format

import (
	"encoding/binary"
	"runtime"

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
	return ExtendSum(s.Start(offset), data)
}

// Verifies reports whether a whole record, which begins with its checksum and stands at offset, is what was written.
func (s ChecksumSeed) Verifies(record []byte, offset uint32) bool {
	return binary.LittleEndian.Uint32(record) == s.Sum(offset, record[RecordCRCSize:])
}

// Start is the checksum of nothing at offset, to be carried on with ExtendSum.
func (s ChecksumSeed) Start(offset uint32) uint32 { return uint32(s) + offset*0x9E3779B1 }

// ExtendSum carries a checksum on over data. The library takes what is left of data after whole blocks of 16 bytes, and
// short data, byte by byte; nearly every record ends so. Here that takes eight bytes at a time ("slicing by 8":
// Kounavis and Berry, A Systematic Approach to Building High Performance Software-based CRC Generators, 2005).
func ExtendSum(sum uint32, data []byte) uint32 {
	if !sliced || len(data) >= shortSum {
		whole := len(data)
		if sliced {
			whole &^= 15
		}
		sum, data = crc32.Update(sum, crc32.IEEETable, data[:whole]), data[whole:]
		if len(data) == 0 {
			return sum
		}
	}
	t := &sums
	sum = ^sum
	for ; len(data) >= 8; data = data[8:] {
		low, high := sum^binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		sum = t[7][low&255] ^ t[6][low>>8&255] ^ t[5][low>>16&255] ^ t[4][low>>24] ^
			t[3][high&255] ^ t[2][high>>8&255] ^ t[1][high>>16&255] ^ t[0][high>>24]
	}
	if len(data) >= 4 {
		low := sum ^ binary.LittleEndian.Uint32(data)
		sum = t[3][low&255] ^ t[2][low>>8&255] ^ t[1][low>>16&255] ^ t[0][low>>24]
		data = data[4:]
	}
	for _, b := range data {
		sum = t[0][byte(sum)^b] ^ sum>>8
	}
	return ^sum
}

const (
	sliced   = runtime.GOARCH == "amd64" // elsewhere the library has instructions for short data too
	shortSum = 64                        // bytes, from which on the library is quicker
)

// sums[n][b] is the checksum of byte b with n zero bytes after it.
var sums = func() (t [8][256]uint32) {
	for b := range 256 {
		t[0][b] = crc32.IEEETable[b]
		for n := 1; n < len(t); n++ {
			t[n][b] = crc32.IEEETable[byte(t[n-1][b])] ^ t[n-1][b]>>8
		}
	}
	return t
}()
