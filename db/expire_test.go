package db_test

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestExpiryKeepsUp: keys that are due at one instant are gone soon. A cycle of a thousand keys each tenth of a second would take
// ten seconds for them.
func TestExpiryKeepsUp(t *testing.T) {
	const keys, soon = 100_000, 8 * time.Second
	s := inMemory(t, nil)
	due := time.Now().Add(time.Hour)
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range keys {
			must(t, tx.String(strconv.Itoa(i)).Put(nil, db.ExpireAt(due)))
		}
		return nil
	}))
	began := time.Now()
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range keys {
			ok[bool](t)(tx.Key(strconv.Itoa(i)).ExpireAt(began.Add(time.Millisecond)))
		}
		return nil
	}))
	for began = time.Now(); s.Len() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("after %v %d keys are left", soon, s.Len())
		}
	}
	t.Logf("%d keys due at one instant were gone after %v", keys, time.Since(began).Round(time.Millisecond))
}

// TestExpireOneByOne: when a batch cannot be deleted together, what can be deleted is.
func TestExpireOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfs.NewFault(vfs.NewMem())
		s, err := db.Open("store", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1, Reserve: -1}, seam.Options{FS: fault}))
		must(t, err)
		defer func() { must(t, s.Close()) }()
		const keys = 50
		for i := range keys {
			must(t, s.String(strconv.Itoa(i)).Put(nil, db.TTL(time.Second)))
		}
		time.Sleep(2 * time.Second)
		// The first write is that of a batch, the third one that of a single key.
		fault.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite}, Path: "*.data", Err: syscall.ENOSPC})
		fault.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite}, Path: "*.data", Skip: 2, Err: syscall.ENOSPC})
		n, err := s.Expire(time.Hour, keys)
		if n != keys-1 || !errors.Is(err, db.ErrNoSpace) {
			t.Errorf("%d keys deleted, error %v; want all but one, and that the disk is full", n, err)
		}
		equal(t, "keys left", s.Len(), 1)
		n, err = s.Expire(time.Hour, keys)
		must(t, err)
		equal(t, "deleted by the next run", n, 1)
	})
}
