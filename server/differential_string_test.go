package server_test

import (
	"maps"
	"strconv"
)

// The grammar of what strings have beyond reading and writing, for the differential test.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"getdel": func(g *generator) []string { return g.keyAnd() },
		"getex":  (*generator).getex,
		"getset": func(g *generator) []string { return g.keyAnd(g.element()) },
		"setrange": func(g *generator) []string {
			return g.keyAnd(pick(g, g.integer(), strconv.Itoa(g.r.IntN(600))), g.element())
		},
		"incrbyfloat": func(g *generator) []string { return g.keyAnd(g.float()) },
		"lcs": func(g *generator) []string {
			return g.keyAnd(g.key(), g.maybe(4, "len"), g.maybe(2, "IDX"), g.maybe(3, "minmatchlen", g.integer()), g.maybe(3, "withmatchlen"),
				g.maybe(30, pick(g, "minmatchlen", "nope")))
		},
	})
}

func (g *generator) getex() []string {
	return g.keyAnd(g.maybe(4, "ex", g.seconds()), g.maybe(5, "PX", g.milliseconds()), g.maybe(8, "exat", g.unix(1)),
		g.maybe(8, "pxat", g.unix(1000)), g.maybe(5, "persist"), g.maybe(40, pick(g, "nope", "keepttl", "ex", "get")))
}
