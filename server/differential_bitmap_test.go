package server_test

import (
	"maps"
	"strconv"
)

// The grammar of bitmaps, for the differential test.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"getbit": func(g *generator) []string { return g.keyAnd(g.bitOffset()) },
		"setbit": func(g *generator) []string { return g.keyAnd(g.bitOffset(), pick(g, "0", "1", "1", "2", "x")) },
		"bitcount": func(g *generator) []string {
			return g.keyAnd(g.maybe(2, join(g.integer(), g.integer(), g.maybe(2, pick(g, "bit", "BYTE", "BIT", "x")))...))
		},
		"bitpos": func(g *generator) []string {
			return g.keyAnd(pick(g, "0", "1", "1", "0", "2", "x"), g.maybe(2, join(g.integer(), g.maybe(2, join(g.integer(), g.maybe(2, pick(g, "bit", "BYTE", "x")))...))...))
		},
		"bitop": func(g *generator) []string {
			return join(pick(g, "and", "OR", "xor", "not", "not", "x"), g.key(), g.several(1, 3, g.key))
		},
		"bitfield":    func(g *generator) []string { return g.keyAnd(g.bitfield(false)) },
		"bitfield_ro": func(g *generator) []string { return g.keyAnd(g.bitfield(true)) },
	})
}

// bitOffset is the position of a bit, never so large that a string would have many megabytes.
func (g *generator) bitOffset() string {
	switch g.r.IntN(12) {
	case 0:
		return pick(g, "-1", "x", "4294967296", "9223372036854775807", "-9223372036854775808", "#1", "01", "")
	case 1:
		return strconv.Itoa(g.r.IntN(20000))
	}
	return strconv.Itoa(g.r.IntN(200))
}

func (g *generator) bitfieldType() string {
	if g.chance(12) {
		return pick(g, "u64", "i65", "u0", "x8", "", "u", "i-1", "u8\x00x", "I8", "u08")
	}
	if g.chance(2) {
		return pick(g, "u1", "u2", "u8", "u16", "u32", "u63", "i1", "i2", "i8", "i63", "i64")
	}
	return pick(g, "i", "u") + strconv.Itoa(1+g.r.IntN(63))
}

func (g *generator) bitfield(readOnly bool) (args []string) {
	for range g.r.IntN(5) {
		offset := g.bitOffset()
		if g.chance(3) {
			offset = "#" + pick(g, strconv.Itoa(g.r.IntN(9)), "-1", "x", "999999999999")
		}
		value := pick(g, g.integer(), strconv.FormatInt(int64(g.r.Uint64()>>g.r.IntN(64)), 10), "-9223372036854775808", "9223372036854775807", "255", "-128")
		action := g.r.IntN(8)
		if readOnly && !g.chance(20) {
			action = 0
		}
		switch action {
		case 0, 1:
			args = append(args, "get", g.bitfieldType(), offset)
		case 2, 3:
			args = append(args, "SET", g.bitfieldType(), offset, value)
		case 4, 5:
			args = append(args, "incrby", g.bitfieldType(), offset, value)
		default:
			args = append(args, "overflow", pick(g, "wrap", "SAT", "sat", "fail", "FAIL", "wrap", "x"))
		}
	}
	return join(args, g.maybe(30, "nope"))
}
