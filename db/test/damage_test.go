package db_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	damageStride = flag.Int("damage.stride", 1, "the damage test makes one in so many of the flips, cuts and zeros (default: a sample)")
	damageTurn   = flag.Int("damage.turn", 0, "which of them")
	damageReport = flag.String("damage.table", "", "write what became of the damage to this file, as a table")
)

// TestDamage damages every file of small stores in every way there is (each bit flipped, each length, zeros from each
// byte, sectors swapped, old, or of other files), one fault at a time, and opens the result. Each key is as it was or
// gives an error that names the place; a store that is not opened names it too. Only after the last commit that is
// known to have been on disk may something be missing.
func TestDamage(t *testing.T) {
	victims := newVictims(t)
	table := newDamageTable()
	files := 0
	for _, v := range victims {
		files += len(v.names())
	}
	share := longTests.Start(t, files, "damage.stride", "damage.turn")
	stride, turn := *damageStride, *damageTurn
	if oneIn, first := share.Stride(); oneIn > 1 {
		stride, turn = oneIn, first
	} else if testing.Short() {
		stride *= 240
		turn = int(chance.Draw(0) % uint64(stride))
	}
	t.Logf("-damage.stride %d -damage.turn %d, on stores of %s", stride, turn, sizes(victims))
	t.Run("all", func(t *testing.T) {
		for _, v := range victims {
			for _, file := range v.names() {
				t.Run(v.name+"/"+file, func(t *testing.T) {
					t.Parallel()
					x := &damageTest{T: t, v: v}
					faults, size := share.Part(t, 20), len(v.state[file])
					for kind := range faultKinds {
						for f := range v.faults(kind, file, stride, turn) {
							if faults.Take(int(kind)*size+f.from, int(faultKinds)*size) {
								table.add(v, &f, x.verdict(&f))
							}
						}
					}
					faults.End()
				})
			}
		}
	})
	t.Log("damage: " + table.sum())
	if *damageReport != "" {
		must(t, os.WriteFile(*damageReport, []byte(table.String()), 0o644))
	}
}

// victim is a store to be damaged.
type victim struct {
	name   string
	state  crash.State
	files  []string    // only these are damaged, if there are any named
	before crash.State // the same store some time before
	other  crash.State // another one with the same history
	clean  bool        // it was closed, or idle long enough: nothing may be missing
	boot   vfs.BootID  // of its writer; zero: it is opened after a power cut
	states []string    // the content after each commit; the last is the final one
	holds  *model
	keys   [modelNamespaces][]string // all that there ever were
	active string                    // file with the last commit ...
	last   int                       // ... where that begins, or the first one that was not synced
}

// names lists the files that can be damaged.
func (v *victim) names() []string {
	if v.files != nil {
		return v.files
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.state)), func(name string) bool { return name == "LOCK" })
}

// sealed reports whether a segment has frames and ends with a footer: all but the last and what comes after that.
func (v *victim) sealed(name string) bool { return name < v.active }

// sizes is the length of each store in bytes.
func sizes(victims []*victim) string {
	var list []string
	for _, v := range victims {
		n := 0
		for _, name := range v.names() {
			n += len(v.state[name])
		}
		list = append(list, fmt.Sprintf("%d bytes (%s)", n, v.name))
	}
	return strings.Join(list, ", ")
}

