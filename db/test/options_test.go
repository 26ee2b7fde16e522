package db_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

var (
	scriptSteps = flag.Int("script.steps", 100_000, "steps of the option set test, over all sets")
	scriptSeed  = flag.Uint64("script.seed", 0, "seed of the option set test (0: a random one)")
	scriptFile  = flag.String("script.file", "", "a script that a failure left: only this is replayed")
)

// optionSet is one way to run a store: none may change the results.
type optionSet struct {
	name    string
	onDisk  bool
	change  func(o *db.Options)
	through func(r *scriptRun) // how an operation reaches the store; nil: by a handle of the store
	after   func(r *scriptRun) // comes after a step
	every   int                // so many steps lie between two calls of after; 0 stands for 1
}

var optionSets = []*optionSet{
	{name: "plain"},
	{name: "sync always", change: func(o *db.Options) { o.Sync = db.SyncAlways }},
	{name: "sync every 20 ms", change: func(o *db.Options) { o.Sync, o.SyncEvery = db.SyncInterval, 20*time.Millisecond }},
	{name: "one-record segments", change: tinySegments},
	{name: "one segment", change: func(o *db.Options) { o.SegmentSize = 64 << 20 }},
	{name: "no hints", change: noHints},
	{name: "no INDEX", change: noIndex},
	{name: "expiry every 20 ms", change: func(o *db.Options) { o.ExpireEvery = 20 * time.Millisecond }},
	{name: "everything due reaped", after: expireStep},
	{name: "rotated", after: rotateStep},
	{name: "merged", after: mergeStep(false)},
	{name: "all merged", after: mergeStep(true), every: 4},
	{name: "all merged, one-record segments", change: tinySegments, after: mergeStep(true), every: 15},
	{name: "merge beside", through: besideMerge, after: func(r *scriptRun) { r.waitForMerge() }},
	{name: "merge in the background", change: func(o *db.Options) { o.NoMerge = false }},
	{name: "reopened", after: reopenStep(false, untouched)},
	{name: "reopened, no hints, no INDEX", change: noHintsNoIndex, after: reopenStep(false, untouched), every: 3},
	{name: "reopened without the TTL file", after: reopenStep(false, withoutFiles(bitcask.TTLName))},
	{name: "reopened with an older TTL file", after: reopenStep(false, olderTTL)},
	{name: "reopened without the INDEX", after: reopenStep(false, withoutFiles(bitcask.IndexFile)), every: 3},
	{name: "reopened, INDEX loaded on demand", change: loaded(seam.LoadOnDemand), after: reopenStep(false, untouched)},
	{name: "reopened, INDEX loaded late", change: loaded(seam.LoadLate), after: reopenStep(false, untouched)},
	{name: "killed after the INDEX was saved, INDEX loaded on demand", change: loaded(seam.LoadOnDemand), after: saveIndexStep},
	{name: "reopened without hints", change: noIndex, after: reopenStep(false, withoutFiles("*.hint")), every: 3},
	{name: "killed", after: reopenStep(true, untouched), every: 2},
	{name: "killed, torn tail", change: noIndex, after: reopenStep(true, tornTail), every: 3},
	{name: "killed after the INDEX was saved", after: saveIndexStep},
	{name: "killed after everything was merged, one-record segments", change: tinySegments, after: killMergedStep, every: 25},
	{name: "salvaged", after: salvageStep, every: 5},
	{name: "backed up", after: backupStep, every: 5},
	{name: "read beside", after: readerStep, every: 3},
	{name: "on disk, mapped", onDisk: true},
	{name: "on disk, pread", onDisk: true, change: func(o *db.Options) { seam.Of(o).NoMapping = true }},
	{name: "on disk, merged, one-record segments", onDisk: true, change: tinySegments, after: mergeStep(false), every: 5},
	{name: "on disk, reopened", onDisk: true, after: reopenStep(false, untouched), every: 5},
	{name: "on disk, killed", onDisk: true, after: reopenStep(true, untouched), every: 20},
	{name: "in Update", through: inUpdate},
	{name: "in UpdateKeys", through: inUpdateKeys},
	{name: "in Begin and End", through: inBegin},
	{name: "done, taken back and done again", through: doneTwice},
	{name: "failed first", through: failedFirst},
	{name: "renamed there and back", after: eachKey(renamed)},
	{name: "copied there and back", after: eachKey(copied)},
	{name: "dumped and restored", after: eachKey(restored)},
	{name: "namespaces swapped there and back", after: swapStep},
}

func noIndex(o *db.Options)        { seam.Of(o).NoIndex = true }
func noHintsNoIndex(o *db.Options) { seam.Of(o).NoHints, seam.Of(o).NoIndex = true, true }
func loaded(when seam.Load) func(*db.Options) {
	return func(o *db.Options) { seam.Of(o).Load = when }
}

func tinySegments(o *db.Options) { o.SegmentSize = 1 } // the lowest there is

