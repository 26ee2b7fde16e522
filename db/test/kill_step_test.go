package db_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// stepWorkload is a fixed life of a store: every type, small segments, merges,
// a clean close in the middle. It returns what the store held after each step,
// and marks the steps in the record.
type stepWorkload struct {
	t      *testing.T
	sync   db.SyncMode
	rec    *vfstest.Recorder
	change func(*db.Options) // of stepOptions; nil: none
	copies seam.Copies       // into zeros that are reserved a sector or four at a time
	store  *db.Store
	states []string
}

// parseMark returns the state that a mark is about: "ack N" was acknowledged, "synced N" made durable.
func parseMark(t *testing.T, e vfstest.Event) (state int, synced bool) {
	t.Helper()
	what, number, _ := strings.Cut(e.Name, " ")
	state, err := strconv.Atoi(number)
	must(t, err)
	return state, what == "synced"
}

// eitherLoad alternates between loading all of the INDEX at Open and each stripe on demand.
func eitherLoad(n int) seam.Load {
	if n%2 == 0 {
		return seam.LoadAtOpen
	}
	return seam.LoadOnDemand
}

func stepOptions(fsys vfs.FS, sync db.SyncMode) *db.Options {
	return seam.With(&db.Options{Namespaces: modelNamespaces, SegmentSize: 1 << 10, Sync: sync, NoMerge: true, ExpireEvery: -1, Merge: merge.Policy{TriggerRatio: 0.3, IncludeRatio: 0.1, SmallCount: 2}},
		seam.Options{FS: fsys})
}

func (w *stepWorkload) open() {
	o := stepOptions(w.rec, w.sync)
	if w.copies == seam.CopiesOn {
		seam.Of(o).CopyStep = 2 << 10
	}
	seam.Of(o).Copies = w.copies
	if w.change != nil {
		w.change(o)
	}
	s, err := db.Open("d", o)
	must(w.t, err)
	w.store = s
}

func (w *stepWorkload) close() {
	must(w.t, w.store.Close())
	w.mark("synced")
}

// step does one thing that is to be atomic.
func (w *stepWorkload) step(err error) {
	must(w.t, err)
	m, err := readModel(w.store)
	must(w.t, err)
	w.states = append(w.states, m.String())
	w.mark("ack")
	if w.sync == db.SyncAlways {
		w.mark("synced")
	}
}

func (w *stepWorkload) mark(what string) { w.rec.Mark(what + " " + strconv.Itoa(len(w.states)-1)) }

// backup makes a backup that is to hold the state of the last step.
func (w *stepWorkload) backup() {
	name := backupName(len(w.states) - 1)
	must(w.t, first(w.store.Backup(w.t.Context(), name)))
	w.rec.Mark(name)
}

func backupName(state int) string { return backupPrefix + strconv.Itoa(state) }

const backupPrefix = "backup-"

// backups makes one, after a rotation, and goes on with merges.
func (w *stepWorkload) backups() {
	for i := range 4 {
		w.step(w.store.String("k" + strconv.Itoa(i%3)).Put(filler(330)))
	}
	must(w.t, w.store.Sync()) // most unsynced changes are then the backup's
	w.mark("synced")
	_, err := w.store.Hash("h").PutAll(db.Field{Name: "a", Value: filler(40)}, db.Field{Name: "b"})
	w.step(err)
	_, err = w.store.Key("h").ExpireAt(time.UnixMilli(4e12))
	w.step(err)
	w.backup()
	_, err = w.store.Keyspace().Delete("k2", "h")
	w.step(err)
	w.step(mergeEverything(w.store))
}

// run is a whole life.
func (w *stepWorkload) run() {
	w.open()
	w.step(nil)
	for i := range 3 {
		w.writeRound(i)
		_, err := w.store.Merge(context.Background(), merge.RunOptions{All: i == 1})
		w.step(err)
		other, err := w.store.Use(1)
		must(w.t, err)
		switch i {
		case 0:
			_, err = other.Set("members").Add("a", "b")
			w.step(err)
			w.step(w.store.Swap(0, 1))
		case 1:
			w.step(other.Flush())
			w.close()
			w.open()
			w.step(nil)
		}
	}
	must(w.t, w.store.Sync())
	w.mark("synced")
	w.step(mergeEverything(w.store))
	w.close()
}

