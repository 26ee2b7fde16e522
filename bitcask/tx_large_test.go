package bitcask_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestLargeCommitAlongsideOthers: while a large commit is being written, TryBegin begins no transaction that would wait for
// it, and readers use its stripes.
func TestLargeCommitAlongsideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfstest.NewFault(vfs.NewMem())
		s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fault, NoMapping: true}))
		keys := inOneStripe(s, 2)
		large, other := keys[0], keys[1]
		put(t, s, other, "value")
		begins := func(write bool, want bool) {
			t.Helper()
			tx, ok, err := s.TryBegin(write, other)
			if ok {
				tx.Recycle()
			}
			if ok != want || err != nil {
				t.Fatalf("to write: %t: began: %t, %v", write, ok, err)
			}
		}
		begins(true, true)
		proceed := make(chan struct{})
		end := sync.OnceFunc(func() { close(proceed) })
		defer end()
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) { <-proceed }})
		var writer sync.WaitGroup
		writer.Go(func() {
			if err := s.Put(large, bytes.Repeat([]byte("x"), commitlog.LargeFrame)); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond) // until it is being written
		begins(true, false)
		begins(false, true)
		want(t, s, other, "value")
		end()
		writer.Wait()
		begins(true, true)
	})
}

// TestLargeTransactionKeepsItsBytes: records of all lengths are the same after the buffer has grown, in the transaction and
// in the log.
func TestLargeTransactionKeepsItsBytes(t *testing.T) {
	fsys := vfs.NewMem()
	o := seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fsys, NoMapping: true})
	s := open(t, "d", o)
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i*i*i%700_000) }
	const n = 40
	for i := range n {
		if err := tx.PutString(0, fmt.Sprint("key", i), value(i)); err != nil {
			t.Fatal(err)
		}
	}
	wantAll := func(get func(key string) ([]byte, error)) {
		t.Helper()
		for i := range n {
			if got, err := get(fmt.Sprint("key", i)); err != nil || !bytes.Equal(got, value(i)) {
				t.Errorf("value %d has %d bytes, want %d: %v", i, len(got), len(value(i)), err)
			}
		}
	}
	wantAll(func(key string) ([]byte, error) { return tx.Value(nil, 0, key, "", keydir.String, slotOf(t, tx, key)) })
	if _, err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx.Recycle()
	wantAll(s.Get)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantAll(open(t, "d", o).Get)
}
