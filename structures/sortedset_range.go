package structures

import (
	"math"
	"sort"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Range selects members of a sorted set that are neighbours in its order: a
// RankRange, a ScoreRange or a LexRange.
type Range interface {
	// bounds are the ranks of the first member and of the one after the last.
	bounds(f keydir.Collection) (low, high int, err error)
	shape() rangeShape
}

// rangeShape is the treatment of the members between the bounds.
type rangeShape struct {
	offset, count int64
	reverse       bool
	removed       EventKind // the event of RemoveRange
}

// RankRange selects the members at positions Start to Stop, both inclusive.
// Negative positions count from the end, -1 being the last one.
type RankRange struct {
	Start, Stop int64
	// Reverse starts at the highest score: both the order and what the
	// positions mean.
	Reverse bool
}

func (r RankRange) shape() rangeShape {
	return rangeShape{reverse: r.Reverse, removed: EventZRemRangeByRank}
}

func (r RankRange) bounds(f keydir.Collection) (low, high int, err error) {
	first, count := window(r.Start, r.Stop, f.Len())
	if r.Reverse {
		first = f.Len() - first - count
	}
	return first, first + count, nil
}

// ScoreRange selects the members with scores from Min to Max. The zero value
// selects those with score 0; math.Inf makes an end infinite.
type ScoreRange struct {
	Min, Max float64
	// MinOpen and MaxOpen exclude the ends themselves.
	MinOpen, MaxOpen bool
	// Reverse gives the members with higher scores first.
	Reverse bool
	// Offset is how many members to skip. A negative one selects nothing.
	Offset int64
	// Count bounds the number of members; a negative one selects nothing.
	// Default: no bound.
	Count int64
}

func (r ScoreRange) shape() rangeShape {
	return rangeShape{offset: r.Offset, count: r.Count, reverse: r.Reverse, removed: EventZRemRangeByScore}
}

func (r ScoreRange) bounds(f keydir.Collection) (low, high int, err error) {
	if math.IsNaN(r.Min) || math.IsNaN(r.Max) {
		return 0, 0, ErrScoreRange
	}
	// There is no score between a form and the next, and none is beyond the forms
	// of the infinities, so "from the next form on" excludes an end.
	from, to := ordered.Float(r.Min), ordered.Float(r.Max)
	if r.MinOpen {
		from++
	}
	if !r.MaxOpen {
		to++
	}
	return f.Rank(from, ""), f.Rank(to, ""), nil
}

// ParseScoreRange reads the two ends of a range as ZRANGEBYSCORE has them: a
// number, infinities included, that an opening parenthesis excludes.
func ParseScoreRange(minimum, maximum []byte) (ScoreRange, error) {
	var r ScoreRange
	var ok bool
	if r.Min, r.MinOpen, ok = parseScore(minimum); ok {
		r.Max, r.MaxOpen, ok = parseScore(maximum)
	}
	if !ok {
		return ScoreRange{}, ErrScoreRange
	}
	return r, nil
}

func parseScore(text []byte) (score float64, open, ok bool) {
	if open = len(text) > 0 && text[0] == '('; open {
		text = text[1:]
	}
	score, ok = number.ParseBound(text)
	return score, open, ok
}

// LexRange selects the members from Min to Max in the order of their bytes. It is meant for sorted
// sets in which all scores are equal; in others, the selection is not specified.
type LexRange struct {
	Min, Max LexBound
	// Reverse gives the later members first.
	Reverse bool
	// Offset is how many members to skip. A negative one selects nothing.
	Offset int64
	// Count bounds the number of members; a negative one selects nothing.
	// Default: no bound.
	Count int64
}

// LexBound is an end of a LexRange: a member, which Open excludes, or a bound beyond every member.
type LexBound struct {
	Member string
	Open   bool
	beyond int8
}

// Ends of a LexRange before and after every member.
var (
	LexMin = LexBound{beyond: -1}
	LexMax = LexBound{beyond: 1}
)

func (r LexRange) shape() rangeShape {
	return rangeShape{offset: r.Offset, count: r.Count, reverse: r.Reverse, removed: EventZRemRangeByLex}
}

func (r LexRange) bounds(f keydir.Collection) (low, high int, err error) {
	return r.Min.rank(f, r.Min.Open), r.Max.rank(f, !r.Max.Open), nil
}

// rank is the number of members before the bound, or up to it if behind is set.
func (b LexBound) rank(f keydir.Collection, behind bool) int {
	n := f.Len()
	switch {
	case b.beyond < 0 || n == 0:
		return 0
	case b.beyond > 0:
		return n
	}
	_, lowest := memberAt(f, 0)
	if _, highest := memberAt(f, n-1); lowest == highest {
		rank := f.Rank(lowest, b.Member)
		if _, _, ok := f.Score(b.Member); ok && behind {
			rank++
		}
		return rank
	}
	return sort.Search(n, func(i int) bool {
		member, _ := memberAt(f, i)
		return text(member) > b.Member || !behind && text(member) == b.Member
	})
}

// memberAt is the member at a rank that the sorted set has.
func memberAt(f keydir.Collection, rank int) (member []byte, score uint64) {
	f.AscendRank(rank, func(m []byte, s uint64) bool {
		member, score = m, s
		return false
	})
	return member, score
}

// ParseLexRange reads the two ends of a range as ZRANGEBYLEX has them: a member after a bracket,
// which includes it, or after a parenthesis, which excludes it; or - and +, which are beyond all
// members.
func ParseLexRange(minimum, maximum []byte) (LexRange, error) {
	var r LexRange
	var ok bool
	if r.Min, ok = parseLexBound(minimum); ok {
		r.Max, ok = parseLexBound(maximum)
	}
	if !ok {
		return LexRange{}, ErrLexRange
	}
	return r, nil
}

func parseLexBound(text []byte) (LexBound, bool) {
	if len(text) == 0 {
		return LexBound{}, false
	}
	switch rest := text[1:]; text[0] {
	case '-':
		return LexMin, len(rest) == 0
	case '+':
		return LexMax, len(rest) == 0
	case '[':
		return LexBound{Member: string(rest)}, true
	case '(':
		return LexBound{Member: string(rest), Open: true}, true
	}
	return LexBound{}, false
}

// rankSpan is a run of members: count of them from a rank on, downwards if reverse
// is set.
type rankSpan struct {
	from, count int
	reverse     bool
}

// spanOf finds the run of members that r selects.
func spanOf(r Range, f keydir.Collection) (rankSpan, error) {
	low, high, err := r.bounds(f)
	if err != nil {
		return rankSpan{}, err
	}
	return r.shape().cut(low, high), nil
}

// cut is the run that is left of the ranks from low to before high.
func (s rangeShape) cut(low, high int) rankSpan {
	n := int64(max(high-low, 0))
	if s.offset < 0 || s.offset >= n || s.count < 0 {
		return rankSpan{}
	}
	n -= s.offset
	if s.count > 0 {
		n = min(n, s.count)
	}
	if s.reverse {
		return rankSpan{from: high - 1 - int(s.offset), count: int(n), reverse: true}
	}
	return rankSpan{from: low + int(s.offset), count: int(n)}
}

// visit calls fn with each member of the run until it returns false.
func (s rankSpan) visit(f keydir.Collection, fn func(member []byte, score uint64) bool) {
	left := s.count
	if left == 0 {
		return
	}
	step := func(member []byte, score uint64) bool {
		left--
		return fn(member, score) && left > 0
	}
	if s.reverse {
		f.DescendRank(s.from, step)
	} else {
		f.AscendRank(s.from, step)
	}
}

// collect appends copies of the members of the run to dst.
func (s rankSpan) collect(dst []Scored, f keydir.Collection) []Scored {
	s.visit(f, func(member []byte, score uint64) bool {
		dst = append(dst, Scored{Member: string(member), Score: ordered.ToFloat(score)})
		return true
	})
	return dst
}

// Count returns the number of members that r selects. O(log n).
func (z SortedSet) Count(r Range) (int, error) {
	s, _, err := z.find(r)
	return s.count, err
}

func (z SortedSet) find(r Range) (rankSpan, keydir.Collection, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return rankSpan{}, f, err
	}
	s, err := spanOf(r, f)
	return s, f, err
}