// newVictims makes a store with a merged segment, sealed ones and an active one, with hints and everything else: one
// that was closed, one that was not, and the latter without whatever can be made anew.
func newVictims(t *testing.T) []*victim {
	var lives [2]*damageLife
	for i := range lives {
		synctest.Test(t, func(t *testing.T) { lives[i] = liveThrough(t, db.SyncAlways) })
	}
	l, other := lives[0], lives[1]
	clean := &victim{name: "closed", clean: true, state: l.closed, before: l.before, other: other.closed}
	killed := &victim{name: "not closed", state: l.killed, before: l.before, other: other.killed}
	hinted := &victim{name: "no index", state: withoutIndex(l.killed), before: withoutIndex(l.before), other: withoutIndex(other.killed)} // which spares reading hints
	bare := &victim{name: "only the log", state: onlyLog(l.killed), before: onlyLog(l.before), other: onlyLog(other.killed)}
	alone := &victim{name: "closed, only the log", clean: true, state: onlyLog(l.closed), before: onlyLog(l.before), other: onlyLog(other.closed)}
	alone.files = []string{l.active} // of its other files as much can be said as of those of the others
	victims := []*victim{clean, killed, hinted, bare, alone}
	for _, v := range victims {
		v.of(l)
	}
	// A copy of the live directory, file by file: the log first, then an INDEX that was written after one more commit.
	copied := &victim{name: "copied live", state: l.copied, before: l.before, other: other.killed, boot: l.boot}
	copied.of(l)
	copied.states, copied.holds, copied.last = l.states[:len(l.states)-1], l.held, l.unsynced
	victims = append(victims, copied)
	return append(victims, killedVictims(t, other)...)
}

// of takes from a life what the victim held.
func (v *victim) of(l *damageLife) {
	v.states, v.holds, v.active, v.last = l.states, l.holds, l.active, l.last
	for ns := range v.keys {
		v.keys[ns] = slices.Sorted(maps.Keys(l.ever[ns]))
	}
}

// killedVictims are stores of each sync mode that were killed right after a commit, and a while after it, opened in the
// same life of the kernel and after a power cut. They have no file that says again what the log says.
func killedVictims(t *testing.T, other *damageLife) (victims []*victim) {
	for _, mode := range []db.SyncMode{db.SyncAlways, db.SyncInterval, db.SyncNone} {
		var l *damageLife
		synctest.Test(t, func(t *testing.T) { l = liveThrough(t, mode) })
		for _, idle := range []bool{false, true} {
			for _, boot := range []vfs.BootID{l.boot, {}} {
				v := &victim{state: onlyLog(l.killed), before: onlyLog(l.before), other: onlyLog(other.killed), boot: boot, clean: idle}
				v.name = "killed, " + mode.String() + ", busy"
				if v.of(l); idle {
					v.name, v.state = "killed, "+mode.String()+", idle", onlyLog(l.idle)
				}
				if boot == (vfs.BootID{}) {
					v.name += ", power cut"
				}
				if mode != db.SyncAlways {
					v.last = l.unsynced
				}
				v.files = []string{l.active, "MANIFEST"} // of its other files as much can be said as of those of the others
				victims = append(victims, v)
			}
		}
	}
	return victims
}

func withoutIndex(state crash.State) crash.State {
	state = maps.Clone(state)
	delete(state, bitcask.IndexFile)
	return state
}

func onlyLog(state crash.State) crash.State {
	state = maps.Clone(state)
	maps.DeleteFunc(state, func(name string, _ []byte) bool {
		return strings.HasSuffix(name, ".hint") || name == bitcask.TTLName || name == bitcask.IndexFile
	})
	return state
}

// damageLife is what became of a store.
type damageLife struct {
	t                      *testing.T
	mem                    *vfs.Mem
	store                  *db.Store
	mode                   db.SyncMode
	boot                   vfs.BootID
	before, killed, closed crash.State
	idle                   crash.State // killed a while after the last commit
	copied                 crash.State // the log before the last commit, the rest after it
	held                   *model      // before the last commit
	states                 []string
	holds, ever            *model
	active                 string
	last                   int
	unsynced               int // the first byte of active that was not synced when it was killed
}

func damageOptions(fsys vfs.FS) *db.Options {
	return seam.With(&db.Options{Namespaces: modelNamespaces, SegmentSize: 1 << 10, Sync: db.SyncAlways, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: fsys})
}

