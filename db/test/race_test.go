package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// raceTest runs many goroutines on one store. What each counts on must hold
// whatever the others do.
type raceTest struct {
	t       *testing.T
	s       *db.Store
	rng     *rand.Rand // draws the seeds of the goroutines
	done    context.Context
	stop    context.CancelFunc
	writers sync.WaitGroup // those that end by themselves
	others  sync.WaitGroup // those that go on until the writers have ended

	incremented   atomic.Int64
	pushed, taken atomic.Int64
	views, merges atomic.Int64
	scans, flips  atomic.Int64
}

// raceAccounts hold what transfers move; the sum of all never changes.
const (
	raceAccounts = 4
	raceBalance  = 1000
)

// raceFixed are keys that are there throughout.
const raceFixed = 50

func TestRace(t *testing.T) {
	for _, sync := range []db.SyncMode{db.SyncNone, db.SyncInterval, db.SyncAlways} {
		t.Run(sync.String(), func(t *testing.T) {
			dir := t.TempDir()
			o := &db.Options{
				Sync: sync, SyncEvery: 5 * time.Millisecond, SegmentSize: 16 << 10, ExpireEvery: time.Millisecond, NoMerge: true,
				Merge: merge.Policy{TriggerRatio: 0.2, IncludeRatio: 0.1, SmallCount: 2},
			}
			r := newRaceTest(t, dir, o)
			steps := budget.Rounds(t, 150, 600)
			if sync == db.SyncAlways {
				steps /= 5 // each waits for the disk
			}
			r.run(steps)
			r.verify()
			must(t, r.s.Log().SaveIndex()) // alongside the expiry cycle
			must(t, r.s.Close())
			r.verifyIndex(dir, *o)
			s, err := db.Open(dir, o)
			must(t, err)
			r.s = s
			r.verify()
			must(t, s.Close())
			t.Logf("%d increments, %d views, %d scans, %d merges, %d flushes and swaps",
				r.incremented.Load(), r.views.Load(), r.scans.Load(), r.merges.Load(), r.flips.Load())
		})
	}
}

func newRaceTest(t *testing.T, dir string, o *db.Options) *raceTest {
	s, err := db.Open(dir, o)
	must(t, err)
	r := &raceTest{t: t, s: s, rng: chance.Rand(t)}
	r.done, r.stop = context.WithCancel(context.Background())
	for i := range raceAccounts {
		_, err := s.Hash(account(i)).Put("balance", []byte(strconv.Itoa(raceBalance)))
		must(t, err)
	}
	for i := range raceFixed {
		must(t, s.String(fixed(i)).Put([]byte(fixed(i)+" first")))
	}
	return r
}

func account(i int) string { return fmt.Sprint("account:", i) }
func fixed(i int) string   { return fmt.Sprint("fixed:", i) }

// writer starts a goroutine that does something so many times.
func (r *raceTest) writer(steps int, do func(rng *rand.Rand) error) {
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
	r.writers.Go(func() {
		for range steps {
			if err := do(rng); err != nil {
				r.t.Error(err)
				return
			}
		}
	})
}

// other starts a goroutine that does something until all writers have ended.
func (r *raceTest) other(do func(rng *rand.Rand) error) {
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
	r.others.Go(func() {
		for r.done.Err() == nil {
			if err := do(rng); err != nil {
				r.t.Error(err)
				return
			}
		}
	})
}

func (r *raceTest) run(steps int) {
	for range 2 {
		r.writer(steps, r.transfer)
		r.writer(steps, r.increment)
		r.writer(steps, r.queue)
		r.writer(steps, r.overwrite)
		r.writer(steps, r.expiring)
	}
	r.other(r.view)
	r.other(r.read)
	r.other(r.scan)
	r.other(r.merge)
	r.other(r.flip)
	r.other(r.look)
	r.other(func(*rand.Rand) error { return r.s.Log().SaveIndex() })
	r.writers.Wait()
	r.stop()
	r.others.Wait()
}

var errRaceAbort = errors.New("aborted transfer")

