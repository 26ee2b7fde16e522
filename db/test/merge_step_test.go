package db_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	mergeStepEvery = flag.Int("mergestep.every", 1, "the merge step test stops at every so many operations on files (default: a sample)")
	mergeStepSeed  = flag.Uint64("mergestep.seed", 0, "seed of its power cuts (0: a random one)")
)

// TestMergeAtEveryStep stops a merge before each of its operations on files, does something to its
// inputs, and lets the merge continue, kills the process, cuts the power, or has the operation
// fail. In each case the store's content is right, now, when opened again, and when merged again:
// nothing deleted is back, the newest wins, and the bytes are reclaimed.
func TestMergeAtEveryStep(t *testing.T) {
	every, seed := *mergeStepEvery, chance.Draw(*mergeStepSeed)
	if testing.Short() {
		every = max(every, 151)
	}
	t.Logf("replay with -mergestep.seed %d -mergestep.every %d", seed, every)
	var runs, late, opened atomic.Int64
	base := mergeStepBase(t)
	share := longTests.Start(t, len(stepMerges)*len(stepActs)*2, "mergestep.every", "mergestep.seed")
	t.Run("all", func(t *testing.T) {
		for _, merge := range stepMerges {
			whole := &mergeStop{base: base, merge: merge, n: math.MaxInt}
			synctest.Test(t, func(t *testing.T) { whole.t = t; whole.run() })
			for i, act := range stepActs {
				t.Run(merge.name+"/"+act.name, func(t *testing.T) {
					t.Parallel()
					for _, fails := range []bool{false, true} {
						stops := share.Part(t, 1)
						for n, reached := i%every, true; reached && !t.Failed(); n += every {
							if n < whole.ops && !stops.Take(n, whole.ops) {
								continue // the operations in between can make it a few more
							}
							x := &mergeStop{
								base: base, merge: merge, act: act, n: n, fails: fails, rng: rand.New(rand.NewPCG(seed, uint64(n))),
							}
							synctest.Test(t, func(t *testing.T) { x.t = t; x.run() })
							synctest.Test(t, func(t *testing.T) { x.t = t; x.openLeft() })
							reached = x.reached
							runs.Add(1)
							opened.Add(int64(x.opened))
							if x.late {
								late.Add(1)
							}
						}
						stops.End()
					}
				})
			}
		}
	})
	t.Logf("%d merges stopped, %d openings; %d times the merge had to go on before what came in between was done", runs.Load(), opened.Load(), late.Load())
}

// stepMerges are the merges that are stopped.
var stepMerges = []struct {
	name string
	run  func(s *db.Store) error
}{
	{"everything", mergeEverything},
	// Older segments stay outside: tombstones are still needed.
	{"all but the oldest", func(s *db.Store) error {
		var ids []uint32
		for _, sg := range s.Log().Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		_, err := s.Log().Rewrite(context.Background(), ids[2:], bitcask.RewriteOptions{})
		return err
	}},
}

// stepAct is what comes between. It calls done after each commit that it makes.
type stepAct struct {
	name string
	do   func(s *db.Store, clock *wallClock, done func()) error
}