// liveThrough is the life: two sittings, a merge in the first one.
func liveThrough(t *testing.T, mode db.SyncMode) *damageLife {
	l := &damageLife{t: t, mem: vfs.NewMem(), mode: mode, ever: newModel()}
	l.boot = vfs.BootOf(l.mem, ".")
	l.open()
	value := []byte("some text")
	later := time.UnixMilli(60_000_000_000_000) // in the year 3871
	for i := range 6 {
		l.step(l.store.String("s" + strconv.Itoa(i)).Put(value))
	}
	l.step(l.store.String("s0").Put([]byte("with a deadline"), db.ExpireAt(later)))
	_, err := l.store.Hash("hash").PutAll(db.Field{Name: "a", Value: value}, db.Field{Name: "b", Value: value}, db.Field{Name: "c"})
	l.step(err)
	_, err = l.store.Hash("hash").ExpireFieldsAt(later, []string{"a", "b"})
	l.step(err)
	_, err = l.store.List("list").PushBack([]byte("0"), []byte("1"), value, []byte("2"), value)
	l.step(err)
	_, err = l.store.Set("set").Add("a", "b")
	l.step(err)
	_, err = l.store.SortedSet("zset").Add(db.Scored{Member: "a", Score: 1}, db.Scored{Member: "b", Score: -1})
	l.step(err)
	for i := range 4 {
		l.addEntry(i)
	}
	g := l.store.Stream("stream").Group("g")
	l.step(g.Create(db.StreamGroupStart{}))
	_, err = g.Read("a", 2)
	l.step(err)
	_, err = g.Read("b", 2)
	l.step(err)
	_, err = l.use(1).Set("flushed").Add("x")
	l.step(err)
	_, err = l.store.Keyspace().Delete("s1")
	l.step(err)
	l.step(putLibrary(l.store, "lib", "a library"))
	l.step(putLibrary(l.store, "lib2", "another one"))
	l.step(mergeEverything(l.store))
	l.step(l.store.String("s2").Put([]byte("as it was before")))
	synctest.Wait() // for the hints
	must(t, l.store.Close())
	l.before = l.read()
	l.open()
	l.step(l.store.String("s2").Put([]byte("as it is")))
	_, err = l.store.Keyspace().Delete("s3")
	l.step(err)
	_, err = l.store.Hash("hash").Delete("a")
	l.step(err)
	_, err = l.store.Hash("hash").ExpireFieldsAt(later, []string{"c"})
	l.step(err)
	_, err = l.store.List("list").PopFront()
	l.step(err)
	l.step(l.store.List("list").Trim(2, -1))
	_, err = l.store.SortedSet("zset").Add(db.Scored{Member: "a", Score: 2})
	l.step(err)
	_, err = l.store.Key("s0").Persist()
	l.step(err)
	g = l.store.Stream("stream").Group("g")
	_, err = g.Ack(db.StreamID{Ms: 2})
	l.step(err)
	_, err = g.Claim(db.StreamClaim{Consumer: "a"}, db.StreamID{Ms: 3})
	l.step(err)
	_, err = g.DeleteConsumer("b")
	l.step(err)
	_, err = l.store.Stream("stream").Trim(db.StreamTrim{MaxLen: 3})
	l.step(err)
	l.addEntry(4)
	_, err = l.store.Stream("stream").Delete(db.StreamID{Ms: 3})
	l.step(err)
	_, err = l.store.Key("set").ExpireAt(later)
	l.step(err)
	l.step(l.use(1).Flush())
	l.step(l.use(1).String("after the flush").Put(value))
	l.step(putLibrary(l.store, "lib", "a newer library"))
	l.step(putLibrary(l.store, "lib3", "one more"))
	l.step(l.store.Swap(2, 3))
	_, err = l.use(2).Hash("h").Put("f", value)
	l.step(err)
	l.step(l.batch())
	_, err = l.store.Keyspace().Delete("zset2")
	l.step(err)
	_, err = l.store.Set("set").Add("c")
	l.step(err)
	l.finish()
	return l
}

// addEntry adds the i-th entry to the stream.
func (l *damageLife) addEntry(i int) {
	_, err := l.store.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1)}}, db.Field{Name: "f", Value: []byte("some text")})
	l.step(err)
}

func (l *damageLife) open() {
	var err error
	o := damageOptions(l.mem)
	o.Sync = l.mode
	l.store, err = db.Open("d", o)
	must(l.t, err)
}

