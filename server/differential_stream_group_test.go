package server_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// The grammar of consumer groups, for the differential test, and how their replies are compared. Times of idleness are
// none or so long that the speed of a server does not count.

func (g *generator) group() string { return pick(g, "g", "g", "g", "h", "", "\x00", "nope") }

func (g *generator) consumer() string { return pick(g, "alice", "bob", "carol", "", "7") }

func (g *generator) idle() string { return pick(g, "0", "0", "0", "1000000", "-1", "x") }

// startOfGroup is an id to begin after.
func (g *generator) startOfGroup() string {
	if g.chance(2) {
		return pick(g, "$", "0", "0")
	}
	return g.streamID()
}

func (g *generator) xgroup() []string {
	read := g.maybe(4, "ENTRIESREAD", pick(g, "0", "3", "-1", "-2", "x"))
	switch g.r.IntN(12) {
	default:
		return join(pick(g, "CREATE", "create"), g.key(), g.group(), g.startOfGroup(), g.maybe(2, "MKSTREAM"), read, g.maybe(40, "nope"))
	case 0, 1:
		return join("SETID", g.key(), g.group(), g.startOfGroup(), read, g.maybe(40, "mkstream"))
	case 2:
		return join("DESTROY", g.key(), g.group(), g.maybe(40, "x"))
	case 3, 4:
		return join("CREATECONSUMER", g.key(), g.group(), g.consumer())
	case 5:
		return join("DELCONSUMER", g.key(), g.group(), g.consumer())
	case 6:
		return join(pick(g, "nope", "create", "setid", "delconsumer"), g.key(), g.group())
	}
}

// groupScene makes a stream with a group, and does a few things with it: commands drawn apart seldom meet a group that
// exists.
func (g *generator) groupScene() [][]string {
	key, group := g.key(), pick(g, "g", "h")
	scene := [][]string{
		{"del", key}, {"xadd", key, "1-1", "f", "v"}, {"xadd", key, "2-1", "f", "v"}, {"xgroup", "CREATE", key, group, pick(g, "0", "$", "1")},
		{"xreadgroup", "GROUP", group, "alice", "COUNT", pick(g, "1", "2"), "STREAMS", key, ">"},
	}
	for range 3 {
		scene = append(scene, pick(g,
			join("xgroup", "SETID", key, group, g.startOfGroup(), g.maybe(3, "ENTRIESREAD", pick(g, "0", "1"))),
			[]string{"xgroup", "CREATECONSUMER", key, group, g.consumer()},
			[]string{"xgroup", "DELCONSUMER", key, group, pick(g, "alice", g.consumer())},
			[]string{"xgroup", "DESTROY", key, group},
			[]string{"xinfo", "CONSUMERS", key, group},
			[]string{"xinfo", "GROUPS", key},
			[]string{"xpending", key, group},
			[]string{"xpending", key, group, "-", "+", "10"},
			[]string{"xack", key, group, "1-1"},
			[]string{"xclaim", key, group, "bob", "0", "1-1", "2-1", "JUSTID"},
			[]string{"xautoclaim", key, group, "carol", "0", "-"},
			[]string{"xdel", key, "1-1"},
			[]string{"xreadgroup", "GROUP", group, "bob", "STREAMS", key, ">"},
			[]string{"xreadgroup", "GROUP", group, "alice", "STREAMS", key, "0"}))
	}
	return scene
}

func (g *generator) xreadgroup() []string {
	keys := g.several(1, 2, g.key)
	var ids []string
	for range keys {
		id := ">"
		if g.chance(3) {
			id = g.streamID()
		}
		ids = append(ids, id)
	}
	if g.chance(30) {
		ids = ids[1:]
	}
	return join(g.maybe(2, "COUNT", pick(g, "1", "2", "1", "0", "-1", "x")), g.maybe(8, "BLOCK", pick(g, "1", "2", "-1", "x")), g.maybe(8, "NOACK"),
		pick(g, "group", "GROUP"), g.group(), g.consumer(), g.maybe(60, pick(g, "noack", "group", "nope")), pick(g, "streams", "STREAMS"), keys, ids)
}

