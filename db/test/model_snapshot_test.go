package db_test

import (
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// modelSnapshot is a snapshot that a model test keeps while it goes on.
type modelSnapshot struct {
	store *db.Store
	want  string
	step  int // at which it was made
}

// snapshots makes a snapshot, or compares one with what the model was when it was made, and mostly closes it then.
func (m *modelTest) snapshots() {
	const most = 4
	if n := len(m.held); n == most || n > 0 && m.rng.IntN(2) == 0 {
		i := m.rng.IntN(n)
		m.note("look at the snapshot of step %d", m.held[i].step)
		m.compareSnapshot(i)
		if m.rng.IntN(3) > 0 {
			m.closeSnapshot(i)
		}
		return
	}
	m.note("snapshot")
	m.done["snapshot"]++
	snap, err := m.store.Snapshot(m.t.Context())
	m.must("snapshot", err)
	m.model.expire(time.Now().UnixMilli())
	m.held = append(m.held, modelSnapshot{snap, m.model.String(), m.step})
	if m.rng.IntN(4) == 0 {
		m.compareSnapshot(len(m.held) - 1)
	}
}

func (m *modelTest) compareSnapshot(i int) {
	h := m.held[i]
	have, err := readModel(h.store)
	m.must("read a snapshot", err)
	if got := have.String(); got != h.want {
		m.failf("the snapshot of step %d\n%s", h.step, differences(got, h.want))
	}
	if m.rng.IntN(8) > 0 {
		return
	}
	_, err = h.store.Check(m.t.Context(), func(f bitcask.Finding) { m.failf("check of the snapshot of step %d: %v", h.step, f) })
	m.must("check a snapshot", err)
}

// closeSnapshot closes one, and compares it no more.
func (m *modelTest) closeSnapshot(i int) {
	m.must("close the snapshot", m.held[i].store.Close())
	m.held = append(m.held[:i], m.held[i+1:]...)
}

// closeSnapshots compares and closes all that are held.
func (m *modelTest) closeSnapshots() {
	for len(m.held) > 0 {
		m.compareSnapshot(0)
		m.closeSnapshot(0)
	}
}