func (l *damageLife) use(ns int) *db.Store {
	s, err := l.store.Use(ns)
	must(l.t, err)
	return s
}

func (l *damageLife) read() crash.State {
	state, err := crash.ReadState(l.mem, "d")
	must(l.t, err)
	return state
}

// step notes what the store holds after one commit.
func (l *damageLife) step(err error) {
	must(l.t, err)
	l.holds, err = readModel(l.store)
	must(l.t, err)
	l.states = append(l.states, l.holds.String())
	for ns := range l.ever {
		maps.Copy(l.ever[ns], l.holds[ns])
	}
}

// batch is several keys in one commit.
func (l *damageLife) batch() error {
	return l.store.Update(func(tx *db.Tx) error {
		for _, key := range []string{"s4", "s6", "s7"} {
			if err := tx.String(key).Put([]byte("in one commit")); err != nil {
				return err
			}
		}
		_, err := tx.SortedSet("zset2").Add(db.Scored{Member: "m", Score: 0.5})
		return err
	})
}

// finish makes the last commit and takes the files, before and after the close.
func (l *damageLife) finish() {
	synctest.Wait()
	was := l.read()
	l.held = l.holds
	l.step(l.store.String("s5").Put([]byte("the last commit")))
	synctest.Wait()
	l.killed = l.read()
	segments := l.store.Log().Segments()
	for name, now := range l.killed {
		if from, _ := changed(was[name], now); string(was[name]) != string(now) && strings.HasSuffix(name, ".data") {
			l.active, l.last = name, from
		}
	}
	l.unsynced = len(l.before[l.active]) // the last sync was at that close, or it is a segment of this sitting
	if l.unsynced == 0 {
		l.unsynced = segmentHeader
	}
	time.Sleep(3 * time.Second)
	synctest.Wait()
	l.idle = l.read()
	must(l.t, l.store.Log().SaveIndex())
	l.copied = maps.Clone(l.killed)
	l.copied[bitcask.IndexFile] = l.read()[bitcask.IndexFile]
	for name := range was {
		if strings.HasSuffix(name, ".data") {
			l.copied[name] = was[name]
		}
	}
	must(l.t, l.store.Close())
	l.closed = l.read()
	var sealed, merged int
	for _, sg := range segments {
		if sg.Sealed {
			sealed++
		}
		if sg.Merged {
			merged++
		}
	}
	if sealed < 3 || merged == 0 {
		l.t.Fatalf("%d sealed segments, %d merged", sealed, merged)
	}
}

// segmentHeader is the length in bytes of what stands before the first frame.
const segmentHeader = 40

// damageTest is the damaging of one file.
type damageTest struct {
	*testing.T
	v *victim
	n int
}

// outcome is what became of a store that was damaged.
type outcome int

// The outcomes, in the order of the table.
const (
	asItWas     outcome = iota // every key, and nothing was truncated
	keyErrors                  // some keys give errors that name the place, all others are as they were
	readable                   // not opened, with an error that names the place; with ReadDamaged as it was or keyErrors
	notOpened                  // not even with ReadDamaged
	lastDropped                // the last commit is taken for one that was cut short: nothing came after it
	tailDropped                // the same of more, of which nothing is left that could tell
	outcomes
)

func (o outcome) String() string {
	return [...]string{"as it was", "error on the keys", "not opened; readable", "not opened", "last commit dropped", "tail dropped"}[o]
}

