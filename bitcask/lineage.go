package bitcask

import "encoding/binary"

// Which store made the segments of a copy, and where the two parted.

// inheritance says which store made the segments with an id below, if no other says so with a lower one.
type inheritance struct {
	store   [16]byte
	below   uint32
	through uint64 // sequence of the last record that the copy shares with that store; 0: unknown
}

const (
	inheritedSize        = 16 + 4
	inheritedThroughSize = inheritedSize + 8
)

// encode is the body of an edit "inherited". One that an older version wrote
// stays as it is.
func (in inheritance) encode() []byte {
	b := append([]byte(nil), in.store[:]...)
	b = binary.LittleEndian.AppendUint32(b, in.below)
	if in.through > 0 {
		b = binary.LittleEndian.AppendUint64(b, in.through)
	}
	return b
}

// parseInheritance is the inverse of encode; b is of one of the two sizes.
func parseInheritance(b []byte) inheritance {
	in := inheritance{store: [16]byte(b), below: binary.LittleEndian.Uint32(b[16:])}
	if len(b) == inheritedThroughSize {
		in.through = binary.LittleEndian.Uint64(b[inheritedSize:])
	}
	return in
}

// inherit makes the manifest that of a copy of a store, as of the sequence
// through, whose segments have ids below.
func (m *manifest) inherit(store [16]byte, below uint32, through uint64) {
	own := m.firstOwn()
	m.nextID = max(below, own)
	known := uint64(0)
	if n := len(m.inherited); n > 0 {
		known = m.inherited[n-1].through
	}
	if below <= own && through <= known { // it has added nothing to what it inherited itself
		return
	}
	m.inherited = append(m.inherited, inheritance{store, max(below, own), through})
	if through > 0 {
		m.features |= featureThrough
	}
}

// storeOf is the id of the store that made a segment. A copy has an id of its own, and so have the segments that it makes:
// those of the store that it was copied from, which go on from the same place, are foreign to it.
func (m *manifest) storeOf(id uint32) [16]byte {
	for _, in := range m.inherited {
		if id < in.below {
			return in.store
		}
	}
	return m.store
}

// firstOwn is the lowest id that a segment of the store's own can have.
func (m *manifest) firstOwn() uint32 {
	if n := len(m.inherited); n > 0 {
		return m.inherited[n-1].below
	}
	return 1
}

// Inheritance says that a store is a copy of another one, and where they parted.
type Inheritance struct {
	Store   [16]byte // id of the other one
	Through uint64   // sequence of the last record that the two share; 0: unknown
}

// Inherited lists the stores that this one is a copy of, the first one first:
// its original is the last.
func (s *Store) Inherited() []Inheritance {
	s.manifestMu.Lock()
	defer s.manifestMu.Unlock()
	var list []Inheritance
	for _, in := range s.man.inherited {
		list = append(list, Inheritance{in.store, in.through})
	}
	return list
}
