package bitcask

import (
	"sync"
	"sync/atomic"
)

// syncMode is when acknowledged writes are on disk: Options.Sync, then what SetSync says.
type syncMode struct {
	change sync.Mutex // held by SetSync
	mode   atomic.Int32
}

// SyncMode is when acknowledged writes are on disk at present.
func (s *Store) SyncMode() SyncMode { return SyncMode(s.syncing.mode.Load()) }

// SetSync changes when acknowledged writes are on disk.
//
// Once it has returned nil for SyncAlways, every write that is or will be acknowledged is on disk, also one that was
// acknowledged before, until another call says otherwise. To SyncInterval, it syncs as well: from then on a power cut
// takes at most the writes of Options.SyncEvery. A write that waits for its sync when SyncAlways ends goes on waiting
// for it.
//
// After an error the mode is what it was. ErrOption: it is no mode. ErrClosed: the store is closed. The others are
// those of Sync. A store that is read-only has nothing to sync and notes the mode. It takes as long as a sync; calls
// wait for each other. In a memory store no mode makes a difference.
func (s *Store) SetSync(mode SyncMode) error {
	if err := (&Options{Sync: mode}).check(); err != nil {
		return err
	}
	s.syncing.change.Lock()
	defer s.syncing.change.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	before := s.SyncMode()
	set := func(mode SyncMode) {
		s.syncing.mode.Store(int32(mode))
		s.log.SetWaited(mode == SyncAlways)
	}
	// The mode first, the sync second: whoever saw the old mode, and so does not wait, has written before this sync
	// begins.
	set(mode)
	if mode == SyncNone {
		return nil
	}
	if err := s.Sync(); err != nil {
		set(before)
		return err
	}
	return nil
}

// syncLog is the sync of SyncInterval. A failure is kept: every later write returns it.
func (s *Store) syncLog() (more bool) {
	if s.SyncMode() != SyncInterval {
		return true
	}
	err := s.log.Sync()
	if err != nil && s.Err() == nil { // otherwise that the store refuses writes, and why, is in the log already
		s.opts.Logger.Error("background sync", "err", err)
	}
	return err == nil
}

// Sync makes every write so far durable.
func (s *Store) Sync() error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.opts.ReadOnly {
		return nil
	}
	return s.log.Sync()
}
