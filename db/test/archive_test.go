package db_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
)

// waitArchived waits until a store has a base and all commits in its archive.
func waitArchived(t *testing.T, s *db.Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		st := s.Stats().Archive
		if st.Behind == 0 && st.Bases > 0 && st.Err == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not archived: %+v", st)
		}
	}
}

// restoredTo makes a store of a moment, which must be sound.
func restoredTo(t *testing.T, from archive.Store, target archive.Target) (*db.Store, archive.Restored) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	made, err := archive.Restore(t.Context(), from, dir, target)
	must(t, err)
	s := ok[*db.Store](t)(db.Open(dir, &db.Options{NoMerge: true, ExpireEvery: -1}))
	t.Cleanup(func() { must(t, s.Close()) })
	_, err = s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("restored to %v: %v", target, f) })
	must(t, err)
	return s, made
}

// TestRestoreAnyMoment: a store of any commit that was archived holds what its store held after that commit: all types,
// groups, deadlines, flushes and swaps, next to merges, rotations, and a store that is closed and opened again.
func TestRestoreAnyMoment(t *testing.T) {
	r, parent := chance.Rand(t), t.TempDir()
	to := ok[*archive.Directory](t)(archive.OpenDirectory(filepath.Join(parent, "archive")))
	open := func() *db.Store {
		return ok[*db.Store](t)(db.Open(filepath.Join(parent, "store"), seam.With(&db.Options{
			SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1, Sync: db.SyncMode(r.IntN(3)), SyncEvery: 20 * time.Millisecond,
			Archive: &archive.Options{To: to, Every: 20 * time.Millisecond},
		}, seam.Options{Copies: seam.CopiesOn + seam.Copies(r.IntN(2)), CopyStep: 4 << 10})))
	}
	w := open()
	defer func() { must(t, w.Close()) }()
	work := &followWorkload{s: w, r: r}
	states := map[uint64]string{}
	note := func() {
		at, _, text, err := contentsOf(w)
		must(t, err)
		states[at] = text
	}
	commits, moments := 1200, 60
	if testing.Short() || underRace {
		commits, moments = 250, 12
	}
	reopened, gaps := 0, uint64(0)
	for range commits {
		must(t, work.commit())
		note()
		switch n := r.IntN(150); {
		case n < 4: // what is archived may be merged
			waitArchived(t, w)
			must(t, mergeEverything(w))
		case n < 6:
			waitArchived(t, w)
			gaps += w.Stats().Archive.Gaps
			must(t, w.Close())
			w, reopened = open(), reopened+1
			work.s = w
		}
	}
	waitArchived(t, w)
	gaps += w.Stats().Archive.Gaps
	spans, err := archive.Spans(t.Context(), to)
	must(t, err)
	if uint64(len(spans)) != gaps+1 || gaps > uint64(reopened) {
		t.Errorf("%d spans, %d gaps, %d times opened again", len(spans), gaps, reopened)
	}
	for range moments {
		sp := spans[r.IntN(len(spans))]
		seq := max(1, sp.First.Sequence+r.Uint64N(sp.Last.Sequence-sp.First.Sequence+1))
		want := seq
		for states[want] == "" && want > 0 {
			if _, known := states[want]; known {
				break
			}
			want--
		}
		s, made := restoredTo(t, to, archive.Target{Sequence: seq})
		at, _, text, err := contentsOf(s)
		must(t, err)
		if made.Sequence != want || at != want || text != states[want] {
			t.Fatalf("sequence %d: restored %d, opened %d, want %d\n%s", seq, made.Sequence, at, want, differences(text, states[want]))
		}
	}
	t.Logf("%d commits, opened again %d times, %d spans", commits, reopened, len(spans))
}

// TestRestoredStoreGoesOn: a restored store is one of its own: it is written to, merged, archived alongside the one that it
// comes from, and restored again.
func TestRestoredStoreGoesOn(t *testing.T) {
	parent := t.TempDir()
	to := ok[*archive.Directory](t)(archive.OpenDirectory(filepath.Join(parent, "archive")))
	o := db.Options{SegmentSize: 16 << 10, NoMerge: true, Archive: &archive.Options{To: to, Every: 10 * time.Millisecond}}
	s := ok[*db.Store](t)(db.Open(filepath.Join(parent, "store"), &o))
	put := func(s *db.Store, from, n int) {
		for i := range n {
			must(t, s.String(fmt.Sprint("k", i%50)).Put(fmt.Appendf(nil, "%200d", from+i)))
		}
	}
	put(s, 0, 100)
	waitArchived(t, s)
	put(s, 100, 300)
	waitArchived(t, s)
	wants := func(s *db.Store, key, want string) {
		t.Helper()
		equal(t, key, string(ok[[]byte](t)(s.String(key).Get())), fmt.Sprintf("%200s", want))
	}
	at, id := s.Log().Sequence(), s.Log().StoreID()
	for round := range 3 {
		dir := filepath.Join(parent, fmt.Sprint("restored", round))
		made, err := archive.Restore(t.Context(), to, dir, archive.Target{Store: hex.EncodeToString(id[:]), Sequence: at})
		must(t, err)
		equal(t, "sequence", made.Sequence, at)
		must(t, s.Close())
		s = ok[*db.Store](t)(db.Open(dir, &o))
		wants(s, "k49", fmt.Sprint(399+1000*round))
		put(s, 1000*(round+1), 300)
		waitArchived(t, s)
		must(t, mergeEverything(s))
		put(s, 1000*(round+1)+300, 100)
		waitArchived(t, s)
		wants(s, "k49", fmt.Sprint(399+1000*(round+1)))
		at, id = s.Log().Sequence(), s.Log().StoreID()
	}
	must(t, s.Close())
	spans := ok[[]*archive.Span](t)(archive.Spans(t.Context(), to))
	equal(t, "spans", len(spans), 4)
}
