package ttl_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/ttl"
)

// name is what a deadline belongs to.
type name struct {
	ns  uint32
	key string
}

func TestSetGetClear(t *testing.T) {
	x := ttl.NewDeadlines()
	if _, ok := x.Get(0, "k"); ok || x.Clear(0, "k") || x.Len(0) != 0 {
		t.Error("an empty index has something")
	}
	x.Set(0, "k", 5)
	x.Set(0, "k", 7)
	x.Set(0, "k", 7)
	x.Set(1, "k", 9)
	x.Set(0, "", 1)
	if ms, ok := x.Get(0, "k"); !ok || ms != 7 {
		t.Errorf("the deadline is %d, %v; want the last one set", ms, ok)
	}
	if ms, ok := x.Get(1, "k"); !ok || ms != 9 {
		t.Errorf("the deadline in another namespace is %d, %v", ms, ok)
	}
	if _, ok := x.Get(0, "other"); ok {
		t.Error("a key without deadline has one")
	}
	if got := []int{x.Len(0), x.Len(1), x.Len(2)}; !slices.Equal(got, []int{2, 1, 0}) {
		t.Errorf("lengths are %v", got)
	}
	if !x.Clear(0, "k") || x.Clear(0, "k") || x.Clear(0, "other") {
		t.Error("Clear does not say whether there was a deadline")
	}
	if _, ok := x.Get(0, "k"); ok || x.Len(0) != 1 {
		t.Error("a cleared deadline is there")
	}
	if _, ok := x.Get(1, "k"); !ok {
		t.Error("clearing reached another namespace")
	}
}

func TestNextAndDue(t *testing.T) {
	x := ttl.NewDeadlines()
	if ms, ok := x.Next(); ok {
		t.Errorf("an empty index has a next deadline %d", ms)
	}
	for i := range 100 {
		x.Set(uint32(i%3), fmt.Sprint(i), int64(1000+i))
	}
	if ms, ok := x.Next(); !ok || ms != 1000 {
		t.Errorf("the next deadline is %d, %v", ms, ok)
	}
	if got := x.Due(999, 10, nil); len(got) != 0 {
		t.Errorf("before the first deadline, due are %v", got)
	}
	if got := x.Due(1000, 10, nil); len(got) != 1 || got[0] != (ttl.Entry{Namespace: 0, Key: "0", Deadline: 1000}) {
		t.Errorf("at the first deadline, due are %v", got)
	}
	if got := x.Due(math.MaxInt64, 0, nil); len(got) != 0 {
		t.Errorf("at most 0 entries are %v", got)
	}
	first := ttl.Entry{Key: "kept"}
	got := x.Due(1089, 90, []ttl.Entry{first})
	if len(got) != 91 || got[0] != first {
		t.Fatalf("%d entries, the first %v", len(got), got[0])
	}
	for i, e := range got[1:] {
		if want := (ttl.Entry{Namespace: uint32(i % 3), Key: fmt.Sprint(i), Deadline: int64(1000 + i)}); e != want {
			t.Errorf("due entry %d is %v, want %v", i, e, want)
		}
	}
	x.Clear(0, "0")
	x.Set(1, "1", 5000)
	if ms, _ := x.Next(); ms != 1002 {
		t.Errorf("after a clear and a postponement the next deadline is %d", ms)
	}
	if got := x.Due(1089, 90, nil); len(got) != 88 {
		t.Errorf("%d are due, want 88", len(got))
	}
}