func (w *stepWorkload) writeRound(i int) {
	s := w.store
	value := []byte(strings.Repeat("some text ", 10))
	deadline := db.ExpireAt(time.UnixMilli(4e12 + int64(i)))
	for j := range 4 {
		key := "k" + strconv.Itoa(j)
		w.step(s.String(key).Put(value, deadline))
		_, err := s.Hash("hash").Put(key+strconv.Itoa(i), value)
		w.step(err)
		if j%2 == 1 {
			_, err = s.Hash("hash").ExpireFieldsAt(time.UnixMilli(4e12+int64(i)), []string{key + strconv.Itoa(i)})
			w.step(err)
		}
		_, err = s.List("list").PushBack(value, []byte(key))
		w.step(err)
		_, err = s.SortedSet("zset").Add(db.Scored{Member: key, Score: float64(i * j)}, db.Scored{Member: "m"})
		w.step(err)
		_, err = s.Set("set").Add(key + strconv.Itoa(i))
		w.step(err)
	}
	w.step(s.Update(func(tx *db.Tx) error {
		if _, err := tx.List("list").PopFront(); err != nil {
			return err
		}
		if _, err := tx.Key("k1").Persist(); err != nil {
			return err
		}
		if _, err := tx.Hash("hash").PersistFields("k1" + strconv.Itoa(i)); err != nil {
			return err
		}
		return tx.Key("hash").Rename("renamed")
	}))
	if i > 0 { // changes come before and after it, and merges make it useless
		w.step(s.Log().SaveIndex())
	}
	w.step(putLibrary(s, "lib"+strconv.Itoa(i%2), string(value[:10*i])))
	_, err := s.String("long").Append(value) // in chunks from the second round on
	w.step(err)
	_, err = s.Keyspace().Delete("k0", "zset")
	w.step(err)
	_, err = s.Set("set").Remove("k0"+strconv.Itoa(i), "k1"+strconv.Itoa(i))
	w.step(err)
}

// replayer rebuilds the file system as it was after each recorded operation.
type replayer struct {
	t     *testing.T
	mem   *vfs.Mem
	files map[int]vfs.File
	names map[int]string
}

func newReplayer(t *testing.T, mem *vfs.Mem) *replayer {
	return &replayer{t: t, mem: mem, files: map[int]vfs.File{}, names: map[int]string{}}
}

// apply does what an operation did, of a write the first n bytes.
func (r *replayer) apply(e vfstest.Event, n int) {
	if e.Err != nil {
		return
	}
	var err error
	switch e.Op {
	case vfstest.OpCreate:
		r.names[e.File] = e.Name
		r.files[e.File], err = r.mem.Open(e.Name, vfs.Create)
	case vfstest.OpOpen:
		r.names[e.File] = e.Name
		if r.files[e.File] == nil {
			r.files[e.File], err = r.mem.Open(e.Name, vfs.ReadWrite)
		}
	case vfstest.OpWrite:
		_, err = r.files[e.File].WriteAt(e.Data[:n], e.Off)
	case vfstest.OpTruncate:
		err = r.files[e.File].Truncate(e.Off)
	case vfstest.OpRemove:
		err = r.mem.Remove(e.Name)
	case vfstest.OpRename:
		err = r.mem.Rename(e.Name, e.To)
		r.names[e.File] = e.To
	case vfstest.OpLink:
		err = r.mem.Link(e.Name, e.To)
	case vfstest.OpMkdir:
		err = r.mem.MkdirAll(e.Name)
	case vfstest.OpLock:
		lock, lerr := r.mem.Lock(e.Name) // which makes the file
		if err = lerr; err == nil {
			err = lock.Close()
		}
	case vfstest.OpRenameDir:
		err = r.mem.RenameDir(e.Name, e.To)
	case vfstest.OpRemoveDir:
		err = r.mem.RemoveDir(e.Name)
	}
	if err != nil {
		r.t.Fatalf("replaying %v: %v", e, err)
	}
}

