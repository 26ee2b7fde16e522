package structures_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

type scored = structures.Scored

// whole reads a sorted set whole, in order.
func whole(t *testing.T, m *memory, key string) string {
	t.Helper()
	return ranged(t, m, key, structures.RankRange{Stop: -1})
}

// ranged reads a range in two ways that must agree.
func ranged(t *testing.T, m *memory, key string, r structures.Range) string {
	t.Helper()
	var list []string
	announced := -1
	must(t, m.zset(key).Visit(r, func(n int) { announced = n }, func(member []byte, score float64) bool {
		list = append(list, fmt.Sprintf("%s=%v", member, score))
		return true
	}))
	n, err := m.zset(key).Count(r)
	must(t, err)
	equal(t, "count", n, len(list))
	equal(t, "announced", announced, len(list))
	var paged []string
	var page []scored
	for at := (structures.Position{}); !at.Done(); {
		page, at, err = m.zset(key).Page(page[:0], r, at, 3)
		must(t, err)
		for _, s := range page {
			paged = append(paged, fmt.Sprintf("%s=%v", s.Member, s.Score))
		}
	}
	equal(t, "in pages", strings.Join(paged, " "), strings.Join(list, " "))
	return strings.Join(list, " ")
}

// addAll makes key a sorted set from "member=score" words.
func addAll(t *testing.T, m *memory, key, text string) {
	t.Helper()
	_, err := m.Drop(key)
	must(t, err)
	for word := range strings.FieldsSeq(text) {
		member, score, _ := strings.Cut(word, "=")
		f, err := strconv.ParseFloat(score, 64)
		must(t, err)
		_, err = m.zset(key).Add([]scored{{Member: member, Score: f}}, 0)
		must(t, err)
	}
	m.writes, m.deletes, m.drops = 0, 0, 0
}

func TestAddConditions(t *testing.T) {
	const (
		nx = structures.IfAbsent
		xx = structures.IfPresent
		gt = structures.IfGreater
		lt = structures.IfLess
	)
	for _, c := range []struct {
		name           string
		c              structures.Condition
		want           string
		added, changed int
	}{
		{"plain", 0, "low=1 same=5 new=7 high=9", 1, 2},
		{"NX", nx, "high=4 same=5 low=6 new=7", 1, 0},
		{"XX", xx, "low=1 same=5 high=9", 0, 2},
		{"GT", gt, "same=5 low=6 new=7 high=9", 1, 1},
		{"LT", lt, "low=1 high=4 same=5 new=7", 1, 1},
		{"XX GT", xx | gt, "same=5 low=6 high=9", 0, 1},
		{"XX LT", xx | lt, "low=1 high=4 same=5", 0, 1},
	} {
		m := newMemory()
		addAll(t, m, "z", "low=6 same=5 high=4")
		res, err := m.zset("z").Add([]scored{{"low", 1}, {"same", 5}, {"high", 9}, {"new", 7}}, c.c)
		must(t, err)
		equal(t, c.name, whole(t, m, "z"), c.want)
		equal(t, c.name+" added", res.Added, c.added)
		equal(t, c.name+" changed", res.Changed, c.changed)
		equal(t, c.name+" writes", m.writes, c.added+c.changed)
	}
	m := newMemory()
	for want, list := range map[error][]structures.Condition{
		structures.ErrAddNXXX:   {nx | xx},
		structures.ErrAddNXGTLT: {nx | gt, nx | lt, gt | lt},
	} {
		for _, o := range list {
			_, err := m.zset("z").Add([]scored{{"a", 1}}, o)
			equal(t, "ZADD", err, want)
			_, _, err = m.zset("z").Incr("a", 1, o)
			equal(t, "ZADD INCR", err, want)
		}
	}
	_, err := m.zset("z").Add([]scored{{"a", 1}, {"b", math.NaN()}}, 0)
	equal[error](t, "ZADD nan", err, structures.ErrNotFloat)
	_, err = m.zset("z").Add([]scored{{"a", 1}, {strings.Repeat("m", 1<<16), 1}}, 0)
	equal[error](t, "ZADD of a long member", err, structures.ErrNameTooLong)
	res, err := m.zset("z").Add([]scored{{"a", 1}}, xx)
	must(t, err)
	equal(t, "ZADD XX on nothing", res, structures.AddResult{})
	res, err = m.zset("z").Add(nil, 0)
	must(t, err)
	equal(t, "ZADD of nothing", res, structures.AddResult{})
	equal(t, "writes", m.writes, 0)
	res, err = m.zset("z").Add([]scored{{"a", 1}, {"a", 2}, {"a", 2}}, 0)
	must(t, err)
	equal(t, "ZADD of one member several times", res, structures.AddResult{Added: 1, Changed: 1})
}

