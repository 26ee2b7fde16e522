package scripting

import (
	"errors"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// How often a session tries to begin while a script that lasts holds locks, at first and in the end, and how often one
// that waits in line looks whether it should wait any longer: hundreds of sessions may do so at once.
const (
	firstPoll = time.Millisecond
	lastPoll  = 16 * time.Millisecond
	lookPoll  = 25 * time.Millisecond
)

// errAbandoned rolls a transaction back that nobody waits for any more.
var errAbandoned = errors.New("scripting: nobody waits for the transaction")

// begin is Store.Begin while scripts run, which may hold the locks that are needed: mayWait is asked now and then why
// the session should not wait any longer, so that it can answer BUSY once a script takes too long. Redis answers that
// to every command; here those that need none of the script's locks are not concerned.
//
// While a script that lasts holds locks, the session tries again and again instead of waiting in line: a writer in line
// would keep out readers, which a script that only reads lets in. Other scripts may not: one that begins waits for
// those who came before it. For the disk, and for room on a full one, the session waits as in Store.Begin: that is no
// matter of a script.
func (a *Shared) begin(store *db.Store, write bool, keys []string, script bool, mayWait func() error) (*db.Tx, error) {
	if !script || !a.Turns.Any() {
		if tx, ok, err := serverside.DB.BeginUnlessLocked(store, write, keys...); err != nil || ok {
			return tx, err
		}
	}
	turn := a.Turns.Enter(write, keys, script)
	defer a.Turns.Leave(turn)
	if script {
		if err := a.Turns.await(turn, mayWait); err != nil {
			return nil, err
		}
	}
	place := PlaceOf(keys)
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		tx, ok, err := serverside.DB.BeginUnlessLocked(store, write, keys...)
		if err != nil || ok {
			return tx, err
		}
		if !a.Runs.Holding() && a.Line.Take(place) {
			return a.Line.begin(store, write, slices.Clone(keys), place, mayWait)
		}
		if err := mayWait(); err != nil {
			return nil, err
		}
		time.Sleep(poll)
	}
}

// await waits until nobody bars t who came before it.
func (q *Turns) await(t *Turn, mayWait func() error) error {
	over := q.Before(t)
	if over == nil {
		return nil
	}
	look := time.NewTicker(lookPoll)
	defer look.Stop()
	for over != nil {
		select {
		case <-over:
			over = q.Before(t)
		case <-look.C:
			if err := mayWait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin is Store.Begin, which serves those that wait in the order of their arrival, for a session that gives up its
// place once it should not wait any longer: what holds the locks may be a script that turns out to last. The place has
// been taken.
func (l *Line) begin(store *db.Store, write bool, keys []string, place int64, mayWait func() error) (*db.Tx, error) {
	type begun struct {
		tx  *db.Tx
		err error
	}
	done, gaveUp := make(chan begun), make(chan struct{})
	go func() {
		tx, err := store.Begin(write, keys...)
		l.GiveBack(place)
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
			if err := mayWait(); err != nil {
				close(gaveUp)
				return nil, err
			}
		}
	}
}
