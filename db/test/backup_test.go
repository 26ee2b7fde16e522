package db_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// TestMixedCopies puts files of a store into a backup of it, and the other way round, after both have diverged in steps
// of the same length: each opens as it was, or an error names the problem.
func TestMixedCopies(t *testing.T) {
	opened, refused := 0, 0
	shapes := []string{"one put", "two rounds", "deletes and a merge"}
	if testing.Short() {
		shapes = shapes[1:2]
	}
	for _, shape := range shapes {
		mem := vfs.NewMem()
		s, err := db.Open("d", stepOptions(mem, db.SyncAlways))
		must(t, err)
		for i := range 3 {
			partedRound(t, s, "before", i)
		}
		must(t, first(s.Merge(t.Context(), merge.RunOptions{})))
		partedRound(t, s, "before", 3)
		must(t, first(s.Backup(t.Context(), "b")))
		must(t, s.Close())
		asMade, err := crash.ReadState(mem, "b")
		must(t, err)
		parted := map[string]crash.State{}
		want := map[string]string{}
		for _, dir := range []string{"d", "b"} {
			parted[dir], want[dir] = part(t, mem, dir, shape)
		}
		parted["b as it was made"] = asMade
		for _, mix := range []struct{ into, from string }{{"d", "b"}, {"b", "d"}, {"d", "b as it was made"}} {
			for _, kind := range mixedKinds {
				all := maps.Clone(parted[mix.into])
				maps.Copy(all, parted[mix.from]) // files that only the other one has, too
				for _, names := range mixedNames(all, kind) {
					mixed := maps.Clone(parted[mix.into])
					for _, name := range names {
						if b, there := parted[mix.from][name]; there {
							mixed[name] = b
						}
					}
					if verifyMixed(t, fmt.Sprintf("%s: %s with %q of %s", shape, mix.into, names, mix.from), mixed, want[mix.into]) {
						opened++
					} else {
						refused++
					}
				}
			}
		}
	}
	t.Logf("%d mixes: %d opened, %d refused", opened+refused, opened, refused)
	if opened == 0 || refused == 0 {
		t.Error("the mixes are no test")
	}
}

// part continues one of two copies, and returns its files and content.
func part(t *testing.T, mem *vfs.Mem, dir, shape string) (crash.State, string) {
	t.Helper()
	s, err := db.Open(dir, stepOptions(mem, db.SyncAlways))
	must(t, err)
	switch shape {
	case "one put":
		must(t, s.String("k").Put([]byte(dir)))
	case "two rounds":
		partedRound(t, s, dir, 4)
		partedRound(t, s, dir, 5)
	case "deletes and a merge":
		partedRound(t, s, dir, 4)
		must(t, first(s.Keyspace().Delete("k"+dir+"0", "hash")))
		must(t, mergeEverything(s))
	}
	m, err := readModel(s)
	must(t, err)
	must(t, s.Close())
	state, err := crash.ReadState(mem, dir)
	must(t, err)
	return state, m.String()
}

// partedRound writes records of the same length for any writer.
func partedRound(t *testing.T, s *db.Store, who string, round int) {
	t.Helper()
	for i := range 5 {
		key := "k" + who[:1] + strconv.Itoa(i)
		must(t, s.String(key).Put(fmt.Appendf(nil, "round %d, %s", round, key), db.ExpireAt(time.UnixMilli(4e12+int64(round)+int64(who[0])))))
		must(t, first(s.Hash("hash").Put(key, fmt.Appendf(nil, "round %d of %s", round, who[:1]))))
		must(t, first(s.List("list").PushBack([]byte(key))))
		must(t, first(s.SortedSet("zset").Add(db.Scored{Member: key, Score: float64(round)})))
	}
	must(t, first(s.Key("k"+who[:1]+strconv.Itoa(round%5)).Persist()))
}

