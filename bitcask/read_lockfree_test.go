package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Gets of other keys return while a goroutine is stopped in an operation on a file, with whatever
// locks that takes. There are so many keys that every stripe has some.
func TestGetsWaitForNobody(t *testing.T) {
	if !bitcask.Lockless {
		t.Skip("gets take locks in this build")
	}
	const keys = 4000
	for _, c := range []struct {
		name  string
		op    vfstest.Op
		file  string
		run   func(s *bitcask.Store) error
		slack int // keys that may wait: a hash in 64 shares its bit with a removed one of its stripe
	}{
		{"put", vfstest.OpWrite, "*.data", func(s *bitcask.Store) error { return s.Put("new", []byte("v")) }, 0},
		{"batch of every stripe", vfstest.OpWrite, "*.data", func(s *bitcask.Store) error {
			b := s.NewBatch()
			for i := range keys {
				b.Put(fmt.Sprint("new", i), nil)
			}
			return b.Commit()
		}, 0},
		{"delete", vfstest.OpWrite, "*.data", func(s *bitcask.Store) error {
			_, err := s.Delete("victim")
			return err
		}, 4},
		{"synced put", vfstest.OpSync, "*.data", func(s *bitcask.Store) error { return s.Put("new", []byte("v")) }, 0},
		{"rotation", vfstest.OpSync, "*.data", (*bitcask.Store).Rotate, 0},
		{"merge, output", vfstest.OpSync, "*.data", rewriteSealed, 0},
		{"merge, manifest", vfstest.OpWrite, "MANIFEST*", rewriteSealed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfstest.NewFault(vfs.OS())
			s := open(t, t.TempDir(), seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fs}))
			if c.op == vfstest.OpSync && strings.Contains(c.name, "put") {
				s = open(t, t.TempDir(), seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fs}))
			}
			b := s.NewBatch()
			for i := range keys {
				b.Put(fmt.Sprint("key", i), []byte(fmt.Sprint("value", i)))
			}
			b.Put("victim", nil)
			if err := errors.Join(b.Commit(), s.Rotate()); err != nil {
				t.Fatal(err)
			}
			put(t, s, "last", "value")

			reached, goOn := make(chan struct{}), make(chan struct{})
			var once sync.Once
			fs.Inject(vfstest.Rule{Ops: []vfstest.Op{c.op}, Path: c.file, Do: func(vfstest.Event) {
				once.Do(func() { close(reached); <-goOn })
			}})
			ended := make(chan error, 1)
			go func() { ended <- c.run(s) }()
			select {
			case <-reached:
			case err := <-ended:
				t.Fatalf("ended without having been stopped: %v", err)
			}
			answered, all := getAll(t, s, keys, 2*(keys-c.slack))
			close(goOn)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			<-all // before the store is closed
			if answered < 2*(keys-c.slack) {
				t.Errorf("%d of %d gets were answered", answered, 2*keys)
			}
		})
	}
}

