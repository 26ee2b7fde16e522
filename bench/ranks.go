package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/histogram"
)

// rankSizes are how many elements the collections have, one size a step. What
// finds the n-th of them must hardly notice.
func rankSizes(n int) []int { return []int{1000, max(n/10, 1000), max(n, 1000)} }

const rankSteps = 3

// ranked is one call on a collection of n elements. Times are those of op
// alone; after, if there is one, undoes what op did.
type ranked struct {
	name  string
	op    func() error
	after func() error
}

// ranks loads a collection and times single calls on it.
func ranks(fill loader, calls func(s *db.Store, n int, r *rand.Rand) []ranked) func(c *child) error {
	return func(c *child) error {
		n := rankSizes(c.n)[c.step]
		s, err := db.Open(c.path(fmt.Sprint(c.step)), &db.Options{NoMerge: true, Sync: db.SyncNone})
		if err != nil {
			return err
		}
		err = fill(s, n)
		runtime.GC()
		r := rand.New(rand.NewPCG(5, uint64(n)))
		for _, call := range calls(s, n, r) {
			if err != nil {
				break
			}
			err = c.timeCalls(call)
		}
		return errors.Join(err, s.Close())
	}
}

// rankCalls is how often each call is made. The first tenth is not counted.
const rankCalls = 20_000

func (c *child) timeCalls(call ranked) error {
	var h histogram.Histogram
	for i := range min(rankCalls, max(c.n, 100)) {
		begin := time.Now()
		err := call.op()
		took := time.Since(begin)
		if err == nil && call.after != nil {
			err = call.after()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
		if i >= rankCalls/10 || c.n < rankCalls {
			h.Add(took)
		}
	}
	c.record(fmt.Sprintf("%s-%d", call.name, c.step), float64(h.Quantile(0.5)))
	c.record(fmt.Sprintf("%s-%d-p99", call.name, c.step), float64(h.Quantile(0.99)))
	return nil
}

// some is how many elements a range takes.
const some = 10

func sortedSetCalls(s *db.Store, n int, r *rand.Rand) []ranked {
	zset := s.SortedSet("zset")
	var removed []db.Scored
	place := func() int64 { return r.Int64N(int64(n - some)) }
	return []ranked{
		{name: "rank", op: func() error { return errOf(zset.Rank(element(r.IntN(n)))) }},
		{name: "range", op: func() error {
			from := place()
			got, err := zset.Range(db.RankRange{Start: from, Stop: from + some - 1})
			return errors.Join(err, wrongCount(len(got), some))
		}},
		{name: "count", op: func() error {
			return errOf(zset.Count(db.ScoreRange{Min: float64(r.Uint32() / 2), Max: float64(1<<31 + r.Uint32()/2)}))
		}},
		{name: "remove", op: func() error {
			from := int64(n / 2)
			got, err := zset.RemoveRange(db.RankRange{Start: from, Stop: from + some - 1})
			return errors.Join(err, wrongCount(got, some))
		}, after: func() error {
			// Others take their places, so that there are as many as before.
			removed = removed[:0]
			for range some {
				removed = append(removed, db.Scored{Member: fmt.Sprintf("r:%016x", r.Uint64()), Score: float64(r.Uint32())})
			}
			_, err := zset.Add(removed...)
			return err
		}},
		{name: "random", op: func() error { return errOf(zset.Random(1)) }},
		{name: "len", op: func() error {
			got, err := zset.Len()
			return errors.Join(err, wrongCount(got, n))
		}},
	}
}

func listCalls(s *db.Store, n int, r *rand.Rand) []ranked {
	list := s.List("list")
	return []ranked{
		{name: "at", op: func() error { return errOf(list.At(r.Int64N(int64(n)))) }},
		{name: "range", op: func() error {
			from := r.Int64N(int64(n - some))
			got, err := list.Range(from, from+some-1)
			return errors.Join(err, wrongCount(len(got), some))
		}},
	}
}

func setCalls(s *db.Store, n int, _ *rand.Rand) []ranked {
	set := s.Set("set")
	var popped []string
	return []ranked{
		{name: "random", op: func() error { return errOf(set.Random(1)) }},
		{name: "pop", op: func() (err error) {
			popped, err = set.Pop(1)
			return errors.Join(err, wrongCount(len(popped), 1))
		}, after: func() error {
			got, err := set.Add(popped...)
			return errors.Join(err, wrongCount(got, 1))
		}},
		{name: "len", op: func() error {
			got, err := set.Len()
			return errors.Join(err, wrongCount(got, n))
		}},
	}
}

func hashCalls(s *db.Store, n int, _ *rand.Rand) []ranked {
	hash := s.Hash("hash")
	return []ranked{
		{name: "random", op: func() error {
			got := 0
			err := hash.VisitRandomFields(1, nil, func([]byte) bool {
				got++
				return true
			})
			return errors.Join(err, wrongCount(got, 1))
		}},
		{name: "random-value", op: func() error {
			got, err := hash.Random(1)
			return errors.Join(err, wrongCount(len(got), 1))
		}},
		{name: "len", op: func() error {
			got, err := hash.Len()
			return errors.Join(err, wrongCount(got, n))
		}},
	}
}

func keyCalls(s *db.Store, _ int, _ *rand.Rand) []ranked {
	return []ranked{{name: "random", op: func() error { return errOf(s.Keyspace().RandomKey()) }}}
}

func wrongCount(got, want int) error {
	if got != want {
		return fmt.Errorf("%d elements, want %d", got, want)
	}
	return nil
}

// rankRow shows a call at every size, and how many times its time at the
// smallest it takes at the largest.
func rankRow(label, name string) row {
	at := func(step int) string { return fmt.Sprintf("ranks/%s-%d", name, step) }
	return row{label: label, cells: []cell{
		fig(micros, at(0)), fig(micros, at(1)), fig(micros, at(2)), fig(micros, at(2)+"-p99"),
		calc(times, func(v []float64) float64 { return v[1] / v[0] }, at(0), at(2)),
	}}
}

var rankTable = table{"one call, by elements in the collection", []string{"1,000", "n / 10", "n", "n, p99", "n / 1,000"}, []row{
	rankRow("ZRANK", "zset/rank"),
	rankRow("ZRANGE, 10 by rank", "zset/range"),
	rankRow("ZCOUNT, about half", "zset/count"),
	rankRow("ZREMRANGEBYRANK, 10 in the middle", "zset/remove"),
	rankRow("ZRANDMEMBER", "zset/random"),
	rankRow("ZCARD", "zset/len"),
	rankRow("LINDEX", "list/at"),
	rankRow("LRANGE, 10", "list/range"),
	rankRow("SRANDMEMBER", "set/random"),
	rankRow("SPOP", "set/pop"),
	rankRow("SCARD", "set/len"),
	rankRow("HRANDFIELD", "hash/random"),
	rankRow("HRANDFIELD, with its value", "hash/random-value"),
	rankRow("HLEN", "hash/len"),
	rankRow("RANDOMKEY", "keys/random"),
}}
