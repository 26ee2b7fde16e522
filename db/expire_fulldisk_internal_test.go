package db

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestReadDoesNotAwaitRoom: deletes on a full disk wait for a merge. A read that meets an expired key, and notes that in
// the log, does not: it may be an event loop's. In a bubble of synctest only waits take time.
func TestReadDoesNotAwaitRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		mem.SetLimit(16<<20, 4<<10)
		s, err := Open("d", seam.With(&Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem}))
		if err != nil {
			t.Fatal(err)
		}
		const keys = 3
		for i := range keys {
			if err := s.String(fmt.Sprint("due", i)).Put(nil, TTL(time.Duration(i+1)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		n := 0
		for ; err == nil; n++ {
			err = s.String(fmt.Sprint("k", n)).Put(make([]byte, 1000))
		}
		if !errors.Is(err, ErrNoSpace) {
			t.Fatal(err)
		}
		s.base.Attend() // by somebody whose merge lasts
		defer s.base.Leave()
		for i := 0; ; i++ {
			if i == n {
				t.Fatal("no delete waits")
			}
			tx, ok, err := s.base.TryBegin(true, "k")
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			tx.Recycle()
			if _, err := s.Key(fmt.Sprint("k", i)).Delete(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range keys {
			begun := time.Now()
			if _, err := s.String(fmt.Sprint("due", i)).Get(); !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("a read waits for %v", took)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
