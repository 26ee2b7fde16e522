package script

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// The library "cmsgpack" is MessagePack as Redis's packs it: an integral number is an integer, any other one a float
// if that loses nothing; a table of 1 to n is an array; a table within 16 others is nil, and so is a function.

// openMsgpack adds the library.
func (m *machine) openMsgpack() {
	t := m.library("cmsgpack", functions{
		"pack": msgpackPack, "unpack": msgpackUnpackAll, "unpack_one": msgpackUnpackOne, "unpack_limit": msgpackUnpackLimit,
	})
	t.RawSetString("_NAME", lua.LString("cmsgpack"))
	t.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	t.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
}

// maxPacked is how deep tables may nest when they are packed, maxUnpacked when they are unpacked.
const (
	maxPacked   = 16
	maxUnpacked = 2000
)

func msgpackPack(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		argError(L, 0, "MessagePack pack needs input.")
	}
	p := packer{L: L, m: of(L)}
	for i := 1; i <= n; i++ {
		p.value(L.Get(i), 0)
	}
	return push(L, built(p.b))
}

type packer struct {
	L *lua.LState
	m *machine
	b []byte
}

func (p *packer) value(v lua.LValue, level int) {
	p.m.spend(p.L, 1)
	p.b = p.m.grow(p.L, p.b, 16)
	switch v := v.(type) {
	case lua.LString:
		p.text(string(v))
	case lua.LNumber:
		p.number(float64(v))
	case lua.LBool:
		if v {
			p.b = append(p.b, 0xc3)
		} else {
			p.b = append(p.b, 0xc2)
		}
	case *lua.LTable:
		if level == maxPacked {
			p.b = append(p.b, 0xc0)
			return
		}
		p.table(p.m.unwrap(v), level+1)
	default:
		p.b = append(p.b, 0xc0)
	}
}

func (p *packer) text(s string) {
	p.header(len(s), 0xa0, 31, 0xd9, 0xda, 0xdb)
	p.b = p.m.append(p.L, p.b, s)
}

// header writes a length: in the first byte up to most, or in one, two or four bytes after a byte that says so; small
// is 0 if there is no form of one byte.
func (p *packer) header(n int, fixed byte, most int, small, medium, large byte) {
	switch {
	case n <= most:
		p.b = append(p.b, fixed|byte(n))
	case n <= math.MaxUint8 && small != 0:
		p.b = append(p.b, small, byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, medium), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, large), uint32(n))
	}
}

func (p *packer) number(f float64) {
	if f != math.Trunc(f) || math.IsInf(f, 0) || f < -(1<<63) || f >= 1<<63 {
		if g := float32(f); float64(g) == f {
			p.b = binary.BigEndian.AppendUint32(append(p.b, 0xca), math.Float32bits(g))
		} else {
			p.b = binary.BigEndian.AppendUint64(append(p.b, 0xcb), math.Float64bits(likeC(f)))
		}
		return
	}
	switch n := int64(f); {
	case n >= -32 && n <= 127:
		p.b = append(p.b, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.b = append(p.b, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xce), uint32(n))
	case n >= 0:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xcf), uint64(n))
	case n >= math.MinInt8:
		p.b = append(p.b, 0xd0, byte(n))
	case n >= math.MinInt16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xd2), uint32(n))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xd3), uint64(n))
	}
}

func (p *packer) table(t *lua.LTable, level int) {
	n, most, list := 0, 0.0, true
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		p.m.spend(p.L, 1)
		i, ok := k.(lua.LNumber)
		list = list && ok && float64(i) == math.Trunc(float64(i)) && i > 0
		most = max(most, float64(i))
		n++
	}
	if list && most == float64(n) {
		p.header(n, 0x90, 15, 0, 0xdc, 0xdd)
		for i := 1; i <= n; i++ {
			p.value(t.RawGet(lua.LNumber(i)), level)
		}
		return
	}
	p.header(n, 0x80, 15, 0, 0xde, 0xdf)
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		p.value(k, level)
		p.value(v, level)
	}
}

func msgpackUnpackAll(L *lua.LState) int { return msgpackUnpack(L, 0, 0) }
func msgpackUnpackOne(L *lua.LState) int { return msgpackUnpack(L, 1, optInteger(L, 2, 0)) }
func msgpackUnpackLimit(L *lua.LState) int {
	limit := toInteger(numberArg(L, 2))
	return msgpackUnpack(L, limit, optInteger(L, 3, 0))
}

