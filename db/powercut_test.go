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
	cutStates = flag.Int("powercut.states", 12, "random states of the disk to open for each file operation")
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
	events, states := recordSteps(t, sync)
	k := &killed{t: t, states: states, low: -1, at: -1}
	d := newPlatter()
	for i, e := range events {
		if e.Op == vfs.OpMark {
			k.mark(e)
			continue
		}
		d.apply(i, e)
		// A sync that has ended is what a state after it is about.
		if e.Op == vfs.OpRead || e.Op == vfs.OpList || e.Op == vfs.OpSize || e.Op == vfs.OpOpen || e.Op == vfs.OpClose {
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
	}
	t.Logf("%d events, %d states of the store, %d openings", len(events), len(states), k.opened)
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

// platter is what the disk and the operating system know of one directory.
type platter struct {
	files   map[int]*plate
	names   map[string]int // as synced
	renames []nameChange   // since
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

// nameChange is an entry of the directory that changed.
type nameChange struct {
	event int
	set   map[string]int // names to files, 0: none; a rename changes two at once
}

func newPlatter() *platter { return &platter{files: map[int]*plate{}, names: map[string]int{}} }

func (d *platter) apply(i int, e vfs.Event) {
	if e.Err != nil {
		return
	}
	f := d.files[e.File]
	if f == nil && e.File > 0 {
		f = &plate{}
		d.files[e.File] = f
	}
	name, to := filepath.Base(e.Name), filepath.Base(e.To)
	switch e.Op {
	case vfs.OpCreate, vfs.OpLock:
		d.renames = append(d.renames, nameChange{i, map[string]int{name: e.File}})
	case vfs.OpRemove:
		d.renames = append(d.renames, nameChange{i, map[string]int{name: 0}})
	case vfs.OpRename:
		d.renames = append(d.renames, nameChange{i, map[string]int{to: e.File, name: 0}})
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
		for done < len(d.renames) && d.renames[done].event < e.Covers {
			d.renames[done].on(d.names)
			done++
		}
		d.renames = slices.Clone(d.renames[done:])
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

func (c nameChange) on(names map[string]int) {
	for name, file := range c.set {
		if file == 0 {
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
	for _, change := range d.renames {
		if c.rng.Float64() < c.names {
			change.on(names)
		}
	}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f, err := mem.Open(filepath.Join("d", name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt(c.bytes(d.files[names[name]]), 0)
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
