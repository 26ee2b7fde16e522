package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	numbers "github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/resp"
)

// The grammar and the comparison of commands on several collections at once.

// counted is a number of keys and the keys; sometimes the number is wrong.
func (g *generator) counted() []string {
	keys := g.several(1, 3, g.key)
	n := strconv.Itoa(len(keys))
	if g.chance(20) {
		n = pick(g, "0", "-1", "x", "1", "2", "4", "100", "1.5", "")
	}
	return join(n, keys)
}

// timeout is one that passes soon, or none.
func (g *generator) timeout() string {
	return pick(g, "0.001", "0.002", "1e-3", "0.001", "0.001", "0x1p-9", "-1", "x", "-0.01", "nan", "-inf", "")
}

// waitsLong says whether the command may wait for longer than a test can: for ever, that is with a timeout of 0, or for
// long.
func waitsLong(name string, args []string) bool {
	if name == "xread" || name == "xreadgroup" {
		at := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "block") })
		if at < 0 || at+1 >= len(args) {
			return false
		}
		ms, ok := numbers.ParseInt(args[at+1])
		return ok && (ms == 0 || ms > 10)
	}
	if !slices.Contains([]string{"blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop"}, name) || len(args) < 2 {
		return false
	}
	text := args[len(args)-1]
	if strings.HasSuffix(name, "mpop") {
		text = args[1]
	}
	long, ok := numbers.ParseExtended(text) // as Redis reads it: "-0x0" is 0
	if !ok {
		return false
	}
	seconds, _ := long.Float64()
	return seconds > -0.005 && seconds <= 0 || seconds > 0.01 // above 1e15 Redis before 7.2 overflows
}

// multiPop are the arguments of LMPOP and its like.
func (g *generator) multiPop(front, back string) []string {
	return join(g.counted(), pick(g, front, back, back, front, front, "x"), g.maybe(2, "COUNT", g.count()), g.maybe(30, pick(g, "count", "nope")))
}

// combination are the words after the keys of ZUNION and its like.
func (g *generator) combination() []string {
	var weights []string
	for range 1 + g.r.IntN(3) {
		weights = append(weights, g.float())
	}
	return join(g.maybe(3, join("weights", weights)...), g.maybe(3, "AGGREGATE", pick(g, "sum", "MIN", "max", "x")), g.maybe(30, pick(g, "weights", "aggregate", "nope")))
}

// zrandmember compares errors and sizes, and looks each member up.
func (p *pair) zrandmember(args []string) string {
	ours, theirs, err := p.one(args)
	if err != nil {
		return err.Error()
	}
	if ours.IsError() || ours.Null || ours.Kind != theirs.Kind || len(ours.Items) != len(theirs.Items) || ours.Kind == resp.Array && len(ours.Items) == 0 {
		return diff("zrandmember", ours, theirs)
	}
	width := 1
	items := ours.Items
	if len(args) == 4 {
		width = 2
		if items[0].Kind == resp.Array {
			items = nil
			for _, pair := range ours.Items {
				items = append(items, pair.Items...)
			}
		}
	}
	if ours.Kind == resp.BulkString {
		items = []resp.Reply{ours}
	}
	var chosen []string
	for i := 0; i < len(items); i += width {
		chosen = append(chosen, string(items[i].Text))
	}
	scores, err := p.redis.do(join("zmscore", args[1], chosen))
	if err != nil {
		return err.Error()
	}
	for i, score := range scores.Items {
		if score.Null || width == 2 && !same(items[2*i+1], score, 0, true) {
			return fmt.Sprintf("stave chose %q: %s", chosen[i], show(score))
		}
	}
	if slices.Sort(chosen); len(args) > 2 && !strings.HasPrefix(args[2], "-") && len(slices.Compact(chosen)) != len(chosen) {
		return fmt.Sprintf("stave chose a member twice: %q", chosen)
	}
	return ""
}