// msgpackUnpack unpacks up to limit values from an offset on, and returns where it has stopped before them. With both
// 0 it unpacks all and returns nothing else.
func msgpackUnpack(L *lua.LState, limit, offset int64) int {
	s := textArg(L, 1)
	all := limit == 0 && offset == 0
	switch {
	case offset < 0 || limit < 0:
		fail(L, "Invalid request to unpack with offset of %d and limit of %d.", int32(offset), len(s))
	case offset > int64(len(s)):
		fail(L, "Start offset %d greater than input length %d.", int32(offset), len(s))
	case all:
		limit = math.MaxInt64
	}
	u := unpacker{L: L, m: of(L), rest: s[offset:]}
	var values []lua.LValue
	most := maxUnpack - 1 // besides s
	if !all {
		most-- // and the place
	}
	for len(u.rest) > 0 && int64(len(values)) < limit {
		if len(values) == most {
			fail(L, "too many return values at once; use unpack_one or unpack_limit instead.")
		}
		values = append(values, u.value(0))
	}
	if !all {
		at := -1
		if len(u.rest) > 0 {
			at = len(s) - len(u.rest)
		}
		return push(L, lua.LNumber(at)) + push(L, values...)
	}
	return push(L, values...)
}

type unpacker struct {
	L    *lua.LState
	m    *machine
	rest string
}

// take takes n bytes off.
func (u *unpacker) take(n int) string {
	if n > len(u.rest) {
		fail(u.L, "Missing bytes in input.")
	}
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

// uint takes an integer of n bytes off.
func (u *unpacker) uint(n int) (value uint64) {
	s := u.take(n)
	for i := range n {
		value = value<<8 | uint64(s[i])
	}
	return value
}

func (u *unpacker) value(depth int) lua.LValue {
	u.m.spend(u.L, 1)
	switch c := u.take(1)[0]; {
	case c <= 0x7f:
		return lua.LNumber(c)
	case c >= 0xe0:
		return lua.LNumber(int8(c))
	case c <= 0x8f:
		return u.table(int(c&0xf), true, depth)
	case c <= 0x9f:
		return u.table(int(c&0xf), false, depth)
	case c <= 0xbf:
		return lua.LString(u.take(int(c & 0x1f)))
	default:
		return u.typed(c, depth)
	}
}

// typed is a value whose type is a byte of its own.
func (u *unpacker) typed(c byte, depth int) lua.LValue {
	switch c {
	case 0xc0:
		return lua.LNil
	case 0xc2, 0xc3:
		return lua.LBool(c == 0xc3)
	case 0xca:
		return lua.LNumber(math.Float32frombits(uint32(u.uint(4))))
	case 0xcb:
		return lua.LNumber(math.Float64frombits(u.uint(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return lua.LNumber(u.uint(1 << (c - 0xcc)))
	case 0xd0:
		return lua.LNumber(int8(u.uint(1)))
	case 0xd1:
		return lua.LNumber(int16(u.uint(2)))
	case 0xd2:
		return lua.LNumber(int32(u.uint(4)))
	case 0xd3:
		return lua.LNumber(int64(u.uint(8)))
	case 0xd9, 0xda, 0xdb:
		return lua.LString(u.take(int(u.uint(1 << (c - 0xd9)))))
	case 0xdc, 0xdd:
		return u.table(int(u.uint(2<<(c-0xdc))), false, depth)
	case 0xde, 0xdf:
		return u.table(int(u.uint(2<<(c-0xde))), true, depth)
	}
	fail(u.L, "Bad data format in input.")
	return lua.LNil
}

// table reads n elements or pairs. It grows with what is there, not with what is announced.
func (u *unpacker) table(n int, pairs bool, depth int) lua.LValue {
	if depth == maxUnpacked {
		fail(u.L, "too many nested values")
	}
	u.m.allocate(u.L, 64)
	t := u.L.CreateTable(0, 0)
	for i := range n {
		k := lua.LValue(lua.LNumber(i + 1))
		if pairs {
			k = u.value(depth + 1)
		}
		v := u.value(depth + 1)
		if f, ok := k.(lua.LNumber); k == lua.LNil || ok && f != f {
			raiseBare(u.L, "table index is "+map[bool]string{true: "nil", false: "NaN"}[k == lua.LNil])
		}
		u.m.allocate(u.L, 32)
		t.RawSet(k, v)
	}
	return t
}
