package db_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

var (
	modelSteps = flag.Int("model.steps", 100_000, "steps of the model test, on a file system in memory; a tenth of them on disk")
	modelSeed  = flag.Uint64("model.seed", 0, "seed of the model test (0: a random one)")
)

// TestModel does the same random things to a store and to Go maps and compares
// every result. Segments are tiny, so rotations and merges happen all the time;
// the store is closed, killed and opened again under other options. Time is
// that of a synctest bubble.
func TestModel(t *testing.T) {
	seed := chance.Draw(*modelSeed)
	steps := *modelSteps
	if testing.Short() {
		steps /= 20
	}
	share := longTests.Start(t, 2, "model.seed", "model.steps")
	steps = share.Cases(steps)
	t.Logf("replay with -model.seed %d -model.steps %d", seed, steps)
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			runModel(t, seed, steps, share.Part(t, 2000), &memoryDisk{vfs.NewMem()})
		})
	})
	t.Run("disk", func(t *testing.T) {
		parent := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			runModel(t, seed, steps/10, share.Part(t, 500), &realDisk{t: t, parent: parent, dir: filepath.Join(parent, "0")})
		})
	})
}

// disk is where the store of a model test lives.
type disk interface {
	fs() vfs.FS
	path() string
	// kill leaves the files as they are now to a new store: whatever the old
	// one does from here on, it does elsewhere.
	kill()
}

type memoryDisk struct{ mem *vfs.Mem }

func (d *memoryDisk) fs() vfs.FS   { return d.mem }
func (d *memoryDisk) path() string { return "store" }
func (d *memoryDisk) kill()        { d.mem = d.mem.Clone() }

type realDisk struct {
	t           *testing.T
	parent, dir string
	generation  int
}

func (d *realDisk) fs() vfs.FS   { return vfs.OS() }
func (d *realDisk) path() string { return d.dir }

func (d *realDisk) kill() {
	d.generation++
	to := filepath.Join(d.parent, fmt.Sprint(d.generation))
	copyAsKilled(d.t, to, d.dir)
	d.dir = to
}

// copyAsKilled copies a store without writers, which may be sealing a segment. A manifest older
// than the segments is possible after a kill, a newer one is not: so it goes first.
func copyAsKilled(t *testing.T, to, from string) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(from, "MANIFEST"))
	must(t, err)
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, os.WriteFile(filepath.Join(to, "MANIFEST"), manifest, 0o600))
}

// modelTest is one run.
type modelTest struct {
	t      *testing.T
	rng    *rand.Rand
	seed   uint64
	disk   disk
	store  *db.Store
	model  *model
	step   int
	trace  []string   // the last steps
	merge  chan error // of a merge alongside the steps; nil if none runs
	old    []byte     // an earlier TTL file
	narrow bool       // the transaction has locked some keys only
	done   map[string]int
	held   []modelSnapshot
	script *scriptRun // that this is part of; nil: everything is drawn from one seed
}

// fullEvery is how many steps lie between two comparisons of everything.
const fullEvery = 100

func runModel(t *testing.T, seed uint64, steps int, part *budget.Part, d disk) {
	defer part.End()
	m := &modelTest{t: t, rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, disk: d, model: newModel(), done: map[string]int{}}
	m.open()
	t.Cleanup(func() {
		for _, h := range m.held { // the test has failed
			must(t, h.store.Close())
		}
		must(t, m.store.Close())
	})
	for ; part.More(m.step, steps); m.step++ {
		m.model.expire(time.Now().UnixMilli())
		m.oneStep()
		if m.step%fullEvery == 0 {
			m.compare("now and then")
		}
	}
	m.reopen(false)
	m.closeSnapshots()
	m.closeStore()
	t.Logf("%d steps: %v", m.step, m.done)
}

