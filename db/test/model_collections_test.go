package db_test

import (
	"math"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// The operations of the model test on lists, sets and sorted sets.

func byteSlices(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// elems returns the elements of a list, none if it does not exist.
func (v *modelValue) elems() []string {
	if v == nil {
		return nil
	}
	return v.list
}

// elemValue is one of few values, so that lists hold it several times.
func (x *modelOp) elemValue() string {
	if x.rng.IntN(4) == 0 {
		return x.value()
	}
	return modelNames[x.rng.IntN(5)]
}

func (x *modelOp) elemValues() []string {
	list := make([]string, x.many())
	for i := range list {
		list[i] = x.elemValue()
	}
	return list
}

func (v *modelValue) push(front bool, values []string) {
	if front {
		values = slices.Clone(values)
		slices.Reverse(values)
		v.list = append(values, v.list...)
		return
	}
	v.list = append(v.list, values...)
}

func opPush(x *modelOp) { x.push(x.key(), x.elemValues()) }

// opLongList changes the middle of a list that is long enough for sub-indexes.
func opLongList(x *modelOp) {
	key, values := x.key(), x.elemValues()
	for range 40 {
		values = append(values, modelNames[x.rng.IntN(5)])
	}
	x.push(key, values)
	for range x.rng.IntN(8) {
		if x.rng.IntN(4) == 0 {
			x.remove(key)
		} else {
			x.insert(key)
		}
	}
}

func (x *modelOp) push(key string, values []string) {
	front := x.rng.IntN(2) == 0
	x.begin("PUSH %q front %v %q", key, front, values)
	v, want := x.get(key, db.TypeList)
	if len(v.elems()) > 300 {
		return
	}
	if want == nil {
		v, _ = x.make(key, db.TypeList)
		v.push(front, values)
	}
	push := x.keys.List(key).PushBack
	if front {
		push = x.keys.List(key).PushFront
	}
	got, err := push(byteSlices(values)...)
	x.result(got, err, len(v.elems()), want)
}

func opPushIfPresent(x *modelOp) {
	key, end, values := x.key(), db.End(x.rng.IntN(2)), []string{x.elemValue()}
	x.begin("PUSHX %q end %v %q", key, end, values)
	v, want := x.get(key, db.TypeList)
	if want == nil && v != nil {
		v.push(end == db.Front, values)
	}
	if want == nil {
		want = some(v != nil)
	}
	got, err := x.keys.List(key).PushWith(end, byteSlices(values), db.IfPresent)
	x.result(got, err, len(v.elems()), want)
}

func opPop(x *modelOp) {
	key, front, n := x.key(), x.rng.IntN(2) == 0, x.many()
	x.begin("POP %q front %v %d", key, front, n)
	v, want := x.get(key, db.TypeList)
	values := []string{}
	if want == nil {
		if want = some(v != nil); want == nil {
			n := min(n, len(v.list))
			if front {
				values = append(values, v.list[:n]...)
				v.list = v.list[n:]
			} else {
				values = append(values, v.list[len(v.list)-n:]...)
				slices.Reverse(values)
				v.list = v.list[:len(v.list)-n]
			}
		}
	}
	pop := x.keys.List(key).PopBackN
	if front {
		pop = x.keys.List(key).PopFrontN
	}
	got, err := pop(n)
	x.result(texts(got), err, values, want)
	x.settle(key)
}

// place turns a position that may count from the end into an index.
func place(position int64, n int) (int, bool) {
	if position < 0 {
		position += int64(n)
	}
	return int(position), 0 <= position && position < int64(n)
}

func opListAt(x *modelOp) {
	key, position := x.key(), x.position()
	x.begin("LINDEX and LLEN %q %d", key, position)
	v, want := x.get(key, db.TypeList)
	n, err := x.keys.List(key).Len()
	x.result(n, err, len(v.elems()), want)
	value := ""
	if want == nil {
		i, ok := place(position, len(v.elems()))
		if want = some(ok); ok {
			value = v.list[i]
		}
	}
	got, err := x.keys.List(key).At(position)
	x.result(string(got), err, value, want)
}

// cut is what positions start to stop select of n elements.
func cut(start, stop int64, n int) (from, to int) {
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop) + 1
}

func opListRange(x *modelOp) {
	key, start, stop := x.key(), x.position(), x.position()
	x.begin("LRANGE %q %d %d", key, start, stop)
	v, want := x.get(key, db.TypeList)
	from, to := cut(start, stop, len(v.elems()))
	got, err := x.keys.List(key).Range(start, stop)
	x.result(texts(got), err, append([]string{}, v.elems()[from:to]...), want)
}

func opListSet(x *modelOp) {
	key, position, value := x.key(), x.position(), x.elemValue()
	x.begin("LSET %q %d %q", key, position, value)
	v, want := x.get(key, db.TypeList)
	if want == nil {
		if want = some(v != nil); want == nil {
			if i, ok := place(position, len(v.list)); ok {
				v.list[i] = value
			} else {
				want = structures.ErrIndexRange
			}
		}
	}
	x.result(nil, x.keys.List(key).Set(position, []byte(value)), nil, want)
}

func opTrim(x *modelOp) {
	key, start, stop := x.key(), x.position(), x.position()
	x.begin("LTRIM %q %d %d", key, start, stop)
	v, want := x.get(key, db.TypeList)
	if want == nil && v != nil {
		from, to := cut(start, stop, len(v.list))
		v.list = v.list[from:to]
	}
	x.result(nil, x.keys.List(key).Trim(start, stop), nil, want)
	x.settle(key)
}

func opInsert(x *modelOp) { x.insert(x.key()) }

func (x *modelOp) insert(key string) {
	before, pivot, value := x.rng.IntN(2) == 0, x.elemValue(), x.elemValue()
	x.begin("LINSERT %q before %v %q %q", key, before, pivot, value)
	v, want := x.get(key, db.TypeList)
	n := 0
	if want == nil && v != nil {
		n = -1
		if i := slices.Index(v.list, pivot); i >= 0 {
			if !before {
				i++
			}
			v.list = slices.Insert(slices.Clone(v.list), i, value)
			n = len(v.list)
		}
	}
	insert := x.keys.List(key).InsertAfter
	if before {
		insert = x.keys.List(key).InsertBefore
	}
	got, err := insert([]byte(pivot), []byte(value))
	x.result(got, err, n, want)
}

func opRemove(x *modelOp) { x.remove(x.key()) }

func (x *modelOp) remove(key string) {
	count, value := x.rng.Int64N(7)-3, x.elemValue()
	x.begin("LREM %q %d %q", key, count, value)
	v, want := x.get(key, db.TypeList)
	n := 0
	if want == nil && v != nil {
		list := slices.Clone(v.list)
		if count < 0 {
			slices.Reverse(list)
		}
		most := max(count, -count)
		list = slices.DeleteFunc(list, func(s string) bool {
			gone := s == value && (count == 0 || int64(n) < most)
			if gone {
				n++
			}
			return gone
		})
		if count < 0 {
			slices.Reverse(list)
		}
		v.list = list
	}
	got, err := x.keys.List(key).Remove(count, []byte(value))
	x.result(got, err, n, want)
	x.settle(key)
}

// members returns the members of a set.
func (v *modelValue) members() []string {
	list := []string{}
	if v != nil {
		for member := range v.set {
			list = append(list, member)
		}
	}
	slices.Sort(list)
	return list
}

func sorted(list []string) []string {
	list = append([]string{}, list...)
	slices.Sort(list)
	return list
}

func (x *modelOp) members() []string {
	list := make([]string, x.many())
	for i := range list {
		list[i] = x.elem(len(list))
	}
	return list
}

func opSetAdd(x *modelOp) {
	key, members := x.key(), x.members()
	x.begin("SADD %q %q", key, members)
	v, want := x.make(key, db.TypeSet)
	n := 0
	if want == nil {
		n -= len(v.set)
		for _, member := range members {
			v.set[member] = true
		}
		n += len(v.set)
	}
	got, err := x.keys.Set(key).Add(members...)
	x.result(got, err, n, want)
}

func opSetRemove(x *modelOp) {
	key, members := x.key(), x.members()
	x.begin("SREM %q %q", key, members)
	v, want := x.get(key, db.TypeSet)
	n := 0
	if want == nil && v != nil {
		n = len(v.set)
		for _, member := range members {
			delete(v.set, member)
		}
		n -= len(v.set)
	}
	got, err := x.keys.Set(key).Remove(members...)
	x.result(got, err, n, want)
	x.settle(key)
}

func opSetHas(x *modelOp) {
	key, member := x.key(), x.name()
	x.begin("SISMEMBER and SCARD %q %q", key, member)
	v, want := x.get(key, db.TypeSet)
	got, err := x.keys.Set(key).Has(member)
	x.result(got, err, want == nil && v != nil && v.set[member], want)
	n, err := x.keys.Set(key).Len()
	x.result(n, err, v.len(), want)
}

func opSetMembers(x *modelOp) {
	key := x.key()
	x.begin("SMEMBERS %q", key)
	v, want := x.get(key, db.TypeSet)
	got, err := x.keys.Set(key).Members()
	x.result(sorted(got), err, v.members(), want)
}

// chosen checks members that were picked at random.
func (x *modelOp) chosen(got []string, v *modelValue, n int) {
	for _, member := range got {
		if !v.set[member] {
			x.failf("%s: %q is no member", x.what, member)
		}
	}
	different := slices.Compact(sorted(got))
	switch {
	case v.len() == 0 && len(got) > 0,
		n >= 0 && (len(got) != min(n, v.len()) || len(different) != len(got)),
		n < 0 && v.len() > 0 && len(got) != -n:
		x.failf("%s: %q of %d", x.what, got, v.len())
	}
}

func opSetPop(x *modelOp) {
	if x.script != nil {
		return // its inputs are not in the script
	}
	key, n := x.key(), x.many()
	x.begin("SPOP %q %d", key, n)
	v, want := x.get(key, db.TypeSet)
	got, err := x.keys.Set(key).Pop(n)
	x.result(nil, err, nil, want)
	if want != nil {
		return
	}
	x.chosen(got, v, n)
	for _, member := range got {
		delete(v.set, member)
	}
	x.settle(key)
}

func opSetRandom(x *modelOp) {
	key, n := x.key(), x.rng.IntN(20)-10
	x.begin("SRANDMEMBER %q %d", key, n)
	v, want := x.get(key, db.TypeSet)
	got, err := x.keys.Set(key).Random(n)
	x.result(nil, err, nil, want)
	if want == nil {
		x.chosen(got, v, n)
	}
}

func opSetCombine(x *modelOp) {
	keys := []string{x.key(), x.key(), x.key()}[:1+x.rng.IntN(3)]
	op := x.rng.IntN(3)
	x.begin("SUNION, SINTER, SDIFF %d %q", op, keys)
	count := map[string]int{}
	first := map[string]bool{}
	var want error
	for i, key := range keys {
		v, err := x.get(key, db.TypeSet)
		if err != nil {
			want = err
			break
		}
		for _, member := range v.members() {
			count[member]++
			first[member] = first[member] || i == 0
		}
	}
	members := []string{}
	for member, n := range count {
		if op == 0 || op == 1 && n == len(keys) || op == 2 && first[member] && n == 1 {
			members = append(members, member)
		}
	}
	set := x.keys.Set(keys[0])
	combine := []func(...string) ([]string, error){set.Union, set.Inter, set.Diff}[op]
	got, err := combine(keys[1:]...)
	x.result(sorted(got), err, sorted(members), want)
}

var modelScores = []float64{
	0, 0, 1, 2, 3, -1, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e15, math.Copysign(0, -1),
}

func (x *modelOp) score() float64 { return modelScores[x.rng.IntN(len(modelScores))] }

// addCondition draws a condition, or none.
func (x *modelOp) addCondition() (o db.WriteOption) {
	if n := x.rng.IntN(8); n < 4 {
		o = []db.WriteOption{db.IfAbsent, db.IfPresent, db.IfGreater, db.IfLess}[n]
	}
	return o
}

func allowed(o db.WriteOption, exists bool, old, score float64) bool {
	if !exists {
		return o != db.IfPresent
	}
	return o != db.IfAbsent && (o != db.IfGreater || score > old) && (o != db.IfLess || score < old)
}

func opZAdd(x *modelOp) {
	key, o := x.key(), x.addCondition()
	members := make([]db.Scored, x.many())
	for i := range members {
		members[i] = db.Scored{Member: x.elem(len(members)), Score: x.score()}
		if len(members) > 20 {
			members[i].Score = float64(x.rng.IntN(30))
		}
	}
	x.begin("ZADD %q %+v %v", key, o, members)
	_, want := x.get(key, db.TypeSortedSet)
	var res db.AddResult
	if want == nil {
		v, _ := x.make(key, db.TypeSortedSet)
		for _, m := range members {
			old, exists := v.zset[m.Member]
			if !allowed(o, exists, old, m.Score) {
				continue
			}
			v.zset[m.Member] = m.Score + 0 // no -0
			if !exists {
				res.Added++
			} else if old != m.Score {
				res.Changed++
			}
		}
	}
	got, err := x.keys.SortedSet(key).AddWith(members, o)
	x.result(got, err, res, want)
	x.settle(key)
}

func opZIncr(x *modelOp) {
	key, o, member, delta := x.key(), x.addCondition(), x.name(), x.score()
	x.begin("ZADD INCR %q %+v %q %v", key, o, member, delta)
	v, want := x.get(key, db.TypeSortedSet)
	old, exists, score, done := 0.0, false, 0.0, false
	if want == nil {
		if v != nil {
			old, exists = v.zset[member]
		}
		score = old + delta
		blocked := exists && o == db.IfAbsent || !exists && o == db.IfPresent
		if !blocked && math.IsNaN(score) {
			want = structures.ErrScoreNaN
		}
		done = want == nil && !blocked && allowed(o, exists, old, score)
		if done {
			v, _ = x.make(key, db.TypeSortedSet)
			v.zset[member] = score + 0
		}
	}
	got, gotDone, err := x.keys.SortedSet(key).IncrWith(member, delta, o)
	x.result(gotDone, err, done, want)
	if done && got != score {
		x.failf("%s = %v, want %v", x.what, got, score)
	}
}

func opZRemove(x *modelOp) {
	key, members := x.key(), x.members()
	x.begin("ZREM %q %q", key, members)
	v, want := x.get(key, db.TypeSortedSet)
	n := 0
	if want == nil && v != nil {
		n = len(v.zset)
		for _, member := range members {
			delete(v.zset, member)
		}
		n -= len(v.zset)
	}
	got, err := x.keys.SortedSet(key).Remove(members...)
	x.result(got, err, n, want)
	x.settle(key)
}

func opScore(x *modelOp) {
	key, member := x.key(), x.name()
	x.begin("ZSCORE and ZCARD %q %q", key, member)
	v, want := x.get(key, db.TypeSortedSet)
	n, err := x.keys.SortedSet(key).Len()
	x.result(n, err, v.len(), want)
	score := 0.0
	if want == nil {
		ok := false
		if v != nil {
			score, ok = v.zset[member]
		}
		want = some(ok)
	}
	got, err := x.keys.SortedSet(key).Score(member)
	x.result(got, err, score, want)
}

func opRank(x *modelOp) {
	key, member, reverse := x.key(), x.name(), x.rng.IntN(2) == 0
	x.begin("ZRANK %q %q reverse %v", key, member, reverse)
	v, want := x.get(key, db.TypeSortedSet)
	rank := 0
	if want == nil {
		list := v.scored()
		rank = slices.IndexFunc(list, func(s db.Scored) bool { return s.Member == member })
		if want = some(rank >= 0); reverse {
			rank = len(list) - 1 - rank
		}
	}
	rankOf := x.keys.SortedSet(key).Rank
	if reverse {
		rankOf = x.keys.SortedSet(key).RevRank
	}
	got, err := rankOf(member)
	x.result(got, err, rank, want)
}

// zrange is a random range, and which members it selects in their order.
func (x *modelOp) zrange() (r db.Range, pick func(list []db.Scored) []db.Scored) {
	reverse := x.rng.IntN(2) == 0
	turn := func(list []db.Scored) []db.Scored {
		list = slices.Clone(list)
		if reverse {
			slices.Reverse(list)
		}
		return list
	}
	if x.rng.IntN(2) == 0 {
		r := db.RankRange{Start: x.position(), Stop: x.position(), Reverse: reverse}
		return r, func(list []db.Scored) []db.Scored {
			from, to := cut(r.Start, r.Stop, len(list))
			return turn(list)[from:to]
		}
	}
	sr := db.ScoreRange{
		Min: x.score(), Max: x.score(), MinOpen: x.rng.IntN(3) == 0, MaxOpen: x.rng.IntN(3) == 0, Reverse: reverse,
		Offset: max(x.rng.Int64N(6)-2, 0), Count: max(x.rng.Int64N(8)-3, 0),
	}
	return sr, func(list []db.Scored) []db.Scored {
		list = slices.DeleteFunc(turn(list), func(s db.Scored) bool {
			return s.Score < sr.Min || s.Score > sr.Max || sr.MinOpen && s.Score == sr.Min || sr.MaxOpen && s.Score == sr.Max
		})
		list = list[min(int(sr.Offset), len(list)):]
		if sr.Count > 0 {
			list = list[:min(int(sr.Count), len(list))]
		}
		return list
	}
}

func opZRange(x *modelOp) {
	key := x.key()
	r, pick := x.zrange()
	x.begin("ZRANGE %q %+v", key, r)
	v, want := x.get(key, db.TypeSortedSet)
	got, err := x.keys.SortedSet(key).Range(r)
	x.result(append([]db.Scored{}, got...), err, append([]db.Scored{}, pick(v.scored())...), want)
}

func opCount(x *modelOp) {
	key := x.key()
	r, pick := x.zrange()
	x.begin("ZCOUNT %q %+v", key, r)
	v, want := x.get(key, db.TypeSortedSet)
	got, err := x.keys.SortedSet(key).Count(r)
	x.result(got, err, len(pick(v.scored())), want)
}

func opZRemoveRange(x *modelOp) {
	key := x.key()
	r, pick := x.zrange()
	x.begin("ZREMRANGE %q %+v", key, r)
	v, want := x.get(key, db.TypeSortedSet)
	gone := []db.Scored{}
	if want == nil && v != nil {
		gone = pick(v.scored())
		for _, s := range gone {
			delete(v.zset, s.Member)
		}
	}
	got, err := x.keys.SortedSet(key).RemoveRange(r)
	x.result(got, err, len(gone), want)
	x.settle(key)
}

func opZPop(x *modelOp) {
	key, n, highest := x.key(), x.many(), x.rng.IntN(2) == 0
	x.begin("ZPOP %q %d highest %v", key, n, highest)
	v, want := x.get(key, db.TypeSortedSet)
	list := v.scored()
	if highest {
		slices.Reverse(list)
	}
	list = list[:min(n, len(list))]
	if want == nil && v != nil {
		for _, s := range list {
			delete(v.zset, s.Member)
		}
	}
	pop := x.keys.SortedSet(key).PopMin
	if highest {
		pop = x.keys.SortedSet(key).PopMax
	}
	got, err := pop(n)
	x.result(append([]db.Scored{}, got...), err, list, want)
	x.settle(key)
}

func opZScan(x *modelOp) {
	key, count := x.key(), 1+x.rng.IntN(20)
	x.begin("ZSCAN and SSCAN %q count %d", key, count)
	if v, want := x.get(key, db.TypeSortedSet); want == nil {
		got := []db.Scored{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			page, next, err := x.keys.SortedSet(key).Scan(cursor, db.ScanOptions{Count: count})
			x.result(nil, err, nil, nil)
			got, cursor = append(got, page...), next
		}
		slices.SortFunc(got, func(a, b db.Scored) int { return strings.Compare(a.Member, b.Member) })
		list := v.scored()
		slices.SortFunc(list, func(a, b db.Scored) int { return strings.Compare(a.Member, b.Member) })
		x.result(got, nil, list, nil)
	}
	if v, want := x.get(key, db.TypeSet); want == nil {
		got := []string{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			page, next, err := x.keys.Set(key).Scan(cursor, db.ScanOptions{Count: count})
			x.result(nil, err, nil, nil)
			got, cursor = append(got, page...), next
		}
		x.result(sorted(got), nil, v.members(), nil)
	}
}
