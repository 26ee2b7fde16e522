package manifest

import "encoding/binary"

// Which store made the segments of a copy, and where the two parted.

// Origin says which store made the segments with an id below, if no other says so with a lower one.
type Origin struct {
	Store   [16]byte
	Below   uint32
	Through uint64 // sequence of the last record that the copy shares with that store; 0: unknown
}

// Encode is the body of an edit "inherited". One that an older version wrote
// stays as it is.
func (in Origin) Encode() []byte {
	b := append([]byte(nil), in.Store[:]...)
	b = binary.LittleEndian.AppendUint32(b, in.Below)
	if in.Through > 0 {
		b = binary.LittleEndian.AppendUint64(b, in.Through)
	}
	return b
}

// parseInheritance is the inverse of Encode; b is of one of the two sizes.
func parseInheritance(b []byte) Origin {
	in := Origin{Store: [16]byte(b), Below: binary.LittleEndian.Uint32(b[16:])}
	if len(b) == inheritedThroughSize {
		in.Through = binary.LittleEndian.Uint64(b[InheritedSize:])
	}
	return in
}

const (
	InheritedSize        = 16 + 4
	inheritedThroughSize = InheritedSize + 8
)

// Inherit makes the manifest that of a copy of a store, up to the sequence through, whose segments
// have ids below.
func (m *Manifest) Inherit(store [16]byte, below uint32, through uint64) {
	own := m.firstOwn()
	m.NextID = max(below, own)
	known := uint64(0)
	if n := len(m.Origins); n > 0 {
		known = m.Origins[n-1].Through
	}
	if below <= own && through <= known { // it has added nothing to what it inherited itself
		return
	}
	m.Origins = append(m.Origins, Origin{store, max(below, own), through})
	if through > 0 {
		m.Features |= FeatureThrough
	}
}

// StoreOf is the id of the store that made a segment. A copy has an id of its own, and so have the segments that it
// makes:
// those that its original makes after the copy are foreign to it.
func (m *Manifest) StoreOf(id uint32) [16]byte {
	for _, in := range m.Origins {
		if id < in.Below {
			return in.Store
		}
	}
	return m.Store
}

// firstOwn is the lowest id that a segment of the store's own can have.
func (m *Manifest) firstOwn() uint32 {
	if n := len(m.Origins); n > 0 {
		return m.Origins[n-1].Below
	}
	return 1
}
