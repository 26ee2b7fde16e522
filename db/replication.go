package db

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask"
)

// A server that ends keeps, as the system record stave:replication, where the stream for its replicas is, so that the next
// one continues it: if nothing was written in between, by whoever. What a server keeps is its own; before it stand
//
//	version u8 | id of the store [16]byte | sequence number of the record u64
//
// A backup, and a repaired store, have other ids. The record is deleted before the stream goes on, since after a power cut the
// log could end with it again. Until then nothing expires, for it would be deleted unseen, but for replicationWithin at most.

const (
	replicationName    = "replication"
	replicationVersion = 1
	replicationHead    = 1 + 16 + 8
	replicationWithin  = 10 * time.Second
)

// keepReplication keeps what value returns, which is called when nothing else can be written.
func (s *Store) keepReplication(value func() []byte) error {
	defer s.holdExpiry() // the store may be closed a little later than the server ends
	return s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		id := s.base.StoreID()
		head := append([]byte{replicationVersion}, id[:]...)
		head = binary.LittleEndian.AppendUint64(head, s.base.NextSequence())
		if err := t.PutSystem(replicationName, append(head, value()...)); err != nil {
			return 0, err
		}
		return t.Commit()
	})
}

// takeReplication returns what was kept, if nothing was written since, and deletes it. begin is called first, if something
// was.
func (s *Store) takeReplication(begin func() error) (value []byte, err error) {
	if err := s.guard.check(); err != nil || s.base.System(replicationName) == nil || s.opts.ReadOnly {
		return nil, err
	}
	if err := begin(); err != nil {
		return nil, err
	}
	err = s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		value = s.keptReplication()
		if err := t.PutSystem(replicationName, nil); err != nil {
			return 0, err
		}
		return t.Commit()
	})
	s.expiryFrom.Store(0)
	if err == nil {
		err = s.Sync() // or a power cut could end the log with it again, in any mode
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// keptReplication is what was kept, if nothing was written since; nil otherwise. Everything is locked.
func (s *Store) keptReplication() []byte {
	kept, id := s.base.System(replicationName), s.base.StoreID()
	if len(kept) >= replicationHead && kept[0] == replicationVersion && bytes.Equal(kept[1:17], id[:]) &&
		binary.LittleEndian.Uint64(kept[17:])+1 == s.base.NextSequence() {
		return slices.Clone(kept[replicationHead:])
	}
	return nil
}

// holdExpiry lets nothing expire for some time, if a stream is kept: after Open, and when one has been kept.
func (s *Store) holdExpiry() {
	if s.base.System(replicationName) != nil {
		s.expiryFrom.Store(time.Now().Add(replicationWithin).UnixNano())
	}
}

// expiryIsHeld reports whether nothing is to expire yet.
func (s *Store) expiryIsHeld() bool {
	from := s.expiryFrom.Load()
	return s.noExpiry.Load() || s.replica.is.Load() || from != 0 && time.Now().UnixNano() < from
}
