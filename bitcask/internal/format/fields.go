package format

import "encoding/binary"

// Fields reads numbers of fixed width; after the end, zeros.
type Fields struct {
	B   []byte
	Bad bool
}

// Bytes reads so many bytes; none if so many do not follow.
func (f *Fields) Bytes(n int) []byte {
	if n < 0 || n > len(f.B) {
		f.Bad = true
		return nil
	}
	b := f.B[:n]
	f.B = f.B[n:]
	return b
}

func (f *Fields) U32() uint32 {
	if len(f.B) < 4 {
		f.Bad = true
		return 0
	}
	v := binary.LittleEndian.Uint32(f.B)
	f.B = f.B[4:]
	return v
}

func (f *Fields) U64() uint64 {
	low := f.U32()
	return uint64(f.U32())<<32 | uint64(low)
}

// Count reads the number of items of that size that follow; zero if so many
// do not.
func (f *Fields) Count(size int) int {
	n := f.U32()
	if f.Bad || uint64(n) > uint64(len(f.B)/size) {
		f.Bad = true
		return 0
	}
	return int(n)
}
