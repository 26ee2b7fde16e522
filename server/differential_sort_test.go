package server_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// The grammar of SORT, for the differential test.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"sort":    func(g *generator) []string { return g.keyAnd(g.sortWords(), g.maybe(4, "STORE", g.key())) },
		"sort_ro": func(g *generator) []string { return g.keyAnd(g.sortWords(), g.maybe(40, "store", g.key())) },
	})
}

func (g *generator) sortWords() (words []string) {
	words = join(g.maybe(2, "alpha"), g.maybe(4, "by", g.sortPattern()), g.maybe(3, pick(g, "asc", "DESC")), g.maybe(3, "LIMIT", g.integer(), g.integer()))
	for g.chance(4) {
		words = append(words, "get", g.sortPattern())
	}
	return join(words, g.maybe(40, pick(g, "nope", "limit", "by")))
}

func (g *generator) sortPattern() string {
	return pick(g, "#", "*", "nosort", "*->a", "b->*", "a*", "*:b", "a:*", "b*->b", "*->", "a->*->b", "", "c", "**", "*\x00", "\x00*")
}

// sort compares replies to SORT, except for undefined orders: of a set that is not sorted, of elements that have no
// text to be compared by or the same, and of texts with a NUL, where the comparison of Redis ends unless it stores.
func (p *pair) sort(args []string) string {
	has := func(word string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, word) })
	}
	unordered := has("by") && has("alpha")
	if len(args) > 1 {
		typ, err := p.redis.do([]string{"type", args[1]})
		if err != nil {
			return err.Error()
		}
		unordered = unordered || has("by") && string(typ.Text) == "set"
		elements, err := p.redis.do([]string{"sort_ro", args[1], "by", "nosort"})
		if err != nil {
			return err.Error()
		}
		withNUL := slices.ContainsFunc(elements.Items, func(r resp.Reply) bool { return bytes.IndexByte(r.Text, 0) >= 0 })
		unordered = unordered || has("alpha") && withNUL
	}
	if unordered && (has("limit") || has("store")) {
		return ""
	}
	// SORT of Redis looks at errno without clearing it first: after ZINCRBY of 5e-324 it takes every number for one out
	// of range. The reading of a place's longitude clears it.
	if _, err := p.redis.do([]string{"geosearch", "no such key", "fromlonlat", "0", "0", "byradius", "1", "m"}); err != nil {
		return err.Error()
	}
	ours, theirs, err := p.one(args)
	if err != nil {
		return err.Error()
	}
	if unordered {
		sortRows(ours.Items)
		sortRows(theirs.Items)
	}
	return diff("sort", ours, theirs)
}

func sortRows(items []resp.Reply) {
	slices.SortFunc(items, func(a, b resp.Reply) int {
		if a.Null != b.Null {
			if a.Null {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.Text, b.Text)
	})
}