// verdict opens a damaged store, as reader or as writer, and returns the outcome. A writer that is refused has changed
// nothing; whatever it truncates is still there.
func (x *damageTest) verdict(f *fault) outcome {
	x.Helper()
	x.n++
	mem, err := f.state.Mem("d")
	must(x.T, err)
	if x.v.boot != (vfs.BootID{}) {
		mem.SetBoot(x.v.boot)
	}
	o := damageOptions(mem)
	o.ReadOnly = x.n%4 != 0
	seam.Of(o).Load = []seam.Load{seam.LoadAtOpen, seam.LoadLate, seam.LoadOnDemand}[x.n%3]
	out := x.open(f, o)
	if out == notOpened && o.ReadOnly {
		o.ReadOnly = false
		if again := x.open(f, o); again != notOpened {
			x.Errorf("%s: refused to a reader, and %v to a writer", f.what, again)
		}
	}
	if out == notOpened {
		x.unchanged(f, mem)
		out = x.openDamaged(f, mem)
	} else if !o.ReadOnly { // its files open as well as it did, or with a reason
		o.ReadOnly = true
		again := x.open(f, o)
		if again != out && again != notOpened && !(out >= lastDropped && again == asItWas) {
			x.Errorf("%s: %v, and %v when opened again", f.what, out, again)
		}
	}
	if leaks := mem.Leaks(); len(leaks) > 0 {
		x.Errorf("%s: left open: %q", f.what, leaks)
	}
	return out
}

// unchanged wants every file but LOCK, which only says who had the store, as it was before a refused open.
func (x *damageTest) unchanged(f *fault, mem *vfs.Mem) {
	x.Helper()
	now, err := crash.ReadState(mem, "d")
	must(x.T, err)
	was := maps.Clone(f.state)
	delete(now, "LOCK")
	delete(was, "LOCK")
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !bytes.Equal(now[name], was[name]) {
			x.Errorf("%s: a refused open has changed %s", f.what, name)
		}
		delete(now, name)
	}
	for name := range now {
		x.Errorf("%s: a refused open has made %s", f.what, name)
	}
}

// truncated wants dropped bytes to be named, and kept by a writer.
func (x *damageTest) truncated(f *fault, s *db.Store, o *db.Options) {
	x.Helper()
	r := s.Log().Recovery()
	if r.TornBytes == 0 {
		return // the file ended sooner: nothing was there
	}
	if end := f.state[f.file]; len(r.Truncated) == 0 && len(bytes.TrimLeft(end[len(end)-int(r.TornBytes):], "\x00")) > 0 {
		x.Errorf("%s: %d bytes were dropped without a word", f.what, r.TornBytes)
	}
	for _, torn := range r.Truncated {
		if o.ReadOnly != (torn.Kept == "") {
			x.Errorf("%s: opened for reading %v: %v", f.what, o.ReadOnly, torn)
		}
	}
}

// openDamaged opens a store with ReadDamaged. One flipped bit removes no more than one record.
func (x *damageTest) openDamaged(f *fault, mem *vfs.Mem) outcome {
	x.Helper()
	o := damageOptions(mem)
	o.ReadDamaged = true
	switch out := x.open(f, o); {
	case out == asItWas, out == keyErrors:
		return readable
	case out == tailDropped && f.kind == zeroed:
		// Zeros that leave the frame in which they begin one bit away from a valid one. It was refused for that bit,
		// which reading corrects; then the rest is missing as it is, without an error, where zeros begin a byte later.
		return tailDropped
	case out != notOpened:
		x.Errorf("%s: not opened, and when opened for reading what is left: %v", f.what, out)
	case f.kind == flipped:
		x.Errorf("%s: one flipped bit, and not even what is left can be read", f.what)
	}
	return notOpened
}

func (x *damageTest) open(f *fault, o *db.Options) outcome {
	x.Helper()
	s, err := db.Open("d", o)
	if err != nil {
		x.named(f, "open", err)
		return notOpened
	}
	out := x.look(f, s)
	if out >= lastDropped {
		x.truncated(f, s, o)
	}
	must(x.T, s.Close())
	return out
}

// endsSooner reports whether the writer that made a file could have left it damaged as it is now, zeros up to its end
// that it has reserved, had it been killed some commits before.
func (x *damageTest) endsSooner(f *fault) bool {
	was, is := x.v.state[f.file], bytes.TrimRight(f.state[f.file], "\x00")
	return len(was)%512 == 0 && bytes.HasSuffix(was, []byte{0}) && bytes.HasPrefix(was, is)
}

