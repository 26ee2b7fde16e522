package db_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
)

// followed opens a store that follows the one in dir.
func followed(t *testing.T, dir string, o db.Options, s seam.Options) *db.Store {
	t.Helper()
	o.ReadOnly, o.Follow = true, true
	f := ok[*db.Store](t)(db.Open(dir, seam.With(&o, s)))
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// caughtUp waits until a follower shows what its writer has committed.
func caughtUp(t *testing.T, f, w *db.Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); f.Position() != w.Position(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the follower is at %d, the writer at %d: %+v", f.Position(), w.Position(), f.FollowState())
		}
	}
}

// contentsOf sums up all that a store holds, at one moment, and says at which position. The order of small hashes and
// sets is left out: a writer that was killed after a merge loses it, and a follower that goes on has it still.
func contentsOf(s *db.Store) (position uint64, sum uint64, text string, err error) {
	var b strings.Builder
	err = s.View(func(tx *db.Tx) error {
		position = s.Log().Sequence()
		for ns := range 3 {
			in, err := tx.Use(ns)
			if err != nil {
				return err
			}
			keys, err := in.Keyspace().Keys("*")
			if err != nil {
				return err
			}
			slices.Sort(keys)
			for _, key := range keys {
				value, err := valueOf(in, key)
				if err != nil {
					return fmt.Errorf("%d %q: %w", ns, key, err)
				}
				deadline, err := in.Key(key).Deadline()
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, "%d %q %x %d\n", ns, key, value, deadline.UnixMilli())
			}
		}
		return nil
	})
	h := fnv.New64a()
	h.Write([]byte(b.String()))
	return position, h.Sum64(), b.String(), err
}

// valueOf is what a key holds: that of a hash or a set sorted, that of others as DUMP has it.
func valueOf(in *db.Tx, key string) ([]byte, error) {
	typ, err := in.Key(key).Type()
	if err != nil {
		return nil, err
	}
	var elements []string
	switch typ {
	case db.TypeHash:
		err = in.Hash(key).VisitTimed(func(int, int64) {}, func(name, value []byte, ms int64) bool {
			elements = append(elements, fmt.Sprintf("%q %q %d", name, value, ms))
			return true
		})
	case db.TypeSet:
		elements, err = in.Set(key).Members()
	default:
		return in.Key(key).Dump()
	}
	slices.Sort(elements)
	return fmt.Appendf(nil, "%v %q", typ, elements), err
}

// TestFollow: whatever a follower shows at any moment is what its writer held after some commit, and the positions
// agree, next to rotations, merges, flushes, swaps and a writer that closes and opens the store again, with commits
// that are copied and with such that are written.
func TestFollow(t *testing.T) {
	for name, copies := range map[string]seam.Copies{"copied": seam.CopiesOn, "written": seam.CopiesOff} {
		t.Run(name, func(t *testing.T) { testFollow(t, seam.Options{Copies: copies, CopyStep: 4 << 10}) })
	}
}

