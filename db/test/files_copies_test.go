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
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	copiesSeed  = flag.Uint64("copies.seed", 0, "seed of the copies of live directories; 0: another one each time")
	copiesCount = flag.Int("copies.count", 0, "how many copies of each life; 0: a few hundred")
)

// TestCopiesOfALiveDirectory copies the directory of a store file after file while the store is
// written, rotated, merged, closed and opened, as cp -r and its like do: each file is of another
// step. For each copy either Open is refused, with an error that says why, and changes nothing, or
// the store holds what the original held at some moment between the beginning and the end of the
// copy. Later writes to it are not lost.
func TestCopiesOfALiveDirectory(t *testing.T) {
	seed := chance.Draw(*copiesSeed)
	count := *copiesCount
	if count == 0 {
		count = 400
	}
	if testing.Short() {
		count /= 8
	}
	for _, sync := range []db.SyncMode{db.SyncAlways, db.SyncNone} {
		t.Run(sync.String(), func(t *testing.T) {
			t.Parallel()
			c := newCopier(t, sync, seed)
			for range count {
				c.copyAndOpen()
				if t.Failed() {
					t.Fatalf("-copies.seed %d", seed)
				}
			}
			t.Logf("seed %d: %d steps, %d copies opened, %d refused", seed, len(c.steps), c.opened, c.refused)
			if c.opened == 0 || c.refused == 0 {
				t.Error("all of them are refused, or none is")
			}
		})
	}
}

// copier copies the directory of a store whose life has been recorded.
type copier struct {
	t       *testing.T
	rng     *rand.Rand
	steps   []copyStep // the directory after each operation on files
	states  []string   // the store's content after each operation
	opened  int
	refused int
}

// copyStep is a directory at some moment.
type copyStep struct {
	files map[string]string
	acked int // the last state that was acknowledged; -1: none
}

func newCopier(t *testing.T, sync db.SyncMode, seed uint64) *copier {
	w := &stepWorkload{t: t, sync: sync, rec: vfstest.NewRecorder(vfs.NewMem(), changingOps...)}
	w.run()
	c := &copier{t: t, rng: rand.New(rand.NewPCG(seed, uint64(sync))), states: w.states}
	r := newReplayer(t, vfs.NewMem())
	step := copyStep{acked: -1}
	for _, e := range w.rec.Events() {
		if e.Op == vfstest.OpMark {
			step.acked, _ = parseMark(t, e)
			continue
		}
		r.apply(e, e.N)
		if names, err := r.mem.List("."); err == nil && slices.Contains(names, "d") {
			step.files = filesIn(t, r.mem)
			delete(step.files, "LOCK")
			c.steps = append(c.steps, step)
		}
	}
	return c
}

// copyAndOpen makes one copy and sees what becomes of it.
func (c *copier) copyAndOpen() {
	begin := c.rng.IntN(len(c.steps))
	files, end, how := c.assemble(begin)
	first, last := max(c.steps[begin].acked, 0), min(c.steps[end].acked+1, len(c.states)-1)
	what := fmt.Sprintf("steps %d to %d, %s", begin, end, how)
	mem := memOf(c.t, files)
	before := filesIn(c.t, mem)
	s, err := db.Open("d", stepOptions(mem, db.SyncNone))
	if err != nil {
		c.refused++
		c.wantRefusal(what, err)
		after := filesIn(c.t, mem)
		if delete(after, "LOCK"); !maps.Equal(after, before) {
			c.t.Errorf("%s: refused, and changed: %v", what, err)
		}
		return
	}
	c.opened++
	nothingFound(c.t, s)
	m, err := readModel(s)
	must(c.t, err)
	if got := m.String(); c.steps[begin].acked >= 0 && !slices.Contains(c.states[first:last+1], got) {
		c.t.Errorf("%s: it holds none of the states %d to %d; from the first it differs by\n%s",
			what, first, last, differences(got, c.states[first]))
	}
	c.writeOn(what, mem, s)
}

// wantRefusal wants an error that says which file does not fit.
func (c *copier) wantRefusal(what string, err error) {
	c.t.Helper()
	for _, known := range []error{bitcask.ErrMissing, bitcask.ErrManifest} {
		if errors.Is(err, known) {
			return
		}
	}
	if !errors.As(err, new(*bitcask.CorruptError)) && !errors.Is(err, fs.ErrNotExist) {
		c.t.Errorf("%s: refused with %v", what, err)
	}
}

// assemble copies each file as of another step, and returns the last of these.
func (c *copier) assemble(begin int) (files map[string]string, end int, how string) {
	names := slices.Sorted(maps.Keys(c.steps[begin].files))
	for len(names) == 0 { // the directory has just been made
		begin++
		names = slices.Sorted(maps.Keys(c.steps[begin].files))
	}
	at := make(map[string]int, len(names)) // the step as of which a file is copied
	later := min(begin+1+c.rng.IntN(200), len(c.steps)-1)
	if c.rng.IntN(2) == 0 { // who copies twice, or lists late, has them all
		names = slices.Sorted(maps.Keys(c.steps[later].files))
	}
	pace := 1 + c.rng.IntN(30)
	inOrder := func() {
		for i, name := range names {
			at[name] = min(begin+i*pace, len(c.steps)-1)
		}
	}
	switch c.rng.IntN(5) {
	case 0:
		how = "in the order of cp, every " + strconv.Itoa(pace)
		inOrder()
	case 1:
		how = "in reverse, every " + strconv.Itoa(pace)
		slices.Reverse(names)
		inOrder()
	case 2, 3:
		odd := names[c.rng.IntN(len(names))]
		early, late := begin, later
		how = odd + " early"
		if c.rng.IntN(2) == 0 {
			early, late, how = later, begin, odd+" late"
		}
		for _, name := range names {
			at[name] = late
		}
		at[odd] = early
	default:
		how = "in any order"
		for _, name := range names {
			at[name] = begin + c.rng.IntN(later-begin+1)
		}
	}
	files = map[string]string{}
	for _, name := range names {
		end = max(end, at[name])
		if b, ok := c.steps[at[name]].files[name]; ok { // or it has gone before cp came to it
			files[name] = b
		}
	}
	return files, max(end, begin), how
}

