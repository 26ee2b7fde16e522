package server

import (
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
)

// memory is what the process takes, as the Go runtime knows it.
type memory struct {
	used uint64 // bytes of objects, live or not yet collected, and of stacks
	held uint64 // bytes from the operating system that were not given back
	peak uint64 // the most that held has been when it was asked for
	heap uint64 // bytes of the heap in use, objects or not
}

// memory reads the figures. Unlike runtime.ReadMemStats it does not stop the program.
func (v *Server) memory() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	of := func(i int) uint64 {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			return samples[i].Value.Uint64()
		}
		return 0
	}
	m := memory{used: of(0) + of(1), held: of(2) - of(3), heap: of(0) + of(4)}
	for peak := v.peakMemory.Load(); ; peak = v.peakMemory.Load() {
		if m.peak = max(peak, m.held); m.peak == peak || v.peakMemory.CompareAndSwap(peak, m.peak) {
			return m
		}
	}
}

// counted is what maxmemory is compared with: the index of the keys, the buffers of clients, and the table of
// what they may have cached. Values are on
// disk; what the collector has not freed yet is none of a client's doing.
type counted struct {
	bytes atomic.Int64
	at    atomic.Int64 // Unix nanoseconds when it was counted
}

// countEvery is how old the figure may be. A writer can exceed the limit by what is written meanwhile.
const countEvery = 20 * time.Millisecond

// countedMemory returns the figure, counted anew if it is old. Of several callers one counts.
func (v *Server) countedMemory(now time.Time) int64 {
	at := v.counted.at.Load()
	if now.UnixNano()-at >= int64(countEvery) && v.counted.at.CompareAndSwap(at, now.UnixNano()) {
		v.counted.bytes.Store(v.store.Log().IndexBytes() + v.counters.clientBytes.Load() + v.tracked.Held())
	}
	return v.counted.bytes.Load()
}

const errOutOfMemory command.Error = "OOM command not allowed when used memory > 'maxmemory'."

// refusesGrowth reports whether a command must be refused because it may add data, and memory is short. An EXEC
// is, if one of its commands would be.
func (s *Session) refusesGrowth(cmd *command.Command) bool {
	if s.server.tunables.maxMemory.Load() == 0 || cmd == nil {
		return false
	}
	grows := cmd.Flags&command.DenyOOM != 0 || s.queue != nil && cmd.Name == "exec" && s.queue.grows
	return grows && s.server.memoryIsShort(true)
}

// memoryIsShort reports whether maxmemory is exceeded. Counting locks parts of the index: who holds locks takes the last figure.
func (v *Server) memoryIsShort(count bool) bool {
	most := v.tunables.maxMemory.Load()
	if most == 0 {
		return false
	}
	if count {
		return v.countedMemory(time.Now()) > most
	}
	return v.counted.bytes.Load() > most
}