func testFollow(t *testing.T, o seam.Options) {
	dir, r := t.TempDir(), chance.Rand(t)
	open := func() *db.Store {
		return ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1}, o)))
	}
	w := open()
	defer func() { must(t, w.Close()) }()
	work := &followWorkload{s: w, r: r}
	f := followed(t, dir, db.Options{OrderedKeys: true}, seam.Options{})

	var mu sync.Mutex // guards states
	states := map[uint64]string{}
	note := func() {
		at, _, text, err := contentsOf(w)
		must(t, err)
		mu.Lock()
		states[at] = text
		mu.Unlock()
	}
	note()
	var looks sync.WaitGroup
	stop := make(chan struct{})
	moments := 0
	looks.Go(func() {
		for last := uint64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			at, _, text, err := contentsOf(f)
			if err != nil {
				t.Errorf("at %d: %v", at, err)
				return
			}
			for range 1000 { // the writer notes what it held after its commit
				mu.Lock()
				want, known := states[at]
				mu.Unlock()
				if known && want != text {
					t.Errorf("at %d the follower shows\n%s\nthe writer held\n%s", at, text, want)
					return
				}
				if known {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if at < last {
				t.Errorf("position %d after %d", at, last)
			}
			if at != last {
				moments++
			}
			last = at
		}
	})
	commits := budget.Rounds(t, 300, 1500)
	for i := range commits {
		must(t, work.commit())
		note()
		switch n := r.IntN(200); {
		case n < 2:
			must(t, mergeEverything(w))
		case n < 4:
			must(t, mergeSome(w, r))
			late := ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{ReadOnly: true, Follow: true}, seam.Options{NoIndex: true})))
			caughtUp(t, late, w)
			_, _, want, _ := contentsOf(w)
			_, _, got, err := contentsOf(late)
			must(t, errors.Join(err, late.Close()))
			equal(t, "what a follower shows that has begun after a merge", got, want)
		case n < 5:
			must(t, w.Close())
			w = open()
			work.s = w
			note()
		case n < 12:
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		if i == commits/2 {
			caughtUp(t, f, w)
		}
	}
	caughtUp(t, f, w)
	close(stop)
	looks.Wait()
	ok[db.CheckResult](t)(w.CheckReplay(t.Context(), func(f db.Finding) { t.Error(f) }))
	_, _, want, err := contentsOf(w)
	must(t, err)
	_, _, got, err := contentsOf(f)
	must(t, err)
	equal(t, "what is shown in the end", got, want)
	var ordered []string
	for k, err := range f.Keyspace().Range(db.KeyRange{}) {
		must(t, err)
		ordered = append(ordered, k.Key)
	}
	keys := ok[[]string](t)(w.Keyspace().Keys("*"))
	slices.Sort(keys)
	equal(t, "keys in order", fmt.Sprint(ordered), fmt.Sprint(keys))
	st := f.FollowState()
	t.Logf("%d moments, %d reloads", moments, st.Reloads)
	must(t, st.Err)
}

// TestCheckOfAFollowerOfLists: a check of a follower finds nothing while its writer changes lists in the middle, from the first hole and
// the first inserted element of the store on, whether the follower was there before or opens meanwhile.
func TestCheckOfAFollowerOfLists(t *testing.T) {
	for range budget.Rounds(t, 6, 60) {
		seed := chance.Seed(t)
		dir, r := t.TempDir(), rand.New(rand.NewPCG(seed, 1))
		w := ok[*db.Store](t)(db.Open(dir, &db.Options{SegmentSize: 64 << 10, NoMerge: true, ExpireEvery: -1}))
		for i := range 8 {
			must(t, pushMany(fmt.Sprint("list ", i), 100)(w))
		}
		work, late := &followWorkload{s: w, r: r}, r.IntN(2) == 0
		open := func() *db.Store {
			return ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{ReadOnly: true, Follow: true}, seam.Options{NoIndex: true})))
		}
		var f *db.Store
		if !late {
			f = open()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; i < 60 && !t.Failed(); i++ {
				l := w.List(fmt.Sprint("list ", i%8))
				n, err := l.Len()
				if err == nil && n < 40 { // an element inserted into a longer list gets a sub-index
					_, err = l.PushBack(manyValues(60)...)
				}
				if err = errors.Join(err, work.editList(l)); err != nil {
					t.Error(err)
				}
			}
		}()
		if late {
			f = open()
		}
		checks := 0
		for running := true; running; checks++ {
			select {
			case <-done:
				caughtUp(t, f, w)
				running = false // once more
			default:
			}
			ok[db.CheckResult](t)(f.Check(t.Context(), func(found db.Finding) { t.Errorf("a follower that is late %v: %v", late, found) }))
		}
		t.Logf("%d checks", checks)
		must(t, errors.Join(f.Close(), w.Close()))
	}
}

// TestFollowShowsWholeCommits: of keys that are written in one commit a later read never shows an older one, whether
// the reads take locks or not.
func TestFollowShowsWholeCommits(t *testing.T) {
	dir := t.TempDir()
	w := ok[*db.Store](t)(db.Open(dir, &db.Options{NoMerge: true}))
	defer func() { must(t, w.Close()) }()
	f := followed(t, dir, db.Options{}, seam.Options{})
	const keys = 400
	var looks sync.WaitGroup
	stop := make(chan struct{})
	looks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			first, err := f.String("k0").Get()
			if err != nil {
				continue // not there yet
			}
			last, err := f.String(fmt.Sprint("k", keys-1)).Get()
			if err != nil || string(last) < string(first) {
				t.Errorf("the last key holds %q, %v, after the first one held %q", last, err, first)
				return
			}
		}
	})
	commits := 1500
	if testing.Short() {
		commits = 300
	}
	for i := range commits {
		pairs := make([]db.Pair, keys)
		for k := range pairs {
			pairs[k] = db.Pair{Key: fmt.Sprint("k", k), Value: fmt.Appendf(nil, "%09d", i)}
		}
		must(t, w.Keyspace().Put(pairs...))
	}
	caughtUp(t, f, w)
	close(stop)
	looks.Wait()
}

