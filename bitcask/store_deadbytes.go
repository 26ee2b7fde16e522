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

	mu      sync.Mutex // guards what follows: dropped, and not yet counted as dead
	removed []replay.Removed
	spaces  []*namespace.Space
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

// addTogether counts what has been removed together as dead, at once or later.
func (d *deadBytes) addTogether(c replay.Removed) {
	if c.Len() <= replay.SmallDrop {
		d.count(c)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed = append(d.removed, c)
}

// count counts them at once. Neighbours are in the same segment, mostly.
func (d *deadBytes) count(c replay.Removed) {
	segments := d.segments.Load()
	var sg *segment.Segment
	var bytes int64
	c.Each(func(loc keydir.Loc) bool {
		if id := loc.Segment(); sg == nil || sg.ID != id {
			if sg != nil {
				sg.LiveBytes.Add(-bytes)
			}
			sg, bytes = segments.Find(id), 0
		}
		bytes += int64(loc.Size())
		return true
	})
	if sg != nil {
		sg.LiveBytes.Add(-bytes)
	}
}

// DrainDropped counts the bytes of dropped collections, spaces and ranges as dead, and releases their memory. The owner of a
// store with collections calls it at intervals; Stats and the planning of merges call it, too. It reports whether there were some.
func (s *Store) DrainDropped() (found bool) { return s.dead.drain() }

func (d *deadBytes) drain() (found bool) {
	for ; ; found = true {
		d.mu.Lock()
		spaces := d.spaces
		d.spaces = nil
		var c replay.Removed
		n := len(d.removed)
		if n > 0 {
			c, d.removed[n-1] = d.removed[n-1], nil
			d.removed = d.removed[:n-1]
		}
		d.mu.Unlock()
		if n == 0 && len(spaces) == 0 {
			return found
		}
		for _, sp := range spaces {
			d.addSpace(sp)
		}
		if c != nil {
			d.count(c)
		}
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
	d.removed, d.spaces = nil, nil
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
