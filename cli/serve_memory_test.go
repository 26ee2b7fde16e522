package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestWorthReleasing(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		before, now heapState
		want        bool
	}{
		"garbage of an index that has grown": {heapState{allocated: 900 * mib}, heapState{live: 140 * mib, objects: 260 * mib, allocated: 901 * mib}, true},
		"free pages that the runtime keeps":  {heapState{allocated: 900 * mib}, heapState{live: 194 * mib, objects: 194 * mib, free: 70 * mib, allocated: 901 * mib}, true},
		"it works":                           {heapState{allocated: 500 * mib}, heapState{live: 140 * mib, objects: 260 * mib, allocated: 901 * mib}, false},
		"little of much":                     {heapState{}, heapState{live: 1000 * mib, objects: 1050 * mib, free: 50 * mib}, false},
		"little":                             {heapState{}, heapState{live: 4 * mib, objects: 6 * mib, free: 5 * mib}, false},
		"nothing":                            {heapState{}, heapState{live: 100 * mib, objects: 99 * mib}, false},
	} {
		if got := test.now.isWorthReleasing(test.before); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMayHaveMuchToRelease(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		released, before, now heapState
		want                  bool
	}{
		"after a large command":        {heapState{allocated: 500 * mib}, heapState{allocated: 900 * mib}, heapState{live: 400 * mib, allocated: 901 * mib}, true},
		"in the middle of one":         {heapState{allocated: 500 * mib}, heapState{allocated: 800 * mib}, heapState{live: 400 * mib, allocated: 901 * mib}, false},
		"a third of the heap":          {heapState{allocated: 800 * mib}, heapState{allocated: 900 * mib}, heapState{live: 300 * mib, allocated: 901 * mib}, false},
		"much of the heap, but little": {heapState{allocated: 80 * mib}, heapState{allocated: 90 * mib}, heapState{live: 10 * mib, allocated: 90 * mib}, false},
	} {
		if got := test.now.mayHaveMuch(test.before, test.released); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestReleaseMemory: what a process does not need any more goes back to the system once it is quiet.
func TestReleaseMemory(t *testing.T) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nobody else collects
	garbage := make([][]byte, 0, 128)
	for range cap(garbage) {
		garbage = append(garbage, make([]byte, 1<<20))
	}
	had := readHeap()
	clear(garbage)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		releaseMemory(ctx, 20*time.Millisecond)
	}()
	defer func() {
		stop()
		<-ended
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now := readHeap()
		if had.objects+had.free-now.objects-now.free >= 100<<20 && had.objects+had.free > now.objects+now.free {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("before: %+v; after: %+v", had, now)
		}
	}
}
