package replication

import (
	"errors"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/redisfile"
)

// ErrNoMasterLink refuses a replica for now. It asks again, as Redis does after this error alone.
var ErrNoMasterLink = errors.New("NOMASTERLINK Can't SYNC while not connected with my master")

// Resume takes up where the store stands, at the start of a server that is a replica.
func (m *Feeders) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follow()
	if at, ok := serverside.DB.Origin(m.store); ok {
		m.Stream.Receive(at)
	}
}

// Follow makes a master's stream that of a replica, which goes on where it is: note makes the store a replica, and asks for
// the position when nothing can be written any more. Replicas stay connected.
func (m *Feeders) Follow(note func(at func() (Origin, bool)) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := note(m.Stream.demote); err != nil {
		m.Stream.lead()
		return err
	}
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	m.follow()
	return nil
}

// follow is called when the store is a replica.
func (m *Feeders) follow() {
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	m.follows = true
	m.setVersion()
}

// Lead makes a replica's stream that of a master: what is written from now on follows what was received, so that replicas of
// the former master can go on here, and it itself. note makes the store a master. The stream ends, unless a replica comes, as
// it does after the last one has left. All replicas are disconnected, and learn the new id when they ask again.
func (m *Feeders) Lead(note func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, begun := m.Stream.Origin(); begun {
		if err := m.captureWith(m.Stream.promote); err != nil {
			return err
		}
	}
	if err := note(); err != nil {
		m.end() // it is a replica still, which knows no position
		return err
	}
	m.follows = false
	m.endLater()
	return nil
}

// keepOrigin notes where a replica stands: it may have got more than its last commit, a PING, and so have its replicas.
func (m *Feeders) keepOrigin() error {
	at, ok := m.Stream.Origin()
	if kept, known := serverside.DB.Origin(m.store); !ok || known && kept == at {
		return nil
	}
	return serverside.DB.KeepOrigin(m.store, at)
}

// setVersion takes the version of files from the settings.
func (m *Feeders) setVersion() (timed bool) {
	timed = m.Settings.FieldDeadline.Load()
	if m.version = oldVersion; timed {
		m.version = redisfile.NewestVersion
	}
	return timed
}