// writeOn writes to a copy, ends it by closing or as a kill would, and wants all
// of that to be there, with the INDEX and without.
func (c *copier) writeOn(what string, mem *vfs.Mem, s *db.Store) {
	for i := range 1 + c.rng.IntN(40) {
		key := "new" + strconv.Itoa(i)
		var err error
		switch c.rng.IntN(4) {
		case 0:
			err = s.String(key).Put(filler(30), db.ExpireAt(time.UnixMilli(4e12+int64(i))))
		case 1:
			_, err = s.Keyspace().Delete("k"+strconv.Itoa(i%4), "renamed")
		default:
			err = s.String(key).Put(filler(1 + c.rng.IntN(200)))
		}
		must(c.t, err)
	}
	m, err := readModel(s)
	must(c.t, err)
	want := m.String()
	how := "closed"
	if c.rng.IntN(2) == 0 {
		how = "killed"
		killed := mem.Clone()
		must(c.t, s.Close())
		mem = killed
	} else {
		must(c.t, s.Close())
	}
	for _, noIndex := range []bool{false, true} {
		o := stepOptions(mem.Clone(), db.SyncNone)
		seam.Of(o).NoIndex = noIndex
		s, err := db.Open("d", o)
		if err != nil {
			c.t.Errorf("%s, %s: %v", what, how, err)
			return
		}
		nothingFound(c.t, s)
		m, err := readModel(s)
		must(c.t, err)
		if got := m.String(); got != want {
			c.t.Errorf("%s, %s, opened again, NoIndex %v:\n%s", what, how, noIndex, differences(got, want))
		}
		must(c.t, s.Close())
	}
}

// memOf is a file system with the files of a store.
func memOf(t *testing.T, files map[string]string) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	for name, b := range files {
		f, err := mem.Open(filepath.Join("d", name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt([]byte(b), 0)
		must(t, err)
		must(t, f.Close())
	}
	return mem
}

// TestReadersOfALiveDirectory opens a store for reading while, with each of the
// reader's operations on files, its writer goes on by some of its own: through
// rotations, merges, Close and Open. The reader sees a state that was while it
// opened, whole, and goes on seeing it.
func TestReadersOfALiveDirectory(t *testing.T) {
	seed := chance.Draw(*copiesSeed)
	t.Logf("-copies.seed %d", seed)
	passes := 20
	if testing.Short() {
		passes = 2
	}
	for _, sync := range []db.SyncMode{db.SyncAlways, db.SyncNone} {
		w := &stepWorkload{t: t, sync: sync, rec: vfstest.NewRecorder(vfs.NewMem(), changingOps...)}
		w.run()
		opened := 0
		for pass := range passes {
			l := &liveWriter{t: t, rng: rand.New(rand.NewPCG(seed, uint64(pass))), events: w.rec.Events(), acked: -1}
			l.replayer = newReplayer(t, vfs.NewMem())
			for len(l.events) > 0 {
				l.goOn(1 + l.rng.IntN(12))
				opened += l.read(w.states)
				if t.Failed() {
					return
				}
			}
		}
		t.Logf("%v: %d readers", sync, opened)
	}
}

// liveWriter is a store that is written while it is read.
type liveWriter struct {
	*replayer
	t      *testing.T
	mu     sync.Mutex // guards all: a reader has goroutines
	rng    *rand.Rand
	events []vfstest.Event // still to come
	acked  int
}

// goOn does the next operations.
func (l *liveWriter) goOn(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goOnLocked(n)
}

func (l *liveWriter) goOnLocked(n int) {
	for range min(n, len(l.events)) {
		e := l.events[0]
		l.events = l.events[1:]
		if e.Op == vfstest.OpMark {
			l.acked, _ = parseMark(l.t, e)
		} else {
			l.apply(e, e.N)
		}
	}
}

// read opens and reads the store once.
func (l *liveWriter) read(states []string) (opened int) {
	first, pace := max(l.acked, 0), 1+l.rng.IntN(8)
	there := l.acked >= 0
	fault := vfstest.NewFault(l.mem, vfstest.Rule{Sticky: true, Do: func(vfstest.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.goOnLocked(l.rng.IntN(pace))
	}})
	o := stepOptions(fault, db.SyncNone)
	o.ReadOnly = true
	s, err := db.Open("d", o)
	if err != nil {
		if there || !errors.Is(err, fs.ErrNotExist) {
			l.t.Errorf("after state %d: %v", first, err)
		}
		return 0
	}
	fault.Heal()
	last := min(l.acked+1, len(states)-1)
	m, err := readModel(s)
	must(l.t, err)
	if got := m.String(); there && !slices.Contains(states[first:last+1], got) {
		l.t.Errorf("it sees none of the states %d to %d; from the first it differs by\n%s", first, last, differences(got, states[first]))
	}
	nothingFound(l.t, s)
	l.goOn(l.rng.IntN(20))
	again, err := readModel(s)
	must(l.t, err)
	if got := again.String(); got != m.String() {
		l.t.Errorf("it sees something else now:\n%s", differences(got, m.String()))
	}
	must(l.t, s.Close())
	return 1
}