func (g *generator) xpending() []string {
	if g.chance(3) {
		return g.keyAnd(g.group(), g.maybe(20, "-"))
	}
	return g.keyAnd(g.group(), g.maybe(3, "IDLE", g.idle()), g.streamBound(), g.streamBound(), g.count(), g.maybe(2, g.consumer()), g.maybe(40, "x"))
}

func (g *generator) xclaim() []string {
	return g.keyAnd(g.group(), g.consumer(), g.idle(), g.several(1, 4, g.streamID),
		g.maybe(4, pick(g, "IDLE", "idle"), pick(g, "0", "100000000", "100000000", "-5", "x")), g.maybe(8, "TIME", pick(g, "1", "-1", "99999999999999", "x")),
		g.maybe(6, "RETRYCOUNT", pick(g, "0", "5", "-1", "x")), g.maybe(3, "FORCE"), g.maybe(4, "JUSTID"), g.maybe(8, "LASTID", g.streamID()),
		g.maybe(40, "nope"))
}

func (g *generator) xautoclaim() []string {
	return g.keyAnd(g.group(), g.consumer(), g.idle(), g.streamBound(), g.maybe(2, "COUNT", pick(g, "1", "1", "3", "0", "x", "100")),
		g.maybe(4, "justid"), g.maybe(40, "nope"))
}

// comparedName is the name by which replies are compared. Redis before 7.2 makes a consumer only when there is
// something to read or to claim, so the servers differ in which consumers have nothing pending.
func comparedName(args []string) string {
	name := strings.ToLower(args[0])
	if name == "xgroup" && len(args) > 1 && strings.EqualFold(args[1], "createconsumer") {
		return "xgroup|createconsumer"
	}
	return name
}

// withoutIdlers is a list of consumers without those that have nothing pending, by the fact of that name; a number of
// consumers is left out.
func withoutIdlers(name string, r resp.Reply) resp.Reply {
	if r.Kind == resp.Integer {
		return resp.Reply{}
	}
	r.Items = slices.Clone(r.Items)
	r.Items = slices.DeleteFunc(r.Items, func(c resp.Reply) bool {
		idle := false
		for i := 0; i+1 < len(c.Items); i += 2 {
			switch c.Items[i].String() {
			case "last-delivered-id":
				return false // a group
			case name:
				idle = c.Items[i+1].Int == 0
			}
		}
		return idle
	})
	return r
}

// sinceRedis72 are the facts of XINFO that Redis 7.0 has not.
var sinceRedis72 = []string{"inactive", "active-time"}

// uncertain are the facts of XINFO that the clock decides, and those that Redis 7.0 knows less often, or wrongly, after
// deletions and trims: TestStreamGroupProgress has them.
var uncertain = []string{"idle", "seen-time", "entries-read", "lag"}

// groupFacts is the reply of XINFO without what differs.
func groupFacts(r resp.Reply) resp.Reply {
	var items []resp.Reply
	for i := 0; i < len(r.Items); i++ {
		item := r.Items[i]
		named := r.Items[i].Kind == resp.BulkString && i%2 == 0 && i+1 < len(r.Items)
		switch name := item.String(); {
		case named && slices.Contains(sinceRedis72, name):
			i++
		case named && slices.Contains(uncertain, name):
			items = append(items, item, resp.Reply{})
			i++
		case named && name == "consumers":
			items = append(items, item, groupFacts(withoutIdlers("pel-count", r.Items[i+1])))
			i++
		case named && name == "pending" && r.Items[i+1].Kind == resp.Array:
			items = append(items, item, withoutMoments(r.Items[i+1]))
			i++
		default:
			items = append(items, groupFacts(item))
		}
	}
	r.Items = items
	return r
}

// withoutMoments is a list of pending entries without when they were delivered, the last part but one.
func withoutMoments(r resp.Reply) resp.Reply {
	r.Items = slices.Clone(r.Items)
	for i, p := range r.Items {
		if n := len(p.Items); n >= 3 {
			p.Items = slices.Clone(p.Items)
			p.Items[n-2] = resp.Reply{}
			r.Items[i] = p
		}
	}
	return r
}

// fullStream asks for all that a stream has.
func fullStream(key string) []string {
	return []string{"xinfo", "stream", key, "full", "count", strconv.Itoa(0)}
}
