package db

import (
	"iter"
	"math"

	"github.com/stavedb/stave/structures"
)

// SortedSet is a handle on a key that holds members with scores, ordered by score and then by the bytes of the member.
// Its methods return ErrWrongType if the key holds anything else. An empty sorted set does not exist: the last member
// takes the key with it.
type SortedSet struct{ handle }

// SortedSet returns a handle on the sorted set at key. It reads nothing.
func (s *Store) SortedSet(key string) SortedSet { return SortedSet{s.handle(key)} }

// SortedSet returns a handle on the sorted set at key, inside the transaction. It reads nothing.
func (t *Tx) SortedSet(key string) SortedSet { return SortedSet{t.handle(key)} }

// Scored is a member of a sorted set with its score. A score may be infinite, but not NaN; -0 is kept as 0.
//
//	Member string
//	Score float64
type Scored = structures.Scored

// AddResult counts what SortedSet.AddWith did.
//
//	Added int
//	Changed int
type AddResult = structures.AddResult

// Range selects members of a sorted set: a RankRange, a ScoreRange or a LexRange.
type Range = structures.Range

// RankRange selects members by their position in the order.
//
//	Start, Stop int64
//	Reverse bool
type RankRange = structures.RankRange

// ScoreRange selects members by score.
//
//	Min, Max float64
//	MinOpen, MaxOpen bool
//	Reverse bool
//	Offset int64
//	Count int64
type ScoreRange = structures.ScoreRange

// LexRange selects members by their bytes; it is meant for sorted sets in which all scores are equal.
//
//	Min, Max LexBound
//	Reverse bool
//	Offset int64
//	Count int64
type LexRange = structures.LexRange

// LexBound is an end of a LexRange: Lex, LexOpen, LexMin or LexMax.
//
//	Member string
//	Open bool
type LexBound = structures.LexBound

// Ends of a LexRange that lie beyond every member.
var (
	LexMin = structures.LexMin
	LexMax = structures.LexMax
)

// Lex is the end of a LexRange at member, included.
func Lex(member string) LexBound { return LexBound{Member: member} }

// LexOpen is the end of a LexRange at member, excluded.
func LexOpen(member string) LexBound { return LexBound{Member: member, Open: true} }

// Ranges of everything, for Range, All, Visit, Count and RemoveRange.
var (
	AllRanks  = RankRange{Stop: -1}
	AllScores = ScoreRange{Min: math.Inf(-1), Max: math.Inf(1)}
)

// Scores selects the members with scores from minScore to maxScore, both inclusive.
func Scores(minScore, maxScore float64) ScoreRange { return ScoreRange{Min: minScore, Max: maxScore} }

// Top selects up to n members with the highest scores, the highest first.
func Top(n int) RankRange {
	if n <= 0 {
		return RankRange{Start: 1} // nothing
	}
	return RankRange{Stop: int64(n) - 1, Reverse: true}
}

// Add adds members, or gives those that exist a new score, and returns how many are new. It fails with
// structures.ErrNotFloat if a score is NaN. O(log n) a member.
func (z SortedSet) Add(members ...Scored) (int, error) {
	res, err := z.AddWith(members)
	return res.Added, err
}

// AddWith is Add under conditions, which are about each member: IfAbsent, IfPresent, IfGreater and IfLess leave out
// those for which they do not hold; the last two are about the scores of members that exist, and add new ones. It fails
// with structures.ErrAddNXXX or structures.ErrAddNXGTLT if they contradict each other. O(log n) a member.
func (z SortedSet) AddWith(members []Scored, options ...WriteOption) (AddResult, error) {
	condition, err := conditionOf(options)
	if err != nil {
		return AddResult{}, err
	}
	return call(z.handle, writing, func(t *Tx) (AddResult, error) { return z.on(t).Add(members, condition) })
}

// Incr adds delta to a member's score, 0 if it is not there, and returns the sum. It fails with structures.ErrScoreNaN
// if the sum is not a number. O(log n).
func (z SortedSet) Incr(member string, delta float64) (float64, error) {
	score, _, err := z.IncrWith(member, delta)
	return score, err
}

// IncrWith is Incr under the conditions of AddWith: done says whether they held. O(log n).
func (z SortedSet) IncrWith(member string, delta float64, options ...WriteOption) (score float64, done bool, err error) {
	condition, err := conditionOf(options)
	if err != nil {
		return 0, false, err
	}
	score, err = call(z.handle, writing, func(t *Tx) (score float64, err error) {
		score, done, err = z.on(t).Incr(member, delta, condition)
		return score, err
	})
	return score, done, err
}

// Remove removes members and returns how many of them were there. O(log n) a member.
func (z SortedSet) Remove(members ...string) (int, error) {
	return call(z.handle, writing, func(t *Tx) (int, error) { return z.on(t).Remove(members) })
}

