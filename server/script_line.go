package server

import (
	"math"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/scripts"
)

// How often a session tries to begin while a script that lasts holds locks, at first and in the end, and how often one
// that waits in line looks whether it should wait any longer: hundreds of sessions may do so at once.
const (
	firstPoll = time.Millisecond
	lastPoll  = 16 * time.Millisecond
	lookPoll  = 25 * time.Millisecond
)

// beginBesideScript is begin while scripts run, which may hold the locks that are needed, so that the session can
// answer BUSY once one takes too long. Redis answers that to every command; here those that need none of the script's
// locks are not concerned.
//
// While a script that lasts holds locks, the session tries again and again instead of waiting in line: a writer in line
// would keep out readers, which a script that only reads lets in.
func (s *Session) beginBesideScript(write bool, keys []string) (*db.Tx, error) {
	place := scripts.PlaceOf(keys)
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		tx, ok, err := s.host.Store.TryBegin(write, keys...)
		if err != nil || ok {
			return tx, err
		}
		if !s.server.scripts.Runs.Holding() && s.server.scripts.Line.Take(place) {
			return s.beginInLine(write, keys, place)
		}
		if err := s.mayWait(); err != nil {
			return nil, err
		}
		time.Sleep(poll)
	}
}

// beginInLine is Store.Begin, which serves those that wait in the order of their arrival, for a session that gives up
// its place once it should not wait any longer: what holds the locks may be a script that turns out to last. The place
// has been taken.
func (s *Session) beginInLine(write bool, keys []string, place int64) (*db.Tx, error) {
	type begun struct {
		tx  *db.Tx
		err error
	}
	done, gaveUp := make(chan begun), make(chan struct{})
	store, keys := s.host.Store, slices.Clone(keys)
	line := &s.server.scripts.Line
	go func() {
		tx, err := store.Begin(write, keys...)
		line.GiveBack(place)
		select {
		case done <- begun{tx, err}:
		case <-gaveUp:
			if err == nil {
				_, _ = tx.End(errAbandoned) // it returns that error, and nothing was written that could fail
			}
		}
	}()
	look := time.NewTicker(lookPoll)
	defer look.Stop()
	for {
		select {
		case b := <-done:
			return b.tx, b.err
		case <-look.C:
			if err := s.mayWait(); err != nil {
				close(gaveUp)
				return nil, err
			}
		}
	}
}

// mayWait is why a session should not wait for locks any longer, if it should not: a script holds some for too long, or
// the client has left.
func (s *Session) mayWait() error {
	v := s.server
	if threshold := time.Duration(min(v.tunables.busyMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond; threshold > 0 {
		if err := v.scripts.Runs.Overdue(threshold); err != nil {
			return err
		}
	}
	return s.interrupted()
}
