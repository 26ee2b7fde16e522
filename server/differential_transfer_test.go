package server_test

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/resp"
)

// The grammar of what carries keys elsewhere, for the differential test.
func init() {
	maps.Copy(commands, map[string]func(g *generator) []string{
		"copy": func(g *generator) []string {
			return g.keyAnd(g.key(), g.maybe(4, "db", g.database()), g.maybe(2, "REPLACE"), g.maybe(40, pick(g, "db", "nope")))
		},
		"move":      func(g *generator) []string { return g.keyAnd(g.database()) },
		"randomkey": func(*generator) []string { return nil },
		"dump":      func(g *generator) []string { return g.keyAnd() },
		"restore": func(g *generator) []string {
			return g.keyAnd(pick(g, "0", "0", "0", "5000000", "-1", "x", "9223372036854775807"), g.payload(), g.maybe(2, "REPLACE"),
				g.maybe(8, "idletime", pick(g, "5", "-1", "x")), g.maybe(8, "FREQ", pick(g, "5", "-1", "256", "x")), g.maybe(40, pick(g, "nope", "freq")))
		},
	})
	rare["object"] = func(g *generator) []string {
		return pick(g, []string{"freq", g.key()}, []string{"nope"}, []string{"encoding"}, []string{"idletime", "no such key"}, []string{"refcount", "no such key"})
	}
}

func (g *generator) database() string {
	return pick(g, "0", "1", "1", "15", "16", "-1", "x", "99999999999999999999", "2147483648")
}

// payload is a reply of DUMP for a random value; sometimes it is damaged.
func (g *generator) payload() string {
	var w rdb.Writer
	kind := pick(g, rdb.String, rdb.List, rdb.Set, rdb.SortedSet, rdb.Hash)
	names := map[string]bool{}
	for _, name := range g.several(1, 6, g.element) {
		names[name] = true
	}
	w.Begin(kind, len(names))
	for name := range names {
		w.Bytes([]byte(name))
		switch kind {
		case rdb.Hash:
			w.Bytes([]byte(g.element()))
		case rdb.SortedSet:
			w.Score(pick(g, 0, 1.5, -3, math.Inf(1)))
		case rdb.String:
			return g.damaged(string(w.Seal()))
		}
	}
	return g.damaged(string(w.Seal()))
}

func (g *generator) damaged(payload string) string {
	if !g.chance(12) {
		return payload
	}
	return pick(g, payload[:len(payload)-1], payload+"x", payload[:g.r.IntN(len(payload))], "", "\xff"+payload)
}

// randomkey compares whether there is a key, and looks it up.
func (p *pair) randomkey(args []string) string {
	ours, err := p.stave.do(args)
	if err != nil {
		return err.Error()
	}
	p.count(args, ours)
	if ours.Null || ours.IsError() {
		theirs, err := p.redis.do(args)
		if err != nil {
			return err.Error()
		}
		return diff("randomkey", ours, theirs)
	}
	if exists, err := p.redis.do([]string{"exists", string(ours.Text)}); err != nil || exists.Int != 1 {
		return fmt.Sprintf("stave chose %q: %s, %v", ours.Text, show(exists), err)
	}
	return ""
}

// dump has each server restore what the other one dumped. What the two keys hold is compared with everything else in
// the end.
func (p *pair) dump(args []string) string {
	ours, theirs, err := p.one(args)
	if err != nil {
		return err.Error()
	}
	if ours.Null || ours.IsError() || theirs.Null || theirs.IsError() {
		return diff("dump", ours, theirs)
	}
	to := "restored:" + args[1]
	for one, payload := range map[peer]resp.Reply{p.stave: theirs, p.redis: ours} {
		if reply, err := one.do([]string{"restore", to, "0", string(payload.Text), "replace"}); err != nil || reply.String() != "OK" {
			return fmt.Sprintf("restore of %q by %T: %s, %v", payload.Text, one, show(reply), err)
		}
	}
	return ""
}

// TestEncodings carries values of every encoding that the real server has from there to here and back.
func TestEncodings(t *testing.T) {
	p := newPair(t)
	long := strings.Repeat("long element ", 1000)
	many := func(n int, one func(i int) []string) (args []string) {
		for i := range n {
			args = append(args, one(i)...)
		}
		return args
	}
	number := func(i int) []string { return []string{strconv.Itoa(i)} }
	text := func(i int) []string { return []string{"element " + strconv.Itoa(i)} }
	field := func(i int) []string { return []string{"field " + strconv.Itoa(i), strings.Repeat("v", i%70)} }
	member := func(i int) []string {
		return []string{strconv.FormatFloat(float64(i)/7-20, 'g', -1, 64), "member " + strconv.Itoa(i)}
	}
	lengths := []string{"", "-1", "127", "128", "-4097", "4095", "-4096", "32767", "-32769", "8388607", "-8388609", "2147483647", "-2147483649",
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "01", "-0", strings.Repeat("a", 63), strings.Repeat("b", 64),
		strings.Repeat("c", 4095), strings.Repeat("d", 4096), strings.Repeat("e", 123), strings.Repeat("f", 16378), strings.Repeat("g", 16379)}
	for name, args := range map[string][]string{
		"int8":       {"set", "-128"},
		"int16":      {"set", "32767"},
		"int32":      {"set", "-2147483648"},
		"int64":      {"set", "2147483648"},
		"text":       {"set", "\x00\xff\r\n"},
		"empty":      {"set", ""},
		"compressed": {"set", long},
		"14 bits":    {"set", strings.Repeat("0123456789abcdef", 2000)[:16383]},
		"list":       join("rpush", lengths),
		"long list":  join("rpush", many(5000, text)),
		"plain node": {"rpush", "a", strings.Repeat(long, 2), "b"},
		"intset 16":  join("sadd", many(300, number)),
		"intset 32":  join("sadd", "70000", "-70000", many(30, number)),
		"intset 64":  join("sadd", "9223372036854775807", "-9223372036854775808", many(3, number)),
		"set":        join("sadd", lengths),
		"large set":  join("sadd", many(1000, text)),
		"hash":       join("hset", many(20, field)),
		"lengths":    join("hset", many(10, func(i int) []string { return lengths[2*i : 2*i+2] })),
		"large hash": join("hset", many(1000, field)),
		"zset":       join("zadd", "inf", "a", "-inf", "b", "1e300", "c", many(50, member)),
		"large zset": join("zadd", "inf", "a", "-inf", "b", "5e-324", "c", many(1000, member)),
		"sketch":     {"pfadd", "a", "b"},
	} {
		key := "key:" + name
		args = join(args[0], key, args[1:])
		for _, step := range [][]string{args, {"dump", key}, {"del", "nothing"}} {
			if d := p.run(step); d != "" {
				t.Errorf("%s: %.80q: %s", name, step, d)
			}
		}
	}
	if d := p.sameState(); d != "" {
		t.Error(d)
	}
}