// TestFollowEnded: a listener that ends the goroutine which follows leaves no lock held, and who waits for a position
// is told.
func TestFollowEnded(t *testing.T) {
	dir := t.TempDir()
	w := ok[*db.Store](t)(db.Open(dir, nil))
	defer func() { must(t, w.Close()) }()
	f := followed(t, dir, db.Options{}, seam.Options{})
	defer f.OnChanges(func([]db.Change, db.Ticket) { runtime.Goexit() })()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waited := make(chan error, 1)
	go func() { waited <- f.WaitPosition(ctx, w.Position()+100) }()
	must(t, w.String("a").Put([]byte("1")))
	for _, err := range []error{<-waited, f.WaitPosition(ctx, w.Position()+100), f.FollowState().Err} {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("what no longer follows says %v", err)
		}
	}
	must(t, f.View(func(tx *db.Tx) error { return first(tx.String("a").Get()) }))
}

// TestFollowWaits: changes are told, positions waited for, blocking reads of streams served, and writes refused.
func TestFollowWaits(t *testing.T) {
	dir := t.TempDir()
	w := ok[*db.Store](t)(db.Open(dir, nil))
	defer func() { must(t, w.Close()) }()
	f := followed(t, dir, db.Options{}, seam.Options{})
	var mu sync.Mutex
	var told []string
	stop := f.OnChanges(func(changes []db.Change, ticket db.Ticket) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range changes {
			told = append(told, fmt.Sprint(c.Namespace, c.Key, c.Whole, ticket))
		}
	})
	defer stop()
	watch := ok[*db.Watch](t)(f.Watch("a"))
	defer watch.Close()
	must(t, w.String("a").Put([]byte("1"), db.TTL(time.Hour)))
	ok[bool](t)(w.Hash("h").Put("x", nil))
	must(t, first(w.Hash("h").ExpireFields(time.Hour, []string{"x"})))
	must(t, w.Flush())
	must(t, f.WaitPosition(t.Context(), w.Position()))
	mu.Lock()
	if got := fmt.Sprint(told); !strings.HasPrefix(got, "[0afalse") || !strings.Contains(got, "0hfalse") || !strings.Contains(got, "0true") {
		t.Errorf("told of %v", got)
	}
	mu.Unlock()
	must(t, f.View(func(tx *db.Tx) error {
		equal(t, "changed", ok[bool](t)(watch.Changed(tx)), true)
		return nil
	}))
	if err := f.String("a").Put(nil); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("a write gives %v", err)
	}
	if _, err := f.List("l").PopFrontWait(t.Context()); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("a pop that waits gives %v", err)
	}
	if _, err := f.Stream("s").Group("g").ReadWait(t.Context(), "c", 1); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("a read of a group that waits gives %v", err)
	}
	for name, backup := range map[string]func() (bitcask.BackupResult, error){
		"Backup":   func() (bitcask.BackupResult, error) { return f.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")) },
		"BackupTo": func() (bitcask.BackupResult, error) { return f.BackupTo(t.Context(), io.Discard) },
	} {
		if _, err := backup(); !errors.Is(err, bitcask.ErrFollowing) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	read := make(chan int, 1)
	go func() {
		list, err := f.Stream("s").ReadWait(t.Context(), db.StreamID{}, 0)
		if err != nil {
			t.Errorf("a read that waits gives %v", err)
		}
		read <- len(list)
	}()
	time.Sleep(20 * time.Millisecond)
	ok[db.StreamID](t)(w.Stream("s").Add(db.Field{Name: "f"}))
	equal(t, "entries that a read has waited for", <-read, 1)
	for _, ns := range f.Stats().Namespaces {
		equal(t, "deadlines after the flush", ns.Deadlines+ns.TimedHashes, 0)
	}
	if err := w.WaitPosition(t.Context(), w.Position()+1); !errors.Is(err, db.ErrNotFollowing) {
		t.Errorf("waiting in the writer gives %v", err)
	}
	for _, o := range []*db.Options{{Follow: true}, {Follow: true, ReadDamaged: true}} {
		if _, err := db.Open(dir, o); !errors.Is(err, db.ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