// TestOptionSets replays the same scripts under every option set and compares
// what each step returns with the model, and so with every other set. A script
// that fails is made as short as it goes and kept.
func TestOptionSets(t *testing.T) {
	const length = 500 // of a script
	share := longTests.Start(t, len(optionSets)-1, "script.seed", "script.steps", "script.file")
	steps, seed := *scriptSteps/len(optionSets), chance.Draw(*scriptSeed)
	if testing.Short() {
		steps = 100
	}
	var scripts []script
	for n := 0; n < steps; n += length {
		scripts = append(scripts, newScript(seed+uint64(n), min(length, steps-n)))
	}
	if *scriptFile != "" {
		s, err := readScript(*scriptFile)
		must(t, err)
		scripts = []script{s}
	}
	t.Logf("%d steps: %d option sets, %d steps each; replay with -script.seed %d -script.steps %d", steps*len(optionSets), len(optionSets), steps, seed, steps*len(optionSets))
	want := make([]string, len(scripts))
	for i, s := range scripts {
		want[i] = optionSets[0].verify(t, s)
	}
	for _, set := range optionSets[1:] {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			part := share.Part(t, 1)
			defer part.End()
			for i, s := range scripts {
				if !part.Take(i, len(scripts)) {
					continue
				}
				if got := set.verify(t, s); got != want[i] {
					t.Fatalf("the script ends with another state than under %q:\n%s", optionSets[0].name, differences(got, want[i]))
				}
			}
		})
	}
}

// verify replays a script; one that fails it shrinks and keeps.
func (set *optionSet) verify(t *testing.T, s script) (state string) {
	t.Helper()
	state, failure := set.replay(t, s)
	if failure == "" {
		return state
	}
	const tries = 400
	s = s.shrink(tries, func(s script) bool {
		_, again := set.replay(t, s)
		if again != "" {
			failure = again
		}
		return again != ""
	})
	f, err := os.CreateTemp("", "stave-script-")
	must(t, err)
	must(t, f.Close())
	must(t, s.writeFile(f.Name()))
	t.Fatalf("%s: %s\n%d steps are kept: go test ./db/test -run 'TestOptionSets/%s' -script.file %s",
		set.name, failure, len(s), strings.ReplaceAll(set.name, " ", "_"), f.Name())
	return ""
}

// direct does an operation with a handle of the store.
func direct(r *scriptRun) { r.storeOperation() }

// in does an operation in a transaction.
func (r *scriptRun) in(tx *db.Tx) error {
	ns := r.rng.IntN(modelNamespaces)
	in, err := tx.Use(ns)
	r.must("use", err)
	x := &modelOp{modelTest: r.modelTest, keys: in, space: r.model[ns], ns: ns, now: tx.Now()}
	x.run(false)
	return nil
}

func inUpdate(r *scriptRun) { r.must("update", r.store.Update(r.in)) }

func inUpdateKeys(r *scriptRun) {
	r.narrow = true
	r.must("update keys", r.store.UpdateKeys(modelNames, r.in))
	r.narrow = false
}

func inBegin(r *scriptRun) {
	tx, err := r.store.Begin(true)
	r.must("begin", err)
	ticket, err := tx.End(r.in(tx))
	r.must("end", err)
	r.must("wait until it is durable", r.store.WaitDurable(ticket))
}

func doneTwice(r *scriptRun) {
	r.must("update", r.store.Update(func(tx *db.Tx) error {
		before, saved := r.model.clone(), tx.Savepoint()
		if err := r.in(tx); err != nil {
			return err
		}
		r.note("taken back")
		tx.RollbackTo(saved)
		r.model = before
		r.again()
		return r.in(tx)
	}))
}

func failedFirst(r *scriptRun) {
	before := r.model.clone()
	err := r.store.Update(func(tx *db.Tx) error { return errors.Join(r.in(tx), errModel) })
	if !errors.Is(err, errModel) {
		r.failf("an Update that fails: %v", err)
	}
	r.note("failed")
	r.model = before
	r.again()
	direct(r)
}

// besideMerge begins a merge of everything and does an operation meanwhile.
func besideMerge(r *scriptRun) {
	done := make(chan error, 1)
	r.merge = done
	go func() { done <- mergeEverything(r.store) }()
	direct(r)
}

func mergeStep(all bool) func(r *scriptRun) {
	return func(r *scriptRun) {
		_, err := r.store.Merge(context.Background(), merge.RunOptions{All: all})
		r.must("merge", err)
	}
}

func expireStep(r *scriptRun) {
	_, err := r.store.Expire(time.Hour, 1<<30)
	r.must("expire", err)
}

func rotateStep(r *scriptRun) { r.must("rotate", r.store.Log().Rotate()) }

// reopenStep closes the store, or kills it, does something to its files, and
// opens it again.
func reopenStep(kill bool, between func(*scriptRun, []bitcask.SegmentInfo)) func(r *scriptRun) {
	return func(r *scriptRun) {
		r.reopenAfter(kill, func(killed []bitcask.SegmentInfo) { between(r, killed) })
	}
}

func untouched(*scriptRun, []bitcask.SegmentInfo) {}

func tornTail(r *scriptRun, killed []bitcask.SegmentInfo) { r.tearTail(killed) }

