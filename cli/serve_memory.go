package cli

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/stavedb/stave/internal/nap"
)

// The Go runtime lets the heap grow to twice what is live before it collects, and after a collection keeps a tenth more
// than the next one will start at. An index that has just been loaded leaves a server idle with half as much memory
// again as it needs, for good: nothing grows any more. So a server that has become quiet collects once, and gives back
// what is free. After a command that has written a million elements that is more than the data, and does not wait.

const (
	// releaseEvery is how long a server must have been quiet to give back what may be much. One that is quiet is looked at
	// half as often.
	releaseEvery = 500 * time.Millisecond
	// quietTicks is how many times as long it must have been quiet to give back less.
	quietTicks = 20
	// leastReleased is for how many bytes a collection is worth its while, and leastMuch how many allocated ones may be.
	leastReleased, leastMuch = 8 << 20, 16 << 20
)

// heapState is what the runtime says of the heap, in bytes.
type heapState struct {
	live      uint64 // found by the last collection
	objects   uint64 // live, new since then, or garbage
	free      uint64 // without objects, and not given back
	allocated uint64 // by the process so far
}

// readHeap asks the runtime, which takes microseconds and stops nobody. A figure that this runtime does not have is 0;
// then nothing looks worth releasing.
func readHeap() (h heapState) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	for i, to := range []*uint64{&h.live, &h.objects, &h.free, &h.allocated} {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			*to = samples[i].Value.Uint64()
		}
	}
	return h
}

// isWorthReleasing reports whether the process has been quiet since before, and an eighth of its heap, or more, may be
// given back. Quiet is to have allocated no more than a 32nd of what is live, or half a MiB. A heap of less than 64 MiB
// must have leastReleased to give, so a small server is not collected for a few pages.
func (h heapState) isWorthReleasing(before heapState) bool {
	return h.isQuiet(before) && h.surplus() >= max(leastReleased, h.live/8)
}

// mayHaveMuch reports whether the process has been quiet since before, and has allocated half of its heap, or more, since
// memory was given back. Most of that may be garbage of one command, which the last collection took for live. A server
// that is always quiet allocates as much in 8 seconds at least.
func (h heapState) mayHaveMuch(before, released heapState) bool {
	return h.isQuiet(before) && h.allocated-released.allocated >= max(leastMuch, h.live/2)
}

func (h heapState) isQuiet(before heapState) bool {
	return h.allocated-before.allocated <= max(h.live/32, leastReleased/16)
}

// surplus is how many bytes a collection may give back.
func (h heapState) surplus() uint64 { return h.objects - min(h.objects, h.live) + h.free }

// releaseMemory gives memory back when the process has become quiet, until ctx ends. FreeOSMemory collects, which stops
// the goroutines for well under a millisecond and takes the processor time of a collection: a server that is not quiet
// never pays it.
func releaseMemory(ctx context.Context, every time.Duration) {
	last := readHeap()
	before, released, ticks, step := last, last, 0, 1
	tick := time.NewTimer(nap.Until(every))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := readHeap()
		ticks += step
		step = 1
		if now.isQuiet(last) {
			step = 2 // it wakes with others
		}
		if now.mayHaveMuch(last, released) || ticks >= quietTicks && now.isWorthReleasing(before) {
			debug.FreeOSMemory()
			now, ticks = readHeap(), quietTicks
			released = now
		}
		if last = now; ticks >= quietTicks {
			before, ticks = now, 0
		}
		tick.Reset(nap.Until(time.Duration(step) * every))
	}
}
