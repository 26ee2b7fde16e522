package bitcask

import (
	"fmt"
	"maps"

	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// Flush empties namespaces at once: each gets a fresh space, in one small
// commit. The transaction holds every lock and has done nothing else; it is
// committed by Flush. The old spaces are returned, to forget what else hangs
// on them (deadlines); their bytes count as dead at the next DrainDropped.
func (t *Tx) Flush(namespaces ...int) (dropped []uint32, ticket uint64, err error) {
	return t.remap(func(m *namespace.Map, moved map[uint32]uint32, fresh *uint32) error {
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
func (t *Tx) Swap(a, b int) (ticket uint64, err error) {
	_, ticket, err = t.remap(func(m *namespace.Map, moved map[uint32]uint32, _ *uint32) error {
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

// remap commits a changed map of namespaces.
func (t *Tx) remap(change func(m *namespace.Map, moved map[uint32]uint32, fresh *uint32) error) (dropped []uint32, ticket uint64, err error) {
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
	if maps.Equal(moved, now.Moved) {
		return nil, 0, nil
	}
	t.call = t.here()
	next := &namespace.Map{Moved: moved}
	if _, err := t.add(KindNamespaces, keydir.None, &namespace.Space{}, 0, namespace.RecordName, "", next.Encode(fresh)); err != nil {
		return nil, 0, err
	}
	sg, at, seq, err := t.appendToLog()
	if err != nil {
		return nil, 0, t.refuse(err)
	}
	r := t.recs.At(0)
	t.s.dead.add(n.Record)
	n.Record = keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.offset(t.frameStart)), r.size)
	addLive(sg, n.Record)
	t.forget()
	spaces := n.InstallLocked(moved, fresh)
	for _, sp := range spaces {
		dropped = append(dropped, sp.ID)
		t.s.dead.addSpaceLater(sp)
	}
	return dropped, seq + 1, nil
}

// MaxNamespaces is how many namespaces a store can have.
const MaxNamespaces = namespace.MaxNamespaces
