package rdb

import (
	"encoding/binary"
	"math/bits"
)

// The formats of small collections, each one string: listpacks, and from the time before them ziplists, zipmaps and
// intsets. A reader is on the inside of that string. The functions add its elements to the value.

const packEnd = 0xff

// listpack reads a header of six bytes (all bytes, elements), and the elements: an encoding, the data, and the length
// of both once more, by which a listpack is walked backwards.
func (r *reader) listpack() {
	r.header(6)
	for !r.failed {
		b, more := r.listpackNext()
		if !more {
			return
		}
		r.add(b)
	}
}

// listpackNext reads an element, or the end.
func (r *reader) listpackNext() (element []byte, more bool) {
	before := len(r.rest)
	b := r.byte()
	if r.failed || b == packEnd {
		return nil, false
	}
	element = r.listpackElement(b)
	r.take(backLength(uint64(before - len(r.rest))))
	return element, !r.failed
}

// header skips a header that begins with the size of all.
func (r *reader) header(n uint64) {
	size := len(r.rest)
	if b := r.take(n); b != nil && uint64(binary.LittleEndian.Uint32(b)) != uint64(size) {
		r.fail()
	}
}

// backLength is how many bytes it takes to write the length of an element, seven bits in each. The limits are Redis's:
// from the second on they are one less than what would fit.
func backLength(n uint64) uint64 {
	switch {
	case n <= 1<<7-1:
		return 1
	case n < 1<<14-1:
		return 2
	case n < 1<<21-1:
		return 3
	case n < 1<<28-1:
		return 4
	}
	return 5
}

func (r *reader) listpackElement(b byte) []byte {
	switch {
	case b&0x80 == 0:
		return decimal(int64(b))
	case b&0xc0 == 0x80:
		return r.take(uint64(b & 0x3f))
	case b&0xe0 == 0xc0:
		n := int64(b&0x1f)<<8 | int64(r.byte())
		return decimal(n << 51 >> 51) // 13 bits, signed
	case b&0xf0 == 0xe0:
		return r.take(uint64(b&0x0f)<<8 | uint64(r.byte()))
	}
	if b == 0xf0 {
		return r.take(r.fixed(4))
	}
	return r.integer(listpackIntegers[b])
}

// The sizes in bytes of the integers that an encoding stands for.
var (
	listpackIntegers = [256]uint64{0xf1: 2, 0xf2: 3, 0xf3: 4, 0xf4: 8}
	ziplistIntegers  = [256]uint64{0xc0: 2, 0xd0: 4, 0xe0: 8, 0xf0: 3, 0xfe: 1}
)

// integer reads a signed little-endian integer. None has the size 0.
func (r *reader) integer(size uint64) []byte {
	if size == 0 {
		r.fail()
		return nil
	}
	shift := 64 - 8*size
	return decimal(int64(r.fixed(size)<<shift) >> shift)
}

// ziplist reads a header of ten bytes (all bytes, where the last element is, elements), and the elements: the length of
// the one before, an encoding, the data.
func (r *reader) ziplist() {
	r.header(10)
	for !r.failed {
		before := r.byte()
		if before == packEnd {
			break
		}
		if before == 0xfe {
			r.take(4)
		}
		r.add(r.ziplistElement(r.byte()))
	}
}

func (r *reader) ziplistElement(b byte) []byte {
	switch b >> 6 {
	case 0:
		return r.take(uint64(b & 0x3f))
	case 1:
		return r.take(uint64(b&0x3f)<<8 | uint64(r.byte()))
	case 2:
		return r.take(bits.ReverseBytes64(r.fixed(4)) >> 32)
	}
	if b >= 0xf1 && b <= 0xfd {
		return decimal(int64(b) - 0xf1)
	}
	return r.integer(ziplistIntegers[b])
}

// zipmap reads the number of fields, which counts only up to 253, and the fields: a length and the name, a length, how
// many bytes are unused after the value, the value, and those bytes.
func (r *reader) zipmap() {
	r.byte()
	for !r.failed {
		b := r.byte()
		if b == packEnd {
			break
		}
		name := r.take(r.zipmapLength(b))
		size := r.zipmapLength(r.byte())
		unused := r.byte()
		r.add(name)
		r.add(r.take(size))
		r.take(uint64(unused))
	}
}

func (r *reader) zipmapLength(b byte) uint64 {
	switch {
	case b < 0xfe:
		return uint64(b)
	case b == 0xfe:
		return r.fixed(4)
	}
	r.fail()
	return 0
}

// intset reads the size of an integer, how many there are, and them.
func (r *reader) intset() {
	head := r.take(8)
	if head == nil {
		return
	}
	size, n := uint64(binary.LittleEndian.Uint32(head)), uint64(binary.LittleEndian.Uint32(head[4:]))
	if size != 2 && size != 4 && size != 8 || n*size != uint64(len(r.rest)) {
		r.fail()
		return
	}
	for ; n > 0 && !r.failed; n-- {
		r.add(r.integer(size))
	}
}
