package db_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	crashRandom = flag.Int("crash.random", 50, "random power cuts after each file operation, where there are too many for all of them")
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of the power cuts (0: a random one)")
	crashReplay = flag.String("crash.replay", "", "a directory that a failure left: only the state in it is opened")
)

// TestPowerCut records what workloads do to their files and then opens every state that a power cut
// after each operation may leave: synced bytes, and of the rest any sectors of any writes, files
// longer without their bytes, names that come and go (internal/test/crash has the model).
func TestPowerCut(t *testing.T) {
	if *crashReplay != "" {
		replayCut(t, *crashReplay)
		return
	}
	seed := chance.Draw(*crashSeed)
	t.Logf("-crash.seed %d -crash.random %d", seed, *crashRandom)
	var total crashCount
	profiles := []crash.Profile{crash.Weak, crash.Ordered}
	share := longTests.Start(t, len(crashWorkloads)*len(crashModes)*len(profiles), "crash.seed", "crash.random")
	t.Run("all", func(t *testing.T) {
		for _, w := range crashWorkloads {
			for _, mode := range crashModes {
				for _, disk := range profiles {
					t.Run(fmt.Sprintf("%s/%v/%v", w.name, mode, disk), func(t *testing.T) {
						t.Parallel()
						c := newPowerCuts(t, w, mode, disk, seed)
						c.run(share.Part(t, 10))
						total.add(c)
					})
				}
			}
		}
	})
	t.Logf("power cuts: %d distinct states of the disk, %d openings, %d of them after a second cut, %d after one that failed", total.distinct.Load(), total.opened.Load(), total.nested.Load(), total.failed.Load())
}

// crashMode is how commits get to the disk.
type crashMode struct {
	sync   db.SyncMode
	copies seam.Copies
}

var crashModes = []crashMode{{sync: db.SyncAlways}, {db.SyncNone, seam.CopiesOff}, {db.SyncNone, seam.CopiesOn}}

func (m crashMode) String() string {
	if m.copies == seam.CopiesOn {
		return m.sync.String() + ", copied"
	}
	return m.sync.String()
}

type crashCount struct{ distinct, opened, nested, failed atomic.Int64 }

func (n *crashCount) add(c *powerCuts) {
	n.distinct.Add(int64(len(c.seen)))
	n.opened.Add(int64(c.opened))
	n.nested.Add(int64(c.again))
	n.failed.Add(int64(c.failed))
}

// powerCuts cuts the power throughout one workload.
type powerCuts struct {
	*killed
	workload string
	profile  crash.Profile
	events   []vfstest.Event
	before   crash.State // of the disk, before the events
	first    int         // the state of the store that was promised before them; -1: none
	seed     uint64
	rng      *rand.Rand
	sums     maphash.Seed
	seen     map[uint64]int // state of the disk: the promises when it was opened last
	state    crash.State    // being opened
	again    int            // openings after a second cut
	failed   int            // openings that failed half-way
}

func newPowerCuts(t *testing.T, w crashWorkload, mode crashMode, disk crash.Profile, seed uint64) *powerCuts {
	mem := vfs.NewMem()
	c := &powerCuts{
		workload: w.name, profile: disk, before: crash.State{}, first: -1, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)),
		sums: maphash.MakeSeed(), seen: map[uint64]int{},
	}
	if w.prepare != nil {
		w.prepare(t, mem)
		c.first = 0
		var err error
		c.before, err = crash.ReadState(mem, "d")
		must(t, err)
	}
	run := &stepWorkload{t: t, sync: mode.sync, copies: mode.copies, rec: vfstest.NewRecorder(mem), change: w.change}
	w.run(run)
	c.events = run.rec.Events()
	c.killed = &killed{t: t, states: run.states, change: w.change}
	return c
}

// run opens what power cuts may leave; a sample of it with -short.
func (c *powerCuts) run(cuts *budget.Part) {
	defer cuts.End()
	defer c.saveFailure()
	share := 1.0
	if testing.Short() {
		share = 0.004
	}
	n := 0
	c.each(func(i int, d *crash.Disk, keep crash.Choice) {
		n++
		if c.rng.Float64() < share && cuts.Take(i, len(c.events)) {
			c.cut(i, d, keep)
		}
	})
	c.t.Logf("%d operations, %d states of the store, %d power cuts, %d distinct states of the disk opened", len(c.events), len(c.states), n, len(c.seen))
}

