package db_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// sinceBase makes a store "d" with sealed and merged segments, an earlier backup "e" of it, and changes after that.
func sinceBase(t *testing.T) (base crash.State, want string) {
	t.Helper()
	mem := vfs.NewMem()
	s := ok[*db.Store](t)(db.Open("d", stepOptions(mem, db.SyncAlways)))
	for i := range 3 {
		partedRound(t, s, "before", i)
	}
	must(t, first(s.Merge(t.Context(), merge.RunOptions{})))
	for i := range 2 {
		partedRound(t, s, "then", i)
	}
	must(t, first(s.Backup(t.Context(), "e")))
	partedRound(t, s, "after", 0)
	m, err := readModel(s)
	must(t, err)
	must(t, s.Close())
	return sinceState(t, mem, "d", "e"), m.String()
}

// sinceState is the state of several directories, by their paths.
func sinceState(t *testing.T, mem *vfs.Mem, dirs ...string) crash.State {
	t.Helper()
	all := crash.State{}
	for _, dir := range dirs {
		for name, b := range ok[crash.State](t)(crash.ReadState(mem, dir)) {
			all[dir+"/"+name] = b
		}
	}
	return all
}

// sinceMem is the inverse of sinceState.
func sinceMem(t *testing.T, all crash.State) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	for name, b := range all {
		must(t, mem.MkdirAll(strings.Split(name, "/")[0]))
		f := ok[vfs.File](t)(mem.Open(name, vfs.Create))
		_, err := f.WriteAt(b, 0)
		must(t, errors.Join(err, f.Sync(), f.Close()))
	}
	return mem
}

// TestBackupSince: a backup with the help of an earlier one shares with it what both have, copies nothing of that, and
// is right; so is the next one, and the first one stays as it was, whatever becomes of the others.
func TestBackupSince(t *testing.T) {
	base, want := sinceBase(t)
	mem := sinceMem(t, base)
	fault := vfstest.NewFault(mem)
	s := ok[*db.Store](t)(db.Open("d", stepOptions(fault, db.SyncAlways)))
	r := ok[bitcask.BackupResult](t)(s.BackupSince(t.Context(), "b", "e"))
	if r.Reused < 2 || r.Reused+r.Linked+r.Copied != r.Segments || r.Damaged > 0 || r.BytesReused == 0 {
		t.Errorf("%+v", r)
	}
	wantStore(t, "the backup", mem, "b", want)
	must(t, first(s.Merge(t.Context(), merge.RunOptions{All: true})))
	partedRound(t, s, "more", 0)
	again := ok[bitcask.BackupResult](t)(s.BackupSince(t.Context(), "c", "b"))
	if again.Reused != 0 || again.Damaged > 0 {
		t.Errorf("after a merge of everything: %+v", again)
	}
	m, err := readModel(s)
	must(t, err)
	wantStore(t, "the next backup", mem, "c", m.String())
	third := ok[bitcask.BackupResult](t)(s.BackupSince(t.Context(), "g", "c"))
	if third.Reused == 0 {
		t.Errorf("when nothing was merged: %+v", third)
	}
	must(t, s.Close())
	for name, b := range sinceState(t, mem, "e") {
		if string(base[name]) != string(b) {
			t.Errorf("%s has changed", name)
		}
	}
	for name := range ok[crash.State](t)(crash.ReadState(mem, "e")) { // the earlier one is not needed
		must(t, mem.Remove("e/"+name))
	}
	wantStore(t, "the backup without the earlier one", mem, "b", want)
}