// TestBackupBesideWriters makes backups while a store is written, rotated and merged as fast as it goes, some of them
// from a concurrent reader. Each is a state that was, with all that had been acknowledged before, and a store without
// findings.
func TestBackupBesideWriters(t *testing.T) {
	backups := 15
	if testing.Short() {
		backups = 3
	}
	dir := t.TempDir()
	s, err := db.Open(dir+"/d", &db.Options{
		SegmentSize: 4 << 10, Sync: db.SyncNone, NoMerge: true, ExpireEvery: time.Millisecond,
		Merge: merge.Policy{TriggerRatio: 0.2, IncludeRatio: 0.1, SmallCount: 2},
	})
	must(t, err)
	const writers = 2
	var acked [writers]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for n := int64(1); ctx.Err() == nil; n++ {
				if err := backupCommit(s, w, n); err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(n)
				if s.Stats().Segments > 300 {
					time.Sleep(time.Millisecond) // the merge lags on a busy machine
				}
			}
		})
	}
	wait.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := s.Merge(ctx, merge.RunOptions{All: n%4 == 0}); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	})
	linked := 0
	for i := range backups {
		var before [writers]int64
		for w := range before {
			before[w] = acked[w].Load()
		}
		name := fmt.Sprint(dir, "/b", i)
		from := s
		if i%3 == 2 { // as stave backup does alongside a server
			from, err = db.Open(dir+"/d", &db.Options{ReadOnly: true})
			must(t, err)
		}
		var r bitcask.BackupResult
		if i%3 == 1 || i%6 == 5 {
			r = backupByTar(t, from, name)
		} else {
			r, err = from.Backup(ctx, name)
			must(t, err)
		}
		if from != s {
			must(t, from.Close())
		}
		linked += r.Linked
		for w := range before {
			verifyBackup(t, name, w, before[w], i%2 == 0)
		}
		if t.Failed() {
			break
		}
	}
	stop()
	wait.Wait()
	must(t, s.Close())
	t.Logf("%d and %d commits, %d backups, %d links", acked[0].Load(), acked[1].Load(), backups, linked)
	if linked == 0 {
		t.Error("nothing was linked")
	}
}

// backupByTar makes a backup as a stream and has it extracted by the command that the documentation names, or where
// that is missing by Go's library.
func backupByTar(t *testing.T, s *db.Store, dir string) bitcask.BackupResult {
	t.Helper()
	r, w := io.Pipe()
	var result bitcask.BackupResult
	made := make(chan error, 1)
	go func() {
		var err error
		result, err = s.BackupTo(t.Context(), w)
		w.CloseWithError(err)
		made <- err
	}()
	must(t, os.Mkdir(dir, 0o700))
	if path, err := exec.LookPath("tar"); err == nil {
		cmd := exec.Command(path, "-x", "-C", dir, "-f", "-")
		cmd.Stdin = r
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("tar: %s %v", out, err)
		}
	} else {
		must(t, untar(r, dir))
	}
	_, err := io.Copy(io.Discard, r) // what tar does not read: it stops at the end of the archive
	must(t, err)
	must(t, <-made)
	return result
}

func untar(r io.Reader, dir string) error {
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(tr)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, h.Name), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
}

// TestBackupToKeepsEverything streams a store of every type, with deadlines and several namespaces, in memory and in a
// directory.
func TestBackupToKeepsEverything(t *testing.T) {
	for name, open := range map[string]func() (*db.Store, error){
		"memory":    func() (*db.Store, error) { return db.OpenMemory(&db.Options{SegmentSize: 2 << 10}) },
		"directory": func() (*db.Store, error) { return db.Open(t.TempDir(), &db.Options{SegmentSize: 2 << 10}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := ok[*db.Store](t)(open())
			defer func() { must(t, s.Close()) }()
			for i := range 20 {
				partedRound(t, s, "before", i)
			}
			other := ok[*db.Store](t)(s.Use(5))
			partedRound(t, other, "other", 1)
			must(t, other.Swap(5, 7))
			want := ok[*model](t)(readModel(s)).String()
			dir := filepath.Join(t.TempDir(), "copy")
			result := backupByTar(t, s, dir)
			equal(t, "linked", result.Linked, 0)
			equal(t, "sequence", result.Sequence, s.Stats().Sequence)
			partedRound(t, s, "after", 2)
			for range 2 { // as it was extracted, and after a first life
				c := ok[*db.Store](t)(db.Open(dir, nil))
				equal(t, "the copy", ok[*model](t)(readModel(c)).String(), want)
				ok[bitcask.CheckResult](t)(c.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) }))
				must(t, c.Close())
			}
		})
	}
}

// verifyBackup wants a backup to hold all of a writer's commits up to one that is no earlier than before.
func verifyBackup(t *testing.T, dir string, w int, before int64, readOnly bool) {
	t.Helper()
	s, err := db.Open(dir, seam.With(&db.Options{ReadOnly: readOnly, NoMerge: true}, seam.Options{NoIndex: true}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("check of %s: %v", dir, f) }); err != nil {
		t.Error(err)
	}
	verifyCommits(t, s, dir, w, before)
}