var changingOps = []vfstest.Op{
	vfstest.OpCreate, vfstest.OpOpen, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpRemove, vfstest.OpRename, vfstest.OpLink, vfstest.OpMkdir, vfstest.OpRenameDir,
	vfstest.OpRemoveDir, vfstest.OpLock, vfstest.OpMark,
}

// TestKillAtEveryStep records a store's life and then, for each operation on
// files in it, opens what a process that was killed there leaves (within a
// write, also half of it): nothing is lost or half done, nothing lies around,
// Check has nothing to say; and the same if the opening is killed in turn.
func TestKillAtEveryStep(t *testing.T) {
	share := longTests.Start(t, 4)
	for _, mode := range crashModes {
		t.Run(mode.String(), func(t *testing.T) { killAtEveryStep(t, share.Part(t, 50), mode, (*stepWorkload).run) })
	}
	t.Run("backup", func(t *testing.T) {
		killAtEveryStep(t, share.Part(t, 50), crashMode{db.SyncNone, seam.CopiesOn}, life((*stepWorkload).backups))
	})
}

func killAtEveryStep(t *testing.T, kills *budget.Part, mode crashMode, life func(w *stepWorkload)) {
	defer kills.End()
	mem := vfs.NewMem()
	w := &stepWorkload{t: t, sync: mode.sync, copies: mode.copies, rec: vfstest.NewRecorder(mem, changingOps...)}
	life(w)
	events, states := w.rec.Events(), w.states
	r := newReplayer(t, vfs.NewMem())
	r.mem.SetBoot(vfs.BootOf(mem, ".")) // the machine goes on: no written byte may be missing
	k := &killed{t: t, states: states, low: -1, at: -1}
	often := 12
	if testing.Short() {
		often = 50
	}
	for i, e := range events {
		if e.Op == vfstest.OpMark {
			k.mark(e)
			k.low = k.at // a kill loses nothing that was acknowledged, whatever the sync mode
			continue
		}
		k.what = "killed before event " + strconv.Itoa(i) + ", " + e.String()
		if kills.Take(i, len(events)) {
			if e.Op == vfstest.OpWrite && e.N > 1 {
				half := newReplayer(t, r.mem.Clone())
				half.apply(vfstest.Event{Op: vfstest.OpOpen, File: e.File, Name: r.names[e.File]}, 0)
				half.apply(e, e.N/2) // at any byte: the kernel stops where a page of what is to be written is not in memory
				k.verify(half.mem.Clone(), false)
			}
			k.verify(r.mem.Clone(), i%often == 0)
		}
		r.apply(e, e.N)
		if t.Failed() {
			return
		}
	}
	k.what = "at the end"
	k.verify(r.mem.Clone(), true)
	t.Logf("%d events, %d states of the store, %d openings", len(events), len(states), k.opened)
}

// killed verifies what a kill or a power cut leaves.
type killed struct {
	t      *testing.T
	states []string
	low    int // the last state that must not be lost; -1: there need be no store
	at     int // the last state that was acknowledged
	what   string
	opened int
	change func(*db.Options) // of stepOptions; nil: none

	backups []string // that must be there
}

func (k *killed) options(fsys vfs.FS, sync db.SyncMode) *db.Options {
	o := stepOptions(fsys, sync)
	if k.change != nil {
		k.change(o)
	}
	return o
}

func (k *killed) mark(e vfstest.Event) {
	if strings.HasPrefix(e.Name, backupPrefix) {
		k.backups = append(k.backups, e.Name)
		return
	}
	state, synced := parseMark(k.t, e)
	k.at = state
	if synced {
		k.low = state
	}
}