// getAll gets every key, and as many that do not exist, and returns when at least as
// many as wanted have come back, or do not: how many have, and what is closed when all have.
func getAll(t *testing.T, s *bitcask.Store, keys, want int) (int, <-chan struct{}) {
	var answered atomic.Int64
	var wait sync.WaitGroup
	for i := range keys {
		wait.Go(func() {
			key := fmt.Sprint("key", i)
			if got, err := s.Get(key); err != nil || string(got) != fmt.Sprint("value", i) {
				t.Errorf("get %s: %q, %v", key, got, err)
			}
			answered.Add(1)
			if ok, err := s.Has("no " + key); ok || err != nil {
				t.Errorf("has no %s: %v, %v", key, ok, err)
			}
			answered.Add(1)
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for deadline := time.Now().Add(time.Minute); int(answered.Load()) < want && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return int(answered.Load()), done
}

func rewriteSealed(s *bitcask.Store) error {
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
	return err
}

// timeline holds the known states of one key: states that only grow, odd ones absent. A get may see
// any from done, read before it, to begun, read after it.
type timeline struct{ begun, done atomic.Uint64 }

func valueOf(key string, state uint64) []byte {
	return fmt.Appendf(nil, "%s %d %s", key, state, strings.Repeat("x", int(state%300)))
}

// see checks the outcome of a get against the states that it may show.
func (l *timeline) see(key string, got []byte, err error, from, to uint64) error {
	switch {
	case errors.Is(err, bitcask.ErrNotFound):
		if from == to && from&1 == 0 {
			return fmt.Errorf("%s: not found, state %d", key, from)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	}
	fields := strings.Fields(string(got))
	if len(fields) < 2 || fields[0] != key {
		return fmt.Errorf("%s: value %.60q is not its own", key, got)
	}
	state, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil || string(valueOf(key, state)) != string(got) || state&1 != 0 || state < from || state > to {
		return fmt.Errorf("%s: value %.60q in state %d to %d", key, got, from, to)
	}
	return nil
}

// Gets alongside puts, deletes, rollbacks, deadlines, collections, rotations and merges see
// committed values and nothing else.
func TestGetsBesideEverything(t *testing.T) {
	seed := chance.Seed(t)
	duration := 3 * time.Second
	if testing.Short() {
		duration = 700 * time.Millisecond
	}
	s := open(t, t.TempDir(), &bitcask.Options{SegmentSize: 256 << 10, Sync: bitcask.SyncNone})
	const writers, keysOf = 2, 3000
	lines := make([]timeline, writers*keysOf)
	for i := range lines {
		lines[i].begun.Store(1)
		lines[i].done.Store(1)
	}
	var changes, hits, misses atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), duration)
	defer cancel()
	var wait sync.WaitGroup
	for w := range writers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		wait.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				i := w*keysOf + r.IntN(keysOf)
				if err := change(s, r, keyName(i), &lines[i]); err != nil {
					t.Error(err)
				}
				changes.Add(1)
			}
		})
	}
	for reader := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(100+reader)))
		wait.Go(func() {
			dst := make([]byte, 0, 1024)
			for ctx.Err() == nil && !t.Failed() {
				i := r.IntN(len(lines))
				key, l := keyName(i), &lines[i]
				from := l.done.Load()
				got, err := s.GetInto(dst, key)
				if err == nil {
					hits.Add(1)
				} else {
					misses.Add(1)
				}
				if err := l.see(key, got, err, from, l.begun.Load()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	merges := 0
	for ; ctx.Err() == nil && !t.Failed(); merges++ {
		if err := errors.Join(s.Rotate(), rewriteSealed(s)); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	t.Logf("%d hits and %d misses beside %d changes and %d merges", hits.Load(), misses.Load(), changes.Load(), merges)
	check(t, s)
}

func keyName(i int) string { return fmt.Sprint("key", i) }

// change takes a key one step further, in one of many ways.
func change(s *bitcask.Store, r *rand.Rand, key string, l *timeline) error {
	state := l.done.Load()
	tx, err := s.Begin(true, key)
	if err != nil {
		return err
	}
	there := state&1 == 0
	var next uint64
	switch way := r.IntN(10); {
	case way < 5: // put
		next = state + 2 - state&1
		err = tx.PutString(0, key, valueOf(key, next))
		if err == nil && way == 4 {
			err = tx.SetDeadline(0, key, 1<<60)
		}
	case way < 7 && there: // delete
		next = state + 1
		_, err = tx.Drop(0, key)
	case way == 7: // a collection in between, in one transaction
		next = state + 2 - state&1
		err = turn(tx, key, valueOf(key, next))
	case there && way == 8: // nothing but the deadline
		_, err = tx.ClearDeadline(0, key)
		next = state
	default: // what is rolled back was never there
		_, err = tx.Drop(0, key)
		if err == nil {
			err = tx.PutString(0, key, []byte("taken back"))
		}
		tx.End()
		return err
	}
	l.begun.Store(next)
	if err == nil {
		_, err = tx.Commit()
	}
	tx.End()
	l.done.Store(next)
	return err
}

// turn makes the key a hash, drops that, and makes it a string.
func turn(tx *bitcask.Tx, key string, value []byte) error {
	if _, err := tx.Drop(0, key); err != nil {
		return err
	}
	coll, err := tx.Collection(0, key, keydir.Hash)
	if err != nil {
		return err
	}
	if err := tx.PutElem(0, key, coll, "field", []byte("value")); err != nil {
		return err
	}
	return tx.PutString(0, key, value)
}

// A get alongside Close gets the value or an error that the store is closed.
func TestGetsBesideClose(t *testing.T) {
	dir := t.TempDir()
	for range 30 {
		s, err := bitcask.Open(dir, &bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		b := s.NewBatch()
		for i := range 300 {
			b.Put(keyName(i), valueOf(keyName(i), 298))
		}
		if err := errors.Join(b.Commit(), s.Rotate()); err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for reader := range 2 {
			wait.Go(func() {
				for i := 0; ; i++ {
					key := keyName(i % 300)
					if i%3 == reader {
						key = "no " + key
					}
					got, err := s.Get(key)
					switch {
					case errors.Is(err, bitcask.ErrClosed):
						return
					case i%3 == reader && !errors.Is(err, bitcask.ErrNotFound),
						i%3 != reader && (err != nil || string(got) != string(valueOf(key, 298))):
						t.Errorf("%s: %q, %v", key, got, err)
						return
					}
				}
			})
		}
		time.Sleep(time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(keyName(1)); !errors.Is(err, bitcask.ErrClosed) {
			t.Errorf("get after close: %v", err)
		}
		wait.Wait()
	}
}

// A file that is cut while it is mapped costs its keys an error, not the process.
func TestFileCutUnderItsReaders(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, &bitcask.Options{Sync: bitcask.SyncNone})
	value := strings.Repeat("v", 10_000)
	put(t, s, "first", "value")
	for i := range 10 {
		put(t, s, keyName(i), value)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, files[0])
	if err := os.Truncate(files[0], 4096); err != nil {
		t.Fatal(err)
	}
	want(t, s, "first", "value")
	if got, err := s.Get(keyName(9)); err == nil || errors.Is(err, bitcask.ErrNotFound) {
		t.Errorf("get after the end of the file: %.20q, %v", got, err)
	}
	if ok, err := s.Has(keyName(9)); err == nil {
		t.Errorf("has after the end of the file: %v", ok)
	}
	if err := os.WriteFile(files[0], whole, 0); err != nil { // truncates, and writes the old bytes
		t.Fatal(err)
	}
	if err := os.Truncate(files[0], info.Size()); err != nil {
		t.Fatal(err)
	}
	want(t, s, keyName(9), value)
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
