package replication

import (
	"context"
	"slices"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// A snapshot is shared by the replicas that ask for everything until the file of one of them begins: each has an index of its
// own in memory. Each replica gets its own file of it, so that a slow one holds up none of the others; the last one that has
// its file closes the snapshot.

// mostSnapshots bounds the memory of full synchronizations. Replicas beyond it wait, and are kept awake.
const mostSnapshots = 4

// sharedSnapshot is one of them.
type sharedSnapshot struct {
	cancel context.CancelFunc // ends its opening
	opened chan struct{}      // closed when the next two are set
	store  *db.Store
	err    error

	// Guarded by Feeders.sharing.
	users   int
	waiting []*Feeder // that are cut at its moment
	at      *cutPoint // its moment, for those who come after it; nil before
}

// cutPoint is a moment of a stream.
type cutPoint struct {
	id         string
	generation int // of the stream
	offset     int64
	at         *block
	used       int // bytes of at before it
	database   int
}

// Snapshot returns the store as it is when the stream has got as far as the replica's file is to reach, once fewer than
// mostSnapshots are open. done is to be called when the file has been sent.
func (m *Feeders) Snapshot(ctx context.Context, f *Feeder) (s *db.Store, done func() error, err error) {
	g := m.share(f)
	select {
	case <-g.opened:
		err = g.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		_ = m.release(g, f) // the error is the reason
		return nil, nil, err
	}
	m.sharing.Lock()
	m.close(g) // the file begins
	m.sharing.Unlock()
	return g.store, func() error { return m.release(g, f) }, nil
}

// share lets a replica have the snapshot that can still be shared, or a new one.
func (m *Feeders) share(f *Feeder) *sharedSnapshot {
	m.sharing.Lock()
	defer m.sharing.Unlock()
	g := m.shared
	switch {
	case g != nil && g.at == nil:
		g.waiting = append(g.waiting, f)
	case g == nil || !f.cutAt(g.at):
		ctx, cancel := context.WithCancel(context.Background())
		g = &sharedSnapshot{cancel: cancel, opened: make(chan struct{}), waiting: []*Feeder{f}}
		m.shared = g
		go m.open(ctx, g)
	}
	g.users++
	return g
}

// open opens a snapshot. The last of its users waits for it.
func (m *Feeders) open(ctx context.Context, g *sharedSnapshot) {
	defer close(g.opened)
	select {
	case m.snapshots <- struct{}{}:
		g.store, g.err = m.Stream.cut(func(cut func()) (*db.Store, error) { return serverside.DB.SnapshotAt(m.store, ctx, cut) }, func() { m.cut(g) })
		if g.err != nil {
			<-m.snapshots
		}
	case <-ctx.Done():
		g.err = ctx.Err()
	}
	if g.err != nil {
		m.sharing.Lock()
		defer m.sharing.Unlock()
		m.close(g)
	}
}

// cut is called at the moment of a snapshot, with the log locked.
func (m *Feeders) cut(g *sharedSnapshot) {
	m.sharing.Lock()
	defer m.sharing.Unlock()
	for _, f := range g.waiting {
		f.Cut()
	}
	g.waiting, g.at = nil, m.Stream.point()
}

// close ends the time in which a snapshot can be shared. m.sharing is locked.
func (m *Feeders) close(g *sharedSnapshot) {
	if g.at = nil; m.shared == g {
		m.shared = nil
	}
}

// release ends the use of a snapshot. The last one closes it.
func (m *Feeders) release(g *sharedSnapshot, f *Feeder) error {
	m.sharing.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Feeder) bool { return other == f })
	g.users--
	isLast := g.users == 0
	if isLast {
		m.close(g)
	}
	m.sharing.Unlock()
	if !isLast {
		return nil
	}
	g.cancel()
	<-g.opened
	if g.store == nil {
		return nil
	}
	defer func() { <-m.snapshots }()
	return g.store.Close()
}

// point is where the stream is.
func (s *Stream) point() *cutPoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		return &cutPoint{} // which no stream continues
	}
	last := s.blocks[len(s.blocks)-1]
	return &cutPoint{id: s.id, generation: s.generation, offset: s.offset, at: last, used: len(last.data), database: s.database}
}

// cutAt is Cut at a moment before, which the stream must have in common. It reports whether it has.
func (f *Feeder) cutAt(p *cutPoint) bool {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.id != p.id || s.generation != p.generation {
		return false
	}
	f.begin(p)
	return true
}