// verify opens the store for reading, then for writing; with nested, also after a kill at any
// operation of that.
func (k *killed) verify(mem *vfs.Mem, nested bool) {
	k.t.Helper()
	o := stepOptions(mem, db.SyncAlways)
	o.ReadOnly = true
	s, err := db.Open("d", o)
	if errors.Is(err, fs.ErrNotExist) && k.low < 0 {
		return // not even a manifest yet
	}
	k.must("open read-only", err)
	k.compare(s)
	k.must("close", s.Close())

	before := mem.Clone()
	rec := vfstest.NewRecorder(mem, changingOps...)
	s, err = db.Open("d", stepOptions(rec, db.SyncAlways))
	k.must("open", err)
	if unknown := s.Log().Recovery().Unknown; len(unknown) > 0 {
		k.t.Errorf("%s: left over: %q", k.what, unknown)
	}
	k.compare(s)
	k.must("close", s.Close())
	if leaks := mem.Leaks(); len(leaks) > 0 {
		k.t.Errorf("%s: left open: %q", k.what, leaks)
	}
	k.leftovers(mem)
	k.verifyBackups(mem)
	if !nested {
		return
	}
	r := newReplayer(k.t, before)
	outer := k.what
	for i, e := range rec.Events() {
		k.what = outer + "; then before " + e.String() + " (" + strconv.Itoa(i) + ")"
		k.verify(r.mem.Clone(), false)
		r.apply(e, e.N)
	}
	k.what = outer
}

func (k *killed) must(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s: %s: %v", k.what, what, err)
	}
}

// compare wants a state that may be there: from the last durable one to the one
// after the last acknowledged.
func (k *killed) compare(s *db.Store) string {
	k.t.Helper()
	k.opened++
	_, err := s.Check(context.Background(), func(f bitcask.Finding) { k.t.Errorf("%s: check: %v", k.what, f) })
	k.must("check", err)
	m, err := readModel(s)
	k.must("read", err)
	got := m.String()
	if !slices.Contains(k.states[max(k.low, 0):min(k.at+2, len(k.states))], got) {
		k.t.Fatalf("%s: it holds none of the states %d to %d; from the first it differs by\n%s",
			k.what, k.low, k.at+1, differences(got, k.states[max(k.low, 0)]))
	}
	return got
}

// promises is how much has been promised, in whatever unit.
func (k *killed) promises() int { return k.low + len(k.backups) }

// verifyBackups wants each backup to be whole, or to have a name that says that it is not, and those to be there that
// were made.
func (k *killed) verifyBackups(mem *vfs.Mem) {
	k.t.Helper()
	names, err := mem.List(".")
	k.must("list", err)
	for _, name := range k.backups {
		if !slices.Contains(names, name) {
			k.t.Errorf("%s: %s is gone", k.what, name)
		}
	}
	for _, name := range names {
		number, ours := strings.CutPrefix(name, backupPrefix)
		state, err := strconv.Atoi(number)
		if ours && err == nil {
			wantStore(k.t, k.what+": "+name, mem, name, k.states[state])
		}
		if name, partial := strings.CutSuffix(name, ".partial"); partial && k.opened%4 == 0 {
			k.backupAgain(mem, name)
		}
	}
}

// backupAgain makes a backup of which a part has been left.
func (k *killed) backupAgain(mem *vfs.Mem, name string) {
	k.t.Helper()
	s, err := db.Open("d", k.options(mem, db.SyncAlways))
	k.must("open", err)
	k.must("backup", first(s.Backup(k.t.Context(), name)))
	m, err := readModel(s)
	k.must("read", err)
	k.must("close", s.Close())
	wantStore(k.t, k.what+", and a backup again: "+name, mem, name, m.String())
}

// leftovers wants no file beyond those that the store needs.
func (k *killed) leftovers(mem *vfs.Mem) {
	k.t.Helper()
	names, err := mem.List("d")
	k.must("list", err)
	for _, name := range names {
		data := strings.TrimSuffix(name, ".hint") + ".data"
		switch {
		case name == "MANIFEST", name == "LOCK", name == bitcask.TTLName, name == bitcask.IndexFile, strings.HasSuffix(name, ".data"):
		case strings.HasSuffix(name, ".hint") && slices.Contains(names, data):
		case strings.Contains(name, ".torn-"): // truncated bytes are kept
		default:
			k.t.Errorf("%s: %s lies around", k.what, name)
		}
	}
}
