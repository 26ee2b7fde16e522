package db

import (
	"iter"

	"github.com/stavedb/stave/structures"
)

// Set is a handle on a key that holds a set of members. Its methods return ErrWrongType if the key holds anything else.
// An empty set does not exist: the last member takes the key with it.
type Set struct{ handle }

// Set returns a handle on the set at key. It reads nothing.
func (s *Store) Set(key string) Set { return Set{s.handle(key)} }

// Set returns a handle on the set at key, inside the transaction. It reads nothing.
func (t *Tx) Set(key string) Set { return Set{t.handle(key)} }

// Add adds members and returns how many of them are new. O(log n) a member.
func (s Set) Add(members ...string) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).Add(members) })
}

// Remove removes members and returns how many of them were there. O(log n) a member.
func (s Set) Remove(members ...string) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).Remove(members) })
}

// Has says whether member is in the set. O(log n).
func (s Set) Has(member string) (bool, error) {
	return call(s.handle, reading, func(t *Tx) (bool, error) { return s.on(t).Has(member) })
}

// Len returns the number of members, 0 if the key does not exist. O(1).
func (s Set) Len() (int, error) {
	return call(s.handle, reading, func(t *Tx) (int, error) { return s.on(t).Len() })
}

// Members returns all members: of up to 512 in order of insertion, or of their values if all are integers, of more in no
// particular order. O(n).
func (s Set) Members() ([]string, error) {
	var members []string
	err := s.do(reading, func(t *Tx) error {
		return s.on(t).Visit(func(n int) { members = make([]string, 0, n) }, collect(&members))
	})
	return members, err
}

// Visit calls start once with the number of members, then visit for each member until it returns false, all at one
// moment. start may be nil. The slice is valid during the call only, and neither function may use the store or change
// the transaction: it is the form that copies nothing. O(n).
func (s Set) Visit(start func(n int), visit func(member []byte) bool) error {
	return s.visit(func(t *Tx) error { return s.on(t).Visit(start, visit) })
}

// Pop removes up to n members, chosen at random, and returns them. It returns none if the key does not exist, and
// structures.ErrNegative for a negative n. O(log n) a member.
func (s Set) Pop(n int) ([]string, error) {
	return call(s.handle, writing, func(t *Tx) ([]string, error) { return s.on(t).Pop(n, t.rand) })
}

// Random returns members chosen at random, and leaves them: up to n different ones, or exactly -n that may repeat if n
// is negative. It returns none if the key does not exist. O(log n) a member.
func (s Set) Random(n int) ([]string, error) {
	var members []string
	err := s.do(reading, func(t *Tx) error { return s.on(t).VisitRandom(n, t.rand, nil, collect(&members)) })
	return members, err
}

// VisitRandom calls start once with the number of members that Random would return, then visit for each of them until
// it returns false, all at one moment. start may be nil. The slice is valid during the call only, and neither function
// may use the store or change the transaction: it is the form that builds nothing. O(log n) a member.
func (s Set) VisitRandom(n int, start func(n int), visit func(member []byte) bool) error {
	return s.visit(func(t *Tx) error { return s.on(t).VisitRandom(n, t.rand, start, visit) })
}

// Scan returns some members and the cursor that continues the scan; cursor 0 starts it, and a next cursor of 0 ends it.
// A member that is there from the start of the scan to its end is returned exactly once. A set of up to 128 members
// comes whole. O(o.Count), 10 if it is 0.
func (s Set) Scan(cursor uint64, o ScanOptions) (members []string, next uint64, err error) {
	next, err = call(s.handle, reading, func(t *Tx) (uint64, error) {
		return s.on(t).Scan(cursor, o, func(member []byte) { members = append(members, string(member)) })
	})
	return members, next, err
}

// All ranges over the members, in no particular order. See the package documentation on iterators: it reads in pages,
// so the loop may change the set.
func (s Set) All() iter.Seq2[string, error] {
	return scanPages(s.handle, func(cursor uint64) ([]string, uint64, error) {
		return s.Scan(cursor, ScanOptions{Count: pageSize})
	})
}

// Union returns the members of this set and of the sets at the other keys, each once, in no particular order. O(total).
func (s Set) Union(others ...string) ([]string, error) { return s.combine(structures.Union, others) }

// Inter returns the members that this set and all sets at the other keys have, in no particular order. O(smallest *
// keys * log n).
func (s Set) Inter(others ...string) ([]string, error) { return s.combine(structures.Inter, others) }

// Diff returns the members of this set that none of the sets at the other keys has, in no particular order. O(this
// set * keys * log n).
func (s Set) Diff(others ...string) ([]string, error) { return s.combine(structures.Diff, others) }

func (s Set) combine(op structures.SetOp, others []string) ([]string, error) {
	var members []string
	keys := append([]string{s.key}, others...)
	err := s.doKeys(reading, keys, func(t *Tx) error { return structures.Combine(t.txn(), op, keys, collect(&members)) })
	return members, err
}

// SetOp says how sets are combined: Union, Inter or Diff.
type SetOp = structures.SetOp

// The ways to combine sets.
const (
	UnionOf = structures.Union
	InterOf = structures.Inter
	DiffOf  = structures.Diff
)

// VisitCombined calls visit for each member of the union, the intersection or the difference of this set and the sets
// at the other keys until it returns false, all at one moment. The slice is valid during the call only, and visit may
// not use the store or change the transaction: it is the form that builds nothing.
func (s Set) VisitCombined(op SetOp, others []string, visit func(member []byte) bool) error {
	keys := append([]string{s.key}, others...)
	return s.visitKeys(keys, func(t *Tx) error { return structures.Combine(t.txn(), op, keys, visit) })
}

// Move takes a member out of the set and adds it to the one at another key; it says false if this set does not have it.
// O(log n).
func (s Set) Move(to, member string) (bool, error) {
	return callKeys(s.handle, writing, []string{s.key, to}, func(t *Tx) (bool, error) { return s.on(t).Move(to, member) })
}

// PutCombined makes the key the union, the intersection or the difference of the sets at keys, whatever it held before,
// and returns how many members it has; none deletes the key. The key may be one of the sets, and has no deadline
// afterwards. The result is held in memory until it is written. Costs are those of Union, Inter and Diff, and O(log n)
// a member of the result.
func (s Set) PutCombined(op SetOp, keys ...string) (int, error) {
	return callKeys(s.handle, writing, append([]string{s.key}, keys...), func(t *Tx) (int, error) { return s.on(t).PutCombined(op, keys) })
}

// InterLen returns how many members this set and all sets at the other keys have; it stops at limit if that is not 0.
// O(smallest * keys * log n).
func (s Set) InterLen(limit int, others ...string) (int, error) {
	keys := append([]string{s.key}, others...)
	return callKeys(s.handle, reading, keys, func(t *Tx) (int, error) { return structures.CountInter(t.txn(), keys, limit, true) })
}

// CombinedLen returns how many members the combination of this set with those at the other keys has; it stops at limit if
// that is not 0. Costs are those of VisitCombined.
func (s Set) CombinedLen(op SetOp, limit int, others ...string) (int, error) {
	keys := append([]string{s.key}, others...)
	return callKeys(s.handle, reading, keys, func(t *Tx) (int, error) { return structures.CountCombined(t.txn(), op, keys, limit) })
}

func (s Set) on(t *Tx) structures.Set { return structures.Set{Txn: t.txn(), Key: s.key} }