// TestBackupFails lets each operation on files fail while a backup is made, once and from then on: the store goes on as
// it was, nothing is left open, and there is a backup that is right or none; and the next one succeeds.
func TestBackupFails(t *testing.T) {
	mem := vfs.NewMem()
	s, err := db.Open("d", stepOptions(mem, db.SyncAlways))
	must(t, err)
	partedRound(t, s, "before", 0)
	partedRound(t, s, "before", 1)
	m, err := readModel(s)
	must(t, err)
	want := m.String()
	must(t, s.Close())
	base, err := crash.ReadState(mem, "d")
	must(t, err)
	runs, made := 0, 0
	for _, far := range []bool{false, true} {
		count := &backupFault{far: far}
		count.run(t, base, want)
		for _, n := range budget.Some(t, numbers(count.ops), count.ops/10) {
			for _, how := range []vfstest.Rule{{Err: syscall.EIO}, {Err: syscall.EIO, Applied: true}, {Err: syscall.ENOSPC, Sticky: true, Partial: 7}} {
				how.Skip = n
				f := &backupFault{far: far, rule: &how}
				f.run(t, base, want)
				runs++
				if f.made {
					made++
				}
			}
		}
	}
	t.Logf("%d backups with a failure, %d of them made all the same", runs, made)
}

type backupFault struct {
	far  bool // links are refused
	rule *vfstest.Rule
	ops  int
	made bool
}

func (f *backupFault) run(t *testing.T, base crash.State, want string) {
	t.Helper()
	what := fmt.Sprintf("far %v, %+v", f.far, f.rule)
	mem, err := base.Mem("d")
	must(t, err)
	fault := vfstest.NewFault(mem)
	s, err := db.Open("d", stepOptions(fault, db.SyncAlways))
	must(t, err)
	waitForHints(t, mem, s)
	before := fault.Ops()
	if f.rule != nil {
		fault.Inject(*f.rule)
	}
	if f.far {
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpLink}, Err: syscall.EXDEV, Sticky: true})
	}
	_, err = s.Backup(t.Context(), "b")
	f.ops = fault.Ops() - before
	if f.rule == nil {
		must(t, err)
	} else if !errors.Is(err, f.rule.Err) || errors.Is(f.rule.Err, syscall.ENOSPC) && !errors.Is(err, db.ErrNoSpace) {
		t.Errorf("%s: the backup ends with %v", what, err)
	}
	fault.Heal()
	_, listErr := mem.List("b")
	f.made = listErr == nil
	if f.made {
		wantStore(t, what+": the backup", mem, "b", want)
	}
	m, err := readModel(s)
	must(t, err)
	equal(t, what+": the store", m.String(), want)
	must(t, first(s.Backup(t.Context(), "c")))
	if !f.made {
		must(t, first(s.Backup(t.Context(), "b")))
		if _, err := mem.List("b.partial"); err == nil {
			t.Errorf("%s: what was left is still there", what)
		}
	}
	must(t, s.Close())
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Errorf("%s: left open: %q", what, leaks)
	}
	wantStore(t, what+": the backup after it", mem, "c", want)
}

// waitForHints waits until nothing goes on in the background.
func waitForHints(t *testing.T, mem *vfs.Mem, s *db.Store) {
	t.Helper()
	for begun := time.Now(); ; runtime.Gosched() {
		names, err := mem.List("d")
		must(t, err)
		if !slices.ContainsFunc(s.Log().Segments(), func(sg bitcask.SegmentInfo) bool {
			return sg.Sealed && !slices.Contains(names, strings.Replace(sg.File, ".data", ".hint", 1))
		}) && !slices.Contains(names, "HINT.new") {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("no hints: %q", names)
		}
	}
}

// wantStore opens a store for reading.
func wantStore(t *testing.T, what string, mem *vfs.Mem, dir, want string) {
	t.Helper()
	o := stepOptions(mem, db.SyncAlways)
	o.ReadOnly = true
	s, err := db.Open(dir, o)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("%s: check: %v", what, f) }); err != nil {
		t.Errorf("%s: check: %v", what, err)
	}
	m, err := readModel(s)
	must(t, err)
	equal(t, what, m.String(), want)
	must(t, s.Close())
}
