package manifest

import (
	"encoding/binary"
	"slices"
)

// Opening is one life of a writer, from Open to Close or to its death. A writer draws an id and
// notes in the manifest its first sequence number. So an id and a number of that opening name one
// state of the log, permanently: copies of a directory, and a directory that was restored, continue
// under other ids. A number alone names as many states as there are copies.
type Opening struct {
	ID    uint64 // 0: none
	First uint64 // sequence number of its first record
}

func (o Opening) Body() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, o.ID), o.First)
}

const (
	openingSize = 8 + 8

	// MaxOpenings is how many the manifest remembers. What names an older one, an
	// INDEX perhaps that was never worth replacing, is not believed any more.
	MaxOpenings = 64
)

// addOpening applies an edit.
func (m *Manifest) addOpening(body []byte) {
	m.Openings = append(m.Openings, Opening{binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:])})
	if n := len(m.Openings) - MaxOpenings; n > 0 {
		m.Openings = slices.Delete(m.Openings, 0, n)
	}
}

// Gave reports whether the log has a record, or the place before its first one,
// to which an opening gave a sequence number: no later opening gave it again,
// after a crash or in the copy that this is.
func (m *Manifest) Gave(id, seq uint64) bool {
	i := slices.IndexFunc(m.Openings, func(o Opening) bool { return o.ID == id })
	if i < 0 || id == 0 || seq+1 < m.Openings[i].First {
		return false
	}
	return !slices.ContainsFunc(m.Openings[i+1:], func(o Opening) bool { return o.First <= seq })
}

// Continues reports whether the log has the record with a sequence number that it had when its openings were those
// before.
func (m *Manifest) Continues(before []Opening, seq uint64) bool {
	at := -1
	for i, o := range before {
		if o.First <= seq {
			at = i
		}
	}
	if at < 0 || before[at].ID == 0 || m.Gave(before[at].ID, seq) {
		return true
	}
	known := slices.ContainsFunc(m.Openings, func(o Opening) bool { return o.ID == before[at].ID })
	return !known && len(m.Openings) == MaxOpenings && m.Openings[0].First > seq // it is forgotten
}

// Aging reports whether an opening will soon be forgotten.
func (m *Manifest) Aging(id uint64) bool {
	recent := m.Openings[max(0, len(m.Openings)-MaxOpenings/2):]
	return !slices.ContainsFunc(recent, func(o Opening) bool { return o.ID == id })
}