// RemoveRange removes the members that r selects and returns their number. O(log n) a member.
func (z SortedSet) RemoveRange(r Range) (int, error) {
	return call(z.handle, writing, func(t *Tx) (int, error) { return z.on(t).RemoveRange(r) })
}

// Len returns the number of members, 0 if the key does not exist. O(1).
func (z SortedSet) Len() (int, error) {
	return call(z.handle, reading, func(t *Tx) (int, error) { return z.on(t).Len() })
}

// Score returns a member's score, or ErrNotFound. O(log n).
func (z SortedSet) Score(member string) (float64, error) {
	return callFound(z.handle, reading, func(t *Tx) (float64, bool, error) { return z.on(t).Score(member) })
}

// Rank returns a member's position, 0 being the lowest score, or ErrNotFound. O(log n).
func (z SortedSet) Rank(member string) (int, error) {
	rank, _, err := z.RankScore(member, false)
	return rank, err
}

// RevRank returns a member's position from the other end, 0 being the highest score, or ErrNotFound. O(log n).
func (z SortedSet) RevRank(member string) (int, error) {
	rank, _, err := z.RankScore(member, true)
	return rank, err
}

// RankScore returns a member's position, from the highest score if reverse is set, and its score, or ErrNotFound. O(log
// n).
func (z SortedSet) RankScore(member string, reverse bool) (rank int, score float64, err error) {
	var ok bool
	err = z.do(reading, func(t *Tx) (err error) {
		rank, score, ok, err = z.on(t).Rank(member, reverse)
		return err
	})
	return rank, score, found(ok, err)
}

// Count returns the number of members that r selects. O(log n).
func (z SortedSet) Count(r Range) (int, error) {
	return call(z.handle, reading, func(t *Tx) (int, error) { return z.on(t).Count(r) })
}

// Range returns the members that r selects, in order. O(log n + number returned).
func (z SortedSet) Range(r Range) ([]Scored, error) {
	var members []Scored
	err := z.do(reading, func(t *Tx) error {
		return z.on(t).Visit(r, func(n int) { members = make([]Scored, 0, n) }, collectScored(&members))
	})
	return members, err
}

// Visit calls start once with the number of members that r selects, then visit for each of them in order until it
// returns false, all at one moment. start may be nil. The slice is valid during the call only, and neither function may
// use the store or change the transaction: it is the form that copies nothing. O(log n + number visited).
func (z SortedSet) Visit(r Range, start func(n int), visit func(member []byte, score float64) bool) error {
	return z.visit(func(t *Tx) error { return z.on(t).Visit(r, start, visit) })
}

// PopMin removes and returns up to n members with the lowest scores, lowest first. It returns none if the key does not
// exist, and structures.ErrNegative for a negative n. O(log n) a member.
func (z SortedSet) PopMin(n int) ([]Scored, error) { return z.pop(n, false) }

// PopMax removes and returns up to n members with the highest scores, highest first. It returns none if the key does
// not exist, and structures.ErrNegative for a negative n. O(log n) a member.
func (z SortedSet) PopMax(n int) ([]Scored, error) { return z.pop(n, true) }

func (z SortedSet) pop(n int, highest bool) ([]Scored, error) {
	return call(z.handle, writing, func(t *Tx) ([]Scored, error) { return z.on(t).Pop(n, highest) })
}

// Scan returns some members and the cursor that continues the scan; cursor 0 starts it, and a next cursor of 0 ends it.
// A member that is there from the start of the scan to its end is returned exactly once. A sorted set of up to 128
// members comes whole. O(o.Count), 10 if it is 0.
func (z SortedSet) Scan(cursor uint64, o ScanOptions) (members []Scored, next uint64, err error) {
	next, err = call(z.handle, reading, func(t *Tx) (uint64, error) {
		return z.on(t).Scan(cursor, o, func(member []byte, score float64) {
			members = append(members, Scored{Member: string(member), Score: score})
		})
	})
	return members, next, err
}

// All ranges over the members that r selects, in order. See the package documentation on iterators: it reads in pages,
// so the loop may change the sorted set. A page continues after the last member seen, so members that come and go
// during the loop neither hide nor repeat others.
func (z SortedSet) All(r Range) iter.Seq2[Scored, error] {
	return func(yield func(Scored, error) bool) {
		var page []Scored
		for at := (structures.Position{}); ; {
			err := z.do(reading, func(t *Tx) (err error) {
				page, at, err = z.on(t).Page(page[:0], r, at, pageSize)
				return err
			})
			if err != nil {
				yieldError(z.handle, err, yield)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if at.Done() {
				return
			}
		}
	}
}

func (z SortedSet) on(t *Tx) structures.SortedSet {
	return structures.SortedSet{Txn: t.txn(), Key: z.key}
}
