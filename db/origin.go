package db

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/serverside/calls"
)

// A store may be the replica of a master, which a server reads from and applies here. Then it is written to by what the
// master sends alone, and has no clock of its own: whatever expires is deleted when the master says so, and until then
// readers hide it.
//
// Where the store stands in the master's stream is the system record stave:origin, written in the commit of what came
// before that position (putOrigin): after any crash the record and the data are of one moment. Whether the store is a
// replica, and of whom, is the record stave:replicaof: Open reads it before anything could expire. A synchronization of
// everything is loaded alongside the old data: namespace_install.go.

// ErrReplica is returned for a write to a store that is the replica of a master: that alone writes to it. REPLICAOF NO ONE
// of its server ends that.
var ErrReplica = errors.New("db: the store is the replica of a master, which alone writes to it: end that with REPLICAOF NO ONE")

// Names of the system records.
const (
	originName    = "origin"
	replicaOfName = "replicaof"
	loadingName   = "loading"
	memberName    = "member"
)

// replica is what a store has of its master.
type replica struct {
	is     atomic.Bool   // writes are the master's alone, and nothing expires
	held   atomic.Bool   // writes are refused as if it were
	shadow atomic.Uint64 // namespaces that are being loaded: the first << 32 | how many; 0: none
}

// originSize is the length of the value of stave:origin:
//
//	version u8 | id of the replication [40]byte | offset i64 | database u32 | id of the store [16]byte
//
// A backup, and a repaired store, have other ids: what they hold may be another moment, so everything is synchronized anew.
const (
	originVersion = 1
	originSize    = 1 + 40 + 8 + 4 + 16
)

func (c *core) encodeOrigin(o calls.Origin) []byte {
	b := append(make([]byte, 0, originSize), originVersion)
	b = append(b, o.ReplID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.Offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(o.Database))
	id := c.base.StoreID()
	return append(b, id[:]...)
}

// decodeOrigin reports false for a value of another store, or that a newer version has written.
func (c *core) decodeOrigin(b []byte) (o calls.Origin, ok bool) {
	if len(b) != originSize || b[0] != originVersion || !c.isOwn(b) {
		return o, false
	}
	copy(o.ReplID[:], b[1:])
	o.Offset = int64(binary.LittleEndian.Uint64(b[41:]))
	o.Database = int(binary.LittleEndian.Uint32(b[49:]))
	return o, true
}

// isOwn reports whether a value ends with the id of the store.
func (c *core) isOwn(value []byte) bool {
	id := c.base.StoreID()
	return bytes.HasSuffix(value, id[:])
}

// apply makes a transaction one of what the master has sent: it may write to a replica, and nothing is due in it.
func (t *Tx) apply() {
	_ = t.now() // which sets both
	t.applies, t.gone = true, 0
}

// putOrigin says where the store stands after the transaction.
func (t *Tx) putOrigin(o calls.Origin) error {
	if err := t.checkWrite(); err != nil {
		return err
	}
	return t.base.PutSystem(originName, t.store.encodeOrigin(o))
}

func (s *Store) origin() (calls.Origin, bool) { return s.decodeOrigin(s.base.System(originName)) }

// passedFor is the moment up to which a new deadline deletes at once what it is for.
func (t *txState) passedFor() int64 {
	if t.applies {
		return 0
	}
	return t.now()
}

// refusesWrites refuses what is not a part of a transaction. Everything is locked.
func (c *core) refusesWrites() error {
	if c.replica.refuses() {
		return ErrReplica
	}
	return nil
}

// refuses reports whether writes are refused but those of a master.
func (r *replica) refuses() bool { return r.is.Load() || r.held.Load() }

// holdWrites refuses writes as those to a replica are, or lets them be again. When it returns, none goes on.
func (s *Store) holdWrites(on bool) error {
	if err := s.guard.check(); err != nil {
		return err
	}
	_, err := s.lockedAll(func(*bitcask.Tx) (uint64, error) {
		s.replica.held.Store(on)
		return 0, nil
	})
	return err
}

