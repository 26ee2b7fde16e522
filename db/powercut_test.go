package db_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	cutStates = flag.Int("powercut.states", 6, "random states of the disk to open for each file operation")
	cutSeed   = flag.Uint64("powercut.seed", 0, "seed of the power cut test (0: a random one)")
)

// TestPowerCut records a store's life and then, for each operation on files in
// it, opens what a power cut there may leave. The disk keeps what was synced.
// Of the rest it keeps any sectors of any writes, in any order; a file may be
// longer without its bytes; names come and go, each by itself, until their
// directory is synced.
func TestPowerCut(t *testing.T) {
	seed := *cutSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	states := *cutStates
	if testing.Short() {
		states = min(states, 1)
	}
	t.Logf("replay with -powercut.seed %d -powercut.states %d", seed, states)
	for _, sync := range []db.SyncMode{db.SyncAlways, db.SyncNone} {
		t.Run(sync.String(), func(t *testing.T) { powerCuts(t, sync, seed, states) })
	}
}

func powerCuts(t *testing.T, sync db.SyncMode, seed uint64, random int) {
	mem, low := vfs.NewMem(), -1
	if sync == db.SyncNone { // else the store does not even exist
		growManifest(t, mem)
		low = 0
	}
	d := newPlatter(t, mem)
	events, states := recordSteps(t, mem, sync)
	k := &killed{t: t, states: states, low: low, at: low}
	for i, e := range events {
		if e.Op == vfs.OpMark {
			k.mark(e)
			continue
		}
		d.apply(i, e)
		if !changes(e) || testing.Short() && i%10 > 0 {
			continue
		}
		for n := range 4 + random {
			c := &powerCut{rng: rand.New(rand.NewPCG(seed^uint64(i)<<20, uint64(n)))}
			c.names, c.data = chance(n&1), chance(n>>1&1)
			if n >= 4 {
				c.names, c.data = c.rng.Float64(), c.rng.Float64()
			}
			k.what = fmt.Sprintf("power cut %d after event %d, %v", n, i, e)
			k.afterCut(c.leaves(t, d), n%4 == 3)
		}
		if k.low >= 0 {
			k.what = fmt.Sprintf("kill after event %d, %v, then a power cut", i, e)
			k.readThenLose(d, rand.New(rand.NewPCG(seed, uint64(i))))
		}
	}
	t.Logf("%d events, %d states of the store, %d openings", len(events), len(states), k.opened)
}

// changes reports whether an operation changes what a power cut may leave.
func changes(e vfs.Event) bool {
	return e.Op == vfs.OpSync || e.Op == vfs.OpSyncDir || e.Op != vfs.OpOpen && slices.Contains(changingOps, e.Op)
}

func chance(bit int) float64 { return float64(bit) }

// afterCut opens the store, which must need no help, twice: what was seen once
// does not go away.
func (k *killed) afterCut(mem *vfs.Mem, merge bool) {
	k.t.Helper()
	s, err := db.Open("d", stepOptions(mem, db.SyncAlways))
	if k.low < 0 && (errors.Is(err, fs.ErrNotExist) || err != nil) {
		return // no store was promised yet
	}
	k.must("open", err)
	seen := k.compare(s)
	k.must("close", s.Close())
	k.leftovers(mem)
	s, err = db.Open("d", stepOptions(mem, db.SyncAlways))
	k.must("open again", err)
	if k.compare(s) != seen {
		k.t.Fatalf("%s: opened again, the store differs", k.what)
	}
	if merge {
		k.must("merge", mergeEverything(s))
		if k.compare(s) != seen {
			k.t.Fatalf("%s: merged, the store differs", k.what)
		}
	}
	k.must("close", s.Close())
}

