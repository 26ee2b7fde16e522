package stats

import "runtime/metrics"

// memory is what the process takes, as the Go runtime knows it.
type memory struct {
	used uint64 // bytes of objects, live or not yet collected, and of stacks
	held uint64 // bytes from the operating system that were not given back
	peak uint64 // the most that held has been when it was asked for
	heap uint64 // bytes of the heap in use, objects or not
}

// memory reads the figures. Unlike runtime.ReadMemStats it does not stop the program.
func (c *Counters) memory() memory {
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
	for peak := c.peakMemory.Load(); ; peak = c.peakMemory.Load() {
		if m.peak = max(peak, m.held); m.peak == peak || c.peakMemory.CompareAndSwap(peak, m.peak) {
			return m
		}
	}
}