var stepActs = []stepAct{
	{"put", one(func(s *db.Store) error { return s.String("new").Put([]byte("new")) })},
	{"overwrite", one(func(s *db.Store) error { return s.String("s1").Put([]byte("newer")) })},
	{"overwrite a collection", one(func(s *db.Store) error { return s.String("hash").Put([]byte("a string now")) })},
	{"delete", one(func(s *db.Store) error { return first(s.Key("s1").Delete()) })},
	{"delete and put again", func(s *db.Store, _ *wallClock, done func()) error {
		if err := first(s.Key("s1").Delete()); err != nil {
			return err
		}
		done()
		err := s.String("s1").Put([]byte("again"))
		done()
		return err
	}},
	{"delete what stays deleted", one(func(s *db.Store) error { return first(s.Key("gone").Delete()) })},
	{"delete a collection", one(func(s *db.Store) error { return first(s.Key("hash").Delete()) })},
	{"delete an element", one(func(s *db.Store) error { return first(s.Hash("hash").Delete("f1")) })},
	{"elements", one(func(s *db.Store) error { return first(s.Hash("hash").Put("f1", []byte("newer"))) })},
	{"scores", one(func(s *db.Store) error { return first(s.SortedSet("zset").Incr("m1", 5)) })},
	{"append to a stream", one(func(s *db.Store) error {
		return first(s.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 10}}, db.Field{Name: "f"}))
	})},
	{"delete an entry", one(func(s *db.Store) error { return first(s.Stream("stream").Delete(db.StreamID{Ms: 3})) })},
	{"read by a group", one(func(s *db.Store) error { return first(s.Stream("stream").Group("g").Read("b", 1)) })},
	{"acknowledge", one(func(s *db.Store) error {
		return first(s.Stream("stream").Group("g").Ack(db.StreamID{Ms: 2}, db.StreamID{Ms: 3}))
	})},
	{"delete a consumer", one(func(s *db.Store) error { return first(s.Stream("stream").Group("g").DeleteConsumer("a")) })},
	{"delete a group and make it again", func(s *db.Store, _ *wallClock, done func()) error {
		g := s.Stream("stream").Group("g")
		if err := first(g.Destroy()); err != nil {
			return err
		}
		done()
		err := g.Create(db.StreamGroupStart{Last: true})
		done()
		return err
	}},
	{"put a library", one(func(s *db.Store) error { return putLibrary(s, "lib", "newer") })},
	{"delete a library", one(func(s *db.Store) error { return putLibrary(s, "lib", "") })},
	{"trim", one(func(s *db.Store) error { return first(s.Stream("stream").Trim(db.StreamTrim{MaxLen: 1})) })},
	{"list", one(func(s *db.Store) error { return first(s.List("list").PopFront()) })},
	{"set a deadline", one(func(s *db.Store) error { return first(s.Key("s1").Expire(time.Hour)) })},
	{"take a deadline away", one(func(s *db.Store) error { return first(s.Key("soon").Persist()) })},
	{"expire", one(func(s *db.Store) error { return first(s.Key("hash").ExpireAt(time.UnixMilli(1))) })},
	{"batch", one(func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error {
			for _, key := range []string{"s1", "s2", "new"} {
				if err := tx.String(key).Put([]byte("batch")); err != nil {
					return err
				}
			}
			return first(tx.Key("list").Delete())
		})
	})},
	{"rename", one(func(s *db.Store) error { return s.Key("zset").Rename("hash") })},
	{"flush", one(func(s *db.Store) error { return s.Flush() })},
	{"swap", one(func(s *db.Store) error { return s.Swap(0, 1) })},
	{"an hour goes by", func(s *db.Store, _ *wallClock, done func()) error {
		time.Sleep(time.Hour)
		return reapAll(s, done)
	}},
	{"the clock was a year ahead", func(s *db.Store, clock *wallClock, done func()) error {
		clock.ahead.Store(int64(366 * 24 * time.Hour))
		_, err := readModel(s) // shows everything with a deadline as expired
		clock.ahead.Store(0)
		if err != nil {
			return err
		}
		return reapAll(s, done)
	}},
	{"rotate", one(func(s *db.Store) error { return s.Log().Rotate() })},
	{"save the INDEX", one(func(s *db.Store) error { return s.Log().SaveIndex() })},
	{"iterate", nil}, // see mergeStop.iterate
}

func putLibrary(s *db.Store, name, text string) error {
	return s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, name, text) })
}

func one(do func(s *db.Store) error) func(*db.Store, *wallClock, func()) error {
	return func(s *db.Store, _ *wallClock, done func()) error {
		err := do(s)
		done()
		return err
	}
}

// reapAll deletes due keys: one commit a key, in a fixed order.
func reapAll(s *db.Store, done func()) error {
	for {
		n, err := s.Expire(time.Hour, 1)
		done()
		if err != nil || n == 0 {
			return err
		}
	}
}

