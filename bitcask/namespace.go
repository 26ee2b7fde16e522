package bitcask

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Namespaces. A record carries the number of a *space*; a namespace is a name
// for one space. Flushing a namespace gives it a fresh space, swapping two
// exchanges their spaces: both are one small KindNamespaces record, and every
// record of a space that no namespace names is dead. Space numbers are never
// used again. Namespace n uses space n until that record says otherwise.
const (
	MaxNamespaces   = 1 << 16
	firstFreshSpace = MaxNamespaces
	namespacesKey   = "namespaces"
)

// space is the index of one set of keys.
type space struct {
	id  uint32
	dir *keydir.Directory
}

// spaceMap is immutable; changes install a copy.
type spaceMap struct {
	names []*space          // by namespace; nil: space n, not yet used
	moved map[uint32]uint32 // namespaces whose space has another number
	byID  map[uint32]*space
}

// namespaces owns which namespace uses which space.
type namespaces struct {
	mu     sync.Mutex // guards changes of all below; flush and swap also hold every stripe lock
	now    atomic.Pointer[spaceMap]
	fresh  uint32     // next unused space number
	record keydir.Loc // of the newest KindNamespaces record
	seed   keydir.Seed
}

func (n *namespaces) init(seed keydir.Seed) {
	n.seed, n.fresh = seed, firstFreshSpace
	n.now.Store(&spaceMap{moved: map[uint32]uint32{}, byID: map[uint32]*space{}})
}

// of returns the space of a namespace, or nil if nothing was ever put there.
func (n *namespaces) of(ns int) *space {
	m := n.now.Load()
	if ns < len(m.names) {
		return m.names[ns]
	}
	return nil
}

// make returns the space of a namespace, creating it.
func (n *namespaces) make(ns int) (*space, error) {
	if sp := n.of(ns); sp != nil {
		return sp, nil
	}
	if ns < 0 || ns >= MaxNamespaces {
		return nil, fmt.Errorf("namespace %d: %w", ns, ErrTooLarge)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if sp := n.of(ns); sp != nil {
		return sp, nil
	}
	m := n.copy()
	sp := n.spaceLocked(m, m.spaceID(uint32(ns)))
	m.name(uint32(ns), sp)
	n.now.Store(m)
	return sp, nil
}

func (m *spaceMap) spaceID(ns uint32) uint32 {
	if id, ok := m.moved[ns]; ok {
		return id
	}
	return ns
}

func (m *spaceMap) name(ns uint32, sp *space) {
	for uint32(len(m.names)) <= ns {
		m.names = append(m.names, nil)
	}
	m.names[ns] = sp
}

func (n *namespaces) copy() *spaceMap {
	old := n.now.Load()
	m := &spaceMap{names: append([]*space(nil), old.names...), moved: map[uint32]uint32{}, byID: map[uint32]*space{}}
	for k, v := range old.moved {
		m.moved[k] = v
	}
	for k, v := range old.byID {
		m.byID[k] = v
	}
	return m
}

func (n *namespaces) spaceLocked(m *spaceMap, id uint32) *space {
	sp := m.byID[id]
	if sp == nil {
		sp = &space{id: id, dir: keydir.NewDirectory(n.seed)}
		m.byID[id] = sp
	}
	return sp
}

// byRecord returns the space that records with this number belong to, or nil
// if it is not in use: there is nothing in it, or no namespace names it (dead).
func (n *namespaces) byRecord(id uint32) *space { return n.now.Load().byID[id] }

// dead reports whether no namespace names a space, so that its records mean nothing. That there is nothing in it, and so
// nothing for byRecord, is not enough: records that a tombstone hides may be about. Under the lock of any stripe no
// transaction is about to take the names back.
func (n *namespaces) dead(id uint32) bool {
	m := n.now.Load()
	if m.byID[id] != nil {
		return false
	}
	if _, moved := m.moved[id]; !moved && id < firstFreshSpace {
		return false
	}
	for _, space := range m.moved {
		if space == id {
			return false
		}
	}
	return true
}

// replaySpace is byRecord for loading: it creates the space on first sight.
//
// It may have no name yet: only the newest map is sure to be in the log, and
// the keys of a space that an earlier map named come before it. What no map
// names in the end is dropped when the newest is replayed.
func (n *namespaces) replaySpace(id uint32) *space {
	if sp := n.byRecord(id); sp != nil {
		return sp
	}
	m := n.now.Load()
	ns, named := id, id < MaxNamespaces
	if named {
		_, moved := m.moved[id]
		named = !moved
	}
	for name, to := range m.moved {
		if to == id {
			ns, named = name, true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m = n.copy()
	sp := n.spaceLocked(m, id)
	if named {
		m.name(ns, sp)
	}
	n.now.Store(m)
	return sp
}

// encode is the value of a KindNamespaces record: next fresh space, then
// pairs of namespace and space, all uvarints.
func (m *spaceMap) encode(fresh uint32) []byte {
	b := binary.AppendUvarint(nil, uint64(fresh))
	for ns := range uint32(MaxNamespaces) {
		if len(m.moved) == 0 {
			break
		}
		if id, ok := m.moved[ns]; ok {
			b = binary.AppendUvarint(b, uint64(ns))
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	return b
}

// decodeSpaces is the inverse of encode.
func decodeSpaces(b []byte) (moved map[uint32]uint32, fresh uint32, err error) {
	r := format.Varints{Bytes: b}
	fresh = uint32(r.Next(1<<32 - 1))
	moved = map[uint32]uint32{}
	for !r.Bad && r.At < len(b) {
		ns := uint32(r.Next(MaxNamespaces - 1))
		moved[ns] = uint32(r.Next(1<<32 - 1))
	}
	if r.Bad || fresh < firstFreshSpace {
		return nil, 0, format.ErrRecord
	}
	return moved, fresh, nil
}

// replay installs the map that a KindNamespaces record states and returns the
// spaces that lost their name.
func (n *namespaces) replay(value []byte) (dropped []*space, err error) {
	moved, fresh, err := decodeSpaces(value)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.installLocked(moved, fresh), nil
}

func (n *namespaces) installLocked(moved map[uint32]uint32, fresh uint32) (dropped []*space) {
	old := n.now.Load()
	m := &spaceMap{moved: moved, byID: map[uint32]*space{}}
	n.fresh = max(n.fresh, fresh)
	top := uint32(len(old.names))
	for ns := range moved {
		top = max(top, ns+1)
	}
	for ns := range top {
		if sp := old.byID[m.spaceID(ns)]; sp != nil { // else made on first use
			m.byID[sp.id] = sp
			m.name(ns, sp)
		}
	}
	for id, sp := range old.byID {
		if m.byID[id] == nil {
			dropped = append(dropped, sp)
		}
	}
	n.now.Store(m)
	return dropped
}

// takeSpace takes the next unused space number.
func takeSpace(fresh *uint32) (uint32, error) {
	if *fresh > format.MaxSpace {
		return 0, fmt.Errorf("space %d: %w", *fresh, ErrFull)
	}
	*fresh++
	return *fresh - 1, nil
}
