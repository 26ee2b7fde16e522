package ttl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/ttl"
)

// hundred returns an index of a hundred keys that are due at 0 to 99 ms.
func hundred() *ttl.Deadlines {
	x := ttl.NewDeadlines()
	for i := range 100 {
		x.Set(uint32(i%2), fmt.Sprint(i), int64(i))
	}
	return x
}

// queue returns a queue whose function takes one entry at a time.
func queue(x *ttl.Deadlines, expire func(ns uint32, key string, deadline int64) (bool, error)) ttl.Queue {
	return ttl.Queue{Deadlines: x, Expire: func(ns uint32, due []ttl.Entry) (int, error) {
		if len(due) != 1 || due[0].Namespace != ns {
			return 0, fmt.Errorf("the function got %v of namespace %d", due, ns)
		}
		deleted, err := expire(ns, due[0].Key, due[0].Deadline)
		if deleted {
			return 1, err
		}
		return 0, err
	}}
}

// TestCycleBatches: a batch is of one queue and one namespace, in order of time, and no larger than asked for.
func TestCycleBatches(t *testing.T) {
	x, y := hundred(), ttl.NewDeadlines()
	for i := range 20 {
		y.Set(0, fmt.Sprint("y", i), 150+int64(i))
	}
	for i := range 20 {
		x.Set(0, fmt.Sprint("late", i), 200+int64(i))
	}
	refused := errors.New("refused")
	var got []string
	of := func(name string, x *ttl.Deadlines, batch int) ttl.Queue {
		return ttl.Queue{Deadlines: x, Batch: batch, Expire: func(ns uint32, due []ttl.Entry) (n int, err error) {
			got = append(got, fmt.Sprint(name, ns, " ", due[0].Deadline, " ", len(due)))
			for i, e := range due {
				if e.Namespace != ns || i > 0 && e.Deadline < due[i-1].Deadline {
					t.Errorf("a batch of namespace %d is %v", ns, due)
				}
				if e.Deadline == 213 {
					return n, refused
				}
				x.Clear(ns, e.Key)
				n++
			}
			return n, nil
		}}
	}
	r, err := ttl.Cycle(1000, time.Hour, 100+20+18, of("x", x, 8), of("y", y, 16))
	if want := (ttl.CycleResult{Examined: 138, Deleted: 135, Failed: 3, More: true}); r != want || err != refused {
		t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
	}
	// The namespaces of the first hundred take turns; then 20 of y, and 18 of x in batches of 8, the last one cut by
	// the number.
	if want := []string{"y0 150 16", "y0 166 4", "x0 200 8", "x0 208 8", "x0 216 2"}; len(got) != 105 || !slices.Equal(got[100:], want) {
		t.Errorf("the batches are %q", got)
	}
}

// TestCycleTakesQueuesInTurns hands out the entries of two queues in order of time, whichever they are in.
func TestCycleTakesQueuesInTurns(t *testing.T) {
	x, y := ttl.NewDeadlines(), ttl.NewDeadlines()
	for i := range 40 {
		[]*ttl.Deadlines{x, y}[i/5%2].Set(0, fmt.Sprint(i), int64(i))
	}
	var seen []int64
	of := func(x *ttl.Deadlines) ttl.Queue {
		return queue(x, func(ns uint32, key string, deadline int64) (bool, error) {
			seen = append(seen, deadline)
			return x.Clear(ns, key), nil
		})
	}
	r, err := ttl.Cycle(100, time.Hour, 30, of(x), of(y))
	if want := (ttl.CycleResult{Examined: 30, Deleted: 30, More: true}); err != nil || r != want {
		t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
	}
	if !slices.IsSorted(seen) || x.Len(0)+y.Len(0) != 10 {
		t.Errorf("the functions saw %v", seen)
	}
}

func TestCycleDeletesWhatIsDue(t *testing.T) {
	x := hundred()
	var seen []int64
	reap := func(ns uint32, key string, deadline int64) (bool, error) {
		seen = append(seen, deadline)
		return x.Clear(ns, key), nil
	}
	r, err := ttl.Cycle(59, time.Hour, 1000, queue(x, reap))
	if want := (ttl.CycleResult{Examined: 60, Deleted: 60}); err != nil || r != want {
		t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
	}
	if len(seen) != 60 || !slices.IsSorted(seen) {
		t.Errorf("the function saw %v", seen)
	}
	if left := x.Len(0) + x.Len(1); left != 40 {
		t.Errorf("%d are left", left)
	}
	if r, err := ttl.Cycle(59, time.Hour, 1000, queue(x, reap)); err != nil || r != (ttl.CycleResult{}) {
		t.Errorf("with nothing due the run gives %+v, %v", r, err)
	}
}