// mergeStepBase is a small store that has something of everything to merge: old
// versions, tombstones whose victims lie in older segments, collections dropped
// and made again, deadlines.
func mergeStepBase(t *testing.T) (state crash.State) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		s, err := db.Open("d", mergeStepOptions(mem))
		must(t, err)
		emptied, err := s.Use(3)
		must(t, err)
		for i := range 4 {
			must(t, emptied.String("k").Put([]byte(fmt.Sprint("value ", i))))
			for _, key := range []string{"s1", "s2", "gone"} {
				must(t, s.String(key).Put([]byte(strings.Repeat(fmt.Sprint(key, " ", i, " "), 8))))
			}
			for _, key := range []string{"hash", "dropped"} {
				must(t, first(s.Hash(key).Put("f1", []byte(fmt.Sprint("value ", i)))))
				must(t, first(s.Hash(key).Put(fmt.Sprint("f", i), []byte("value"))))
			}
			must(t, first(s.List("list").PushBack([]byte(fmt.Sprint("element ", i)))))
			must(t, first(s.SortedSet("zset").Add(db.Scored{Member: "m1", Score: float64(i)}, db.Scored{Member: fmt.Sprint("m", i)})))
			must(t, first(s.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1)}}, db.Field{Name: "f"})))
			if i == 0 {
				must(t, s.Stream("stream").Group("g").Create(db.StreamGroupStart{}))
			}
			must(t, first(s.Stream("stream").Group("g").Read("a", 1)))
			must(t, first(s.Stream("stream").Trim(db.StreamTrim{MaxLen: 2})))
			must(t, s.String("soon").Put([]byte("v"), db.TTL(mergeStepAhead+time.Duration(i)*time.Minute)))
			must(t, first(s.Key("list").Expire(mergeStepAhead+time.Minute)))
			must(t, putLibrary(s, "lib", fmt.Sprint("library ", i)))
			must(t, putLibrary(s, "lib2", strings.Repeat("x", i%2)))
			must(t, first(s.Keyspace().Delete("gone", "dropped")))
			must(t, first(emptied.Keyspace().Delete("k")))
		}
		must(t, s.Log().Rotate()) // the last tombstones as well
		must(t, s.Close())
		state, err = crash.ReadState(mem, "d")
		must(t, err)
	})
	return state
}

// mergeStepAhead is how much later than the base was made it is merged: a clock that runs behind by
// then still shows a time at which the base was there.
const mergeStepAhead = 2 * time.Hour

func mergeStepOptions(fsys vfs.FS) *db.Options {
	o := stepOptions(fsys, db.SyncAlways)
	o.ExpireEvery = 10_000 * time.Hour // the test reaps
	return o
}

// options are mergeStepOptions with the clock that an act steps.
func (x *mergeStop) options(fsys vfs.FS) *db.Options {
	o := mergeStepOptions(fsys)
	seam.Of(o).Clock = x.clock.now
	return o
}

// mergeStop is one merge that is stopped once.
type mergeStop struct {
	t     *testing.T
	base  crash.State
	merge struct {
		name string
		run  func(s *db.Store) error
	}
	act   stepAct
	n     int  // before which operation
	fails bool // the operation fails
	rng   *rand.Rand

	clock   wallClock
	store   *db.Store
	mem     *vfs.Mem
	rec     *vfstest.Recorder
	states  []string   // that the store may be in: before, and after each commit of the act
	between []*vfs.Mem // files that these were on: by another clock they hold another state
	bytes   int64      // of a merged store that went through the same without being stopped
	acted   chan error
	mu      sync.Mutex // guards the next two
	reached bool
	over    bool          // the merge has returned: what is done in the background is not stopped any more
	stopped chan struct{} // closed when what was done before the operation is done
	ops     int           // of a merge that was not stopped
	late    bool          // the act ended after the merge went on
	killed  *vfs.Mem      // as a kill would leave the files
	cuts    []crash.State // as power cuts would
	opened  int
}

