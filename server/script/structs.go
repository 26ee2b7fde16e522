package script

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The library "struct" packs values as C would lay them out: see structFormat for its letters.

var structFunctions = functions{"pack": structPack, "unpack": structUnpack, "size": structSize}

// structFormat reads a format:
//
//	> <       big endian, little endian      !n     alignment up to n bytes (8)
//	x         a byte of padding              b B    char, signed or not
//	h H       short                          l L T  long, size_t: 8 bytes
//	in In     integer of n bytes (4)         f d    float, double
//	cn        n characters (1); c0 packs the whole string, and unpacks as many as the number before says
//	s         characters up to a zero        blank  nothing
type structFormat struct {
	L         *lua.LState
	rest      string
	bigEndian bool
	align     int
}

// maxStructInt is the size of the largest integer in bytes.
const maxStructInt = 32

func (f *structFormat) number(otherwise int) int {
	if f.rest == "" || !isDigit(f.rest[0]) {
		return otherwise
	}
	n := 0
	for f.rest != "" && isDigit(f.rest[0]) {
		if n > (math.MaxInt32-int(f.rest[0]-'0'))/10 {
			fail(f.L, "integral size overflow")
		}
		n = n*10 + int(f.rest[0]-'0')
		f.rest = f.rest[1:]
	}
	return n
}

// next takes an option, with its size and the padding in front of it if it stands at a position.
func (f *structFormat) next(at int) (option byte, size, padding int) {
	option, f.rest = f.rest[0], f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'l', 'L', 'T', 'd':
		size = 8
	case 'f':
		size = 4
	case 'c':
		return option, f.number(1), 0
	case 'i', 'I':
		if size = f.number(4); size > maxStructInt {
			fail(f.L, "integral size %d is larger than limit of %d", size, maxStructInt)
		}
	}
	if size > 0 {
		limit := min(size, f.align)
		padding = (limit - at&(limit-1)) & (limit - 1)
	}
	return option, size, padding
}

// control obeys an option that is no value.
func (f *structFormat) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		if f.align = f.number(8); f.align == 0 || f.align&(f.align-1) != 0 {
			fail(f.L, "alignment %d is not a power of 2", f.align)
		}
	default:
		argError(f.L, 1, "invalid format option '"+string([]byte{option})+"'")
	}
}

func newStructFormat(L *lua.LState) *structFormat {
	format, _, _ := strings.Cut(textArg(L, 1), "\x00") // as C sees it
	f := &structFormat{L: L, rest: format, align: 1}
	of(L).spend(L, len(f.rest))
	return f
}

func structPack(L *lua.LState) int {
	f := newStructFormat(L)
	L.Push(lua.LNil) // after the arguments, as in Redis: it shows in errors
	var b []byte
	arg := 2
	for f.rest != "" {
		option, size, padding := f.next(len(b))
		b = append(of(L).grow(L, b, padding+16), make([]byte, padding)...)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			b = f.appendInt(b, numberArg(L, arg), size)
			arg++
		case 'x':
			b = append(b, 0)
		case 'f':
			b = f.appendBytes(b, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(likeC(numberArg(L, arg))))))
			arg++
		case 'd':
			b = f.appendBytes(b, binary.LittleEndian.AppendUint64(nil, math.Float64bits(likeC(numberArg(L, arg)))))
			arg++
		case 'c', 's':
			s := textArg(L, arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				argError(L, arg, "string too short")
			}
			b = appendText(of(L).grow(L, b, size+1), s[:size])
			if option == 's' {
				b = append(b, 0)
			}
		default:
			f.control(option)
		}
	}
	return push(L, built(b))
}

func (f *structFormat) appendBytes(b, littleEndian []byte) []byte {
	if f.bigEndian {
		slices.Reverse(littleEndian)
	}
	return append(b, littleEndian...)
}

func (f *structFormat) appendInt(b []byte, n float64, size int) []byte {
	value := toUnsigned(n)
	var digits [maxStructInt]byte
	for i := range size {
		digits[i] = byte(value)
		value >>= 8
	}
	return f.appendBytes(b, digits[:size])
}

func (f *structFormat) readInt(b []byte, signed bool) float64 {
	var value uint64
	for i := range b {
		if f.bigEndian {
			value = value<<8 | uint64(b[i])
		} else {
			value = value<<8 | uint64(b[len(b)-1-i])
		}
	}
	if !signed {
		return float64(value)
	}
	if mask := ^uint64(0) << ((len(b)*8 - 1) & 63); value&mask != 0 { // the shift as processors do it
		value |= mask
	}
	return float64(int64(value))
}

func structUnpack(L *lua.LState) int {
	f := newStructFormat(L)
	data := textArg(L, 2)
	at := indexArg(L, 3, 1) - 1 // a negative offset is a large one in Redis: nothing fits there
	if at == -1 {
		argError(L, 3, "offset must be 1 or greater")
	}
	n := 0
	fits := func(size int) {
		if size < 0 || size > len(data) || at < 0 || at > len(data)-size {
			argError(L, 2, "data string too short")
		}
	}
	push := func(v lua.LValue) {
		if n++; L.GetTop() > maxUnpack-2 { // the place follows them
			fail(L, "too many results")
		}
		L.Push(v)
	}
	for f.rest != "" {
		option, size, padding := f.next(at)
		at += padding
		fits(size)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			push(lua.LNumber(f.readInt([]byte(data[at:at+size]), 'a' <= option)))
		case 'x':
		case 'f', 'd':
			push(lua.LNumber(f.readFloat([]byte(data[at : at+size]))))
		case 'c':
			if size == 0 {
				last, ok := 0.0, false
				if n > 0 {
					last, ok = toNumber(L.Get(-1))
				}
				if !ok {
					fail(L, "format 'c0' needs a previous size")
				}
				size = int(max(min(last, maxString), -1))
				L.Pop(1)
				n--
				fits(size)
			}
			push(lua.LString(data[at : at+size]))
		case 's':
			end := strings.IndexByte(data[at:], 0)
			if end < 0 {
				fail(L, "unfinished string in data")
			}
			size = end + 1
			push(lua.LString(data[at : at+end]))
		default:
			f.control(option)
		}
		at += size
	}
	L.Push(lua.LNumber(at + 1))
	return n + 1
}

func (f *structFormat) readFloat(b []byte) float64 {
	if f.bigEndian {
		slices.Reverse(b)
	}
	if len(b) == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func structSize(L *lua.LState) int {
	f := newStructFormat(L)
	at := 0
	for f.rest != "" {
		option, size, padding := f.next(at)
		at += padding
		switch {
		case option == 's':
			argError(L, 1, "option 's' has no fixed size")
		case option == 'c' && size == 0:
			argError(L, 1, "option 'c0' has no fixed size")
		case !isDigit(option) && (option|0x20 < 'a' || option|0x20 > 'z'): // any letter is taken here
			f.control(option)
		}
		at += size
		if at > math.MaxInt32 {
			fail(L, "integral size overflow")
		}
	}
	return push(L, lua.LNumber(at))
}
