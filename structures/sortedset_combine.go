package structures

import (
	"cmp"
	"math"
	"slices"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Aggregate is what becomes of the scores that a member has in several sorted
// sets.
type Aggregate uint8

// The ways to aggregate scores.
const (
	Sum Aggregate = iota
	Min
	Max
	Count // the sum of the weights of those that have the member
)

// into is the aggregate of a score so far and one more. Infinities that cancel
// each other out are 0.
func (a Aggregate) into(score, more float64) float64 {
	switch {
	case a == Sum || a == Count:
		return notNaN(score + more)
	case a == Min && more < score, a == Max && more > score:
		return more
	}
	return score
}

// notNaN is f, or 0 for NaN: an infinite score with the weight 0.
func notNaN(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// Combination says how sorted sets are combined. Sets count as sorted sets in
// which every score is 1.
type Combination struct {
	Op   SetOp
	Keys []string
	// Weights multiply the scores, one for each key. They mean nothing to Diff.
	// Default: 1.
	Weights []float64
	// Aggregate is what becomes of several scores of a member. It means nothing
	// to Diff, which takes the first. Default: Sum.
	Aggregate Aggregate
}

// weightedSet is one of the sorted sets of a combination.
type weightedSet struct {
	keydir.Collection
	weight float64
	step   func() bool // see steps
}

func (s weightedSet) size() int {
	if !s.Valid() {
		return 0
	}
	return s.Len()
}

// score is a member's score before the weight.
func (s weightedSet) score(member string) (float64, bool) {
	if !s.Valid() {
		return 0, false
	}
	if s.Type() == keydir.Set {
		_, ok := s.Get(member)
		return 1, ok
	}
	form, _, ok := s.Score(member)
	return ordered.ToFloat(form), ok
}

// each visits the members with their scores before the weight.
func (s weightedSet) each(visit func(member []byte, score float64)) {
	if !s.Valid() {
		return
	}
	if s.Type() == keydir.Set {
		s.Each(func(member []byte, _ keydir.Loc) bool {
			visit(member, 1)
			return s.step()
		})
		return
	}
	s.AscendRank(0, func(member []byte, form uint64) bool {
		visit(member, ordered.ToFloat(form))
		return s.step()
	})
}

// Combine returns the members of the combination in order. The result is built
// in memory. O(sum of sizes) for Union, O(smallest size * keys * log n) for
// Inter, O(first size * keys * log n) for Diff, and O(m log m) in the size of
// the result.
func (c Combination) Combine(t Base) ([]Scored, error) {
	sources := make([]weightedSet, len(c.Keys))
	for i, key := range c.Keys {
		f, err := openMembers(t, key)
		if err != nil {
			return nil, err
		}
		sources[i] = weightedSet{Collection: f, weight: 1}
		if i < len(c.Weights) {
			if math.IsNaN(c.Weights[i]) {
				return nil, ErrNotFloat
			}
			sources[i].weight = c.Weights[i]
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	all := make([]keydir.Collection, len(sources))
	for i, s := range sources {
		all[i] = s.Collection
	}
	step := steps(t, all)
	for i := range sources {
		sources[i].step = step
	}
	var members []Scored
	if c.Op == Diff {
		members = differ(sources)
	} else {
		// From the smallest on, as Redis does: the order of the additions decides
		// about the last digit of a sum.
		slices.SortStableFunc(sources, func(a, b weightedSet) int { return cmp.Compare(a.size(), b.size()) })
		if c.Op == Inter {
			members = c.intersect(sources)
		} else {
			members = c.unite(sources)
		}
	}
	if err := t.Step(0); err != nil {
		return nil, err
	}
	err := sortApart(t, members, slices.SortFunc[[]Scored], func(a, b Scored) int {
		if n := cmp.Compare(a.Score, b.Score); n != 0 {
			return n
		}
		return cmp.Compare(a.Member, b.Member)
	})
	return members, err
}

func differ(sources []weightedSet) []Scored {
	var members []Scored
	sources[0].each(func(member []byte, score float64) {
		for _, other := range sources[1:] {
			if other.Valid() && has(other.Collection, member) {
				return
			}
		}
		members = append(members, Scored{Member: string(member), Score: score})
	})
	return members
}

// part is what a member's score in one of the sets contributes.
func (c Combination) part(s weightedSet, score float64) float64 {
	if c.Aggregate == Count {
		return s.weight
	}
	return float64(s.weight * score) // converted: not to be fused with a sum
}

func (c Combination) intersect(sources []weightedSet) []Scored {
	var members []Scored
	sources[0].each(func(member []byte, score float64) {
		sum := notNaN(c.part(sources[0], score))
		for _, other := range sources[1:] {
			more, ok := other.score(text(member))
			if !ok {
				return
			}
			sum = c.Aggregate.into(sum, c.part(other, more))
		}
		members = append(members, Scored{Member: string(member), Score: sum})
	})
	return members
}

func (c Combination) unite(sources []weightedSet) []Scored {
	var members []Scored
	at := make(map[string]int)
	for _, s := range sources {
		s.each(func(member []byte, score float64) {
			score = notNaN(c.part(s, score))
			if i, ok := at[string(member)]; ok {
				members[i].Score = c.Aggregate.into(members[i].Score, score)
				return
			}
			m := Scored{Member: string(member), Score: score}
			at[m.Member] = len(members)
			members = append(members, m)
		})
	}
	return members
}

// PutCombined makes the key the combination of sorted sets, whatever it held
// before, and returns how many members it has; none deletes the key. The key may
// be one of the sorted sets. Costs are those of Combination.Combine, and
// O(log n) a member of the result.
func (z SortedSet) PutCombined(c Combination) (int, error) {
	members, err := c.Combine(z.Txn)
	if err != nil {
		return 0, err
	}
	return z.replace(eachScored(members), c.Op.event(EventZUnionStore, EventZInterStore, EventZDiffStore))
}

// PutRange makes the key what r selects of the sorted set at another key,
// whatever it held before, and returns how many members that are; none deletes
// the key. O(log n) a member.
func (z SortedSet) PutRange(from string, r Range) (int, error) {
	s, f, err := SortedSet{Txn: z.Txn, Key: from}.find(r)
	if err != nil {
		return 0, err
	}
	var members elementList
	step := steps(z.Txn, []keydir.Collection{f})
	s.visit(f, func(member []byte, score uint64) bool {
		members.add(member, score)
		return step()
	})
	if err := z.Txn.Step(0); err != nil {
		return 0, err
	}
	return z.replace(members.drain, EventZRangeStore)
}

// replace makes the key a sorted set of the members that each gives to put, with scores in the order-preserving form, by
// which event.
func (z SortedSet) replace(each func(put func(member string, score uint64) error) error, e EventKind) (n int, err error) {
	existed, err := z.Txn.Drop(z.Key)
	if err != nil {
		return 0, err
	}
	var f keydir.Collection
	err = each(func(member string, score uint64) (err error) {
		if !f.Valid() {
			if f, err = z.Txn.Collection(z.Key, keydir.ZSet); err != nil {
				return err
			}
		}
		err = z.Txn.PutScored(z.Key, f, member, score)
		n = f.Len()
		z.Txn.Yield()
		return err
	})
	return n, notifyReplaced(z.Txn, e, z.Key, existed, n, err)
}

// eachScored is what replace takes, of a list.
func eachScored(members []Scored) func(put func(member string, score uint64) error) error {
	return func(put func(member string, score uint64) error) error {
		for i := range members {
			if err := put(members[i].Member, ordered.Float(members[i].Score)); err != nil {
				return err
			}
		}
		return nil
	}
}

// PopFirstScored is Pop on the first of several sorted sets that exists, and
// returns its key; it says false if none does. O(number of keys), and O(log n) a
// member.
func PopFirstScored(t SortedSetTxn, keys []string, n int, highest bool) (key string, members []Scored, ok bool, err error) {
	for _, key := range keys {
		members, err := SortedSet{Txn: t, Key: key}.Pop(n, highest)
		if err != nil || len(members) > 0 {
			return key, members, len(members) > 0, err
		}
	}
	return "", nil, false, nil
}

// VisitRandom calls start, unless it is nil, with a number of members, then
// visit with each of them until it returns false: up to n different members
// chosen by random, or -n that may repeat if n is negative. The slice is valid
// during the call only, and neither function may change the sorted set. O(log n)
// a member.
func (z SortedSet) VisitRandom(n int, random func() uint64, start func(n int), visit func(member []byte, score float64) bool) error {
	f, err := z.open()
	if err != nil {
		return err
	}
	step := walk(z.Txn)
	visitRandom(f, n, random, start, func(member []byte, _ keydir.Loc) bool {
		form, _, _ := f.Score(text(member))
		return visit(member, ordered.ToFloat(form)) && step()
	})
	return z.Txn.Step(0)
}
