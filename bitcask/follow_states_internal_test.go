package bitcask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// sealedOf are the ids of the sealed segments.
func sealedOf(s *Store) []uint32 {
	s.man.mu.Lock()
	defer s.man.mu.Unlock()
	return slices.Sorted(maps.Keys(s.man.Sealed))
}

// reached waits until a follower shows all that the writer has.
func (w *twins) reached(f *Store) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := f.WaitSequence(ctx, w.one.Sequence()); err != nil {
		w.t.Fatal(err, f.FollowState())
	}
}

// merged waits until a follower has taken over the merges of the writer. It may go on reading the segment last.
func (w *twins) merged(f *Store, last uint32) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		var ids []uint32
		left := false // one that the writer has removed
		for _, sg := range f.segments.Load().All() {
			if sg.Sealed() {
				ids = append(ids, sg.ID)
			}
			left = left || w.one.segments.Load().Find(sg.ID) == nil && sg.ID != last
		}
		slices.Sort(ids)
		if want := sealedOf(w.one); slices.Equal(ids, want) && !left {
			return
		} else if time.Since(begin) > time.Minute {
			w.t.Fatalf("the follower has %v, the writer %v: %+v", ids, want, f.FollowState())
		}
	}
}

// pauses lets a follower follow. It pauses after the one record that the writer commits next after pause, shows that
// commit, and looks no further until goOn.
func (w *twins) pauses(f *Store) (pause, goOn func()) {
	w.t.Helper()
	var at atomic.Uint64 // not a mutex: reached may return before the end of the commit before is called
	wake := make(chan struct{})
	must(w.t, f.Follow(Following{Applied: func(c *Followed) func() {
		if c.Sequence != at.Load() {
			return nil
		}
		return func() {
			select {
			case <-wake:
			case <-w.t.Context().Done(): // the test has failed, and closes its stores
			}
		}
	}}))
	pause = func() { at.Store(w.one.Sequence() + 1) }
	goOn = func() {
		w.t.Helper()
		at.Store(0) // once only, also if the follower reads its log again
		select {
		case wake <- struct{}{}:
		case <-time.After(time.Minute):
			w.t.Fatalf("the follower has not paused: %+v", f.FollowState())
		}
	}
	return pause, goOn
}

// mergeAll merges all that the writer has.
func (w *twins) mergeAll() error {
	must(w.t, w.one.Rotate())
	_, err := w.one.Rewrite(w.t.Context(), sealedOf(w.one), RewriteOptions{})
	return err
}

// TestFollowSmallMerge: a merge of all of a small store, whose only segment was the active one until then, is no reason
// to read it whole again, and a check of the follower finds nothing.
func TestFollowSmallMerge(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	pause, goOn := w.pauses(f)
	for round := range 3 {
		for i := range 20 {
			must(t, w.one.Put(fmt.Sprint("k", i), fmt.Append(nil, "value", round)))
		}
		w.reached(f)
		pause()
		must(t, w.one.Put("last", []byte("value")))
		w.reached(f)
		last := w.one.log.Active().ID
		must(t, w.mergeAll())
		goOn()
		w.merged(f, last)
		must(t, w.one.Put("after", []byte("value")))
		w.reached(f)
		w.merged(f, 0)
		found := func(fd Finding) { t.Errorf("round %d: %v", round, fd) }
		res, err := f.Check(t.Context(), found)
		must(t, err)
		want, err := w.one.Check(t.Context(), found)
		must(t, err)
		if res.Records != want.Records || res.Keys != want.Keys {
			t.Errorf("round %d: %d records and %d keys were checked, want %d and %d", round, res.Records, res.Keys, want.Records, want.Keys)
		}
	}
	w.shows(f, "k7", "value2", 0)
}

// TestFollowSealedHint: a check of a follower finds nothing wrong with the hint of a segment that was sealed meanwhile.
func TestFollowSealedHint(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	must(t, f.Follow(Following{}))
	must(t, w.one.Put("k", []byte("value")))
	must(t, w.one.Rotate())
	must(t, w.one.Put("k", []byte("again")))
	w.reached(f)
	w.merged(f, 0)
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		res, err := f.Check(t.Context(), func(fd Finding) { t.Error(fd) })
		must(t, err)
		if res.Hints == 1 {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("there is no hint")
		}
	}
}

