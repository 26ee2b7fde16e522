package bitcask

import (
	"fmt"
	"maps"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Flush empties namespaces at once: each gets a fresh space, in one small
// commit. The transaction holds every lock and has done nothing else; it is
// committed by Flush. The old spaces are returned, to forget what else hangs
// on them (deadlines); their bytes count as dead at the next DrainDropped.
func (t *Tx) Flush(namespaces ...int) (dropped []uint32, ticket uint64, err error) {
	return t.FlushWith(nil, namespaces...)
}

// FlushWith is Flush, and puts what put puts into the same commit, which is made also if nothing is there to be emptied:
// system records and libraries, nothing else. An error of put ends it, and nothing has happened.
func (t *Tx) FlushWith(put func() error, namespaces ...int) (dropped []uint32, ticket uint64, err error) {
	return t.remap(put, func(m *namespace.Map, moved map[uint32]uint32, fresh *uint32) error {
		for _, ns := range namespaces {
			if ns < 0 || ns >= MaxNamespaces {
				return fmt.Errorf("namespace %d: %w", ns, ErrTooLarge)
			}
			if ns < len(m.Names) && m.Names[ns] != nil {
				id, err := namespace.Take(fresh)
				if err != nil {
					return err
				}
				moved[uint32(ns)] = id
			}
		}
		return nil
	})
}

// Swap exchanges the contents of two namespaces.
func (t *Tx) Swap(a, b int) (ticket uint64, err error) { return t.SwapWith(nil, a, b) }

// SwapWith is Swap with more in the same commit, as FlushWith has it.
func (t *Tx) SwapWith(put func() error, a, b int) (ticket uint64, err error) {
	_, ticket, err = t.remap(put, func(m *namespace.Map, moved map[uint32]uint32, _ *uint32) error {
		for _, ns := range []int{a, b} {
			if ns < 0 || ns >= MaxNamespaces {
				return fmt.Errorf("namespace %d: %w", ns, ErrTooLarge)
			}
		}
		moved[uint32(a)], moved[uint32(b)] = m.SpaceID(uint32(b)), m.SpaceID(uint32(a))
		return nil
	})
	return ticket, err
}

// Install gives each of n namespaces, from 0 on, what the one from places after it holds, and that one a fresh space: whole
// data sets are exchanged by one small commit, whatever their sizes. It has the conditions and the results of FlushWith.
func (t *Tx) Install(put func() error, from, n int) (dropped []uint32, ticket uint64, err error) {
	return t.remap(put, func(m *namespace.Map, moved map[uint32]uint32, fresh *uint32) error {
		if n < 0 || from < n || from+n > MaxNamespaces {
			return fmt.Errorf("namespaces %d to %d: %w", from, from+n, ErrTooLarge)
		}
		used := func(ns int) bool { return ns < len(m.Names) && m.Names[ns] != nil }
		for ns := range n {
			if !used(ns) && !used(from+ns) {
				continue
			}
			id, err := namespace.Take(fresh)
			if err != nil {
				return err
			}
			moved[uint32(ns)], moved[uint32(from+ns)] = m.SpaceID(uint32(from+ns)), id
		}
		return nil
	})
}

// remap commits a changed map of namespaces, and with it what put puts; nil: nothing.
func (t *Tx) remap(put func() error, change func(m *namespace.Map, moved map[uint32]uint32, fresh *uint32) error) (dropped []uint32, ticket uint64, err error) {
	if !t.open {
		return nil, 0, ErrTxDone
	}
	if !t.locks.write {
		return nil, 0, errReadTx
	}
	if !t.locks.all || t.recs.Len() > 0 {
		return nil, 0, fmt.Errorf("%w: all keys, before the first write", ErrNotLocked)
	}
	n := &t.s.spaces
	n.Mu.Lock()
	defer n.Mu.Unlock()
	now := n.Now.Load()
	moved, fresh := maps.Clone(now.Moved), n.Fresh
	if err := change(now, moved, &fresh); err != nil {
		return nil, 0, err
	}
	if put == nil && maps.Equal(moved, now.Moved) {
		return nil, 0, nil
	}
	begin := t.here()
	next := &namespace.Map{Moved: moved}
	t.call = begin
	if _, err = t.add(KindNamespaces, keydir.None, &namespace.Space{}, 0, namespace.RecordName, "", next.Encode(fresh)); err == nil && put != nil {
		err = put()
	}
	var sg *segment.Segment
	var at int64
	var seq uint64
	if err == nil {
		sg, at, seq, err = t.appendToLog()
	}
	if err != nil {
		t.call = begin
		return nil, 0, t.refuse(err)
	}
	for i := 1; i < t.recs.Len(); i++ {
		r := t.recs.At(i)
		t.placeSystem(r, sg, keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.offset(t.frameStart)), r.size), seq+uint64(i))
	}
	r, ticket := t.recs.At(0), seq+uint64(t.recs.Len())
	t.s.dead.add(n.Record)
	n.Record = keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.offset(t.frameStart)), r.size)
	addLive(sg, n.Record)
	t.forget()
	spaces := n.InstallLocked(moved, fresh)
	for _, sp := range spaces {
		dropped = append(dropped, sp.ID)
		t.s.dead.addSpaceLater(sp)
	}
	return dropped, ticket, nil
}

// MaxNamespaces is how many namespaces a store can have.
const MaxNamespaces = namespace.MaxNamespaces
