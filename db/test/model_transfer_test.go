package db_test

import (
	"slices"

	"github.com/stavedb/stave/db"
)

// The operations of the model test that concern several collections at once.

func opListMove(x *modelOp) {
	from, to := x.key(), x.key()
	off, onto := db.End(x.rng.IntN(2)), db.End(x.rng.IntN(2))
	x.begin("LMOVE %q %q %d %d", from, to, off, onto)
	v, want := x.get(from, db.TypeList)
	value := ""
	if want == nil {
		want = some(v != nil)
	}
	if want == nil {
		_, want = x.get(to, db.TypeList)
	}
	if want == nil {
		i := 0
		if off == db.Back {
			i = len(v.list) - 1
		}
		value = v.list[i]
		v.list = slices.Delete(slices.Clone(v.list), i, i+1)
		target, _ := x.make(to, db.TypeList)
		target.push(onto == db.Front, []string{value})
	}
	got, err := x.keys.List(from).Move(to, off, onto)
	x.result(string(got), err, value, want)
	x.settle(from)
}

func opSetMove(x *modelOp) {
	from, to, member := x.key(), x.key(), x.name()
	x.begin("SMOVE %q %q %q", from, to, member)
	v, want := x.get(from, db.TypeSet)
	moved := false
	if want == nil && v != nil {
		if _, want = x.get(to, db.TypeSet); want == nil {
			if moved = v.set[member]; moved {
				delete(v.set, member)
				target, _ := x.make(to, db.TypeSet)
				target.set[member] = true
			}
		}
	}
	got, err := x.keys.Set(from).Move(to, member)
	x.result(got, err, moved, want)
	x.settle(from)
}

// opZCombine stores the union, the intersection or the difference of two keys with members. Weights and sums have no
// rounding here, and the infinities are left to tests of their own.
func opZCombine(x *modelOp) {
	to, keys := x.key(), []string{x.key(), x.key()}
	c := db.Combination{Op: db.SetOp(x.rng.IntN(3)), Keys: keys, Aggregate: db.Aggregate(1 + x.rng.IntN(2))}
	if x.rng.IntN(2) == 0 {
		c.Weights = []float64{1, -2}
	}
	x.begin("ZUNIONSTORE and its like %q %+v", to, c)
	var want error
	scores := make([]map[string]float64, len(keys))
	for i, key := range keys {
		if want == nil {
			scores[i], want = x.scores(key)
		}
	}
	result := map[string]float64{}
	if want == nil {
		result = combined(c, scores)
		delete(x.space, to)
		if len(result) > 0 {
			x.space[to] = &modelValue{typ: db.TypeSortedSet, zset: result}
		}
	}
	got, err := x.keys.SortedSet(to).PutCombined(c)
	x.result(got, err, len(result), want)
}

// scores are the members of a set or a sorted set.
func (x *modelOp) scores(key string) (map[string]float64, error) {
	v := x.space[key]
	switch {
	case v == nil:
		return nil, nil
	case v.typ == db.TypeSortedSet:
		return v.zset, nil
	case v.typ == db.TypeSet:
		scores := map[string]float64{}
		for member := range v.set {
			scores[member] = 1
		}
		return scores, nil
	}
	return nil, db.ErrWrongType
}

func combined(c db.Combination, scores []map[string]float64) map[string]float64 {
	weight := func(i int) float64 {
		if c.Weights == nil || c.Op == db.DiffOf {
			return 1
		}
		return c.Weights[i]
	}
	result := map[string]float64{}
	for i := range scores {
		for member, score := range scores[i] {
			other, shared := scores[1-i][member]
			switch {
			case c.Op == db.InterOf && !shared, c.Op == db.DiffOf && (shared || i == 1):
				continue
			}
			score *= weight(i)
			if other *= weight(1 - i); shared && c.Aggregate == db.MinOf {
				score = min(score, other)
			} else if shared {
				score = max(score, other)
			}
			result[member] = score + 0 // -0 is kept as 0
		}
	}
	return result
}

func opZPutRange(x *modelOp) {
	to, from := x.key(), x.key()
	r := db.RankRange{Start: x.position(), Stop: x.position(), Reverse: x.rng.IntN(2) == 0}
	x.begin("ZRANGESTORE %q %q %+v", to, from, r)
	v, want := x.get(from, db.TypeSortedSet)
	n := 0
	if want == nil {
		list := v.scored()
		if r.Reverse {
			slices.Reverse(list)
		}
		start, stop := int(r.Start), int(r.Stop)
		if start < 0 {
			start = max(start+len(list), 0)
		}
		if stop < 0 {
			stop += len(list)
		}
		delete(x.space, to)
		for i := start; i <= min(stop, len(list)-1); i++ {
			target, _ := x.make(to, db.TypeSortedSet)
			target.zset[list[i].Member] = list[i].Score
			n++
		}
	}
	got, err := x.keys.SortedSet(to).PutRange(from, r)
	x.result(got, err, n, want)
}