func (x *mergeStop) failf(format string, args ...any) {
	x.t.Helper()
	x.t.Errorf("%s, %s, before operation %d, which fails: %v: %s", x.merge.name, x.act.name, x.n, x.fails, fmt.Sprintf(format, args...))
}

func (x *mergeStop) must(what string, err error) {
	x.t.Helper()
	if err != nil {
		x.failf("%s: %v", what, err)
	}
}

func (x *mergeStop) run() {
	time.Sleep(mergeStepAhead)
	x.shadow()
	mem, err := x.base.Mem("d")
	must(x.t, err)
	x.mem, x.rec = mem, vfstest.NewRecorder(mem)
	fault := vfstest.NewFault(x.rec)
	x.store, err = db.Open("d", x.options(fault))
	must(x.t, err)
	rule := vfstest.Rule{Skip: x.n, Do: x.stop}
	if x.fails {
		rule.Err = syscall.EIO
	}
	fault.Inject(rule)
	before := fault.Ops()
	merged := x.merge.run(x.store)
	x.ops = fault.Ops() - before
	x.mu.Lock()
	x.over = true
	reached := x.reached
	x.mu.Unlock()
	if !reached { // there are no more operations
		fault.Heal()
		x.must("merge", merged)
		must(x.t, x.store.Close())
		return
	}
	<-x.stopped
	acted := <-x.acted
	if !x.fails {
		x.must("merge", merged)
		x.must("what came in between", acted)
	}
	fault.Heal()
	if !x.fails || !x.late {
		x.verify("in memory", x.store, x.states[len(x.states)-1:])
	}
	closed := x.store.Close()
	if !x.fails {
		x.must("close", closed)
	}
	if leaks := mem.Leaks(); len(leaks) > 0 {
		x.failf("left open: %q", leaks)
	}
}

// openLeft opens the store's files as they are after Close, after a kill, and after power cuts. The
// clock is an hour earlier.
func (x *mergeStop) openLeft() {
	if !x.reached {
		return
	}
	time.Sleep(mergeStepAhead - time.Hour)
	allowed := x.states[len(x.states)-1:]
	if x.late { // a key that was due by a later clock, and not yet reaped, is still there by this one
		allowed = x.states
		for _, mem := range x.between {
			s, err := db.Open("d", mergeStepOptions(mem))
			must(x.t, err)
			m, err := readModel(s)
			must(x.t, err)
			must(x.t, s.Close())
			allowed = append(allowed, m.String())
		}
	}
	x.reopen("opened again", x.mem, allowed)
	if x.fails {
		return // the rest has been seen
	}
	x.reopen("killed", x.killed, allowed)
	for i, state := range x.cuts {
		mem, err := state.Mem("d")
		must(x.t, err)
		x.reopen(fmt.Sprint("power cut ", i), mem, allowed)
	}
}

// shadow does the same to a store that is not stopped.
func (x *mergeStop) shadow() {
	mem, err := x.base.Mem("d")
	must(x.t, err)
	s, err := db.Open("d", x.options(mem))
	must(x.t, err)
	look := func() {
		x.between = append(x.between, mem.Clone()) // before anything is shown to have expired, which makes that last
		m, err := readModel(s)
		must(x.t, err)
		x.states = append(x.states, m.String())
	}
	look()
	if x.act.do != nil {
		x.must("act on the shadow", x.act.do(s, &x.clock, look))
	}
	must(x.t, mergeEverything(s))
	must(x.t, s.Close())
	x.bytes = dataBytes(x.t, mem)
}

func dataBytes(t *testing.T, mem *vfs.Mem) (n int64) {
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	for name, b := range state {
		if strings.HasSuffix(name, ".data") {
			n += int64(len(b))
		}
	}
	return n
}

