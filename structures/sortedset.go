package structures

import (
	"math"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// SortedSet is a key that holds members with scores. It is in memory twice, in
// the order of the members' hashes and in the order of scores and members, both
// with counts: a rank and the member at a rank cost O(log n), and nothing that
// is asked of a sorted set reads the disk.
type SortedSet struct {
	Txn SortedSetTxn
	Key string
}

// Scored is a member of a sorted set with its score. A score may be infinite,
// but not NaN; -0 is kept as 0.
type Scored struct {
	Member string
	Score  float64
}

func (z SortedSet) open() (keydir.Collection, error) { return open(z.Txn, z.Key, keydir.ZSet) }

// AddResult counts what SortedSet.Add did.
type AddResult struct {
	Added   int // new members
	Changed int // members that existed and have another score now
}

// Add gives members their scores. c is about each member: those that do not fit
// are left out. IfGreater and IfLess add new members. O(log n) a member.
func (z SortedSet) Add(members []Scored, c Condition) (AddResult, error) {
	var res AddResult
	if err := c.checkAdd(); err != nil {
		return res, err
	}
	for i := range members {
		if math.IsNaN(members[i].Score) {
			return res, ErrNotFloat
		}
		if err := checkElem(members[i].Member, nil); err != nil {
			return res, err
		}
	}
	f, err := z.open()
	if err != nil || len(members) == 0 || !f.Valid() && c&IfPresent != 0 {
		return res, err
	}
	if !f.Valid() {
		if f, err = z.Txn.Collection(z.Key, keydir.ZSet); err != nil {
			return res, err
		}
	}
	for i := range members {
		m := &members[i]
		form := ordered.Float(m.Score)
		current, _, exists := f.Score(m.Member)
		if exists && form == current || !c.allowsScore(exists, ordered.ToFloat(current), m.Score) {
			continue
		}
		if err := z.Txn.PutScored(z.Key, f, m.Member, form); err != nil {
			return res, err
		}
		if exists {
			res.Changed++
		} else {
			res.Added++
		}
		z.Txn.Yield()
	}
	if res != (AddResult{}) {
		z.Txn.Notify(EventZAdd, z.Key)
	}
	return res, nil
}

// Incr adds delta to a member's score, 0 if it does not exist, and returns the
// sum; done says whether c, as in Add, allowed it. O(log n).
func (z SortedSet) Incr(member string, delta float64, c Condition) (score float64, done bool, err error) {
	if err := c.checkAdd(); err != nil {
		return 0, false, err
	}
	if math.IsNaN(delta) {
		return 0, false, ErrNotFloat
	}
	if err := checkElem(member, nil); err != nil {
		return 0, false, err
	}
	f, err := z.open()
	if err != nil {
		return 0, false, err
	}
	var form uint64
	exists := false
	if f.Valid() {
		form, _, exists = f.Score(member)
	}
	current := 0.0
	if exists {
		current = ordered.ToFloat(form)
	}
	if !c.Holds(exists) {
		return 0, false, nil
	}
	score = current + delta
	if math.IsNaN(score) {
		return 0, false, ErrScoreNaN
	}
	if !c.allowsScore(exists, current, score) {
		return 0, false, nil
	}
	if exists && score == current {
		return score, true, nil
	}
	if !f.Valid() {
		if f, err = z.Txn.Collection(z.Key, keydir.ZSet); err != nil {
			return 0, false, err
		}
	}
	return score, true, notifyUnless(z.Txn, EventZIncr, z.Key, z.Txn.PutScored(z.Key, f, member, ordered.Float(score)))
}

// Remove removes members and returns how many of them were there. O(log n) a
// member.
func (z SortedSet) Remove(members []string) (int, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return deleteElems(z.Txn, z.Key, f, members, EventZRem)
}

// Len returns the number of members, 0 if the key does not exist. O(1).
func (z SortedSet) Len() (int, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return f.Len(), nil
}

// Score returns a member's score, and false if it does not exist. O(log n).
func (z SortedSet) Score(member string) (float64, bool, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return 0, false, err
	}
	form, _, ok := f.Score(member)
	if !ok {
		return 0, false, nil
	}
	return ordered.ToFloat(form), true, nil
}

// Rank returns how many members come before a member, or after it if reverse is set, and its score;
// ok reports whether it exists. O(log n).
func (z SortedSet) Rank(member string, reverse bool) (rank int, score float64, ok bool, err error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return 0, 0, false, err
	}
	form, _, ok := f.Score(member)
	if !ok {
		return 0, 0, false, nil
	}
	rank = f.Rank(form, member)
	if reverse {
		rank = f.Len() - 1 - rank
	}
	return rank, ordered.ToFloat(form), true, nil
}

// Scan visits some members from the cursor on and returns the cursor that
// continues, 0 at the end. A member that is there from the start of a scan to
// its end is visited exactly once. The slice is valid during the call only.
// O(o.Count * log n).
func (z SortedSet) Scan(cursor uint64, o ScanOptions, visit func(member []byte, score float64)) (next uint64, err error) {
	f, err := z.open()
	if err != nil {
		return 0, err
	}
	return scan(z.Txn, f, cursor, o, func(member []byte, _ keydir.Loc) error {
		form, _, _ := f.Score(text(member))
		visit(member, ordered.ToFloat(form))
		return nil
	})
}

// Pop removes up to n members with the lowest scores, or the highest, and
// returns them, the outermost first. O(log n) a member.
func (z SortedSet) Pop(n int, highest bool) ([]Scored, error) {
	if n < 0 {
		return nil, ErrNegative
	}
	f, err := z.open()
	if err != nil || !f.Valid() || n == 0 {
		return nil, err
	}
	s, event := rankSpan{count: min(n, f.Len())}, EventZPopMin
	if highest {
		event = EventZPopMax
		s = rankSpan{from: f.Len() - 1, count: s.count, reverse: true}
	}
	members := s.collect(make([]Scored, 0, s.count), f)
	if s.count == f.Len() {
		return members, dropAll(z.Txn, z.Key, event)
	}
	for i := range members {
		if _, err := z.Txn.DeleteElem(z.Key, f, members[i].Member); err != nil {
			return nil, err
		}
	}
	z.Txn.Notify(event, z.Key)
	return members, nil
}

// removeBatch is how many members RemoveRange collects before it deletes them.
const removeBatch = 1024

// RemoveRange removes the members that r selects and returns their number.
// O(log n) a member, and O(1) for all of them.
func (z SortedSet) RemoveRange(r Range) (int, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	s, err := spanOf(r, f)
	if err != nil || s.count == 0 {
		return 0, err
	}
	if s.count == f.Len() {
		return s.count, dropAll(z.Txn, z.Key, r.shape().removed)
	}
	low := s.from
	if s.reverse {
		low = s.from - s.count + 1
	}
	var members []Scored
	for left := s.count; left > 0; left -= len(members) {
		// The next ones move to the same rank as these are deleted.
		members = rankSpan{from: low, count: min(left, removeBatch)}.collect(members[:0], f)
		for i := range members {
			if _, err := z.Txn.DeleteElem(z.Key, f, members[i].Member); err != nil {
				return 0, err
			}
			if err := z.Txn.Step(1); err != nil {
				return 0, err
			}
		}
	}
	z.Txn.Notify(r.shape().removed, z.Key)
	return s.count, nil
}