func TestCycleStopsAtTheNumber(t *testing.T) {
	x := hundred()
	reap := func(ns uint32, key string, _ int64) (bool, error) { return x.Clear(ns, key), nil }
	for _, c := range []struct {
		most int
		want ttl.CycleResult
	}{
		{0, ttl.CycleResult{More: true}},
		{-1, ttl.CycleResult{More: true}},
		{99, ttl.CycleResult{Examined: 99, Deleted: 99, More: true}},
		{1, ttl.CycleResult{Examined: 1, Deleted: 1}},
		{1, ttl.CycleResult{}},
	} {
		if r, err := ttl.Cycle(1000, time.Hour, c.most, queue(x, reap)); err != nil || r != c.want {
			t.Errorf("at most %d: %+v, %v; want %+v", c.most, r, err, c.want)
		}
	}
}

func TestCycleStopsWhenTheBudgetIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := hundred()
		slow := func(ns uint32, key string, _ int64) (bool, error) {
			time.Sleep(time.Millisecond)
			return x.Clear(ns, key), nil
		}
		start := time.Now()
		r, err := ttl.Cycle(1000, 10*time.Millisecond, 1000, queue(x, slow))
		if want := (ttl.CycleResult{Examined: 10, Deleted: 10, More: true}); err != nil || r != want {
			t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("the run took %v", took)
		}
		if r, _ := ttl.Cycle(1000, 0, 1000, queue(x, slow)); r != (ttl.CycleResult{More: true}) {
			t.Errorf("without a budget the run gives %+v", r)
		}
	})
}

// TestCycleOffersEachOnce: what the function leaves in the index must neither loop nor hide what comes after it.
func TestCycleOffersEachOnce(t *testing.T) {
	x := hundred()
	r, err := ttl.Cycle(1000, time.Hour, 1000, queue(x, func(uint32, string, int64) (bool, error) { return false, nil }))
	if want := (ttl.CycleResult{Examined: 100}); err != nil || r != want {
		t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
	}
	// Put off further, but still due: that is for the next run.
	r, err = ttl.Cycle(1000, time.Hour, 1000, queue(x, func(ns uint32, key string, ms int64) (bool, error) {
		x.Set(ns, key, ms-200)
		return false, nil
	}))
	if want := (ttl.CycleResult{Examined: 100}); err != nil || r != want {
		t.Errorf("the run gives %+v, %v; want %+v", r, err, want)
	}
}

func TestCycleGoesOnAfterErrors(t *testing.T) {
	x := hundred()
	damaged, other := errors.New("damaged"), errors.New("other")
	r, err := ttl.Cycle(1000, time.Hour, 1000, queue(x, func(ns uint32, key string, ms int64) (bool, error) {
		switch {
		case ms == 3:
			return false, damaged
		case ms%10 == 0:
			return false, other
		}
		return x.Clear(ns, key), nil
	}))
	if want := (ttl.CycleResult{Examined: 100, Deleted: 89, Failed: 11}); r != want {
		t.Errorf("the run gives %+v, want %+v", r, want)
	}
	if !errors.Is(err, other) {
		t.Errorf("error is %v, want the first one", err)
	}
}

// TestCycleAmongChanges: entries that come and go during a run do not confuse it.
func TestCycleAmongChanges(t *testing.T) {
	x := ttl.NewDeadlines()
	for i := range 2000 {
		x.Set(0, fmt.Sprint(i), int64(i))
	}
	seen := map[string]bool{}
	r, err := ttl.Cycle(10_000, time.Hour, 100_000, queue(x, func(ns uint32, key string, ms int64) (bool, error) {
		if seen[key] {
			t.Errorf("key %s was offered twice", key)
		}
		seen[key] = true
		x.Set(0, "new "+key, 20_000) // Takes the memory of a removed entry.
		x.Clear(0, fmt.Sprint(ms+1000))
		return x.Clear(ns, key), nil
	}))
	if err != nil || r.More || r.Deleted < 1000 || x.Len(0) != r.Examined {
		t.Errorf("the run gives %+v, %v and leaves %d", r, err, x.Len(0))
	}
}