// failf ends the test with all that is needed to run it again.
func (m *modelTest) failf(format string, args ...any) {
	m.t.Helper()
	if m.script != nil {
		panic(scriptFailure(fmt.Sprintf("step %d: %s\nlast steps:\n  %s", m.step, fmt.Sprintf(format, args...), strings.Join(m.trace, "\n  "))))
	}
	m.t.Fatalf("step %d of seed %d: %s\nlast steps:\n  %s", m.step, m.seed, fmt.Sprintf(format, args...), strings.Join(m.trace, "\n  "))
}

func (m *modelTest) must(what string, err error) {
	m.t.Helper()
	if err != nil {
		m.failf("%s: %v", what, err)
	}
}

// note adds a line to the trace.
func (m *modelTest) note(format string, args ...any) {
	const keep = 60
	if len(m.trace) == keep {
		m.trace = slices.Delete(m.trace, 0, keep/2)
	}
	m.trace = append(m.trace, fmt.Sprintf("%d: %.300s", m.step, fmt.Sprintf(format, args...)))
}

// oneStep does one thing: mostly an operation on the store, else something
// larger.
func (m *modelTest) oneStep() {
	switch p := m.rng.IntN(1000); {
	case p < 30:
		d := time.Duration(m.rng.IntN(2500)) * time.Millisecond
		m.note("sleep %v", d)
		time.Sleep(d)
	case p < 33:
		m.reopen(false)
	case p < 36:
		m.reopen(true)
	case p < 44:
		m.mergeNow()
	case p < 48:
		m.mergeBeside()
	case p < 60:
		m.wholeNamespaces()
	case p < 66:
		m.snapshots()
	case p < 70:
		m.note("expire")
		_, err := m.store.Expire(time.Hour, 1<<30)
		m.must("expire", err)
	case p < 150:
		m.transaction()
	default:
		m.storeOperation()
	}
}

// options are other ones for every opening: none may change the results.
func (m *modelTest) options() *db.Options {
	if m.script != nil {
		return m.script.options()
	}
	o := seam.With(&db.Options{Namespaces: modelNamespaces, Sync: db.SyncMode(m.rng.IntN(3)), SegmentSize: 2<<10 + m.rng.Int64N(6<<10), NoMerge: m.rng.IntN(2) == 0, Merge: merge.Policy{TriggerRatio: 0.3, IncludeRatio: 0.1, SmallCount: 2}},
		seam.Options{FS: m.disk.fs(), ChunkSize: 16 << (m.rng.IntN(2) * m.rng.IntN(5)), NoMapping: m.rng.IntN(3) == 0, NoHints: m.rng.IntN(4) == 0, YieldEvery: m.rng.IntN(3),
			Copies: seam.CopiesOn + seam.Copies(m.rng.IntN(2)), CopyStep: 2 << 10 << m.rng.IntN(3)})
	if m.rng.IntN(2) == 0 {
		o.ExpireEvery = -1
	}
	if m.rng.IntN(4) == 0 {
		o.Merge = merge.Policy{}
	}
	return o
}

func (m *modelTest) open() {
	o := m.options()
	m.note("open with sync %v, segments of %d, chunks of %d, no mapping %v, no hints %v, no merge %v, expire %v",
		o.Sync, o.SegmentSize, seam.Of(o).ChunkSize, seam.Of(o).NoMapping, seam.Of(o).NoHints, o.NoMerge, o.ExpireEvery)
	s, err := db.Open(m.disk.path(), o)
	m.must("open", err)
	m.store = s
}

func (m *modelTest) closeStore() {
	if m.rng.IntN(2) == 0 {
		m.closeSnapshots()
	}
	m.waitForMerge()
	m.must("close", m.store.Close())
	if mem, ok := m.disk.fs().(*vfs.Mem); ok && len(m.held) == 0 && len(mem.Leaks()) > 0 {
		m.failf("left open: %q", mem.Leaks())
	}
}

