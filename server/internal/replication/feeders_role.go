package replication

import (
	"errors"
	"strconv"
	"strings"

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

// Follow makes a master's stream that of a replica, which goes on where it is, or before Start where Stop has kept it: note makes
// the store a replica, and asks for the position when nothing can be written any more. Replicas stay connected.
func (m *Feeders) Follow(note func(at func(kept []byte) (Origin, bool)) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := note(m.demote); err != nil {
		if m.Stream.lead(); m.stop == nil {
			m.Stream.End()
		}
		return err
	}
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	m.follow()
	return nil
}

// demote makes the stream a replica's. kept is what Stop has, if the stream was not taken up.
func (m *Feeders) demote(kept []byte) (at Origin, ok bool) {
	if kept != nil && m.stop == nil {
		m.Stream.Begin()
		if !m.Stream.resume(kept, m.Stream.Position().Offset) {
			m.Stream.End()
		}
	}
	return m.Stream.demote()
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

// BeginTerm makes a master the primary of its group: all that is written from now on is in the stream, and hidden by the gate until
// the group has confirmed it. end is where the stream is then. A stream that began before there was a gate begins again, for that does
// not say of which keys commits are: its replicas load everything.
func (m *Feeders) BeginTerm() (end int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.follows {
		return 0, errFollows
	}
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	if !m.slotted {
		m.end()
	}
	if m.stop == nil {
		if err := m.capture(); err != nil {
			return 0, err
		}
	}
	next := serverside.DB.NextSequence(m.store)
	s := m.Stream
	s.mu.Lock() // so that the gate knows of all commits after these
	defer s.mu.Unlock()
	s.commits.gate = m.Gate
	m.Gate.Begin(max(next, s.commits.next), s.offset)
	return s.offset, nil
}

// FollowTerm makes a replica one that follows another primary of its group.
func (m *Feeders) FollowTerm() { m.Gate.Follow(serverside.DB.NextSequence(m.store)) }

var errFollows = errors.New("replication: a replica cannot be the primary of its group")

// keepOrigin notes where a replica stands: it may have got more than its last commit, a PING, and so have its replicas.
func (m *Feeders) keepOrigin() error {
	at, ok := m.Stream.Origin()
	if kept, known := serverside.DB.Origin(m.store); !ok || known && kept == at {
		return nil
	}
	return serverside.DB.KeepOrigin(m.store, at)
}

// setVersion takes the version of files from the settings. The members of a group have all that there is.
func (m *Feeders) setVersion() (timed bool) {
	timed = m.Settings.FieldDeadline.Load() || m.Gate != nil
	if m.version = oldVersion; timed {
		m.version = redisfile.NewestVersion
	}
	return timed
}

// A Valkey says which it is, by REPLCONF version. It loads files of Redis up to 7.2, and since Valkey 9 its own, in which hashes
// have deadlines of fields in a form of their own.

// firstTimed is the first Valkey that has them, as the text that a replica says of itself to get them.
const firstTimed = "9.0.0"

// ErrUntimed refuses an older one where they are sent.
var ErrUntimed = errors.New("a Valkey before 9 has no deadlines of fields, and they are sent (repl-compat 7.4)")

// versionFor is the version of the file for a replica. m.mu is locked.
func (m *Feeders) versionFor(p Peer) (version int, err error) {
	first, _ := ParseVersion(firstTimed)
	switch {
	case m.version == oldVersion || p.Valkey == 0:
		return m.version, nil
	case p.Valkey < first:
		return 0, ErrUntimed
	}
	return redisfile.ValkeyVersion, nil
}

// ParseVersion makes a number of the text of a version, such as 9.1.2: three numbers up to 255. A later one is greater.
func ParseVersion(text string) (version int, ok bool) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return 0, false
		}
		version = version<<8 | int(n)
	}
	return version, len(parts) == 3
}