// each calls fn for every cut: after each operation that added something to be
// lost, and after each promise, with the disk as it is then.
func (c *powerCuts) each(fn func(i int, d *crash.Disk, keep crash.Choice)) {
	d := crash.NewDisk("d", c.before)
	k := c.killed
	k.low, k.at = c.first, c.first
	for i, e := range c.events {
		rng := rand.New(rand.NewPCG(c.seed, uint64(i)))
		fresh := d.Apply(i, e)
		if e.Op == vfstest.OpMark {
			before := k.promises()
			if k.mark(e); k.promises() == before {
				continue
			}
		} else if fresh == 0 {
			continue
		}
		for keep := range crash.Choices(d.Units(), fresh, *crashRandom, rng) {
			fn(i, d, keep)
		}
	}
}

// cut opens what a cut leaves, unless that has been done.
func (c *powerCuts) cut(i int, d *crash.Disk, keep crash.Choice) {
	state := d.Cut(c.profile, keep)
	sum := state.Sum(c.sums)
	if promised, seen := c.seen[sum]; seen && promised >= c.promises() {
		return
	}
	c.seen[sum] = c.promises()
	c.what = fmt.Sprintf("cut after event %d, %v, keeping %v", i, c.events[i], keep)
	const often = 50
	if c.rng.IntN(often) == 0 {
		c.nested(state)
		c.failing(state)
		c.readThenLose(d)
	}
	c.open(state, c.rng.IntN(8) == 0)
}

func (c *powerCuts) open(state crash.State, thorough bool) {
	c.t.Helper()
	c.afterCut(c.mem(state), thorough)
}

// afterCut opens the store, which must need no help. With thorough it opens it again, without
// INDEX, merges it and opens it once more: what was seen once does not go away.
func (k *killed) afterCut(mem *vfs.Mem, thorough bool) {
	k.t.Helper()
	o := k.options(mem, db.SyncAlways)
	seam.Of(o).Load = eitherLoad(k.opened)
	s, err := db.Open("d", o)
	k.must("open", err)
	seen := k.compare(s)
	k.must("close", s.Close())
	k.leftovers(mem)
	k.verifyBackups(mem)
	if !thorough {
		return
	}
	for _, noIndex := range []bool{true, false} {
		o := k.options(mem, db.SyncAlways)
		seam.Of(o).NoIndex, seam.Of(o).Load = noIndex, seam.LoadOnDemand
		s, err = db.Open("d", o)
		k.must("open again", err)
		k.same(s, seen)
		k.must("merge", mergeEverything(s))
		k.same(s, seen)
		k.must("close", s.Close())
	}
}

func (k *killed) same(s *db.Store, seen string) {
	k.t.Helper()
	if got := k.compare(s); got != seen {
		k.t.Fatalf("%s: what was seen is gone\n%s", k.what, differences(got, seen))
	}
}

// loadedLater are options of a store that does as much as it can after Open.
func (c *powerCuts) loadedLater(fsys vfs.FS, sync db.SyncMode) *db.Options {
	o := c.options(fsys, sync)
	if c.rng.IntN(4) > 0 {
		seam.Of(o).Load = seam.LoadOnDemand
	}
	return o
}

// nested cuts the power again while the store is opened after a cut.
func (c *powerCuts) nested(state crash.State) {
	rec := vfstest.NewRecorder(c.mem(state))
	s, err := db.Open("d", c.loadedLater(rec, db.SyncAlways))
	c.must("open", err)
	c.must("close", s.Close())
	d := crash.NewDisk("d", state)
	what := c.what
	const few = 4
	for i, e := range rec.Events() {
		fresh := d.Apply(i, e)
		if fresh == 0 {
			continue
		}
		n := 0
		for range crash.Choices(d.Units(), fresh, 0, c.rng) {
			n++
		}
		for keep := range crash.Choices(d.Units(), fresh, 0, c.rng) {
			if c.rng.IntN(n) >= few {
				continue
			}
			c.what = fmt.Sprintf("%s, opened, then cut after %d (%v) with %v", what, i, e, keep)
			c.open(d.Cut(c.profile, keep), false)
			c.again++
		}
	}
	c.what = what
}