// replicaOf is the value of stave:replicaof, which ends with the id of the store: a backup of a replica is none. Neither is a
// store that is open for reading only: its writer may be.
func (s *Store) replicaOf() (value []byte) {
	if s.opts.ReadOnly {
		return nil
	}
	return s.ownReplicaOf()
}

func (s *Store) ownReplicaOf() []byte {
	return s.ownValue(replicaOfName)
}

// ownValue is the value of a system record that ends with the id of the store; nil in another store.
func (s *Store) ownValue(name string) []byte {
	value := s.base.System(name)
	if !s.isOwn(value) {
		return nil
	}
	return value[:len(value)-len(s.base.StoreID())]
}

// member is the value of stave:member, what the store is in a group: a backup of it is nothing there.
func (s *Store) member() []byte { return s.ownValue(memberName) }

// setMember writes it.
func (s *Store) setMember(value []byte) error {
	err := s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		id := s.base.StoreID()
		if err := t.PutSystem(memberName, slices.Concat(value, id[:])); err != nil {
			return 0, err
		}
		return t.Commit()
	})
	if err != nil {
		return fmt.Errorf("db: noting what the store is in a group: %w", err)
	}
	return s.Sync()
}

// setReplicaOf writes stave:replicaof, whose value is the server's, and makes the store a replica or ends that. A store
// that is no replica any more, or becomes one without having been one, forgets where it stood: its data are its own.
func (s *Store) setReplicaOf(value []byte, is bool) error {
	return s.noteReplica(value, is, func() []byte {
		if is && s.replica.is.Load() {
			return s.base.System(originName)
		}
		return nil
	})
}

// setReplicaAt makes a store a replica that stands somewhere, since its data are those of a stream.
func (s *Store) setReplicaAt(value []byte, at func(kept []byte) (calls.Origin, bool)) error {
	return s.noteReplica(value, true, func() []byte {
		if o, ok := at(s.keptReplication()); ok {
			return s.encodeOrigin(o)
		}
		return nil
	})
}

// noteReplica is setReplicaOf with the value of stave:origin, which is asked for when everything is locked.
func (s *Store) noteReplica(value []byte, is bool, origin func() []byte) error {
	err := s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		if err := t.PutSystem(originName, origin()); err != nil {
			return 0, err
		}
		if err := t.PutSystem(replicationName, nil); err != nil { // what was kept counts no more after a write
			return 0, err
		}
		id := s.base.StoreID()
		if err := t.PutSystem(replicaOfName, slices.Concat(value, id[:])); err != nil {
			return 0, err
		}
		ticket, err := t.Commit()
		if err == nil {
			s.replica.is.Store(is)
			s.base.SetBound(s.Evict().Disk, is)
		}
		return ticket, err
	})
	if err != nil {
		return fmt.Errorf("db: noting whose replica the store is: %w", err)
	}
	return s.Sync()
}

// keepOrigin is putOrigin in a commit of its own, for a position that differs from the last one by nothing to be written.
func (s *Store) keepOrigin(o calls.Origin) error {
	err := s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		if err := t.PutSystem(originName, s.encodeOrigin(o)); err != nil {
			return 0, err
		}
		return t.Commit()
	})
	if err != nil {
		return fmt.Errorf("db: noting where the replica stands: %w", err)
	}
	return s.Sync()
}

// loadReplica takes from the log whether the store is a replica, before anything expires, and empties what a
// synchronization has left that did not end.
func (s *Store) loadReplica() error {
	s.replica.is.Store(isReplica(s.ownReplicaOf()))
	from, n, ok := decodeLoading(s.base.System(loadingName))
	if !ok {
		return nil
	}
	s.replica.shadow.Store(uint64(from)<<32 | uint64(n))
	if s.opts.ReadOnly {
		return nil
	}
	s.opts.Logger.Warn("a synchronization with a master had not ended; what it had loaded is removed")
	return s.dropLoaded()
}

// isReplica reports whether a value of stave:replicaof says that the store is a replica: its first byte does.
func isReplica(value []byte) bool { return len(value) > 0 && value[0] == calls.IsReplica }