// transfer moves an amount between two accounts, in one of the ways there are;
// some are given up half-way.
func (r *raceTest) transfer(rng *rand.Rand) error {
	from, to := rng.IntN(raceAccounts), rng.IntN(raceAccounts)
	amount, abort := rng.Int64N(50), rng.IntN(4) == 0
	closure := func(tx *db.Tx) error {
		if _, err := tx.Hash(account(from)).Incr("balance", -amount); err != nil {
			return err
		}
		if abort {
			return errRaceAbort
		}
		_, err := tx.Hash(account(to)).Incr("balance", amount)
		return err
	}
	var err error
	if rng.IntN(2) == 0 {
		err = r.s.UpdateKeys([]string{account(from), account(to)}, closure)
	} else {
		err = r.s.Update(closure)
	}
	if abort && errors.Is(err, errRaceAbort) {
		return nil
	}
	return err
}

func sumAccounts(tx *db.Tx) error {
	sum := 0
	for i := range raceAccounts {
		value, err := tx.Hash(account(i)).Get("balance")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(value))
		if err != nil {
			return err
		}
		sum += n
	}
	if sum != raceAccounts*raceBalance {
		return fmt.Errorf("the accounts hold %d, want %d", sum, raceAccounts*raceBalance)
	}
	return nil
}

func (r *raceTest) view(rng *rand.Rand) error {
	r.views.Add(1)
	if rng.IntN(2) == 0 {
		return r.s.View(sumAccounts)
	}
	names := make([]string, raceAccounts)
	for i := range names {
		names[i] = account(i)
	}
	return r.s.ViewKeys(names, sumAccounts)
}

// increment counts in a string, a hash and a sorted set.
func (r *raceTest) increment(*rand.Rand) error {
	r.incremented.Add(1)
	_, err1 := r.s.String("counter").Incr(1)
	_, err2 := r.s.Hash("counters").Incr("n", 1)
	_, err3 := r.s.SortedSet("scores").Incr("n", 1)
	return errors.Join(err1, err2, err3)
}

// queue pushes numbers at one end of a list and takes others from the other.
func (r *raceTest) queue(rng *rand.Rand) error {
	n := rng.Int64N(1000)
	if _, err := r.s.List("queue").PushBack([]byte(strconv.FormatInt(n, 10))); err != nil {
		return err
	}
	r.pushed.Add(n)
	if rng.IntN(3) == 0 {
		return nil
	}
	value, err := r.s.List("queue").PopFront()
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	taken, err := strconv.ParseInt(string(value), 10, 64)
	r.taken.Add(taken)
	return err
}

// overwrite gives the fixed keys new values, which begin with their names.
func (r *raceTest) overwrite(rng *rand.Rand) error {
	key := fixed(rng.IntN(raceFixed))
	return r.s.String(key).Put([]byte(key + " " + strings.Repeat("x", rng.IntN(200))))
}

func (r *raceTest) read(rng *rand.Rand) error {
	key := fixed(rng.IntN(raceFixed))
	value, err := r.s.String(key).Get()
	if err != nil || !strings.HasPrefix(string(value), key+" ") {
		return fmt.Errorf("%s holds %.40q: %w", key, value, err)
	}
	return nil
}

// expiring makes a key that is soon gone.
func (r *raceTest) expiring(rng *rand.Rand) error {
	key := fmt.Sprint("expiring:", rng.IntN(20))
	if _, err := r.s.Key(key).Delete(); err != nil {
		return err
	}
	if _, err := r.s.Set(key).Add("a", "b"); err != nil && !errors.Is(err, db.ErrWrongType) {
		return err
	}
	if _, err := r.s.Key(key).Expire(time.Duration(1+rng.IntN(5)) * time.Millisecond); err != nil {
		return err
	}
	return r.s.String(key).Put([]byte("v"), db.TTL(time.Duration(1+rng.IntN(5))*time.Millisecond))
}

// scan finds every key that is there throughout exactly once.
func (r *raceTest) scan(rng *rand.Rand) error {
	r.scans.Add(1)
	seen := map[string]int{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, next, err := r.s.Keyspace().Scan(cursor, db.KeyScanOptions{Count: 1 + rng.IntN(20)})
		if err != nil {
			return err
		}
		for _, info := range page {
			seen[info.Key]++
		}
		cursor = next
	}
	for i := range raceFixed {
		if n := seen[fixed(i)]; n != 1 {
			return fmt.Errorf("a scan found %s %d times", fixed(i), n)
		}
	}
	return nil
}

func (r *raceTest) merge(rng *rand.Rand) error {
	_, err := r.s.Merge(context.Background(), merge.RunOptions{All: rng.IntN(4) == 0})
	r.merges.Add(1)
	return err
}

