package bitcask

import (
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/replay"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Live bytes are counted by location: a record's bytes are live while the keydir points to it. The rest of a segment,
// tombstones and headers included, is dead. Locations carry a size class, so the counts are estimates, up to an eighth
// too high for a record.

// deadBytes takes the bytes that are not live any more from the counts of their segments: at once, or, where many are
// dropped together, when somebody asks for the counts. So the memory of these is released in DrainDropped, not under
// the lock of a stripe.
type deadBytes struct {
	segments *atomic.Pointer[segment.Set] // the store's

	mu          sync.Mutex // guards what follows: dropped, and not yet counted as dead
	collections []keydir.Dropped
	spaces      []*namespace.Space
}

func addLive(sg *segment.Segment, loc keydir.Loc) { sg.LiveBytes.Add(int64(loc.Size())) }

// add counts the bytes at loc as dead. A location that leads nowhere (none, pending, or of a
// segment since merged away) counts nothing.
func (d *deadBytes) add(loc keydir.Loc) {
	if loc == 0 {
		return
	}
	if sg := d.segments.Load().Find(loc.Segment()); sg != nil {
		sg.LiveBytes.Add(-int64(loc.Size()))
	}
}

// addCollection counts a dropped collection as dead, at once or later.
func (d *deadBytes) addCollection(c keydir.Dropped) {
	if c.Len() <= replay.SmallDrop {
		d.countCollection(c)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.collections = append(d.collections, c)
}

func (d *deadBytes) countCollection(c keydir.Dropped) {
	c.Each(func(loc keydir.Loc) bool {
		d.add(loc)
		return true
	})
}

// DrainDropped updates the counts of live bytes for collections that were dropped whole, and releases their memory. The
// owner of a store with collections calls it at intervals; Stats and merge planning do, too. It reports whether there were any.
func (s *Store) DrainDropped() (any bool) { return s.dead.drain() }

func (d *deadBytes) drain() (any bool) {
	for ; ; any = true {
		d.mu.Lock()
		spaces := d.spaces
		d.spaces = nil
		var c keydir.Dropped
		n := len(d.collections)
		if n > 0 {
			c, d.collections[n-1] = d.collections[n-1], c
			d.collections = d.collections[:n-1]
		}
		d.mu.Unlock()
		if n == 0 && len(spaces) == 0 {
			return any
		}
		for _, sp := range spaces {
			d.addSpace(sp)
		}
		d.countCollection(c)
	}
}

// addSpaceLater leaves a dropped space to drain.
func (d *deadBytes) addSpaceLater(sp *namespace.Space) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spaces = append(d.spaces, sp)
}

// forget drops what is not yet counted: the segments that it was in are not listed any more.
func (d *deadBytes) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.collections, d.spaces = nil, nil
}

// addSpace counts everything in a dropped space as dead.
func (d *deadBytes) addSpace(sp *namespace.Space) {
	for stripe := range keydir.Stripes {
		sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
			switch slot.Type {
			case keydir.String, keydir.Deadline:
				d.add(slot.Loc)
			default:
				coll := sp.Dir.CollectionOf(h, slot)
				d.add(coll.Meta())
				coll.Each(func(_ []byte, loc keydir.Loc) bool {
					d.add(loc)
					return true
				})
			}
			return true
		})
	}
}