// TestBackupSinceDamaged: whatever bit is flipped in the earlier backup, the new one is right, or it is not made
// because the earlier one's manifest is damaged.
func TestBackupSinceDamaged(t *testing.T) {
	r := chance.Rand(t)
	base, want := sinceBase(t)
	var names []string
	for name := range base {
		if strings.HasPrefix(name, "e/") && len(base[name]) > 0 {
			names = append(names, name)
		}
	}
	flips, damaged, refused := 60, 0, 0
	if testing.Short() {
		flips = 20
	}
	for range flips {
		name := names[r.IntN(len(names))]
		b := base[name]
		at, bit := r.IntN(len(b)), byte(1)<<r.IntN(8)
		b[at] ^= bit
		mem := sinceMem(t, base)
		b[at] ^= bit
		what := fmt.Sprintf("%s, bit %02x of byte %d", name, bit, at)
		s := ok[*db.Store](t)(db.Open("d", stepOptions(mem, db.SyncAlways)))
		result, err := s.BackupSince(t.Context(), "b", "e")
		must(t, s.Close())
		if strings.HasSuffix(name, "MANIFEST") && err != nil {
			refused++
			if _, err := mem.List("b"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: it is there after an error: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		damaged += result.Damaged
		wantStore(t, what, mem, "b", want)
	}
	t.Logf("%d damaged segments were found, %d manifests refused", damaged, refused)
}

// TestBackupSinceFails lets each operation on files fail: there is a backup that is right, or none, and the earlier one
// and the store are as they were.
func TestBackupSinceFails(t *testing.T) {
	base, want := sinceBase(t)
	run := func(rule *vfstest.Rule) (ops int) {
		mem := sinceMem(t, base)
		fault := vfstest.NewFault(mem)
		s := ok[*db.Store](t)(db.Open("d", stepOptions(fault, db.SyncAlways)))
		waitForHints(t, mem, s)
		before := fault.Ops()
		if rule != nil {
			fault.Inject(*rule)
		}
		_, err := s.BackupSince(t.Context(), "b", "e")
		ops = fault.Ops() - before
		what := fmt.Sprintf("%+v", rule)
		if err != nil && (rule == nil || !errors.Is(err, rule.Err)) {
			t.Errorf("%s: %v", what, err)
		}
		fault.Heal()
		if _, listErr := mem.List("b"); listErr == nil {
			wantStore(t, what, mem, "b", want)
		} else if err == nil {
			t.Errorf("%s: no error, and no backup: %v", what, listErr)
		}
		must(t, first(s.BackupSince(t.Context(), "c", "e")))
		m, err := readModel(s)
		must(t, err)
		equal(t, what+": the store", m.String(), want)
		must(t, s.Close())
		for name, b := range sinceState(t, mem, "e") {
			if string(base[name]) != string(b) {
				t.Errorf("%s: %s has changed", what, name)
			}
		}
		if leaks := mem.Leaks(); len(leaks) > 0 {
			t.Errorf("%s: left open: %q", what, leaks)
		}
		wantStore(t, what+": the backup after it", mem, "c", want)
		return ops
	}
	ops := run(nil)
	for _, n := range budget.Some(t, numbers(ops), ops/9) {
		for _, how := range []vfstest.Rule{{Err: syscall.EIO}, {Err: syscall.EIO, Applied: true}, {Err: syscall.ENOSPC, Sticky: true, Partial: 7}} {
			how.Skip = n
			run(&how)
		}
	}
}

// TestBackupSinceAnother: what is no earlier backup of this store is refused, before anything is made; a copy of the
// directory that went on by itself is related, and lends nothing that differs.
func TestBackupSinceAnother(t *testing.T) {
	base, _ := sinceBase(t)
	mem := sinceMem(t, base)
	s := ok[*db.Store](t)(db.Open("d", stepOptions(mem, db.SyncAlways)))
	other := ok[*db.Store](t)(db.Open("other", seam.With(&db.Options{}, seam.Options{FS: mem})))
	must(t, other.Close())
	for earlier, want := range map[string]error{"other": bitcask.ErrForeign, "nothing": fs.ErrNotExist} {
		if _, err := s.BackupSince(t.Context(), "b", earlier); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", earlier, err, want)
		}
		for _, name := range []string{"b", "b.partial"} {
			if _, err := mem.List(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("with %s: %s is there: %v", earlier, name, err)
			}
		}
	}
	must(t, s.Close())
	// Both go on by the same steps, with other keys.
	for _, dir := range []string{"d", "twin"} {
		if dir == "twin" {
			must(t, mem.MkdirAll("twin"))
			for name, b := range base {
				if rest, in := strings.CutPrefix(name, "d/"); in {
					f := ok[vfs.File](t)(mem.Open("twin/"+rest, vfs.Create))
					_, err := f.WriteAt(b, 0)
					must(t, errors.Join(err, f.Sync(), f.Close()))
				}
			}
		}
		s := ok[*db.Store](t)(db.Open(dir, stepOptions(mem, db.SyncAlways)))
		partedRound(t, s, dir[:1], 0)
		partedRound(t, s, dir[:1], 1)
		must(t, s.Close())
	}
	s = ok[*db.Store](t)(db.Open("d", stepOptions(mem, db.SyncAlways)))
	m, err := readModel(s)
	must(t, err)
	must(t, first(s.BackupSince(t.Context(), "b", "twin")))
	must(t, s.Close())
	wantStore(t, "with a twin", mem, "b", m.String())
}