// stop runs before the n-th operation on a file, in its goroutine, which may
// hold locks of the store: what comes in between may have to wait for it.
func (x *mergeStop) stop(vfstest.Event) {
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return
	}
	x.reached = true
	x.acted, x.stopped = make(chan error, 1), make(chan struct{})
	x.mu.Unlock()
	defer close(x.stopped)
	act := x.act.do
	reading := make(chan struct{})
	if act == nil {
		act = func(s *db.Store, _ *wallClock, _ func()) error { return x.iterate(s, reading) }
	}
	ended := make(chan struct{})
	go func() {
		x.acted <- act(x.store, &x.clock, func() {})
		close(ended)
	}()
	if x.late = !soon(ended, reading); x.act.do == nil {
		x.late = false // it changes nothing
	}
	if x.fails {
		return
	}
	d := crash.NewDisk("d", x.base)
	x.killed = x.mem.Clone()
	for i, e := range x.rec.Events() {
		d.Apply(i, e)
	}
	x.cuts = append(x.cuts, d.Cut(crash.Weak, crash.Choice{}))
	if d.Units() > 0 {
		choices := slices.Collect(crash.Choices(min(d.Units(), crash.Exhaustive), 0, 0, x.rng))
		x.cuts = append(x.cuts, d.Cut(crash.Ordered, choices[x.rng.IntN(len(choices))]))
	}
}

// soon waits a little for one of two channels to be closed.
func soon(a, b <-chan struct{}) bool {
	const looks = 3000
	for range looks {
		select {
		case <-a:
			return true
		case <-b:
			return true
		default:
			runtime.Gosched()
		}
	}
	return false
}

// iterate reads everything twice in one View, during which the merge may get on
// as far as it can.
func (x *mergeStop) iterate(s *db.Store, reading chan struct{}) error {
	return s.View(func(tx *db.Tx) error {
		var first string
		for i := range 2 {
			got, err := readKeys(tx)
			if err != nil {
				return err
			}
			if i == 1 && got != first {
				x.failf("a View saw two states:\n%s", differences(got, first))
			}
			if i == 0 {
				first = got
				close(reading)
				soon(nil, nil)
			}
		}
		return nil
	})
}

// readKeys is what one namespace holds.
func readKeys(tx *db.Tx) (string, error) {
	m := newModel()
	for k, err := range tx.Keyspace().All() {
		if err != nil {
			return "", err
		}
		v, err := readValue(tx, k.Key, k.Type)
		if err != nil {
			return "", err
		}
		m[0][k.Key] = v
	}
	return m.String(), nil
}

// verify wants one of some states, and a sound store.
func (x *mergeStop) verify(when string, s *db.Store, allowed []string) (got string) {
	x.t.Helper()
	x.opened++
	m, err := readModel(s)
	x.must(when, err)
	if got = m.String(); !slices.Contains(allowed, got) {
		x.failf("%s, it holds none of %d states; from the last it differs by\n%s", when, len(allowed), differences(got, allowed[len(allowed)-1]))
	}
	_, err = s.Check(context.Background(), func(f bitcask.Finding) { x.failf("%s: check: %v", when, f) })
	x.must(when+": check", err)
	return got
}

// reopen opens the files, merges them all, and opens them again; once of the two without INDEX.
func (x *mergeStop) reopen(when string, mem *vfs.Mem, allowed []string) {
	x.t.Helper()
	for _, merged := range []bool{false, true} {
		o := mergeStepOptions(mem)
		seam.Of(o).NoIndex = merged == (x.n%2 == 0)
		seam.Of(o).Load = eitherLoad(x.n / 2)
		s, err := db.Open("d", o)
		if err != nil {
			x.failf("%s: open: %v", when, err)
			return
		}
		allowed = []string{x.verify(when, s, allowed)}
		if !merged {
			x.must(when+": merge", mergeEverything(s))
			x.verify(when+", merged", s, allowed)
		}
		x.must(when+": close", s.Close())
		when += ", and again"
	}
	const slack = 300 // where commits are not the same
	if n := dataBytes(x.t, mem); n > x.bytes+slack && allowed[0] == x.states[len(x.states)-1] {
		x.failf("%s: merged it has %d bytes of data, a store that nobody stopped has %d", when, n, x.bytes)
	}
}
