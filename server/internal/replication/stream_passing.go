package replication

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/stavedb/stave/db"
)

// A replica passes on what it gets: the bytes of its master's stream, one by one, are the stream for its own replicas, with the
// same id and offsets. It adds nothing: no PING, no GETACK, no SELECT. So all servers of a chain have the same bytes, and any
// of them can take the place of another one.
//
//	S4  A byte is passed on after it was applied, and no snapshot is cut in between (passing).
//
// A replica that is promoted goes on with a new id, and keeps the one before with the offset up to which the two are the same:
// whoever has not more than that of the old stream goes on with the new one.

// Pass has bytes of the master applied, and adds them if that was done: an error may come after the commit, and nothing is applied
// twice. They may be used again when it returns.
func (s *Stream) Pass(received []byte, after Origin, apply func() (done bool, err error)) error {
	s.passing.Lock()
	defer s.passing.Unlock()
	s.mu.Lock()
	at, follows := s.offset, s.received // which only Pass and Install change now
	s.mu.Unlock()
	if !follows || at+int64(len(received)) != after.Offset {
		return fmt.Errorf("BUG: replication: %d bytes at %d are to be passed on up to %d", len(received), at, after.Offset)
	}
	done, err := apply()
	if !done {
		return err
	}
	if len(received) > ownBlock { // which append would keep
		received = bytes.Clone(received)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continueAs(string(after.ReplID[:]))
	s.demoted = false
	s.append(received)
	s.database, s.committed = after.Database, s.offset
	s.trim()
	s.wake()
	return err
}

// ContinueAs gives the stream the id by which the master goes on, if that is another one. Replicas learn it when they ask again.
func (s *Stream) ContinueAs(id [replIDSize]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continueAs(string(id[:]))
	s.demoted = false
}

func (s *Stream) continueAs(id string) {
	if s.id == id {
		return
	}
	s.id, s.former, s.formerEnd = id, s.id, s.offset
	s.endFeeders()
}

// Install has everything replaced by what the master had at a position, where the stream goes on if that was done. There is nothing
// before it: all replicas need everything, too.
func (s *Stream) Install(at Origin, install func() (done bool, err error)) error {
	s.passing.Lock()
	defer s.passing.Unlock()
	done, err := install()
	if done {
		s.Receive(at)
	}
	return err
}

// Receive makes the stream that of a master, from a position on.
func (s *Stream) Receive(at Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.former, s.formerEnd = string(at.ReplID[:]), "", -1
	s.offset, s.committed, s.database, s.received = at.Offset, at.Offset, at.Database, true
	s.asked, s.demoted = 0, false
	s.endFeeders()
	s.begin()
	s.offerMessages()
}

// Origin is the position after all that the stream has; ok is false if it has not begun.
func (s *Stream) Origin() (at Origin, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at.Offset, at.Database = s.offset, max(s.database, 0)
	copy(at.ReplID[:], s.id)
	return at, s.begun
}

// demote makes the stream of a master one that Pass goes on with, if it has begun. When it is called nothing is written, and
// none of its own commands follows. Which database it has selected does not matter: another master's stream selects one
// first.
func (s *Stream) demote() (at Origin, ok bool) {
	s.mu.Lock()
	s.received, s.demoted = s.begun, s.begun
	s.offerMessages()
	s.mu.Unlock()
	return s.Origin()
}

// promote makes the stream one of this server's commits, which follow what it has received, by a new id.
func (s *Stream) promote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continueAs(NewID())
	s.received, s.database = false, -1
	s.demoted = false
	s.offerMessages()
}

// serves reports whether a replica can be given what it asks for. It cannot where nothing was received yet. A replica that is
// ahead waits: this server was killed, and will receive the same bytes again.
func (s *Stream) serves(ask *Ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun && !(s.received && !ask.SYNC && ask.ReplID == s.id && ask.Next-1 > s.offset)
}

// cut has a snapshot taken that calls cut at its moment, with no bytes on their way from the store to the stream. They go on
// right after it.
func (s *Stream) cut(take func(cut func()) (*db.Store, error), cut func()) (*db.Store, error) {
	s.passing.Lock()
	goOn := sync.OnceFunc(s.passing.Unlock)
	defer goOn()
	return take(func() {
		cut()
		goOn()
	})
}

// lead undoes demote.
func (s *Stream) lead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received, s.demoted = false, false
	s.offerMessages()
}