func TestIncrScore(t *testing.T) {
	const (
		nx = structures.IfAbsent
		xx = structures.IfPresent
		gt = structures.IfGreater
		lt = structures.IfLess
	)
	inf := math.Inf(1)
	for _, c := range []struct {
		old   string
		c     structures.Condition
		delta float64
		want  float64
		done  bool
		err   error
	}{
		{"", 0, 2.5, 2.5, true, nil}, {"a=1", 0, 2.5, 3.5, true, nil}, {"a=1", 0, 0, 1, true, nil},
		{"a=1", nx, 1, 0, false, nil}, {"", nx, 1, 1, true, nil},
		{"a=1", xx, 1, 2, true, nil}, {"", xx, 1, 0, false, nil},
		{"a=1", gt, -1, 0, false, nil}, {"a=1", gt, 0, 0, false, nil}, {"a=1", gt, 1, 2, true, nil},
		{"a=1", lt, 1, 0, false, nil}, {"a=1", lt, -1, 0, true, nil}, {"", lt, 1, 1, true, nil},
		{"a=+Inf", 0, -inf, 0, false, structures.ErrScoreNaN}, {"a=+Inf", 0, 1, inf, true, nil}, {"", 0, -inf, -inf, true, nil},
		{"a=1", 0, math.NaN(), 0, false, structures.ErrNotFloat},
	} {
		m := newMemory()
		addAll(t, m, "z", c.old)
		score, done, err := m.zset("z").Incr("a", c.delta, c.c)
		if score != c.want || done != c.done || err != c.err {
			t.Errorf("%q %+v %v: %v %v %v; want %v %v %v", c.old, c.c, c.delta, score, done, err, c.want, c.done, c.err)
		}
		if got, ok, err := m.zset("z").Score("a"); err != nil || c.done && (!ok || got != c.want) {
			t.Errorf("%q %+v %v: the score is %v, %v, %v", c.old, c.c, c.delta, got, ok, err)
		}
	}
	m := newMemory()
	_, err := m.zset("z").Add([]scored{{"a", math.Copysign(0, -1)}}, 0)
	must(t, err)
	score, _, err := m.zset("z").Score("a")
	must(t, err)
	equal(t, "-0 is 0", math.Signbit(score), false)
}

func TestRank(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "c=1 a=1 b=1 z=-1 y=+Inf x=-Inf")
	for i, member := range strings.Fields("x z a b c y") {
		rank, _, ok, err := m.zset("z").Rank(member, false)
		must(t, err)
		reverse, _, _, err := m.zset("z").Rank(member, true)
		must(t, err)
		equal(t, "found", ok, true)
		equal(t, "ZRANK "+member, rank, i)
		equal(t, "ZREVRANK "+member, reverse, 5-i)
	}
	for _, key := range []string{"z", "none"} {
		_, _, ok, err := m.zset(key).Rank("none", false)
		must(t, err)
		equal(t, "found", ok, false)
	}
}

func TestRankRange(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "a=1 b=2 c=3 d=4 e=5")
	for _, c := range []struct {
		start, stop int64
		want        string
		reverse     string
	}{
		{0, -1, "a=1 b=2 c=3 d=4 e=5", "e=5 d=4 c=3 b=2 a=1"}, {0, 1, "a=1 b=2", "e=5 d=4"}, {-2, -1, "d=4 e=5", "b=2 a=1"},
		{1, -2, "b=2 c=3 d=4", "d=4 c=3 b=2"}, {3, 1, "", ""}, {5, 9, "", ""}, {-9, 0, "a=1", "e=5"}, {0, -9, "", ""},
		{4, math.MaxInt64, "e=5", "a=1"}, {math.MinInt64, math.MinInt64, "", ""},
	} {
		equal(t, fmt.Sprint("ZRANGE ", c.start, c.stop), ranged(t, m, "z", structures.RankRange{Start: c.start, Stop: c.stop}), c.want)
		equal(t, fmt.Sprint("ZREVRANGE ", c.start, c.stop),
			ranged(t, m, "z", structures.RankRange{Start: c.start, Stop: c.stop, Reverse: true}), c.reverse)
	}
	equal(t, "ZRANGE of nothing", whole(t, m, "none"), "")
}

