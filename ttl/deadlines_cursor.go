package ttl

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// dueCursor walks the due entries of all shards, the earliest first. It holds no lock between calls of next: it reads
// entries from a shard in small batches and continues after the last one, so that a long walk blocks no caller.
type dueCursor struct {
	until   int64
	sources sources
}

// source is a shard with the batch that was read from it; the batch is not empty.
type source struct {
	queue *Queue
	ns    uint32
	shard *shard
	batch []Entry
	at    int  // In batch: the next entry.
	from  item // Where the next batch begins.
	more  bool // There may be a next batch.
}

// batchLen bounds the entries read from a shard under one lock: a few microseconds.
const batchLen = 32

// refill reads the next batch and reports whether it has any entry.
func (s *source) refill(until int64) bool {
	if !s.more {
		return false
	}
	if s.batch == nil {
		s.batch = make([]Entry, 0, batchLen)
	}
	s.batch, s.from, s.more = s.shard.appendFrom(s.ns, s.from, until, s.batch[:0])
	s.at = 0
	return len(s.batch) > 0
}

// sources is a heap by next entry.
type sources []*source

func (h sources) Len() int      { return len(h) }
func (h sources) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Less orders sources by deadline, then namespace.
func (h sources) Less(i, j int) bool {
	a, b := &h[i].batch[h[i].at], &h[j].batch[h[j].at]
	c := cmp.Compare(a.Deadline, b.Deadline)
	if c == 0 {
		c = cmp.Compare(a.Namespace, b.Namespace)
	}
	return c < 0
}

// Push implements [heap.Interface]; it is never used.
func (h *sources) Push(any) { panic("BUG: a cursor gets no new sources") }

// Pop implements [heap.Interface].
func (h *sources) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// newDueCursor returns a cursor over the entries of queues that are due at a time.
func newDueCursor(now int64, queues []Queue) *dueCursor {
	c := &dueCursor{until: now}
	for i := range queues {
		c.add(&queues[i])
	}
	heap.Init(&c.sources)
	return c
}

// add adds the shards of a queue that have due entries.
func (c *dueCursor) add(q *Queue) {
	for ns, sp := range *q.Deadlines.spaces.Load() {
		if sp.count.Load() == 0 {
			continue
		}
		for i := range sp.shards {
			s := &source{queue: q, ns: ns, shard: &sp.shards[i], more: true}
			if s.shard.earliest.Load() <= c.until && s.refill(c.until) {
				c.sources = append(c.sources, s)
			}
		}
	}
}

// empty reports whether next would find nothing.
func (c *dueCursor) empty() bool { return len(c.sources) == 0 }

// next returns the next entry and its queue.
func (c *dueCursor) next() (e Entry, q *Queue, ok bool) {
	if c.empty() {
		return Entry{}, nil, false
	}
	s := c.sources[0]
	e, q = s.batch[s.at], s.queue
	s.at++
	if s.at < len(s.batch) || s.refill(c.until) {
		heap.Fix(&c.sources, 0)
	} else {
		heap.Pop(&c.sources)
	}
	return e, q, true
}

// nextBatch appends the next entries of one queue and one namespace, at most most and at most the queue's batch, and
// returns their queue.
func (c *dueCursor) nextBatch(dst []Entry, most int) ([]Entry, *Queue) {
	e, q, ok := c.next()
	if !ok {
		return dst, nil
	}
	dst = append(dst, e)
	for len(dst) < min(most, q.Batch) && !c.empty() && c.sources[0].queue == q && c.sources[0].ns == e.Namespace {
		e, _, _ = c.next()
		dst = append(dst, e)
	}
	return dst, q
}

// each calls fn with every entry, by namespace, and stops at its first error.
func (d *Deadlines) each(fn func(Entry) error) error {
	spaces := *d.spaces.Load()
	for _, ns := range slices.Sorted(maps.Keys(spaces)) {
		for i := range shardCount {
			s := &source{ns: ns, shard: &spaces[ns].shards[i], more: true}
			for s.refill(never) {
				for _, e := range s.batch {
					if err := fn(e); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// Cursor walks all deadlines in order of time, while they change: it sees an entry that is there all the while, and what
// it returns may have changed since. It locks a shard now and then, and keeps some hundred entries in memory. It serves
// one goroutine.
type Cursor struct{ due *dueCursor }

// Cursor returns a cursor that begins with the earliest deadline. O(shards).
func (d *Deadlines) Cursor() *Cursor { return &Cursor{newDueCursor(never, []Queue{{Deadlines: d}})} }

// Next returns the next entry; ok is false after the last one.
func (c *Cursor) Next() (e Entry, ok bool) {
	e, _, ok = c.due.next()
	return e, ok
}

// Random returns an entry at a place that the random numbers pick. ok is false if it has found none. O(shards) where there are few.
func (d *Deadlines) Random(random func() uint64) (e Entry, ok bool) {
	spaces := *d.spaces.Load()
	total := int64(0)
	for _, sp := range spaces {
		total += sp.count.Load()
	}
	if total == 0 {
		return e, false
	}
	at := int64(random() % uint64(total))
	for ns, sp := range spaces {
		if at -= sp.count.Load(); at >= 0 {
			continue
		}
		first := random()
		for i := range uint64(shardCount) {
			if e, ok = sp.shards[(first+i)%shardCount].random(ns); ok {
				return e, true
			}
		}
	}
	return e, false
}