// TestFollowMergeAfterFailed: the output of a merge that has failed before, and after which segments were made, has an
// id that is higher than theirs. So a follower knows it for the newer one.
func TestFollowMergeAfterFailed(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	must(t, f.Follow(Following{}))
	w.put("k", "first", "first")
	must(t, w.one.Rotate())
	w.fs.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: format.DataName(w.one.man.NextID), Err: errors.New("no"), Sticky: true})
	if err := w.mergeAll(); err == nil {
		t.Fatal("the merge has not failed")
	}
	w.fs.Heal()
	for range 3 {
		w.put("k", "again", "again")
		must(t, w.one.Rotate())
	}
	w.reached(f)
	must(t, w.mergeAll())
	w.put("after", "value", "value")
	w.reached(f)
	w.merged(f, 0)
	w.shows(f, "k", "again", 0)
}

// TestFollowSystemDeleted: a merge that drops the record of a deletion is no reason to read the store again.
func TestFollowSystemDeleted(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	must(t, f.Follow(Following{}))
	for _, value := range []string{"value", ""} {
		tx, err := w.one.BeginAll(true)
		must(t, err)
		must(t, tx.PutSystem("name", []byte(value)))
		_, err = tx.Commit()
		must(t, err)
		tx.End()
	}
	w.put("k", "value", "value")
	w.reached(f)
	for range 3 {
		must(t, w.mergeAll())
		w.put("k", "again", "again")
		w.reached(f)
		w.merged(f, 0)
	}
	w.shows(f, "k", "again", 0)
	_, err := f.Check(t.Context(), func(fd Finding) { t.Error(fd) })
	must(t, err)
}

// TestFollowClosedWhileReloading: Close does not wait until the store has been read again.
func TestFollowClosedWhileReloading(t *testing.T) {
	w := newTwins(t)
	f := w.open(w.fs, Options{ReadOnly: true, Follow: true})
	began := make(chan struct{})
	must(t, f.Follow(Following{Reloading: func(ctx context.Context, _ *Store) (func() func(), error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}}))
	w.put("k", "first", "other")
	w.reached(f)
	w.rewrite()
	<-began
	must(t, f.Close()) // which would wait for ever
}

// TestFollowReadInterrupted: reading the log ends with the context.
func TestFollowReadInterrupted(t *testing.T) {
	w := newTwins(t)
	w.put("k", "value", "value")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := Options{ReadOnly: true, seam: w.one.opts.seam}
	if _, err := openUntil(ctx, "d", &o); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}

// TestFollowPositionLast: the number of a commit is shown after all that hangs on it.
func TestFollowPositionLast(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	var early []string
	seen := uint64(0)
	look := func(what string, want uint64) {
		if at := f.Sequence(); at >= want && want > seen { // the same may be read again, while files are exchanged
			early = append(early, fmt.Sprintf("%s of %d, at %d", what, want, at))
		}
		seen = max(seen, want)
	}
	must(t, f.Follow(Following{
		Applied: func(c *Followed) func() { look("a commit", c.Sequence); return nil },
		Reloading: func(_ context.Context, fresh *Store) (func() func(), error) {
			return func() func() { look("all", fresh.Sequence()); return nil }, nil
		},
	}))
	w.put("k", "first", "other")
	w.reached(f)
	w.put("more", "value", "value")
	w.reached(f)
	must(t, w.other.Put("last", []byte("value")))
	w.rewrite()
	w.shows(f, "last", "value", 1)
	if len(early) > 0 {
		t.Error(strings.Join(early, "; "))
	}
}

// flipIn flips a bit of a file.
func flipIn(t *testing.T, f vfs.File, at int64) {
	t.Helper()
	b := make([]byte, 1)
	_, err := f.ReadAt(b, at)
	must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b, at)
	must(t, err)
}

// TestFollowDamagedActive: a bad commit in the segment that is being written is reported, whether the manifest says
// that it was on disk, or commits that follow it do.
func TestFollowDamagedActive(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprint("closed ", closed), func(t *testing.T) {
			w := newTwins(t)
			must(t, w.one.Put("k", []byte("value")))
			f := w.follower()
			at := w.one.log.Active().Size.Load()
			must(t, w.one.Put("bad", []byte("value")))
			must(t, w.one.Put("good", []byte("value")))
			if closed {
				must(t, w.one.log.Sync())
				if w.one.log.NoteIdle(); !w.one.log.NoteIdle() {
					t.Fatal("no idle")
				}
			}
			flipIn(t, w.one.log.Active().File, at+format.FrameHeaderSize+5)
			must(t, f.Follow(Following{}))
			var bad *CorruptError
			for begin := time.Now(); !errors.As(f.FollowState().Err, &bad); time.Sleep(time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Fatalf("it says nothing: %+v", f.FollowState())
				}
			}
			if bad.Offset != at || bad.File != w.one.log.Active().Name {
				t.Error(bad)
			}
			w.shows(f, "k", "value", 0)
			_, err := w.one.log.Active().File.WriteAt([]byte("bad"), at+format.FrameHeaderSize+5) // nothing that verifies
			must(t, err)
		})
	}
}