// readThenLose opens the store after a kill, which leaves everything to the
// operating system, and then cuts the power: what the open store showed must
// still be there.
func (k *killed) readThenLose(d *platter, rng *rand.Rand) {
	k.t.Helper()
	everything, nothing := &powerCut{rng: rand.New(rand.NewPCG(1, 1)), names: 1, data: 1}, &powerCut{rng: rand.New(rand.NewPCG(1, 1))}
	rec := vfs.NewRecorder(everything.leaves(k.t, d))
	s, err := db.Open("d", stepOptions(rec, db.SyncNone))
	k.must("open", err)
	seen := k.compare(s)
	d = d.clone()
	const often = 4
	what := k.what
	for i, e := range rec.Events() {
		d.apply(i, e)
		if !changes(e) || rng.IntN(often) > 0 {
			continue
		}
		// And while it opens, too.
		k.what = fmt.Sprintf("%s after event %d of opening, %v", what, i, e)
		c := &powerCut{rng: rng, names: rng.Float64(), data: rng.Float64()}
		k.afterCut(c.leaves(k.t, d), false)
	}
	k.what = what
	k.must("close", s.Close())
	s, err = db.Open("d", stepOptions(nothing.leaves(k.t, d), db.SyncNone))
	k.must("open after the cut", err)
	if k.compare(s) != seen {
		k.t.Fatalf("%s: what was seen is gone", k.what)
	}
	k.must("close", s.Close())
}

// growManifest makes a store whose manifest is about to be written anew.
func growManifest(t *testing.T, mem *vfs.Mem) {
	o := stepOptions(mem, db.SyncNone)
	o.NoHints = true
	s, err := db.Open("d", o)
	must(t, err)
	value := make([]byte, 1<<10)
	for i := 0; len(readFiles(t, mem)["MANIFEST"]) < 63<<10; i++ {
		must(t, s.String("large").Put(value))
		if i%100 == 0 {
			must(t, mergeEverything(s))
		}
	}
	_, err = s.Key("large").Delete()
	must(t, err)
	must(t, mergeEverything(s))
	must(t, s.Close())
}

// platter is what the disk and the operating system know of one directory.
type platter struct {
	files   map[int]*plate    // by the recorder's numbers
	current map[string]*plate // names as the operating system has them
	names   map[string]*plate // as synced
	changes []nameChange      // since
}

// plate is one file.
type plate struct {
	synced []byte
	writes []write // since
}

type write struct {
	event int
	data  []byte
	off   int64
	cut   bool // a truncation to off
}

// nameChange is an entry of the directory that changed, or two at once: a
// rename. nil stands for no file.
type nameChange struct {
	event int
	set   map[string]*plate
}

// newPlatter is a disk on which all that mem holds is synced.
func newPlatter(t *testing.T, mem *vfs.Mem) *platter {
	d := &platter{files: map[int]*plate{}, current: map[string]*plate{}, names: map[string]*plate{}}
	for name, b := range readFiles(t, mem) {
		d.current[name] = &plate{synced: b}
	}
	d.names = maps.Clone(d.current)
	return d
}

// readFiles reads all files of the directory, none if it does not exist.
func readFiles(t *testing.T, mem *vfs.Mem) map[string][]byte {
	files := map[string][]byte{}
	names, err := mem.List("d")
	if !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	for _, name := range names {
		f, err := mem.Open(filepath.Join("d", name), vfs.ReadOnly)
		must(t, err)
		n, err := f.Size()
		must(t, err)
		b := make([]byte, n)
		_, err = f.ReadAt(b, 0)
		must(t, errors.Join(err, f.Close()))
		files[name] = b
	}
	return files
}

// clone returns a copy that another recorder writes to.
func (d *platter) clone() *platter {
	copies := map[*plate]*plate{nil: nil}
	of := func(f *plate) *plate {
		if copies[f] == nil && f != nil {
			copies[f] = &plate{synced: f.synced, writes: slices.Clone(f.writes)}
		}
		return copies[f]
	}
	all := func(names map[string]*plate) map[string]*plate {
		c := map[string]*plate{}
		for name, f := range names {
			c[name] = of(f)
		}
		return c
	}
	c := &platter{files: map[int]*plate{}, current: all(d.current), names: all(d.names)}
	for _, change := range d.changes {
		c.changes = append(c.changes, nameChange{event: -1, set: all(change.set)})
	}
	for _, f := range copies {
		for i := range fileWrites(f) {
			f.writes[i].event = -1
		}
	}
	return c
}