// without takes files away.
func withoutFiles(pattern string) func(*scriptRun, []bitcask.SegmentInfo) {
	return func(r *scriptRun, _ []bitcask.SegmentInfo) {
		names, err := r.disk.fs().List(r.disk.path())
		r.must("list", err)
		for _, name := range names {
			if matches, _ := filepath.Match(pattern, name); matches {
				r.must("remove", r.disk.fs().Remove(filepath.Join(r.disk.path(), name)))
			}
		}
	}
}

// olderTTL puts the TTL file of the opening before the last in place.
func olderTTL(r *scriptRun, _ []bitcask.SegmentInfo) {
	now := r.readFile(filepath.Join(r.disk.path(), bitcask.TTLName))
	if r.old != nil {
		withoutFiles(bitcask.TTLName)(r, nil)
		f, err := r.disk.fs().Open(filepath.Join(r.disk.path(), bitcask.TTLName), vfs.Create)
		r.must("create", err)
		_, err = f.WriteAt(r.old, 0)
		r.must("write", errors.Join(err, f.Close()))
	}
	r.old = now
}

func saveIndexStep(r *scriptRun) {
	r.must("save the INDEX", r.store.Log().SaveIndex())
	r.reopenAfter(true, func([]bitcask.SegmentInfo) {})
}

func killMergedStep(r *scriptRun) {
	mergeStep(true)(r)
	r.reopenAfter(true, r.tearTail)
}

// salvageStep goes on with what a repair makes of the store.
func salvageStep(r *scriptRun) {
	const out = "salvaged"
	mem := r.disk.(*memoryDisk)
	r.reopenAfter(false, func([]bitcask.SegmentInfo) {
		o := r.options()
		result, err := repair.Salvage(context.Background(), mem.path(), out, seam.With(&bitcask.Options{SegmentSize: o.SegmentSize}, seam.Options{FS: mem.mem}))
		r.must("salvage", err)
		if len(result.Lost) > 0 || result.Mended > 0 {
			r.failf("a sound store was repaired: %+v", result)
		}
		state, err := crash.ReadState(mem.mem, out)
		r.must("read", err)
		mem.mem, err = state.Mem(mem.path())
		r.must("write", err)
	})
}

// backupStep goes on with a backup of the store.
func backupStep(r *scriptRun) {
	const out = "backed up"
	mem := r.disk.(*memoryDisk)
	_, err := r.store.Backup(r.t.Context(), out)
	r.must("backup", err)
	r.reopenAfter(false, func([]bitcask.SegmentInfo) {
		state, err := crash.ReadState(mem.mem, out)
		r.must("read", err)
		mem.mem, err = state.Mem(mem.path())
		r.must("write", err)
	})
}

func readerStep(r *scriptRun) { r.compareReader("after a step", r.model.String()) }

// eachKey calls fn for the keys of one namespace and a name that none has.
func eachKey(fn func(r *scriptRun, s *db.Store, key, free string)) func(r *scriptRun) {
	return func(r *scriptRun) {
		s, err := r.store.Use(r.rng.IntN(modelNamespaces))
		r.must("use", err)
		for key := range r.model[s.Namespace()] {
			fn(r, s, key, "a name that is free")
		}
	}
}

func renamed(r *scriptRun, s *db.Store, key, free string) {
	r.must("rename", s.Key(key).Rename(free))
	r.must("rename back", s.Key(free).Rename(key))
}

func copied(r *scriptRun, s *db.Store, key, free string) {
	r.must("copy", s.Key(key).CopyTo(s.Namespace(), free, db.IfAbsent))
	r.must("copy back", s.Key(free).CopyTo(s.Namespace(), key))
	_, err := s.Key(free).Delete()
	r.must("delete", err)
}

func restored(r *scriptRun, s *db.Store, key, _ string) {
	payload, err := s.Key(key).Dump()
	r.must("dump", err)
	at, err := s.Key(key).Deadline()
	r.must("deadline", err)
	var options []db.WriteOption
	if !at.IsZero() {
		options = append(options, db.ExpireAt(at))
	}
	var groups []db.StreamGroupState
	if r.model[s.Namespace()][key].stream != nil {
		infos, err := s.Stream(key).Groups()
		r.must("groups", err)
		for _, info := range infos {
			state, err := s.Stream(key).Group(info.Name).State()
			r.must("state", err)
			groups = append(groups, state)
		}
	}
	r.must("restore", s.Key(key).Restore(payload, options...))
	for _, want := range groups { // a payload has all of a group but when its consumers were active: that comes back another way
		group := s.Stream(key).Group(want.Name)
		got, err := group.State()
		r.must("restored state", err)
		for i := range min(len(got.Consumers), len(want.Consumers)) {
			got.Consumers[i].Active = want.Consumers[i].Active
		}
		if !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("%+v, want %+v", got, want)
		}
		r.must("restored group", err)
		_, err = group.Destroy()
		r.must("destroy", err)
		r.must("restore the group", s.Stream(key).RestoreGroup(want))
	}
}

func swapStep(r *scriptRun) {
	a, b := r.rng.IntN(modelNamespaces), r.rng.IntN(modelNamespaces)
	r.must("swap", r.store.Swap(a, b))
	r.must("swap back", r.store.Swap(b, a))
}