// look reads everything that a damaged store holds.
func (x *damageTest) look(f *fault, s *db.Store) outcome {
	x.Helper()
	m, err := readModel(s)
	if err != nil {
		return x.lookAtKeys(f, s)
	}
	states := x.v.states
	switch at := slices.Index(states, m.String()); {
	case at == len(states)-1:
		return asItWas
	case at < 0:
		x.Errorf("%s: it differs without an error by\n%s", f.what, differences(m.String(), states[len(states)-1]))
	case x.v.clean || f.file != x.v.active || f.to <= x.v.last:
		x.Errorf("%s: commits are missing without an error:\n%s", f.what, differences(m.String(), states[len(states)-1]))
	case f.kind == flipped:
		x.Errorf("%s: one flipped bit takes commits away:\n%s", f.what, differences(m.String(), states[len(states)-1]))
	case x.v.boot != (vfs.BootID{}) && f.kind != cutOff && f.kind != exchanged && !x.endsSooner(f):
		x.Errorf("%s: after a kill only a file that ends sooner can have lost commits:\n%s", f.what, differences(m.String(), states[len(states)-1]))
	case at == len(states)-2:
		return lastDropped
	}
	return tailDropped
}

// lookAtKeys reads key by key: one bad record costs one record.
func (x *damageTest) lookAtKeys(f *fault, s *db.Store) outcome {
	x.Helper()
	bad := 0
	for ns, keys := range x.v.keys {
		for _, key := range keys {
			s, err := s.Use(ns)
			must(x.T, err)
			want := x.v.holds[ns][key]
			got, err := readKey(s, key)
			switch {
			case err != nil:
				x.named(f, key, err)
				x.lookAtElements(f, s, key, want)
				bad++
			case describe(got) != describe(want):
				x.Errorf("%s: %q is %s without an error, want %s", f.what, key, describe(got), describe(want))
			}
		}
	}
	if bad == 0 || f.kind == flipped && bad > 1 {
		x.Errorf("%s: %d keys give errors", f.what, bad)
	}
	return keyErrors
}

// readKey reads what a key holds; nil if that is nothing.
func readKey(s *db.Store, key string) (v *modelValue, err error) {
	err = s.ViewKeys([]string{key}, func(tx *db.Tx) error {
		typ, err := tx.Key(key).Type()
		if err == nil && typ != db.TypeNone {
			v, err = readValue(tx, key, typ)
		}
		return err
	})
	return v, err
}

func describe(v *modelValue) string {
	if v == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v until %d:", v.typ, v.deadline)
	v.describe(&b)
	return b.String()
}

// lookAtElements reads a collection of which some element is damaged, one by one.
func (x *damageTest) lookAtElements(f *fault, s *db.Store, key string, want *modelValue) {
	x.Helper()
	bad := 0
	see := func(elem, got, want string, err error) {
		if err != nil {
			x.named(f, key+", "+elem, err)
			bad++
		} else if got != want {
			x.Errorf("%s: %q, %q is %q without an error, want %q", f.what, key, elem, got, want)
		}
	}
	switch {
	case want == nil || want.typ == db.TypeString:
		return
	case want.typ == db.TypeHash:
		for field, value := range want.hash {
			got, err := s.Hash(key).Get(field)
			see(field, string(got), value, err)
		}
	case want.typ == db.TypeList:
		for i, value := range want.list {
			got, err := s.List(key).At(int64(i))
			see(strconv.Itoa(i), string(got), value, err)
		}
	case want.typ == db.TypeStream:
		info, err := s.Stream(key).Info()
		see("meta", fmt.Sprint(info.Last, info.Deleted, info.Added), fmt.Sprint(want.stream.last, want.stream.deleted, want.stream.added), err)
		for _, e := range want.stream.entries {
			got, err := s.Stream(key).Get(e.id)
			see(e.id.String(), fieldsText(got.Fields), e.fields, err)
		}
		for name, g := range want.stream.groups {
			state, err := s.Stream(key).Group(name).State()
			see("group "+name, groupOf(state).text(name), g.text(name), err)
		}
	}
	if f.kind == flipped && bad != 1 {
		x.Errorf("%s: %q: %d elements give errors", f.what, key, bad)
	}
}

