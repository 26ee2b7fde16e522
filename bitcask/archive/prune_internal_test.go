package archive

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestTwoStores: of an archive with two stores the wanted one is restored, whichever was archived last; without its id none
// is, and the error has both.
func TestTwoStores(t *testing.T) {
	l := newLab(t)
	l.fill(1)
	l.archived()
	l.fill(9)
	l.archived()
	l.close()
	first, firstState := l.states, l.state
	l.states, l.state = map[uint64]map[string]string{}, map[string]string{}
	l.open("other")
	l.fill(3)
	l.put("key0", "of the other store")
	l.archived()
	l.close()
	second, last := l.states, l.s.Sequence()
	l.clock.Add(1000)
	l.states, l.state = first, firstState
	l.open("store")
	l.fill(10)
	l.archived()
	spans, err := Spans(t.Context(), l.to)
	must(t, err)
	if len(spans) != 2 || spans[0].Store == spans[1].Store {
		t.Fatalf("spans %+v", spans)
	}
	for _, target := range []Target{{}, {Sequence: 2}, {Time: time.UnixMilli(l.clock.Load())}, {Store: "x"}} {
		_, _, err := l.restore(target)
		e, ok := errors.AsType[*StoresError](err)
		if !ok || len(e.Last) != 2 || e.Last[0].Store != spans[0].Store || e.Last[1].Store != spans[1].Store {
			t.Errorf("%+v: %v", target, err)
		}
	}
	for _, target := range []Target{{}, {Time: time.UnixMilli(l.clock.Load())}, {Sequence: l.s.Sequence()}} {
		target.Store = spans[0].Store
		l.wants(target, l.s.Sequence())
	}
	l.wants(Target{Store: spans[0].Store, Sequence: last}, last)
	l.states = second
	for _, target := range []Target{{}, {Time: time.UnixMilli(l.clock.Load())}, {Sequence: last}} {
		target.Store = spans[1].Store
		l.wants(target, last)
	}
	_, _, err = l.restore(Target{Store: spans[1].Store, Sequence: last + 1})
	unrestorable(t, err)
}

// TestBaseNeedsNoLog: the moment of a base needs no log, whichever commits an object has that are older.
func TestBaseNeedsNoLog(t *testing.T) {
	base, log := id{kind: kindBase, last: 10}, id{kind: kindLog, first: 5, last: 15}
	sp := &Span{bases: []id{base}, logs: []id{log}}
	for upTo, want := range map[uint64]int{10: 0, 11: 1} {
		if c := sp.choose(upTo); c.base != base || len(c.logs) != want {
			t.Errorf("%d: %+v", upTo, c)
		}
	}
}

// deleting is a Store that has Delete wait.
type deleting struct {
	Store
	wait func()
}

func (d deleting) Delete(ctx context.Context, name string) error {
	d.wait()
	return d.Store.Delete(ctx, name)
}

// agedLab has an archive of many objects that all are too old when the next base is there.
func agedLab(t *testing.T, onDelete func(l *lab)) *lab {
	l := newLab(t)
	l.close()
	l.keep.Keep = time.Hour
	l.faulty.Store = deleting{l.to, func() { onDelete(l) }}
	l.open("store")
	for range 20 {
		l.fill(2)
		l.archived()
	}
	l.clock.Add((31 * time.Minute).Milliseconds())
	l.fill(2)
	l.until("a second base", func() bool { return len(l.objects(kindBase)) == 2 })
	l.archived()
	return l
}

// TestCloseStopsDeleting: an archiver that ends deletes nothing more.
func TestCloseStopsDeleting(t *testing.T) {
	begun, armed, count := make(chan struct{}), atomic.Bool{}, atomic.Int32{}
	l := agedLab(t, func(l *lab) {
		if armed.Load() && count.Add(1) == 1 {
			close(begun)
			<-l.a.end
		}
	})
	armed.Store(true)
	l.clock.Add((61 * time.Minute).Milliseconds())
	l.fill(2)
	<-begun
	l.close()
	if n := count.Load(); n != 1 {
		t.Errorf("%d objects were deleted", n)
	}
	l.wants(Target{}, slices.Max(slices.Collect(maps.Keys(l.states))))
}

// TestDeletesWithoutANewBase: what is too old goes although no base can be put, so that an archive that is full gets room.
func TestDeletesWithoutANewBase(t *testing.T) {
	l := agedLab(t, func(*lab) {})
	l.faulty.refuse(func(o id) bool { return o.kind == kindData })
	l.clock.Add((61 * time.Minute).Milliseconds())
	l.fill(2)
	l.until("deleted", func() bool { return len(l.objects(kindBase)) == 1 })
	l.until("says so", func() bool { return l.a.Status().Err != "" })
	l.faulty.refuse(nothing)
	l.archived()
	l.wants(Target{}, l.s.Sequence())
}

// TestCloseTriesAgain: what waits for its next try when the archiver is to end is tried at once.
func TestCloseTriesAgain(t *testing.T) {
	l := newLab(t)
	l.fill(2)
	l.archived()
	l.close()
	l.keep.waits = func(int) time.Duration { return time.Hour }
	l.open("store")
	l.until("begun", func() bool { return l.a.Status().Generation != "" })
	l.faulty.refuse(everything)
	l.fill(2)
	l.until("says so", func() bool { return l.a.Status().Err != "" })
	l.faulty.refuse(nothing)
	l.close()
	l.wants(Target{}, l.s.Sequence())
}

// TestBaseWaits: a base that fails again and again is tried less and less, and one that does not begins anew, as does the
// first one after a long outage.
func TestBaseWaits(t *testing.T) {
	s := &session{Archiver: &Archiver{o: Options{waits: func(int) time.Duration { return 16 * time.Second }}}}
	for range 2 {
		for i, want := range []time.Duration{16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600} {
			if got := s.baseWaitLocked(errDead); got != want*time.Second {
				t.Errorf("after %d failures: %v", i+1, got)
			}
		}
		if got := s.baseWaitLocked(nil); got != 0 {
			t.Errorf("after none: %v", got)
		}
	}
	for tries, want := range map[int]int{1: 3, 6: 3, 7: 0} { // of the log
		s.baseTries, s.baseAfter = 3, time.Now().Add(time.Hour)
		s.baseAgainLocked(tries)
		if s.baseTries != want || s.baseAfter.IsZero() != (want == 0) {
			t.Errorf("after %d tries of the log: %d, %v", tries, s.baseTries, s.baseAfter)
		}
	}
}
