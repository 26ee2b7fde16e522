package bitcask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/replay"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// twins are two stores with the same id, of which one is followed. What the other one has written may take the place of
// what the first one has: that is what a write does that fails half way, and is followed by others.
type twins struct {
	t          *testing.T
	fs         *vfstest.Fault
	one, other *Store
}

func newTwins(t *testing.T) *twins {
	here := vfs.NewMem()
	w := &twins{t: t, fs: vfstest.NewFault(here)}
	s := w.open(w.fs, Options{})
	must(t, s.Close())
	there := here.Clone()
	w.one, w.other = w.open(w.fs, Options{}), w.open(there, Options{})
	t.Cleanup(func() {
		must(t, w.one.Close())
		must(t, w.other.Close())
	})
	return w
}

func (w *twins) open(fs vfs.FS, o Options) *Store {
	w.t.Helper()
	s, err := Open("d", seam.With(&o, seam.Options{FS: fs, Copies: seam.CopiesOff}))
	must(w.t, err)
	return s
}

// put has each store put a value.
func (w *twins) put(key, one, other string) {
	w.t.Helper()
	must(w.t, w.one.Put(key, []byte(one)))
	must(w.t, w.other.Put(key, []byte(other)))
}

// rewrite replaces the log of the one by that of the other.
func (w *twins) rewrite() {
	w.t.Helper()
	from, to := w.other.log.Active(), w.one.log.Active()
	b := make([]byte, from.Size.Load())
	_, err := from.File.ReadAt(b, 0)
	must(w.t, err)
	_, err = to.File.WriteAt(b[format.SegmentHeaderSize:], format.SegmentHeaderSize)
	must(w.t, err)
}

// follower opens a store that is to follow.
func (w *twins) follower() *Store {
	w.t.Helper()
	f := w.open(w.fs, Options{ReadOnly: true, Follow: true})
	w.t.Cleanup(func() { must(w.t, f.Close()) })
	return f
}

// shows waits until a follower shows a value, after so many reloads.
func (w *twins) shows(f *Store, key, want string, reloads int) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		got, err := f.Get(key)
		if err == nil && string(got) == want && f.FollowState().Reloads == reloads {
			return
		}
		if time.Since(begin) > time.Minute {
			w.t.Fatalf("%s is %q, %v, want %q: %+v", key, got, err, want, f.FollowState())
		}
	}
}

// TestFollowRewrittenEnd: where a commit that was read has made room for another one of the same length, the store is
// read again.
func TestFollowRewrittenEnd(t *testing.T) {
	w := newTwins(t)
	w.put("k", "first", "other")
	f := w.follower()
	must(t, f.Follow(Following{}))
	w.put("k", "again", "twice")
	w.shows(f, "k", "again", 0)
	w.rewrite()
	w.shows(f, "k", "twice", 1)
}

// TestFollowRewrittenBefore: the same where the last commits are the same ones as before, at the same places: a client
// has repeated them.
func TestFollowRewrittenBefore(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	must(t, f.Follow(Following{}))
	w.put("k", "first", "other")
	for i := range 100 {
		w.put(fmt.Sprint("same", i), "value", "value")
	}
	w.shows(f, "same99", "value", 0)
	w.rewrite()
	w.shows(f, "k", "other", 1)
}

// TestFollowRewrittenBeforeFollowing: what was read by Open counts as well.
func TestFollowRewrittenBeforeFollowing(t *testing.T) {
	w := newTwins(t)
	w.put("k", "first", "other")
	w.put("same", "value", "value")
	f := w.follower()
	w.rewrite()
	must(t, f.Follow(Following{}))
	w.shows(f, "k", "other", 1)
}

// TestFollowRewrittenAhead: no commit that has come after the rewriting is applied to what was read before it, although
// all that is between two looks at the file was read.
func TestFollowRewrittenAhead(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	long := string(bytes.Repeat([]byte("long"), 200<<10))
	w.put("k", "first", "other")
	w.put("same", long, long)
	w.put("last", long, long)
	applied := []string{}
	must(t, f.Follow(Following{Applied: func(c *Followed) func() {
		for _, k := range c.Keys {
			applied = append(applied, k.Key)
		}
		if len(applied) == 1 {
			f.follower.r.Checked = time.Time{}
			w.rewrite()
		}
		return nil
	}, Reloading: func(context.Context, *Store) (func() func(), error) {
		applied = append(applied, "reload")
		return func() func() { return nil }, nil
	}}))
	w.shows(f, "k", "other", 1)
	if got := fmt.Sprint(applied); got != "[k reload]" && got != "[k same reload]" { // the latter was read together with the first
		t.Errorf("applied: %s", got)
	}
}

