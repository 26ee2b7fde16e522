package server_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestOrderLikeRedis: what Redis keeps in a listpack or an intset has an order, hashes of up to 512 short fields that
// of insertion, sets of up to 512 integers that of their values. Replies are compared as they come, also after the
// store was merged and opened again.
func TestOrderLikeRedis(t *testing.T) {
	r := chance.Rand(t)
	p := newPair(t)
	rounds := budget.Rounds(t, 8, 40)
	for round := range rounds {
		p.reset()
		g := orderGenerator{r, []int{5, 40, 150, 500}[round%4]}
		for range 30 {
			commands := make([][]string, 0, g.space/2)
			for range cap(commands) {
				commands = append(commands, g.change())
			}
			p.compareInOrder(commands)
			if r.IntN(20) == 0 {
				if err := p.reopen(); err != nil {
					t.Fatal(err)
				}
			}
			p.compareInOrder(g.reads())
		}
	}
}

// compareInOrder sends commands to both servers, whose replies must be the same.
func (p *pair) compareInOrder(commands [][]string) {
	p.t.Helper()
	ours, theirs, err := p.both(commands)
	if err != nil {
		p.t.Fatal(err)
	}
	for i, args := range commands {
		if !same(ours[i], theirs[i], 0, false) {
			p.t.Fatalf("%q: stave %.3000s, redis %.3000s", args, show(ours[i]), show(theirs[i]))
		}
	}
}

// orderGenerator makes commands for three hashes and three sets of integers, none of which gets more than space
// elements.
type orderGenerator struct {
	*rand.Rand
	space int
}

func (g orderGenerator) hash() string  { return fmt.Sprint("h", g.IntN(3)) }
func (g orderGenerator) field() string { return fmt.Sprintf("%0*d", g.space%61, g.IntN(g.space)) }
func (g orderGenerator) set() string   { return fmt.Sprint("s", g.IntN(3)) }
func (g orderGenerator) integer() string {
	return strconv.FormatInt(int64(g.IntN(g.space)-g.space/2)*(1<<62/int64(g.space)), 10)
}

func (g orderGenerator) change() []string {
	switch g.IntN(60) {
	case 0:
		return []string{"rename", "h0", "h1"}
	case 1:
		return []string{"copy", g.hash(), "h2", "replace"}
	case 2:
		return []string{"copy", g.set(), "s2", "replace"}
	case 3:
		return []string{"sunionstore", "s1", g.set(), g.set()}
	case 4:
		return []string{"sinterstore", "s0", g.set(), g.set()}
	case 5:
		return []string{"sdiffstore", "s2", g.set(), g.set()}
	case 6:
		return []string{"del", g.hash()}
	case 7:
		return []string{"smove", g.set(), g.set(), g.integer()}
	case 8, 9:
		return []string{"hincrby", g.hash(), "counter", "1"}
	case 10, 11:
		return []string{"hsetnx", g.hash(), g.field(), "y"}
	}
	switch hash := g.IntN(2) == 0; {
	case hash && g.IntN(3) == 0:
		return []string{"hdel", g.hash(), g.field(), g.field()}
	case hash:
		return []string{"hset", g.hash(), g.field(), "v", g.field(), "w", g.field(), strconv.Itoa(g.IntN(100))}
	case g.IntN(3) == 0:
		return []string{"srem", g.set(), g.integer(), g.integer()}
	}
	return []string{"sadd", g.set(), g.integer(), g.integer(), g.integer()}
}

// reads are the commands whose replies show the order. A scan has one page of all.
func (g orderGenerator) reads() (commands [][]string) {
	for i := range 3 {
		h, s := fmt.Sprint("h", i), fmt.Sprint("s", i)
		commands = append(commands, []string{"hgetall", h}, []string{"hkeys", h}, []string{"hvals", h}, []string{"hrandfield", h, "1000"},
			[]string{"smembers", s}, []string{"srandmember", s, "1000"}, []string{"sort", s, "by", "nosort"}, []string{"sort", s, "by", "nosort", "get", "#"},
			[]string{"sinter", s, "s0"}, []string{"sunion", s, "s1"}, []string{"sdiff", s, "s2"}, []string{"hscan", h, "0"}, []string{"sscan", s, "0"})
	}
	return commands
}
