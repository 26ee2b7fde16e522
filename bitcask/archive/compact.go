package archive

import (
	"bytes"
	"cmp"
	"context"
	"sync"
)

// A log object each second is many to list, and to read one by one. So those of some minutes are put once more as one, and
// then deleted. What they hold is taken from memory: those of a server that has ended stay as they are.
//
// They are deleted from the last one on. So what a crash leaves are the first ones, before the one that has their commits,
// too. A Restore whose objects are deleted meanwhile lists the objects again.

const (
	// compactFrom is how many log objects become one, unless they are objectBytes long before.
	compactFrom = 300
	// compactLeast is how many there must be, or there is nothing to gain. Larger objects than a part of that stay as they are.
	compactLeast = 8
)

// compaction are the log objects that were put last, and are to become one.
type compaction struct {
	objects []id
	sizes   []int64
	buf     []byte // what they hold
}

// one is the object that they become.
func (c *compaction) one() id {
	o := c.objects[0]
	for _, next := range c.objects[1:] {
		o.last, o.to = next.last, max(o.to, next.to)
		if o.from == 0 || next.from != 0 && next.from < o.from {
			o.from = next.from
		}
	}
	return o
}

// compact notes an object that was put, and makes one of those noted when they are enough. That goes on alongside the log, one at a time.
func (s *session) compact(ctx context.Context, work *sync.WaitGroup, o id, size int64, buf []byte) {
	c := &s.compaction
	if len(buf) <= objectBytes/compactLeast {
		c.objects, c.sizes, c.buf = append(c.objects, o), append(c.sizes, size), append(c.buf, buf...)
		if len(c.objects) < cmp.Or(s.o.compactFrom, compactFrom) && len(c.buf) < objectBytes {
			return
		}
	}
	due := *c
	*c = compaction{}
	if len(due.objects) < compactLeast || s.ending() || !s.compacting.CompareAndSwap(false, true) {
		return
	}
	work.Go(func() {
		if err := s.replace(ctx, due); ctx.Err() == nil {
			s.failed("compaction", err)
		}
		s.compacting.Store(false)
	})
}

// replace deletes what could not be deleted before, puts the one, and deletes the others. While none can be deleted nothing
// is put, or the archive would have all twice.
func (s *session) replace(ctx context.Context, c compaction) error {
	if err := s.deleteReplaced(ctx); err != nil || s.ending() {
		return err
	}
	o, size := c.one(), encodedSize(int64(len(c.buf)))
	if err := s.o.To.Put(ctx, o.name(), newEncoder(o, bytes.NewReader(c.buf))); err != nil {
		return err
	}
	s.recounted(1, size)
	s.replaced = compaction{objects: c.objects, sizes: c.sizes}
	return s.deleteReplaced(ctx)
}

// deleteReplaced deletes what one object has taken the place of, from the last one on.
func (s *session) deleteReplaced(ctx context.Context) error {
	for c := &s.replaced; len(c.objects) > 0 && !s.ending(); {
		n := len(c.objects) - 1
		if err := s.o.To.Delete(ctx, c.objects[n].name()); err != nil {
			return err
		}
		s.recounted(-1, -c.sizes[n])
		c.objects, c.sizes = c.objects[:n], c.sizes[:n]
	}
	return nil
}

// recounted notes that there are more objects, or fewer.
func (a *Archiver) recounted(objects int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Objects += objects
	a.status.Bytes += bytes
}