// TestFollowRolledBack: a read of what the writer has rolled back is no damage.
func TestFollowRolledBack(t *testing.T) {
	w := newTwins(t)
	must(t, w.one.Put("k", []byte("value")))
	must(t, w.one.Sync())
	f := w.follower()
	held, applied := make(chan struct{}), make(chan struct{})
	must(t, f.Follow(Following{Applied: func(*Followed) func() {
		return func() {
			close(applied)
			<-held
		}
	}}))
	active := w.one.log.Active()
	end := active.Size.Load()
	must(t, w.one.Put("gone", []byte("value")))
	<-applied
	defer close(held)
	must(t, active.File.Truncate(end))
	if _, err := f.Get("gone"); !errors.Is(err, ErrRolledBack) {
		t.Errorf("it says %v", err)
	}
	_, err := active.File.WriteAt(make([]byte, 100), end)
	must(t, err)
	if _, err := f.Get("gone"); !errors.Is(err, ErrRolledBack) {
		t.Errorf("it says %v", err)
	}
	if got, err := f.Get("k"); string(got) != "value" {
		t.Error(got, err)
	}
}

// TestFollowDamagedFooter: a damaged footer is reported for as long as it stays.
func TestFollowDamagedFooter(t *testing.T) {
	w := newTwins(t)
	f := w.follower()
	pause, goOn := w.pauses(f)
	pause()
	must(t, w.one.Put("k", []byte("value")))
	w.reached(f)
	sg := w.one.log.Active()
	must(t, w.one.Rotate())
	must(t, w.one.Put("k", []byte("again")))
	flipIn(t, sg.File, sg.Size.Load()-5)
	goOn()
	for begin, bad := time.Now(), 0; bad < 200; time.Sleep(5 * time.Millisecond) {
		if errors.As(f.FollowState().Err, new(*CorruptError)) {
			bad++ // for a second: some looks
		} else if bad > 0 {
			t.Fatalf("it says nothing any more: %+v", f.FollowState())
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("it says nothing: %+v", f.FollowState())
		}
	}
}

// TestFollowAfterPowerCut: a power cut may take the end of an older segment and leave what follows it, until a writer drops
// that. A follower shows what is left, reads nothing again, and a feed waits.
func TestFollowAfterPowerCut(t *testing.T) {
	here := vfs.NewMem()
	fs := vfstest.NewFault(here)
	o := seam.With(&Options{Sync: SyncNone, SegmentSize: 1 << 10}, seam.Options{FS: fs, Copies: seam.CopiesOff})
	s, err := Open("d", o)
	must(t, err)
	must(t, s.Put("first", []byte("value")))
	hold, older := make(chan struct{}), s.log.Active()
	fs.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: older.Name, Sticky: true, Do: func(vfstest.Event) { <-hold }})
	for i := 0; s.log.Active() == older; i++ {
		must(t, s.Put(fmt.Sprint("k", i), []byte(strings.Repeat("v", 40))))
	}
	must(t, s.Put("later", []byte("value")))
	cut := here.Clone()
	cut.SetBoot(vfs.BootID{15: 1}) // none of NewMem has it
	close(hold)
	must(t, s.Close())

	f, err := cut.Open("d/"+older.Name, vfs.ReadWrite)
	must(t, err)
	must(t, f.Truncate(older.Size.Load()/2))
	must(t, f.Close())
	follower, err := Open("d", seam.With(&Options{ReadOnly: true, Follow: true}, seam.Options{FS: cut}))
	must(t, err)
	defer follower.Close()
	must(t, follower.Follow(Following{}))
	commits, err := OpenFeed(t.Context(), "d", FeedOptions{Newest: 1, Store: seam.With(&Options{}, seam.Options{FS: cut})})
	must(t, err)
	defer commits.Close()
	for begin := time.Now(); time.Since(begin) < 2*followlog.Patience+time.Second; time.Sleep(20 * time.Millisecond) {
		if st := follower.FollowState(); st.Err != nil || st.Reloads > 0 {
			t.Fatalf("%+v", st)
		}
		if _, err := commits.Next(t.Context()); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
	if value, err := follower.Get("first"); err != nil || string(value) != "value" {
		t.Errorf("%q, %v", value, err)
	}
	if _, err := follower.Get("later"); err != ErrNotFound {
		t.Errorf("what comes after the end: %v", err)
	}
}