func TestExtremeDeadlines(t *testing.T) {
	x := ttl.NewDeadlines()
	all := []int64{math.MinInt64, -1, 0, 1, 1 << 32, 1<<32 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, ms := range all {
		x.Set(0, fmt.Sprint(ms), ms)
	}
	got := []int64{}
	for _, e := range x.Due(math.MaxInt64, 100, nil) {
		got = append(got, e.Deadline)
	}
	if !slices.Equal(got, all) {
		t.Errorf("in order they are %v", got)
	}
	if got := x.Due(math.MinInt64, 100, nil); len(got) != 1 {
		t.Errorf("due at the beginning of time are %v", got)
	}
}

func TestKeysOfAllLengths(t *testing.T) {
	x := ttl.NewDeadlines()
	key := func(n int) string { return strings.Repeat("x", n) }
	lengths := []int{0, 1, 2, 3, 4, 100, 253, 254, 255, 256, 65535, 1 << 20}
	for round := range int64(3) {
		for _, n := range lengths {
			x.Set(0, key(n), int64(n)+round)
		}
		for _, n := range lengths {
			if ms, ok := x.Get(0, key(n)); !ok || ms != int64(n)+round {
				t.Errorf("the key of %d bytes has %d, %v", n, ms, ok)
			}
		}
		due := x.Due(math.MaxInt64, 100, nil)
		for i, e := range due {
			if e.Key != key(lengths[i]) {
				t.Errorf("a key of %d bytes became one of %d", lengths[i], len(e.Key))
			}
		}
		for _, n := range lengths[round:] {
			if !x.Clear(0, key(n)) {
				t.Errorf("the key of %d bytes cannot be cleared", n)
			}
		}
	}
}

func TestDropNamespace(t *testing.T) {
	x := ttl.NewDeadlines()
	for i := range 100 {
		x.Set(1, fmt.Sprint(i), int64(i))
		x.Set(2, fmt.Sprint(i), int64(i+50))
	}
	x.DropNamespace(1)
	x.DropNamespace(7)
	if x.Len(1) != 0 || x.Len(2) != 100 {
		t.Errorf("lengths are %d and %d, want 0 and 100", x.Len(1), x.Len(2))
	}
	if ms, _ := x.Next(); ms != 50 {
		t.Errorf("the next deadline is %d, want the other namespace's", ms)
	}
	if _, ok := x.Get(1, "3"); ok {
		t.Error("a dropped deadline is there")
	}
	x.Set(1, "3", 4)
	if x.Len(1) != 1 {
		t.Error("a dropped namespace cannot be used again")
	}
}

func TestAverage(t *testing.T) {
	const now = 1_700_000_000_000
	for _, c := range []struct {
		name      string
		deadlines []int64
		want      int64
	}{
		{"none", nil, 0},
		{"one", []int64{now + 500}, 500},
		{"several", []int64{now + 100, now + 200, now + 600}, 300},
		{"one past, one to come", []int64{now - 100, now + 300}, 100},
		{"all past", []int64{now - 100, now - 300}, 0},
		{"sum beyond 64 bits", []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64 - 3}, math.MaxInt64 - 1 - now},
		{"negative", []int64{math.MinInt64, math.MinInt64, 5}, 0},
	} {
		x := ttl.NewDeadlines()
		for i, ms := range c.deadlines {
			x.Set(3, fmt.Sprint(i), ms)
			x.Set(4, fmt.Sprint(i), 1) // Another namespace must not count.
			x.Set(3, "gone", -ms)
		}
		x.Clear(3, "gone")
		if got := x.Average(3, now); got != c.want {
			t.Errorf("%s: the average is %d ms, want %d", c.name, got, c.want)
		}
	}
}

// TestDeadlinesAgainstModel does random operations on an index and on a map.
func TestDeadlinesAgainstModel(t *testing.T) {
	rng := chance.Rand(t)
	x := ttl.NewDeadlines()
	model := map[name]int64{}
	random := func() name {
		return name{uint32(rng.IntN(3)), strings.Repeat("k", rng.IntN(300)) + fmt.Sprint(rng.IntN(500))}
	}
	for step := range 60_000 {
		k := random()
		switch p := rng.IntN(1000); {
		case p < 550:
			ms := rng.Int64N(2000)
			x.Set(k.ns, k.key, ms)
			model[k] = ms
		case p < 950:
			_, had := model[k]
			if got := x.Clear(k.ns, k.key); got != had {
				t.Fatalf("step %d: Clear says %v, want %v", step, got, had)
			}
			delete(model, k)
		case p < 998:
			want, had := model[k]
			if ms, ok := x.Get(k.ns, k.key); ok != had || ms != want {
				t.Fatalf("step %d: Get gives %d, %v; want %d, %v", step, ms, ok, want, had)
			}
		case p < 999:
			x.DropNamespace(k.ns)
			maps.DeleteFunc(model, func(n name, _ int64) bool { return n.ns == k.ns })
		}
		if step%5000 == 0 {
			compare(t, x, model, rng.Int64N(2200))
		}
	}
	compare(t, x, model, 3000)
	for k := range model {
		x.Clear(k.ns, k.key)
	}
	compare(t, x, nil, 3000)
}