// reopen closes the store, or kills it, and opens it again.
func (m *modelTest) reopen(kill bool) {
	m.reopenAfter(kill, func(segments []bitcask.SegmentInfo) {
		if kill {
			m.tearTail(segments)
		}
		m.tamper()
	})
	m.compare("after reopening")
	m.check("after reopening")
}

// reopenAfter does something to the files in between. between gets the segments of a store that was
// killed.
func (m *modelTest) reopenAfter(kill bool, between func([]bitcask.SegmentInfo)) {
	m.done["reopen"]++
	var segments []bitcask.SegmentInfo
	if kill {
		m.waitForMerge()
		synctest.Wait() // no file may change while all are copied
		dead := m.store
		segments = dead.Log().Segments()
		oldDir := m.disk.path()
		m.disk.kill()
		m.must("close the dead", dead.Close())
		if oldDir != m.disk.path() {
			m.must("remove the dead", os.RemoveAll(oldDir))
		}
	} else {
		m.closeStore()
	}
	between(segments)
	m.note("reopen, killed: %v", kill)
	m.model.expire(time.Now().UnixMilli())
	m.open()
}

// tearTail adds what a write that was never acknowledged may leave: anything after a power cut, which needs a disk in
// memory, and less than the header of a frame after a kill.
func (m *modelTest) tearTail(segments []bitcask.SegmentInfo) {
	if m.rng.IntN(2) == 0 {
		return
	}
	longest := 23
	if mem, ok := m.disk.fs().(*vfs.Mem); ok {
		mem.SetBoot(vfs.BootOf(vfs.NewMem(), "."))
		longest = 300
	}
	for _, sg := range segments {
		if sg.Sealed {
			continue
		}
		tail := make([]byte, 1+m.rng.IntN(longest))
		if m.rng.IntN(2) == 0 {
			for i := range tail {
				tail[i] = byte(m.rng.Uint32())
			}
		}
		m.note("torn tail of %d bytes", len(tail))
		f, err := m.disk.fs().Open(filepath.Join(m.disk.path(), fmt.Sprintf("%09d.data", sg.ID)), vfs.ReadWrite)
		m.must("open the active segment", err)
		_, err = f.WriteAt(tail, sg.Bytes)
		m.must("tear the tail", errors.Join(err, f.Close()))
	}
}

// tamper takes away what can be made anew: hints and the TTL file, or puts an
// older TTL file in its place.
func (m *modelTest) tamper() {
	fsys, dir := m.disk.fs(), m.disk.path()
	names, err := fsys.List(dir)
	m.must("list", err)
	for _, name := range names {
		if strings.HasSuffix(name, ".hint") && m.rng.IntN(10) == 0 {
			m.note("no %s", name)
			m.must("remove", fsys.Remove(filepath.Join(dir, name)))
		}
	}
	ttl := filepath.Join(dir, bitcask.TTLName)
	now := m.readFile(ttl)
	switch p := m.rng.IntN(8); {
	case p == 0 && now != nil:
		m.note("no TTL file")
		m.must("remove", fsys.Remove(ttl))
	case p < 3 && now != nil && m.old != nil:
		m.note("an older TTL file")
		m.must("remove", fsys.Remove(ttl))
		f, err := fsys.Open(ttl, vfs.Create)
		m.must("create", err)
		_, err = f.WriteAt(m.old, 0)
		m.must("write", errors.Join(err, f.Close()))
	case p < 5:
		m.old = now
	}
}