func fileWrites(f *plate) []write {
	if f == nil {
		return nil
	}
	return f.writes
}

func (d *platter) apply(i int, e vfs.Event) {
	if e.Err != nil {
		return
	}
	name, to := filepath.Base(e.Name), filepath.Base(e.To)
	change := func(set map[string]*plate) {
		c := nameChange{event: i, set: set}
		c.on(d.current)
		d.changes = append(d.changes, c)
	}
	f := d.files[e.File]
	switch e.Op {
	case vfs.OpOpen, vfs.OpLock, vfs.OpCreate:
		if f = d.current[name]; f == nil {
			f = &plate{}
			change(map[string]*plate{name: f})
		}
		d.files[e.File] = f
	case vfs.OpRemove:
		change(map[string]*plate{name: nil})
	case vfs.OpRename:
		change(map[string]*plate{to: d.current[name], name: nil})
	case vfs.OpWrite:
		f.writes = append(f.writes, write{event: i, data: e.Data[:e.N], off: e.Off})
	case vfs.OpTruncate:
		f.writes = append(f.writes, write{event: i, off: e.Off, cut: true})
	case vfs.OpSync:
		done := 0
		for done < len(f.writes) && f.writes[done].event < e.Covers {
			f.synced = f.writes[done].on(f.synced)
			done++
		}
		f.writes = slices.Clone(f.writes[done:])
	case vfs.OpSyncDir:
		done := 0
		for done < len(d.changes) && d.changes[done].event < e.Covers {
			d.changes[done].on(d.names)
			done++
		}
		d.changes = slices.Clone(d.changes[done:])
	}
}

// on returns b with the write done.
func (w write) on(b []byte) []byte {
	end := int(w.off) + len(w.data)
	if w.cut {
		end = int(w.off)
		b = b[:min(end, len(b))]
	}
	b = append(slices.Clone(b), make([]byte, max(0, end-len(b)))...)
	copy(b[w.off:], w.data)
	return b
}

func (c nameChange) on(names map[string]*plate) {
	for name, file := range c.set {
		if file == nil {
			delete(names, name)
		} else {
			names[name] = file
		}
	}
}

// powerCut decides what is left of what was not synced.
type powerCut struct {
	rng         *rand.Rand
	names, data float64 // how likely a change is kept
}

// leaves returns the file system after the cut.
func (c *powerCut) leaves(t *testing.T, d *platter) *vfs.Mem {
	t.Helper()
	names := maps.Clone(d.names)
	for _, change := range d.changes {
		if c.rng.Float64() < c.names {
			change.on(names)
		}
	}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f, err := mem.Open(filepath.Join("d", name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt(c.bytes(names[name]), 0)
		must(t, errors.Join(err, f.Close()))
	}
	return mem
}

// sector is what a disk writes whole or not at all.
const sector = 512

// bytes is what is left of a file.
func (c *powerCut) bytes(f *plate) []byte {
	b := f.synced
	for _, w := range f.writes {
		if w.cut {
			if c.rng.Float64() < c.data {
				b = w.on(b)
			}
			continue
		}
		for at := 0; at < len(w.data); {
			n := min(sector-(int(w.off)+at)%sector, len(w.data)-at)
			part := write{data: w.data[at : at+n], off: w.off + int64(at)}
			switch p := c.rng.Float64(); {
			case p < c.data:
				b = part.on(b)
			case p < c.data+0.1 && c.data > 0: // the length without the bytes
				b = write{data: make([]byte, 0), off: part.off + int64(n)}.on(b)
			}
			at += n
		}
	}
	return b
}