// named wants an error that names the file that is damaged, and the place if it is known.
func (x *damageTest) named(f *fault, what string, err error) {
	x.Helper()
	if c, ok := errors.AsType[*bitcask.CorruptError](err); ok {
		const longest = 1 << 10 // commit
		if f.kind != exchanged && (c.File != f.file || c.Offset > int64(f.to) || c.Offset < int64(f.from)-longest) {
			x.Errorf("%s: %s: %v; the damage is from %d to %d", f.what, what, err, f.from, f.to)
		}
		return
	}
	for _, target := range []error{bitcask.ErrVersion, bitcask.ErrForeign, bitcask.ErrMissing, bitcask.ErrManifest} {
		if errors.Is(err, target) {
			return
		}
	}
	x.Errorf("%s: %s: %v", f.what, what, err)
}

// damageTable is how often each kind of damage to a kind of file had each outcome.
type damageTable struct {
	mu     sync.Mutex
	counts map[damagePlace]*damageRows
}

type damagePlace struct {
	victim string
	file   string // its kind
}

type damageRows [faultKinds][outcomes]int

func newDamageTable() *damageTable { return &damageTable{counts: map[damagePlace]*damageRows{}} }

func (c *damageTable) add(v *victim, f *fault, o outcome) {
	at := damagePlace{v.name, f.file}
	switch _, suffix, _ := strings.Cut(f.file, "."); {
	case f.file == v.active:
		at.file = "active segment"
	case suffix == "data" && v.sealed(f.file):
		at.file = "sealed segments"
	case suffix == "data":
		at.file = "segment made ahead"
	case suffix == "hint":
		at.file = "hints"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[at] == nil {
		c.counts[at] = new(damageRows)
	}
	c.counts[at][f.kind][o]++
}

// total adds up the rows of some places.
func (c *damageTable) total(which func(at damagePlace) bool) (sum damageRows) {
	for at, rows := range c.counts {
		if which(at) {
			for kind := range rows {
				for o, n := range rows[kind] {
					sum[kind][o] += n
				}
			}
		}
	}
	return sum
}

// sum is one line.
func (c *damageTable) sum() string {
	var all int
	var outs [outcomes]int
	for _, row := range c.total(func(damagePlace) bool { return true }) {
		for o, n := range row {
			all += n
			outs[o] += n
		}
	}
	text := fmt.Sprintf("%d faults", all)
	for o, n := range outs {
		text += fmt.Sprintf(", %d %v", n, outcome(o))
	}
	return text
}

// String is two tables: every kind of damage to each store, and the flips by kind of file.
func (c *damageTable) String() string {
	var b strings.Builder
	c.head(&b, "damage")
	var victims []string
	for at := range c.counts {
		if !slices.Contains(victims, at.victim) {
			victims = append(victims, at.victim)
		}
	}
	slices.Sort(victims)
	for _, name := range victims {
		for kind, row := range c.total(func(at damagePlace) bool { return at.victim == name }) {
			c.row(&b, name, faultKind(kind).String(), row)
		}
	}
	b.WriteByte('\n')
	c.head(&b, "one bit flipped in")
	for _, at := range slices.SortedFunc(maps.Keys(c.counts), func(a, b damagePlace) int {
		return cmp.Or(strings.Compare(a.victim, b.victim), strings.Compare(a.file, b.file))
	}) {
		c.row(&b, at.victim, at.file, c.counts[at][flipped])
	}
	return b.String()
}

func (c *damageTable) head(b *strings.Builder, what string) {
	fmt.Fprintf(b, "| store | %s | times", what)
	for o := range outcomes {
		fmt.Fprintf(b, " | %v", o)
	}
	b.WriteString(" |\n|---|---|" + strings.Repeat("---|", 1+int(outcomes)) + "\n")
}

func (c *damageTable) row(b *strings.Builder, victim, what string, row [outcomes]int) {
	all := 0
	for _, n := range row {
		all += n
	}
	fmt.Fprintf(b, "| %s | %s | %d", victim, what, all)
	for _, n := range row {
		fmt.Fprintf(b, " | %d", n)
	}
	b.WriteString(" |\n")
}