// readFile returns the bytes of a file, nil if there is none.
func (m *modelTest) readFile(name string) []byte {
	f, err := m.disk.fs().Open(name, vfs.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m.must("open", err)
	n, err := f.Size()
	m.must("size", err)
	b := make([]byte, n)
	_, err = f.ReadAt(b, 0)
	m.must("read", errors.Join(err, f.Close()))
	return b
}

// compare compares everything.
func (m *modelTest) compare(when string) {
	m.t.Helper()
	m.model.expire(time.Now().UnixMilli())
	m.compareStore(when, m.store, m.model.String())
	if m.rng.IntN(8) > 0 {
		return
	}
	m.waitForMerge() // which takes time
	synctest.Wait()
	m.model.expire(time.Now().UnixMilli())
	m.compareReader(when, m.model.String())
}

// compareReader compares the content that a concurrent reader sees.
func (m *modelTest) compareReader(when, want string) {
	m.t.Helper()
	o := m.options()
	o.ReadOnly = true
	seam.Of(o).NoIndex = m.rng.IntN(2) == 0
	reader, err := db.Open(m.disk.path(), o)
	m.must("open read-only", err)
	defer func() { m.must("close read-only", reader.Close()) }()
	m.compareStore(when+", read-only", reader, want)
}

func (m *modelTest) compareStore(when string, s *db.Store, want string) {
	m.t.Helper()
	have, err := readModel(s)
	m.must(when+": read everything", err)
	if got := have.String(); got != want {
		m.failf("%s: the store\n%s", when, differences(got, want))
	}
	for ns := range modelNamespaces {
		s, err := s.Use(ns)
		m.must("use", err)
		// Expired keys count until they are reaped.
		if n := s.Len(); n < len(m.model[ns]) {
			m.failf("%s: namespace %d says it has %d keys, want %d at least", when, ns, n, len(m.model[ns]))
		}
	}
}

// check runs the store's own check.
func (m *modelTest) check(when string) {
	m.t.Helper()
	var findings []string
	_, err := m.store.CheckReplay(context.Background(), func(f bitcask.Finding) { findings = append(findings, f.String()) })
	m.must("check "+when, err)
	if len(findings) > 0 {
		m.failf("check %s:\n  %s", when, strings.Join(findings, "\n  "))
	}
	// With nothing left to reap, counts are exact.
	_, err = m.store.Expire(time.Hour, 1<<30)
	m.must("expire", err)
	keys, deadlines, timed := 0, 0, 0
	for ns := range modelNamespaces {
		for _, v := range m.model[ns] {
			keys++
			if v.deadline != 0 {
				deadlines++
			}
			if len(v.until) > 0 {
				timed++
			}
		}
	}
	st := m.store.Stats()
	if st.Keys != keys || st.Deadlines != deadlines {
		m.failf("check %s: %d keys and %d deadlines, want %d and %d", when, st.Keys, st.Deadlines, keys, deadlines)
	}
	for _, ns := range st.Namespaces {
		timed -= ns.TimedHashes
	}
	if timed != 0 {
		m.failf("check %s: %d hashes too few that have fields with deadlines", when, timed)
	}
}

// mergeNow merges while nothing else happens.
func (m *modelTest) mergeNow() {
	m.done["merge"]++
	m.waitForMerge()
	if m.script == nil && m.rng.IntN(3) > 0 {
		m.note("merge some")
		m.must("merge some", mergeSome(m.store, m.rng))
		m.compare("after a merge of some segments")
		m.check("after a merge of some segments")
		return
	}
	all := m.rng.IntN(3) == 0
	m.note("merge, all %v", all)
	_, err := m.store.Merge(context.Background(), merge.RunOptions{All: all})
	for errors.Is(err, bitcask.ErrMergeBusy) { // the background merge is at it, and sleeps in between as its limit wants
		time.Sleep(time.Millisecond)
		_, err = m.store.Merge(context.Background(), merge.RunOptions{All: all})
	}
	m.must("merge", err)
	m.compare("after a merge")
	m.check("after a merge")
}

// mergeBeside starts a merge alongside the next steps.
func (m *modelTest) mergeBeside() {
	m.done["merge beside"]++
	m.waitForMerge()
	synctest.Wait()
	all := m.rng.IntN(2) == 0
	m.note("merge beside, all %v", all)
	done := make(chan error, 1)
	m.merge = done
	store := m.store
	go func() {
		_, err := store.Merge(context.Background(), merge.RunOptions{All: all})
		if errors.Is(err, bitcask.ErrMergeBusy) {
			err = nil // the background one was first
		}
		done <- err
	}()
}

func (m *modelTest) waitForMerge() {
	if m.merge == nil {
		return
	}
	m.must("merge beside the steps", <-m.merge)
	m.merge = nil
	m.compare("after a merge beside")
	m.check("after a merge beside")
}

// wholeNamespaces flushes, empties or swaps.
func (m *modelTest) wholeNamespaces() {
	a, b := m.rng.IntN(modelNamespaces), m.rng.IntN(modelNamespaces)
	switch m.rng.IntN(7) {
	case 5, 6:
		m.note("delete every key of %d", a)
		s, err := m.store.Use(a)
		m.must("use", err)
		_, err = s.Keyspace().Delete(modelNames...)
		m.must("delete", err)
		m.model[a] = modelSpace{}
	case 0:
		m.note("flush all")
		m.must("flush all", m.store.FlushAll())
		libraries := m.model[modelLibraries] // which stay
		m.model = newModel()
		m.model[modelLibraries] = libraries
	case 1, 2:
		m.note("flush %d", a)
		s, err := m.store.Use(a)
		m.must("use", err)
		m.must("flush", s.Flush())
		m.model[a] = modelSpace{}
	default:
		m.note("swap %d %d", a, b)
		m.must("swap", m.store.Swap(a, b))
		m.model[a], m.model[b] = m.model[b], m.model[a]
	}
}

// storeOperation does one operation with a handle of the store.
func (m *modelTest) storeOperation() {
	ns := m.rng.IntN(modelNamespaces)
	s, err := m.store.Use(ns)
	m.must("use", err)
	x := &modelOp{modelTest: m, keys: s, space: m.model[ns], ns: ns, now: time.Now().UnixMilli()}
	x.run(false)
}

var errModel = errors.New("the closure fails")

// transaction does some operations in one transaction, which may fail or panic.
func (m *modelTest) transaction() {
	before := m.model.clone()
	end := m.rng.IntN(10) // what becomes of it
	closure := func(tx *db.Tx) error {
		m.inTransaction(tx)
		switch end {
		case 0, 1:
			m.note("the closure fails")
			return errModel
		case 2:
			m.note("the closure panics")
			panic(errModel)
		}
		return nil
	}
	var err error
	func() {
		defer func() {
			if r := recover(); r != nil {
				if r != any(errModel) {
					panic(r)
				}
				err = errModel
			}
		}()
		err = m.runTransaction(closure)
	}()
	switch {
	case end > 2:
		m.must("transaction", err)
		m.note("committed")
	case !errors.Is(err, errModel):
		m.failf("transaction that failed: %v", err)
	default:
		m.model = before
		m.compare("after a transaction that failed")
	}
}

// runTransaction runs the closure in one of the ways there are.
func (m *modelTest) runTransaction(closure func(tx *db.Tx) error) error {
	switch m.rng.IntN(10) {
	case 0, 1:
		m.done["view"]++
		m.note("view")
		return m.store.View(closure)
	case 2, 3:
		m.done["update keys"]++
		m.note("update keys")
		m.narrow = true
		defer func() { m.narrow = false }()
		return m.store.UpdateKeys(modelNames, closure)
	case 4:
		m.done["begin"]++
		m.note("begin")
		tx, err := m.store.Begin(true)
		m.must("begin", err)
		finished := false
		defer func() {
			if !finished {
				_, err := tx.End(errModel) // the closure has panicked
				if !errors.Is(err, errModel) {
					m.failf("end: %v", err)
				}
			}
		}()
		err = closure(tx)
		finished = true
		ticket, err := tx.End(err)
		if err != nil {
			return err
		}
		return m.store.WaitDurable(ticket)
	}
	m.done["update"]++
	m.note("update")
	return m.store.Update(closure)
}

// inTransaction does some operations, with savepoints.
func (m *modelTest) inTransaction(tx *db.Tx) {
	type savepoint struct {
		tx    db.Savepoint
		model *model
	}
	var saved []savepoint
	for range 1 + m.rng.IntN(8) {
		ns := m.rng.IntN(modelNamespaces)
		in, err := tx.Use(ns)
		m.must("use", err)
		switch p := m.rng.IntN(12); {
		case p == 0 && tx.Writable():
			m.note("savepoint")
			saved = append(saved, savepoint{tx.Savepoint(), m.model.clone()})
		case p == 2 && tx.Writable() && m.rng.IntN(3) == 0 && !m.narrow:
			m.library(tx)
		case p == 1 && len(saved) > 0:
			i := m.rng.IntN(len(saved))
			m.note("roll back to savepoint %d of %d", i, len(saved))
			tx.RollbackTo(saved[i].tx)
			m.model = saved[i].model.clone()
			saved = saved[:i+1]
		default:
			x := &modelOp{modelTest: m, keys: in, space: m.model[ns], ns: ns, now: tx.Now()}
			x.run(!tx.Writable())
		}
	}
}

// library puts a library, or deletes it.
func (m *modelTest) library(tx *db.Tx) {
	name, n := modelNames[m.rng.IntN(len(modelNames))]+"x", m.rng.IntN(3)*m.rng.IntN(100)
	name = name[:min(len(name), bitcask.MaxLibraryName)]
	if n > 0 && m.rng.IntN(20) == 0 {
		n *= 1000 // in several parts
	}
	m.done["library"]++
	m.note("library %q of %d bytes", name, n)
	text := strings.Repeat(string(rune('a'+m.step%26)), n)
	m.must("put a library", serverside.DB.PutLibrary(tx, name, text))
	if delete(m.model[modelLibraries], name); n > 0 {
		m.model[modelLibraries][name] = &modelValue{typ: db.TypeString, str: text}
	}
}

// modelOp is one operation on one namespace.
type modelOp struct {
	*modelTest
	keys  keys
	space modelSpace
	ns    int
	now   int64
	what  string
}

// run picks an operation and does it.
func (x *modelOp) run(readOnly bool) {
	list := modelWrites
	if readOnly || x.rng.IntN(4) == 0 {
		list = modelReads
	}
	list[x.rng.IntN(len(list))](x)
	x.model.expire(x.now) // some operations set deadlines that have passed
}

// begin names the operation.
func (x *modelOp) begin(format string, args ...any) {
	x.what = fmt.Sprintf(format, args...)
	x.note("%d %s", x.ns, x.what)
}

// result compares what the store returned with what the model says.
func (x *modelOp) result(got any, err error, want any, wantErr error) {
	x.t.Helper()
	if !errors.Is(err, wantErr) {
		x.failf("%s: error %v, want %v", x.what, err, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		x.failf("%s = %#v, want %#v", x.what, got, want)
	}
}

// get returns what a key holds if it is of a type: nil if the key does not
// exist.
func (x *modelOp) get(key string, typ db.Type) (*modelValue, error) {
	v := x.space[key]
	if v != nil && v.typ != typ {
		return nil, db.ErrWrongType
	}
	return v, nil
}

// make is get that makes the key.
func (x *modelOp) make(key string, typ db.Type) (*modelValue, error) {
	v, err := x.get(key, typ)
	if err != nil || v != nil {
		return v, err
	}
	v = &modelValue{typ: typ}
	switch typ {
	case db.TypeHash:
		v.hash, v.until = map[string]string{}, map[string]int64{}
	case db.TypeSet:
		v.set = map[string]bool{}
	case db.TypeSortedSet:
		v.zset = map[string]float64{}
	}
	x.space[key] = v
	return v, nil
}

// settle removes a collection that is empty.
func (x *modelOp) settle(key string) {
	if v := x.space[key]; v != nil && v.typ != db.TypeString && v.typ != db.TypeStream && v.len() == 0 {
		delete(x.space, key)
	}
}
