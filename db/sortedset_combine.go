package db

import "github.com/stavedb/stave/structures"

// Combination says how sorted sets are combined: by what operation, with which weights, and what becomes of the scores
// of a member that several have. Sets can take part: each of their members has the score 1.
//
//	Op SetOp
//	Keys []string
//	Weights []float64
//	Aggregate Aggregate
type Combination = structures.Combination

// Aggregate is what becomes of the scores that a member has in several sorted sets.
type Aggregate = structures.Aggregate

// The ways to aggregate scores.
const (
	SumOf = structures.Sum
	MinOf = structures.Min
	MaxOf = structures.Max

	CountOf = structures.Count // how many have the member, or the sum of their weights
)

// Combine returns the members of the union, the intersection or the difference of sorted sets, lowest score first. It
// fails with structures.ErrNotFloat if a weight is NaN. O(sum of sizes) for UnionOf, O(smallest * keys * log n) for
// InterOf, O(first * keys * log n) for DiffOf, and O(m log m) in the size of the result.
func (k Keyspace) Combine(c Combination) ([]Scored, error) {
	return callKeys(k.handle, reading, c.Keys, func(t *Tx) ([]Scored, error) { return c.Combine(t.txn()) })
}

// InterLen returns how many members all of the sets and sorted sets at keys have; it stops at limit if that is not 0.
// O(smallest * keys * log n).
func (k Keyspace) InterLen(limit int, keys ...string) (int, error) {
	return callKeys(k.handle, reading, keys, func(t *Tx) (int, error) { return structures.CountInter(t.txn(), keys, limit, false) })
}

// PutCombined makes the key a combination of sorted sets, whatever it held before, and returns how many members it has;
// none deletes the key. The key may be one of the sorted sets, and has no deadline afterwards. Costs are those of
// Keyspace.Combine, and O(log n) a member of the result.
func (z SortedSet) PutCombined(c Combination) (int, error) {
	return callKeys(z.handle, writing, append([]string{z.key}, c.Keys...), func(t *Tx) (int, error) { return z.on(t).PutCombined(c) })
}

// PutRange makes the key what r selects of the sorted set at another key, whatever it held before, and returns how many
// members that are; none deletes the key. It has no deadline afterwards. O(log n) a member.
func (z SortedSet) PutRange(from string, r Range) (int, error) {
	return callKeys(z.handle, writing, []string{z.key, from}, func(t *Tx) (int, error) { return z.on(t).PutRange(from, r) })
}

// PopFirstScored removes up to n members with the lowest scores, or the highest, from the first of several sorted sets
// that exists, and returns its key and them, the outermost first. It returns ErrNotFound if none exists, ErrWrongType
// if a key before that holds anything else, and structures.ErrNegative for a negative n. O(number of keys), and O(log
// n) a member.
func (k Keyspace) PopFirstScored(highest bool, n int, keys ...string) (key string, members []Scored, err error) {
	var ok bool
	err = k.doKeys(writing, keys, func(t *Tx) (err error) {
		key, members, ok, err = structures.PopFirstScored(t.txn(), keys, n, highest)
		return err
	})
	return key, members, found(ok, err)
}

// Random returns members chosen at random, and leaves them: up to n different ones, or exactly -n that may repeat if n
// is negative. It returns none if the key does not exist. O(log n) a member.
func (z SortedSet) Random(n int) ([]Scored, error) {
	var members []Scored
	err := z.do(reading, func(t *Tx) error { return z.on(t).VisitRandom(n, t.rand, nil, collectScored(&members)) })
	return members, err
}

// VisitRandom calls start once with the number of members that Random would return, then visit for each of them until
// it returns false, all at one moment. start may be nil. The slice is valid during the call only, and neither function
// may use the store or change the transaction: it is the form that builds nothing. O(log n) a member.
func (z SortedSet) VisitRandom(n int, start func(n int), visit func(member []byte, score float64) bool) error {
	return z.visit(func(t *Tx) error { return z.on(t).VisitRandom(n, t.rand, start, visit) })
}