// TestFollowRewrittenSealed: the same where the segment is sealed before the next look.
func TestFollowRewrittenSealed(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	w.put("k", "first", "other")
	w.put("same", "value", "value")
	held := make(chan struct{})
	must(t, f.Follow(Following{Applied: func(c *Followed) func() {
		return func() {
			if c.Keys[0].Key == "same" {
				<-held
			}
		}
	}}))
	for begin := time.Now(); f.Sequence() < w.one.Sequence(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not follow")
		}
	}
	w.rewrite()
	must(t, w.one.Rotate())
	must(t, w.one.Put("next", []byte("value")))
	close(held)
	w.shows(f, "k", "other", 1)
	w.shows(f, "next", "value", 1)
}

// TestFollowWholeCommit: of a commit of which one entry makes no sense nothing is applied, and the follower says what
// is wrong.
func TestFollowWholeCommit(t *testing.T) {
	for name, bad := range map[string]func(tx *Tx) error{
		"score": func(tx *Tx) error { return addRaw(tx, KindElement, keydir.ZSet, "z", "member", "no score") },
		"index": func(tx *Tx) error { return addRaw(tx, KindElement, keydir.List, "l", "no index", "") },
		"chunk": func(tx *Tx) error { return addRaw(tx, KindElement, keydir.Chunks, "c", "no index", "") },
		"entry": func(tx *Tx) error { return addRaw(tx, KindElement, keydir.Stream, "x", "no id", "") },
		"trim":  func(tx *Tx) error { return addRaw(tx, KindElementTombstone, keydir.List, "l", "no index", "") },
		"group": func(tx *Tx) error { return addRaw(tx, KindElement, keydir.StreamGroups, "x", "nothing", "") },
		"meta":  func(tx *Tx) error { return addRaw(tx, KindMeta, keydir.Stream, "x", format.MetaLen, "none") },
		"until": func(tx *Tx) error { return addRaw(tx, KindDeadline, keydir.Deadline, "k", "", "tomorrow") },
		"space": func(tx *Tx) error { return addRaw(tx, KindNamespaces, keydir.None, "namespaces", "", "") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwins(t)
			w.put("k", "first", "first")
			f := w.follower()
			tx, err := w.one.BeginAll(true)
			must(t, err)
			must(t, addRaw(tx, KindString, keydir.String, "k", "", "second"))
			must(t, bad(tx))
			_, _, _, err = w.one.log.Append(tx.encode())
			must(t, err)
			tx.End()
			must(t, f.Follow(Following{}))
			for begin := time.Now(); f.FollowState().Err == nil; time.Sleep(time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Fatal("it says nothing")
				}
			}
			if err := f.FollowState().Err; !errors.As(err, new(*CorruptError)) {
				t.Error(err)
			}
			w.shows(f, "k", "first", 0)
		})
	}
}

// addRaw adds a record to a commit, whatever the keydir holds.
func addRaw(tx *Tx, k Kind, typ keydir.Type, key, elem, value string) error {
	tx.materialize()
	_, err := tx.add(k, typ, new(namespace.Space), tx.s.man.Seed.Hash(key), key, elem, []byte(value))
	return err
}

// TestFollowerReleasesMemory: a follower releases the memory of collections that are dropped while commits come without a
// pause, and not only after one.
func TestFollowerReleasesMemory(t *testing.T) {
	mem := vfs.NewMem()
	open := func(o Options) *Store {
		s, err := Open("d", seam.With(&o, seam.Options{FS: mem}))
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	w := open(Options{})
	commit := func() {
		commitNewer(t, w, func(tx *Tx) {
			if tx.s.Sequence() > 0 {
				_, err := tx.Drop(0, "list")
				must(t, err)
			}
			coll, err := tx.Collection(0, "list", keydir.List)
			must(t, err)
			for i := range int64(replay.SmallDrop + 1) {
				must(t, tx.PutIndex(0, "list", coll, i, []byte("value")))
			}
		})
	}
	f := open(Options{ReadOnly: true, Follow: true})
	const commits = 600
	n, most := 0, 0
	done := make(chan struct{})
	must(t, f.Follow(Following{Applied: func(*Followed) func() {
		return func() { // the next commit is there before the follower looks for one
			f.dead.mu.Lock()
			most = max(most, len(f.dead.removed))
			f.dead.mu.Unlock()
			if n++; n == commits {
				close(done)
			} else if n < commits {
				time.Sleep(time.Millisecond)
				commit()
			}
		}
	}}))
	commit()
	<-done
	if most > commits/2 {
		t.Errorf("%d collections of %d that were dropped have been kept", most, commits)
	}
}