// compare checks everything an index says against the model.
func compare(t *testing.T, x *ttl.Deadlines, model map[name]int64, now int64) {
	t.Helper()
	lens := map[uint32]int{}
	want := []ttl.Entry{}
	next, ok := int64(0), false
	for k, ms := range model {
		lens[k.ns]++
		if ms <= now {
			want = append(want, ttl.Entry{Namespace: k.ns, Key: k.key, Deadline: ms})
		}
		if !ok || ms < next {
			next, ok = ms, true
		}
	}
	for ns := range uint32(3) {
		if got := x.Len(ns); got != lens[ns] {
			t.Fatalf("namespace %d has %d deadlines, want %d", ns, got, lens[ns])
		}
	}
	if gotNext, gotOK := x.Next(); gotNext != next || gotOK != ok {
		t.Fatalf("the next deadline is %d, %v; want %d, %v", gotNext, gotOK, next, ok)
	}
	got := x.Due(now, math.MaxInt, nil)
	if !slices.IsSortedFunc(got, func(a, b ttl.Entry) int { return cmp.Compare(a.Deadline, b.Deadline) }) {
		t.Fatal("due entries are not in order of time")
	}
	sortEntries(got)
	sortEntries(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d entries are due, want %d", len(got), len(want))
	}
}

func sortEntries(entries []ttl.Entry) {
	slices.SortFunc(entries, func(a, b ttl.Entry) int {
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key, b.Key))
	})
}

// TestParallelUse is for the race detector; each goroutine has keys of its own and must find them unharmed.
func TestParallelUse(t *testing.T) {
	x := ttl.NewDeadlines()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				ns, key := uint32(i%3), fmt.Sprintf("%d-%d", g, i%100)
				x.Set(ns, key, int64(i))
				if ms, ok := x.Get(ns, key); !ok || ms != int64(i) {
					t.Errorf("Get gives %d, %v; want %d", ms, ok, i)
					return
				}
				if i%7 == 0 && !x.Clear(ns, key) {
					t.Error("Clear finds nothing")
				}
				if i%50 == 0 {
					x.Due(int64(i), 20, nil)
					x.Next()
					x.Average(ns, 0)
					x.DropNamespace(9)
					x.Set(9, key, 1)
				}
			}
		})
	}
	wg.Wait()
}

func TestGetAllocatesNothing(t *testing.T) {
	x := ttl.NewDeadlines()
	x.Set(0, "key", 1)
	for key, ns := range map[string]uint32{"key": 0, "none": 0, "other": 1} {
		if n := testing.AllocsPerRun(100, func() { x.Get(ns, key) }); n != 0 {
			t.Errorf("Get(%d, %q) allocates %v times", ns, key, n)
		}
	}
}

// TestMemoryIsGivenBack fills and empties an index many times over: it must not grow.
func TestMemoryIsGivenBack(t *testing.T) {
	x := ttl.NewDeadlines()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for round := range 3 {
		for i := range 40_000 {
			x.Set(0, fmt.Sprint(strings.Repeat("x", round*20), i), int64(i))
		}
		for i := range 40_000 {
			x.Clear(0, fmt.Sprint(strings.Repeat("x", round*20), i))
		}
	}
	if grown := int64(heap()) - int64(before); grown > 2<<20 {
		t.Errorf("an emptied index keeps %d bytes", grown)
	}
	runtime.KeepAlive(x)
}

// BenchmarkDeadlineBytes measures memory, as the metric B/key. Deadlines come in ascending order (one TTL for all) or
// at random.
func BenchmarkDeadlineBytes(b *testing.B) {
	const keys = 1_000_000
	for _, order := range []string{"ascending", "random"} {
		b.Run(order, func(b *testing.B) {
			var total uint64
			for b.Loop() {
				rng := rand.New(rand.NewPCG(1, 1))
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				x := ttl.NewDeadlines()
				for i := range int64(keys) {
					ms := 1_700_000_000_000 + i
					if order == "random" {
						ms += rng.Int64N(1e9)
					}
					x.Set(0, fmt.Sprintf("key:%012d", i), ms)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				total += after.HeapAlloc - before.HeapAlloc
				runtime.KeepAlive(x)
			}
			b.ReportMetric(float64(total)/float64(b.N)/keys, "B/key")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/Set")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	x := ttl.NewDeadlines()
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("key:%012d", i)
		x.Set(0, keys[i], int64(i))
	}
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			x.Get(0, keys[i%len(keys)])
			i++
		}
	})
	b.Run("empty namespace", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Get(1, keys[0])
		}
	})
}