// flip flushes and swaps namespaces in which someone writes.
func (r *raceTest) flip(rng *rand.Rand) error {
	r.flips.Add(1)
	s, err := r.s.Use(2 + rng.IntN(2))
	if err != nil {
		return err
	}
	for i := range 5 {
		if _, err := s.Hash("h"+strconv.Itoa(i)).Put("f", []byte("v")); err != nil {
			return err
		}
		if _, err := s.Key("h" + strconv.Itoa(i)).Expire(time.Duration(1+rng.IntN(20)) * time.Millisecond); err != nil {
			return err
		}
	}
	if rng.IntN(2) == 0 {
		return s.Flush()
	}
	return s.Swap(2, 3)
}

// look reads the state of the store rather than its content.
func (r *raceTest) look(rng *rand.Rand) error {
	st := r.s.Stats()
	if st.Failed != "" {
		return errors.New(st.Failed)
	}
	r.s.Merger().Plan(false)
	if _, err := r.s.Keyspace().RandomKey(); err != nil {
		return err
	}
	if rng.IntN(10) > 0 {
		return nil
	}
	return r.check()
}

func (r *raceTest) check() error {
	var errs []error
	_, err := r.s.Check(context.Background(), func(f bitcask.Finding) { errs = append(errs, errors.New(f.String())) })
	return errors.Join(append(errs, err)...)
}

// verify looks at the end of it all.
func (r *raceTest) verify() {
	t := r.t
	must(t, r.s.View(sumAccounts))
	must(t, r.check())
	want := strconv.FormatInt(r.incremented.Load(), 10)
	equal(t, "counter", string(ok[[]byte](t)(r.s.String("counter").Get())), want)
	equal(t, "hash counter", string(ok[[]byte](t)(r.s.Hash("counters").Get("n"))), want)
	equal(t, "score", fmt.Sprint(ok[float64](t)(r.s.SortedSet("scores").Score("n"))), want)
	left := int64(0)
	for _, value := range ok[[][]byte](t)(r.s.List("queue").Range(0, -1)) {
		n, err := strconv.ParseInt(string(value), 10, 64)
		must(t, err)
		left += n
	}
	equal(t, "pushed", r.taken.Load()+left, r.pushed.Load())
	time.Sleep(10 * time.Millisecond)
	for _, key := range ok[[]string](t)(r.s.Keyspace().Keys("expiring:*")) {
		t.Errorf("%s is still there", key)
	}
}

// verifyIndex compares the last INDEX, and what the log has after it, with the
// log alone. The store is closed.
func (r *raceTest) verifyIndex(dir string, o db.Options) {
	t := r.t
	o.ReadOnly, seam.Of(&o).NoIndex = true, true
	s, err := db.Open(dir, &o)
	must(t, err)
	result, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) })
	must(t, err)
	if !result.Index {
		t.Error("there is no INDEX that fits")
	}
	must(t, s.Close())
}

// TestReadersKeepTheirSegments reads in a View what a merge has replaced
// meanwhile: the files stay until the View ends.
func TestReadersKeepTheirSegments(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"disk": vfs.OS(), "memory": vfs.NewMem()} {
		t.Run(name, func(t *testing.T) {
			dir := "d"
			if name == "disk" {
				dir = t.TempDir()
			}
			s, err := db.Open(dir, seam.With(&db.Options{SegmentSize: 1 << 10, NoMerge: true}, seam.Options{FS: fsys}))
			must(t, err)
			defer func() { must(t, s.Close()) }()
			for i := range 100 {
				must(t, s.String("k"+strconv.Itoa(i%30)).Put([]byte(strconv.Itoa(i))))
			}
			merged := make(chan error, 1)
			must(t, s.View(func(tx *db.Tx) error {
				before := slices.Sorted(keysOf(tx))
				go func() {
					_, err := s.Merge(context.Background(), merge.RunOptions{All: true})
					merged <- err
				}()
				for range 50 {
					for _, key := range before {
						if _, err := tx.String(key).Get(); err != nil {
							return err
						}
					}
					time.Sleep(time.Millisecond)
				}
				return nil
			}))
			must(t, <-merged)
		})
	}
}

func keysOf(tx *db.Tx) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k, err := range tx.Keyspace().All() {
			if err != nil || !yield(k.Key) { // View returns the error
				return
			}
		}
	}
}
