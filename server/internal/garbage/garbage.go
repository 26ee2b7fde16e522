// Package garbage collects what long replies leave.
//
// The Go runtime lets garbage grow until there is as much of it as of live memory: with a reply of 480 MB in memory,
// 480 MB more. A server knows when a long buffer has become garbage. Collecting it then costs little, for the index of a
// store has no pointers to follow, and the next long reply takes its place instead of more memory of the system.
package garbage

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// A collection is worth its time from least bytes of garbage on, or from one in liveShare of the live heap, if that is
// more.
const (
	least     = 64 << 20
	liveShare = 4
)

// Collector collects. The zero Collector is ready, and safe for concurrent use.
type Collector struct {
	dropped    atomic.Int64 // bytes, since the last collection
	collecting atomic.Bool
}

// Drop notes that n bytes have become garbage. It does not wait for a collection that it starts.
func (c *Collector) Drop(n int) {
	if c.dropped.Add(int64(n)) < least || !c.collecting.CompareAndSwap(false, true) {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if c.dropped.Load() < int64(sample[0].Value.Uint64())/liveShare {
		c.collecting.Store(false)
		return
	}
	c.dropped.Store(0)
	go func() {
		defer c.collecting.Store(false)
		runtime.GC()
	}()
}