func TestScoreRange(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "low=-Inf a=1 b=2 bb=2 c=3 high=+Inf")
	for _, c := range []struct{ minimum, maximum, want string }{
		{"-inf", "+inf", "low=-Inf a=1 b=2 bb=2 c=3 high=+Inf"}, {"(-inf", "(+inf", "a=1 b=2 bb=2 c=3"}, {"1", "2", "a=1 b=2 bb=2"},
		{"(1", "2", "b=2 bb=2"}, {"1", "(2", "a=1"}, {"(2", "(2", ""}, {"2", "2", "b=2 bb=2"}, {"(2", "2", ""}, {"2.5", "1", ""},
		{"+inf", "-inf", ""}, {"+inf", "+inf", "high=+Inf"}, {"-inf", "-inf", "low=-Inf"}, {"(+inf", "+inf", ""}, {"-inf", "(-inf", ""},
		{"", "1", "a=1"}, {"1e400", "inf", "high=+Inf"},
	} {
		r, err := structures.ParseScoreRange([]byte(c.minimum), []byte(c.maximum))
		must(t, err)
		equal(t, "ZRANGEBYSCORE "+c.minimum+" "+c.maximum, ranged(t, m, "z", r), c.want)
		r.Reverse = true
		words := strings.Fields(c.want)
		slices.Reverse(words)
		equal(t, "ZREVRANGEBYSCORE "+c.minimum+" "+c.maximum, ranged(t, m, "z", r), strings.Join(words, " "))
	}
	for _, bad := range [][2]string{{"a", "1"}, {"1", "nan"}, {"((1", "2"}, {"1", "2 "}, {"[1", "2"}, {"-", "+"}} {
		if _, err := structures.ParseScoreRange([]byte(bad[0]), []byte(bad[1])); err != structures.ErrScoreRange {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, r := range []structures.ScoreRange{{Min: math.NaN()}, {Max: math.NaN()}} {
		if _, err := m.zset("z").Count(r); err != structures.ErrScoreRange {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestLexRange(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "a=0 b=0 ba=0 c=0 d=0")
	addAll(t, m, "mixed", "a=1 b=2 c=3 d=4")
	for _, c := range []struct{ key, minimum, maximum, want string }{
		{"z", "-", "+", "a=0 b=0 ba=0 c=0 d=0"}, {"z", "[b", "[c", "b=0 ba=0 c=0"}, {"z", "(b", "(c", "ba=0"}, {"z", "[b", "(b", ""},
		{"z", "[b", "[b", "b=0"}, {"z", "(b", "[b", ""}, {"z", "-", "[b", "a=0 b=0"}, {"z", "(c", "+", "d=0"}, {"z", "+", "-", ""},
		{"z", "[", "[z", "a=0 b=0 ba=0 c=0 d=0"}, {"z", "[bb", "[bz", ""}, {"z", "[c", "[a", ""}, {"z", "-", "-", ""}, {"z", "+", "+", ""},
		{"mixed", "[b", "[c", "b=2 c=3"}, {"mixed", "(b", "+", "c=3 d=4"}, {"mixed", "-", "(b", "a=1"}, {"none", "-", "+", ""}, {"none", "[a", "[b", ""},
	} {
		r, err := structures.ParseLexRange([]byte(c.minimum), []byte(c.maximum))
		must(t, err)
		equal(t, "ZRANGEBYLEX "+c.key+" "+c.minimum+" "+c.maximum, ranged(t, m, c.key, r), c.want)
		r.Reverse = true
		words := strings.Fields(c.want)
		slices.Reverse(words)
		equal(t, "ZREVRANGEBYLEX "+c.key+" "+c.minimum+" "+c.maximum, ranged(t, m, c.key, r), strings.Join(words, " "))
	}
	for _, bad := range [][2]string{{"a", "+"}, {"-", ""}, {"", "+"}, {"-a", "+"}, {"-", "+b"}, {"[a", "b"}} {
		if _, err := structures.ParseLexRange([]byte(bad[0]), []byte(bad[1])); err != structures.ErrLexRange {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLimit(t *testing.T) {
	m := newMemory()
	addAll(t, m, "z", "a=0 b=0 c=0 d=0 e=0")
	for _, c := range []struct {
		offset, count int64
		want, reverse string
	}{
		{0, 0, "a=0 b=0 c=0 d=0 e=0", "e=0 d=0 c=0 b=0 a=0"}, {1, 2, "b=0 c=0", "d=0 c=0"}, {3, 9, "d=0 e=0", "b=0 a=0"}, {4, 0, "e=0", "a=0"},
		{5, 0, "", ""}, {-1, 0, "", ""}, {0, -1, "", ""}, {math.MaxInt64, math.MaxInt64, "", ""}, {0, 1, "a=0", "e=0"}, {0, 4, "a=0 b=0 c=0 d=0", "e=0 d=0 c=0 b=0"},
	} {
		name := fmt.Sprint("LIMIT ", c.offset, " ", c.count)
		equal(t, name, ranged(t, m, "z", structures.ScoreRange{Offset: c.offset, Count: c.count}), c.want)
		equal(t, name, ranged(t, m, "z", structures.ScoreRange{Offset: c.offset, Count: c.count, Reverse: true}), c.reverse)
		lex := structures.LexRange{Min: structures.LexMin, Max: structures.LexMax, Offset: c.offset, Count: c.count}
		equal(t, name, ranged(t, m, "z", lex), c.want)
		lex.Reverse = true
		equal(t, name, ranged(t, m, "z", lex), c.reverse)
	}
}

func TestPopScored(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		n             int
		highest       bool
		popped, stays string
	}{
		{0, false, "[]", "a=1 b=2 c=3"}, {1, false, "[{a 1}]", "b=2 c=3"}, {2, true, "[{c 3} {b 2}]", "a=1"},
		{3, true, "[{c 3} {b 2} {a 1}]", ""}, {9, false, "[{a 1} {b 2} {c 3}]", ""},
	} {
		addAll(t, m, "z", "a=1 b=2 c=3")
		must(t, m.SetDeadline("z", 5))
		got, err := m.zset("z").Pop(c.n, c.highest)
		must(t, err)
		equal(t, "popped", fmt.Sprint(got), c.popped)
		equal(t, "stays", whole(t, m, "z"), c.stays)
		equal(t, "has a deadline", len(m.deadlines) == 1, c.stays != "")
		if c.stays == "" {
			equal(t, "deletes", m.deletes, 0)
		}
	}
	if _, err := m.zset("z").Pop(-1, false); err != structures.ErrNegative {
		t.Errorf("ZPOPMIN -1: %v", err)
	}
	got, err := m.zset("none").Pop(1, false)
	must(t, err)
	equal(t, "ZPOPMIN of nothing", len(got), 0)
}

func TestRemoveRange(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		r    structures.Range
		want string
		n    int
	}{
		{structures.RankRange{Start: 1, Stop: 2}, "a=1 d=4", 2}, {structures.RankRange{Stop: -1}, "", 4}, {structures.RankRange{Start: 4, Stop: 9}, "a=1 b=2 c=3 d=4", 0},
		{structures.RankRange{Start: 0, Stop: 0, Reverse: true}, "a=1 b=2 c=3", 1},
		{structures.ScoreRange{Min: 2, Max: 3, MinOpen: true}, "a=1 b=2 d=4", 1},
		{structures.ScoreRange{Min: 1, Max: 9, Reverse: true, Offset: 1, Count: 2}, "a=1 d=4", 2},
	} {
		addAll(t, m, "z", "a=1 b=2 c=3 d=4")
		n, err := m.zset("z").RemoveRange(c.r)
		must(t, err)
		equal(t, "removed", n, c.n)
		equal(t, "stays", whole(t, m, "z"), c.want)
		if c.want == "" {
			equal(t, "deletes", m.deletes, 0)
		}
	}
	var many []scored
	for i := range 3000 {
		many = append(many, scored{Member: strconv.Itoa(i), Score: float64(i)})
	}
	_, err := m.zset("many").Add(many, 0)
	must(t, err)
	n, err := m.zset("many").RemoveRange(structures.RankRange{Start: 1, Stop: -2})
	must(t, err)
	equal(t, "removed", n, 2998)
	equal(t, "stays", whole(t, m, "many"), "0=0 2999=2999")
}

// A loop over pages may delete the members that it has seen, and more.
func TestPagesWhileChanging(t *testing.T) {
	m := newMemory()
	for _, reverse := range []bool{false, true} {
		addAll(t, m, "z", "a=1 b=2 c=3 d=4 e=5 f=6")
		var page []scored
		var seen []string
		var err error
		r := structures.ScoreRange{Min: 2, Max: 9, Reverse: reverse}
		for at := (structures.Position{}); !at.Done(); {
			page, at, err = m.zset("z").Page(page[:0], r, at, 1)
			must(t, err)
			for _, s := range page {
				seen = append(seen, s.Member)
				_, err := m.zset("z").Remove([]string{s.Member})
				must(t, err)
				_, err = m.zset("z").Add([]scored{{"a" + s.Member, 0}}, 0)
				must(t, err)
			}
		}
		want := "bcdef"
		if reverse {
			want = "fedcb"
		}
		equal(t, "seen", strings.Join(seen, ""), want)
	}
}

func TestSortedSetScan(t *testing.T) {
	m := newMemory()
	var many []scored
	for i := range 300 {
		many = append(many, scored{Member: strconv.Itoa(i), Score: float64(i)})
	}
	_, err := m.zset("z").Add(many, 0)
	must(t, err)
	seen := map[string]bool{}
	for cursor := uint64(0); ; {
		cursor, err = m.zset("z").Scan(cursor, structures.ScanOptions{Match: "*[02468]"}, func(member []byte, score float64) {
			equal(t, "score", strconv.Itoa(int(score)), string(member))
			equal(t, "seen before", seen[string(member)], false)
			seen[string(member)] = true
		})
		must(t, err)
		if cursor == 0 {
			break
		}
	}
	equal(t, "seen", len(seen), 150)
}

func TestSortedSetAgainstModel(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	model := map[string]float64{}
	for i := range 3000 {
		stepSorted(t, rng, m.zset("z"), model)
		if rng.IntN(20) == 0 {
			m.commit("z")
		}
		if i%10 != 0 {
			continue
		}
		list := inOrder(model)
		var want []string
		for _, s := range list {
			want = append(want, fmt.Sprintf("%s=%v", s.Member, s.Score))
		}
		if got := whole(t, m, "z"); got != strings.Join(want, " ") {
			t.Fatalf("step %d: %s, want %s", i, got, want)
		}
		minScore, maxScore := float64(rng.IntN(20)), float64(rng.IntN(20))
		n, err := m.zset("z").Count(structures.ScoreRange{Min: minScore, Max: maxScore, MaxOpen: true})
		must(t, err)
		count := 0
		for rank, s := range list {
			if minScore <= s.Score && s.Score < maxScore {
				count++
			}
			got, _, _, err := m.zset("z").Rank(s.Member, false)
			must(t, err)
			equal(t, "rank", got, rank)
		}
		equal(t, "ZCOUNT", n, count)
	}
}

func inOrder(model map[string]float64) []scored {
	var list []scored
	for member, score := range model {
		list = append(list, scored{member, score})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member)) })
	return list
}

func stepSorted(t *testing.T, rng *rand.Rand, z structures.SortedSet, model map[string]float64) {
	member, score := strconv.Itoa(rng.IntN(200)), float64(rng.IntN(20))
	current, had := model[member]
	switch op := rng.IntN(50); {
	case op < 25:
		present, greater := rng.IntN(4) == 0, rng.IntN(4) == 0
		c := structures.Condition(0)
		if present {
			c |= structures.IfPresent
		}
		if greater {
			c |= structures.IfGreater
		}
		res, err := z.Add([]scored{{member, score}}, c)
		must(t, err)
		if had && (!greater || score > current) || !had && !present {
			equal(t, "added", res.Added == 1, !had)
			equal(t, "changed", res.Changed == 1, had && score != current)
			model[member] = score
		} else {
			equal(t, "done", res, structures.AddResult{})
		}
	case op < 30:
		got, _, err := z.Incr(member, score-10, 0)
		must(t, err)
		model[member] += score - 10
		equal(t, "ZINCRBY", got, model[member])
	case op < 46:
		n, err := z.Remove([]string{member})
		must(t, err)
		equal(t, "ZREM", n == 1, had)
		delete(model, member)
	default:
		list := inOrder(model)
		n := min(rng.IntN(10), len(list))
		if op < 48 {
			popped, err := z.Pop(n, true)
			must(t, err)
			for i, s := range popped {
				equal(t, "ZPOPMAX", s, list[len(list)-1-i])
				delete(model, s.Member)
			}
			return
		}
		low := rng.IntN(len(list) - n + 1)
		removed, err := z.RemoveRange(structures.RankRange{Start: int64(low), Stop: int64(low + n - 1)})
		must(t, err)
		if low+n-1 < 0 { // 0 to -1 means all
			n = len(list)
		}
		equal(t, "ZREMRANGEBYRANK", removed, n)
		for _, s := range list[low : low+n] {
			delete(model, s.Member)
		}
	}
}
