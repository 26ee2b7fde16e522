package commitlog

import "time"

// SyncBuckets are the bounds of the buckets of SyncTimes.
var SyncBuckets = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second,
}

// SyncTimes counts the syncs that commits waited for, or that the log makes at intervals, by how long they took.
type SyncTimes struct {
	Counts [len(SyncBuckets) + 1]uint64 // of those up to each bound, and of the longer ones
	Total  time.Duration
}

// add counts one.
func (t *SyncTimes) add(took time.Duration) {
	i := 0
	for i < len(SyncBuckets) && took > SyncBuckets[i] {
		i++
	}
	t.Counts[i]++
	t.Total += took
}