// failing lets operations fail while the store is opened after a cut, one at a time: if it opens all the same its
// content is right, and the next opening always needs no help.
func (c *powerCuts) failing(state crash.State) {
	count := vfstest.NewFault(c.mem(state))
	s, err := db.Open("d", c.options(count, db.SyncAlways))
	c.must("open", err)
	ops := count.Ops()
	c.must("close", s.Close())
	what := c.what
	const few = 4
	for range few {
		n := c.rng.IntN(ops)
		c.what = fmt.Sprintf("%s, operation %d of opening it fails", what, n)
		mem := c.mem(state)
		fault := vfstest.NewFault(mem, vfstest.Rule{Skip: n, Err: syscall.EIO})
		s, err := db.Open("d", c.options(fault, db.SyncAlways))
		if err == nil {
			if fault.Failed() > 0 { // it could do without
				c.compare(s)
			}
			err = s.Close()
		}
		if err != nil && !errors.Is(err, syscall.EIO) {
			c.t.Fatalf("%s: %v", c.what, err)
		}
		if leaks := mem.Leaks(); len(leaks) > 0 {
			c.t.Fatalf("%s: left open: %q", c.what, leaks)
		}
		c.afterCut(mem, false)
		c.failed++
	}
	c.what = what
}

func (c *powerCuts) mem(state crash.State) *vfs.Mem {
	c.state = state
	mem, err := state.Mem("d")
	must(c.t, err)
	return mem
}

// readThenLose opens the store after a kill, which leaves everything to the
// operating system, and then cuts the power: what the open store showed must
// still be there.
func (c *powerCuts) readThenLose(d *crash.Disk) {
	rec := vfstest.NewRecorder(c.mem(d.Cut(c.profile, crash.All(d.Units()))))
	s, err := db.Open("d", c.loadedLater(rec, db.SyncNone))
	c.must("open after a kill", err)
	seen := c.compare(s)
	d = d.Clone()
	for i, e := range rec.Events() {
		d.Apply(i, e)
	}
	c.must("close", s.Close())
	s, err = db.Open("d", c.options(c.mem(d.Cut(c.profile, crash.Choice{})), db.SyncNone))
	c.must("open after a kill, an opening and a cut", err)
	c.same(s, seen)
	c.must("close", s.Close())
}

// crashCase is what a saved state needs to be judged again.
type crashCase struct {
	Workload string
	Low, At  int // of killed
	Backups  []string
	What     string
}

const crashCaseName = "crash.json"

// saveFailure keeps the state of the disk that was opened last, if the test failed there.
func (c *powerCuts) saveFailure() {
	if !c.t.Failed() || c.state == nil {
		return
	}
	dir, err := os.MkdirTemp("", "stave-crash-")
	must(c.t, err)
	about, err := json.Marshal(crashCase{c.workload, c.low, c.at, c.backups, c.what})
	must(c.t, err)
	must(c.t, os.WriteFile(filepath.Join(dir, crashCaseName), about, 0o600))
	for name, b := range c.state {
		path := filepath.Join(dir, "d", name)
		if strings.HasSuffix(name, "/") {
			must(c.t, os.MkdirAll(path, 0o700))
			continue
		}
		must(c.t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(c.t, os.WriteFile(path, b, 0o600))
	}
	c.t.Logf("the state of the disk is kept: go test ./db/test -run TestPowerCut -crash.replay %s", dir)
}

// replayCut opens a saved state.
func replayCut(t *testing.T, dir string) {
	about, err := os.ReadFile(filepath.Join(dir, crashCaseName))
	must(t, err)
	var saved crashCase
	must(t, json.Unmarshal(about, &saved))
	state := crash.State{}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	for _, path := range paths {
		name, err := filepath.Rel(filepath.Join(dir, "d"), path)
		must(t, err)
		state[name], err = os.ReadFile(path)
		must(t, err)
	}
	for _, w := range crashWorkloads {
		if w.name == saved.Workload {
			c := newPowerCuts(t, w, crashMode{sync: db.SyncNone, copies: seam.CopiesOn}, crash.Weak, 1)
			c.low, c.at, c.backups, c.what = saved.Low, saved.At, saved.Backups, saved.What
			c.open(state, true)
			return
		}
	}
	t.Fatalf("no workload %q", saved.Workload)
}
