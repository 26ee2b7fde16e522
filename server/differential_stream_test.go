package server_test

import (
	"strconv"

	"github.com/stavedb/stave/structures"
)

// The grammar of streams, for the differential test. Ids by the clock differ from server to server, and so does which
// entries an approximate trim leaves, unless it takes all or none.

// streamID is an id, mostly one of few.
func (g *generator) streamID() string {
	if g.chance(15) {
		return pick(g, "0-0", "0", "-", "+", "18446744073709551615-18446744073709551615", "18446744073709551615-0", "18446744073709551616-0", "1-18446744073709551615",
			"x", "1-x", "", "-1", "1-", "1--1", "1-1-1", "01-1", " 1-1", "+1-1", "1-+1", "1 -1", "1.5", "$", ">", "*", "1-*", "9223372036854775808-1", "00-01", "1-0-5", "1-0+1", "1-0 1", "1-018446744073709551615",
			"1-0000000000000000000000000000000001")
	}
	most := 12
	if g.wide {
		most = 600
	}
	id := strconv.Itoa(g.r.IntN(most))
	if g.chance(3) {
		return id
	}
	return id + "-" + strconv.Itoa(g.r.IntN(4))
}

func (g *generator) streamBound() string {
	switch g.r.IntN(5) {
	case 0:
		return pick(g, "-", "+", "(-", "(+", "(", "(0-0", "(18446744073709551615-18446744073709551615")
	case 1:
		return "(" + g.streamID()
	}
	return g.streamID()
}

func (g *generator) streamCount() []string {
	return join(g.maybe(3, "count", g.count()), g.maybe(40, pick(g, "COUNT", "nope")))
}

// streamTrim are the words of a trim.
func (g *generator) streamTrim() []string {
	limit := g.maybe(12, "LIMIT", pick(g, "0", "1000000", "-1", "x"))
	if g.chance(4) { // all or none
		threshold := join("MAXLEN", "~", pick(g, "0", "1000000"))
		if g.chance(2) {
			threshold = join("minid", "~", pick(g, "0-0", "18446744073709551615-18446744073709551615"))
		}
		return join(threshold, limit)
	}
	sign := g.maybe(3, pick(g, "=", "=", "=="))
	if g.chance(2) {
		return join(pick(g, "maxlen", "MAXLEN"), sign, g.count(), limit)
	}
	return join("MINID", sign, g.streamID(), limit, g.maybe(40, "maxlen", "3"))
}

func (g *generator) xadd() []string {
	var id []string
	switch {
	case g.chance(20):
		return g.keyAnd("1-*", g.several(1, 1, g.element)) // too few arguments
	case g.chance(4):
		id = join(strconv.Itoa(g.r.IntN(20)) + "-*")
	default:
		id = join(g.streamID())
	}
	fields := g.pairs(g.element)
	if g.chance(40) {
		fields = fields[1:]
	}
	return g.keyAnd(g.maybe(6, "NOMKSTREAM"), g.maybe(4, g.streamTrim()...), id, fields)
}

func (g *generator) xread() []string {
	keys := g.several(1, 3, g.key)
	var ids []string
	for range keys {
		id := g.streamID()
		if id == "+" { // the last entry since Redis 7.4: TestReadLastEntry
			id = "$"
		}
		ids = append(ids, id)
	}
	if g.chance(30) {
		ids = ids[1:]
	}
	return join(g.maybe(3, "COUNT", g.count()), g.maybe(4, "BLOCK", pick(g, "1", "2", "1", "-1", "x", "1.5")), g.maybe(60, pick(g, "noack", "group", "nope")),
		pick(g, "streams", "STREAMS"), keys, ids)
}

func (g *generator) xsetid() []string {
	id := g.streamID()
	if !g.chance(3) { // at least as great as the last one, as a rule
		id = strconv.Itoa(10+g.r.IntN(700)) + "-3"
	}
	return g.keyAnd(id, g.maybe(3, "ENTRIESADDED", g.count()), g.maybe(3, "maxdeletedid", g.streamID()), g.maybe(40, "entriesadded"))
}

// xsetid compares XSETID, but with an id before the greatest deleted one: that has been refused since Redis 7.2.
func (p *pair) xsetid(args []string) string {
	ours, err := p.stave.do(args)
	if err != nil {
		return err.Error()
	}
	if string(ours.Text) == string(structures.ErrStreamSetBelowDeleted) {
		p.count(args, ours)
		return ""
	}
	theirs, err := p.redis.do(args)
	if err != nil {
		return err.Error()
	}
	return p.compare(args, ours, theirs)
}

func (g *generator) xinfo() []string {
	switch g.r.IntN(3) {
	case 0:
		return join(pick(g, "groups", "GROUPS"), g.key(), g.maybe(40, "nope"))
	case 1:
		return join("consumers", g.key(), g.group(), g.maybe(40, "nope"))
	}
	return join(pick(g, "stream", "STREAM"), g.key(), g.maybe(2, join("FULL", g.maybe(2, "COUNT", g.count()))...), g.maybe(40, "nope"))
}