// Visit calls start, unless it is nil, with the number of members that r
// selects, then visit for each until it returns false. The slice is valid during
// the call only, and neither function may change the sorted set. O(log n +
// number visited).
func (z SortedSet) Visit(r Range, start func(n int), visit func(member []byte, score float64) bool) error {
	s, f, err := z.find(r)
	if err != nil {
		return err
	}
	if start != nil {
		start(s.count)
	}
	step := walk(z.Txn)
	s.visit(f, func(member []byte, score uint64) bool { return visit(member, ordered.ToFloat(score)) && step() })
	return z.Txn.Step(0)
}

// Position is where SortedSet.Page continues. The zero value is the start.
type Position struct {
	started, done bool
	score         uint64 // of the last member that was returned
	member        string
	bounded       bool // whether left means anything
	left          int
}

// Done says that there are no more pages.
func (p Position) Done() bool { return p.done }

// Page appends up to n of the members that r selects to dst, starting after the last one of the
// previous page, and returns where the next page continues. Members that come and go between two
// pages neither hide nor repeat others; r's positions, offset and count are those of the first
// page. O(log n + number returned).
func (z SortedSet) Page(dst []Scored, r Range, at Position, n int) ([]Scored, Position, error) {
	f, err := z.open()
	if err != nil || !f.Valid() {
		return dst, Position{done: true}, err
	}
	var s rankSpan
	if !at.started {
		if s, err = spanOf(r, f); err != nil {
			return dst, Position{done: true}, err
		}
		if _, ok := r.(RankRange); ok || r.shape().count > 0 {
			at.bounded, at.left = true, s.count
		}
		at.started = true
	} else if s, err = at.rest(r, f); err != nil {
		return dst, Position{done: true}, err
	}
	more := s.count > n
	s.count = min(s.count, n)
	held := len(dst)
	dst = s.collect(dst, f)
	if len(dst) == held {
		return dst, Position{done: true}, nil
	}
	last := dst[len(dst)-1]
	at.score, at.member = ordered.Float(last.Score), last.Member
	at.left -= s.count
	at.done = !more
	return dst, at, nil
}

// rest is the run after the last member that was returned.
func (p Position) rest(r Range, f keydir.Collection) (rankSpan, error) {
	low, high := 0, f.Len()
	if _, ok := r.(RankRange); !ok {
		var err error
		if low, high, err = r.bounds(f); err != nil {
			return rankSpan{}, err
		}
	}
	before := f.Rank(p.score, p.member)
	reverse := r.shape().reverse
	if reverse {
		high = min(high, before)
	} else {
		// The member may be gone, or have moved.
		if score, _, ok := f.Score(p.member); ok && score == p.score {
			before++
		}
		low = max(low, before)
	}
	s := rangeShape{reverse: reverse}.cut(low, high)
	if p.bounded {
		s.count = min(s.count, p.left)
	}
	return s, nil
}
