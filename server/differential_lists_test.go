package server_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// TestDifferentialLists compares Stave with a real redis-server on lists that are long enough to be changed in the middle
// again and again: with holes, elements that were inserted, and ends that are trimmed and pushed to.
func TestDifferentialLists(t *testing.T) {
	p := newPair(t)
	seed := chance.Seed(t)
	for round := range 6 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		sequence := [][]string{{"flushall"}}
		for _, key := range []string{"long", "short"} {
			push := []string{"rpush", key}
			for range map[string]int{"long": 600, "short": 20}[key] {
				push = append(push, listElement(r))
			}
			sequence = append(sequence, push)
		}
		for range 400 {
			sequence = append(sequence, listCommand(r))
		}
		p.together = 1 + round%2*20
		if d, at := p.replay(sequence, round%2 == 0); d != "" {
			p.report(round, sequence[:at], round%2 == 0, d)
			return
		}
	}
}

func listElement(r *rand.Rand) string { return "e" + strconv.Itoa(r.IntN(200)) }

// listCommand is a command on one of two lists.
func listCommand(r *rand.Rand) []string {
	key := []string{"long", "short"}[r.IntN(2)]
	number := func() string { return strconv.Itoa(r.IntN(600) - 300) }
	side := func() string { return []string{"left", "right"}[r.IntN(2)] }
	switch r.IntN(14) {
	case 0, 1, 2:
		return []string{"linsert", key, []string{"before", "after"}[r.IntN(2)], listElement(r), listElement(r)}
	case 3, 4:
		return []string{"lrem", key, strconv.Itoa(r.IntN(5) - 2), listElement(r)}
	case 5:
		return []string{"ltrim", key, strconv.Itoa(r.IntN(4)), strconv.Itoa(-1 - r.IntN(4))}
	case 6:
		return []string{[]string{"lpush", "rpush"}[r.IntN(2)], key, listElement(r), listElement(r), listElement(r)}
	case 7:
		return []string{[]string{"lpop", "rpop"}[r.IntN(2)], key}
	case 8:
		return []string{"lset", key, number(), listElement(r)}
	case 9:
		return []string{"lindex", key, number()}
	case 10:
		return []string{"lrange", key, number(), number()}
	case 11:
		return []string{"lpos", key, listElement(r), "rank", strconv.Itoa([]int{-2, -1, 1, 2}[r.IntN(4)]), "count", "3"}
	case 12:
		return []string{"lmove", key, []string{"long", "short"}[r.IntN(2)], side(), side()}
	default:
		return [][]string{{"copy", key, "copied", "replace"}, {"sort", key, "alpha", "store", "sorted"}, {"lmpop", "1", key, side(), "count", "2"}}[r.IntN(3)]
	}
}
