package bitcask

import (
	"fmt"
	"maps"

	"github.com/stavedb/stave/keydir"
)

// Flush empties namespaces at once: each gets a fresh space, in one small
// commit. The transaction holds every lock and has done nothing else; it is
// committed by Flush. The old spaces are returned, to forget what else hangs
// on them (deadlines); their bytes count as dead at the next DrainDropped.
func (t *Tx) Flush(namespaces ...int) (dropped []uint32, ticket uint64, err error) {
	return t.remap(func(m *spaceMap, moved map[uint32]uint32, fresh *uint32) error {
		for _, ns := range namespaces {
			if ns < 0 || ns >= MaxNamespaces {
				return fmt.Errorf("namespace %d: %w", ns, ErrTooLarge)
			}
			if ns < len(m.names) && m.names[ns] != nil {
				id, err := takeSpace(fresh)
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
	_, ticket, err = t.remap(func(m *spaceMap, moved map[uint32]uint32, _ *uint32) error {
		for _, ns := range []int{a, b} {
			if ns < 0 || ns >= MaxNamespaces {
				return fmt.Errorf("namespace %d: %w", ns, ErrTooLarge)
			}
		}
		moved[uint32(a)], moved[uint32(b)] = m.spaceID(uint32(b)), m.spaceID(uint32(a))
		return nil
	})
	return ticket, err
}

// remap commits a changed map of namespaces.
func (t *Tx) remap(change func(m *spaceMap, moved map[uint32]uint32, fresh *uint32) error) (dropped []uint32, ticket uint64, err error) {
	if !t.open {
		return nil, 0, ErrTxDone
	}
	if !t.write {
		return nil, 0, errReadTx
	}
	if !t.all || len(t.recs) > 0 {
		return nil, 0, errNotAll
	}
	n := &t.s.spaces
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now.Load()
	moved, fresh := maps.Clone(now.moved), n.fresh
	if err := change(now, moved, &fresh); err != nil {
		return nil, 0, err
	}
	if maps.Equal(moved, now.moved) {
		return nil, 0, nil
	}
	next := &spaceMap{moved: moved}
	if _, err := t.add(KindNamespaces, keydir.None, &space{}, 0, namespacesKey, "", next.encode(fresh)); err != nil {
		return nil, 0, err
	}
	sg, at, seq, err := t.s.append(t)
	if err != nil {
		return nil, 0, err
	}
	r := t.recs[0]
	t.s.addDead(n.record)
	n.record = keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.pos-t.frameStart), uint32(r.size))
	t.s.addLive(sg, n.record)
	t.forget()
	spaces := n.installLocked(moved, fresh)
	for _, sp := range spaces {
		dropped = append(dropped, sp.id)
		t.s.deferSpaceDead(sp)
	}
	return dropped, seq + 1, nil
}
