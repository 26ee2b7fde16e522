package namespace

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
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
	FirstFreshSpace = MaxNamespaces
	RecordName      = "namespaces"
)

// Space is the index of one set of keys.
type Space struct {
	ID  uint32
	Dir *keydir.Directory
}

// Map is immutable; changes install a copy.
type Map struct {
	Names []*Space          // by namespace; nil: space n, not yet used
	Moved map[uint32]uint32 // namespaces whose space has another number
	ByID  map[uint32]*Space
}

// Table owns which namespace uses which space.
type Table struct {
	Mu     sync.Mutex // guards changes of all below; flush and swap also hold every stripe lock
	Now    atomic.Pointer[Map]
	Fresh  uint32      // next unused space number
	Record keydir.Loc  // of the newest KindNamespaces record
	Visits atomic.Bool // new spaces note which keys are used
	seed   keydir.Seed
}

func (n *Table) Init(seed keydir.Seed) {
	n.seed, n.Fresh = seed, FirstFreshSpace
	n.Now.Store(&Map{Moved: map[uint32]uint32{}, ByID: map[uint32]*Space{}})
}

// Of returns the space of a namespace, or nil if nothing was ever put there.
func (n *Table) Of(ns int) *Space {
	m := n.Now.Load()
	if ns < len(m.Names) {
		return m.Names[ns]
	}
	return nil
}

// Used lists the namespaces that hold keys, in order.
func (n *Table) Used() []int {
	var list []int
	for ns, sp := range n.Now.Load().Names {
		if sp != nil && sp.Dir.Len() > 0 {
			list = append(list, ns)
		}
	}
	return list
}

// MakeSpace returns the space of a namespace, creating it.
func (n *Table) MakeSpace(ns int) (*Space, error) {
	if sp := n.Of(ns); sp != nil {
		return sp, nil
	}
	if ns < 0 || ns >= MaxNamespaces {
		return nil, fmt.Errorf("namespace %d: %w", ns, failure.ErrTooLarge)
	}
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if sp := n.Of(ns); sp != nil {
		return sp, nil
	}
	m := n.copy()
	sp := n.spaceLocked(m, m.SpaceID(uint32(ns)))
	m.name(uint32(ns), sp)
	n.Now.Store(m)
	return sp, nil
}

func (m *Map) SpaceID(ns uint32) uint32 {
	if id, ok := m.Moved[ns]; ok {
		return id
	}
	return ns
}

func (m *Map) name(ns uint32, sp *Space) {
	for uint32(len(m.Names)) <= ns {
		m.Names = append(m.Names, nil)
	}
	m.Names[ns] = sp
}

func (n *Table) copy() *Map {
	old := n.Now.Load()
	m := &Map{Names: append([]*Space(nil), old.Names...), Moved: map[uint32]uint32{}, ByID: map[uint32]*Space{}}
	for k, v := range old.Moved {
		m.Moved[k] = v
	}
	for k, v := range old.ByID {
		m.ByID[k] = v
	}
	return m
}

func (n *Table) spaceLocked(m *Map, id uint32) *Space {
	sp := m.ByID[id]
	if sp == nil {
		sp = &Space{ID: id, Dir: keydir.NewDirectory(n.seed)}
		sp.Dir.TrackVisits(n.Visits.Load())
		m.ByID[id] = sp
	}
	return sp
}

// ByRecord returns the space that records with this number belong to, or nil
// if it is not in use: there is nothing in it, or no namespace names it (dead).
func (n *Table) ByRecord(id uint32) *Space { return n.Now.Load().ByID[id] }

// Dead reports whether no namespace names a space, so that its records mean nothing. That there is nothing in it, and
// so nothing for ByRecord, is not enough: records that a tombstone hides may be about. Under the lock of any stripe no
// transaction is about to take the names back.
func (n *Table) Dead(id uint32) bool {
	m := n.Now.Load()
	if m.ByID[id] != nil {
		return false
	}
	if _, moved := m.Moved[id]; !moved && id < FirstFreshSpace {
		return false
	}
	for _, space := range m.Moved {
		if space == id {
			return false
		}
	}
	return true
}

// ReplaySpace is ByRecord for loading: it creates the space on first sight.
//
// It may have no name yet: only the newest map is sure to be in the log, and
// the keys of a space that an earlier map named come before it. What no map
// names in the end is dropped when the newest is replayed.
func (n *Table) ReplaySpace(id uint32) *Space {
	if sp := n.ByRecord(id); sp != nil {
		return sp
	}
	m := n.Now.Load()
	ns, named := id, id < MaxNamespaces
	if named {
		_, moved := m.Moved[id]
		named = !moved
	}
	for name, to := range m.Moved {
		if to == id {
			ns, named = name, true
		}
	}
	n.Mu.Lock()
	defer n.Mu.Unlock()
	m = n.copy()
	sp := n.spaceLocked(m, id)
	if named {
		m.name(ns, sp)
	}
	n.Now.Store(m)
	return sp
}

// Encode is the value of a KindNamespaces record: next fresh space, then
// pairs of namespace and space, all uvarints.
func (m *Map) Encode(fresh uint32) []byte {
	b := binary.AppendUvarint(nil, uint64(fresh))
	for ns := range uint32(MaxNamespaces) {
		if len(m.Moved) == 0 {
			break
		}
		if id, ok := m.Moved[ns]; ok {
			b = binary.AppendUvarint(b, uint64(ns))
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	return b
}

// Decode is the inverse of Encode.
func Decode(b []byte) (moved map[uint32]uint32, fresh uint32, err error) {
	r := format.Varints{Bytes: b}
	fresh = uint32(r.Next(1<<32 - 1))
	moved = map[uint32]uint32{}
	for !r.Bad && r.At < len(b) {
		ns := uint32(r.Next(MaxNamespaces - 1))
		moved[ns] = uint32(r.Next(1<<32 - 1))
	}
	if r.Bad || fresh < FirstFreshSpace {
		return nil, 0, format.ErrRecord
	}
	return moved, fresh, nil
}

// Parses reports whether Replay can read the value of a record.
func Parses(value []byte) bool {
	_, _, err := Decode(value)
	return err == nil
}

// Replay installs the map that a KindNamespaces record states and returns the
// spaces that lost their name.
func (n *Table) Replay(value []byte) (dropped []*Space, err error) {
	moved, fresh, err := Decode(value)
	if err != nil {
		return nil, err
	}
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.InstallLocked(moved, fresh), nil
}

func (n *Table) InstallLocked(moved map[uint32]uint32, fresh uint32) (dropped []*Space) {
	old := n.Now.Load()
	m := &Map{Moved: moved, ByID: map[uint32]*Space{}}
	n.Fresh = max(n.Fresh, fresh)
	top := uint32(len(old.Names))
	for ns := range moved {
		top = max(top, ns+1)
	}
	for ns := range top {
		if sp := old.ByID[m.SpaceID(ns)]; sp != nil { // else made on first use
			m.ByID[sp.ID] = sp
			m.name(ns, sp)
		}
	}
	for id, sp := range old.ByID {
		if m.ByID[id] == nil {
			dropped = append(dropped, sp)
		}
	}
	n.Now.Store(m)
	return dropped
}

// Take takes the next unused space number.
func Take(fresh *uint32) (uint32, error) {
	if *fresh > format.MaxSpace {
		return 0, fmt.Errorf("space %d: %w", *fresh, failure.ErrFull)
	}
	*fresh++
	return *fresh - 1, nil
}
