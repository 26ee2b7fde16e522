package db_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
)

const megabyte = 1 << 20

// diskUsed is what the regular files of a directory take. ok is false if files came or went meanwhile, of which some are counted
// that never were there together.
func diskUsed(t *testing.T, dir string) (total int64, ok bool) {
	t.Helper()
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, entry := range entries {
			list = append(list, entry.Name())
		}
		return list
	}
	before := names()
	for _, name := range before {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return 0, false
		}
		must(t, err)
		if info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total, slices.Equal(before, names())
}

// sampled calls fn, and returns the most that a directory took meanwhile.
func sampled(t *testing.T, dir string, fn func()) (most int64) {
	var sampling sync.WaitGroup
	samples := 0
	done := make(chan struct{})
	sampling.Go(func() {
		for {
			if used, ok := diskUsed(t, dir); ok {
				most = max(most, used)
				samples++
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	func() {
		defer sampling.Wait()
		defer close(done) // fn may end the test
		fn()
	}()
	if samples < 10 {
		t.Errorf("%d samples", samples)
	}
	return most
}

// diskCache opens a store in a directory with a bound.
func diskCache(t *testing.T, dir string, e db.Evict) *db.Store {
	t.Helper()
	return ok[*db.Store](t)(db.Open(dir, &db.Options{Sync: db.SyncNone, Evict: e}))
}

// fillDisk has several writers put keys of a thousand bytes, so many in all, among them overwrites and deletes.
func fillDisk(t *testing.T, s *db.Store, kind string, bytes int) {
	t.Helper()
	const writers, size = 4, 1000
	var writing sync.WaitGroup
	for w := range writers {
		r := chance.Rand(t)
		writing.Go(func() {
			value := []byte(strings.Repeat("v", size))
			for i := range bytes / size / writers {
				key := fmt.Sprint(kind, w, " ", i)
				if r.IntN(4) == 0 {
					key = fmt.Sprint(kind, w, " ", r.IntN(i+1))
				}
				var err error
				switch {
				case r.IntN(50) == 0:
					_, err = s.Keyspace().Delete(key)
				case kind == "hashes":
					key = fmt.Sprint(kind, w, " ", i/20)
					if _, err = s.Hash(key).Put(fmt.Sprint(i), value); err == nil {
						_, err = s.Key(key).Expire(time.Hour)
					}
				default:
					err = s.String(key).Put(value, db.TTL(time.Hour))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
}

// fills is how often a test puts as much as the bound: some times, or all with -long, or once with -short.
func fills(t *testing.T, some, all int) int {
	if testing.Short() {
		return 1
	}
	return budget.Rounds(t, some, all)
}

// TestEvictDisk: the directory of a cache stays within its bound, whatever is put, ten times as much as the bound, by
// several at once, and nothing is refused; and what it may take is used.
func TestEvictDisk(t *testing.T) {
	const bound = 16 * megabyte
	type fill struct {
		policy db.EvictPolicy
		kind   string
	}
	var cases []fill
	for _, policy := range evictPolicies {
		cases = append(cases, fill{policy, "strings"}, fill{policy, "hashes"})
	}
	for _, c := range budget.Some(t, cases, fills(t, 3, 3)) {
		t.Run(fmt.Sprint(c.policy, " ", c.kind), func(t *testing.T) {
			dir := t.TempDir()
			s := checkedAtEnd(t, diskCache(t, dir, db.Evict{Policy: c.policy, Disk: bound}))
			most := sampled(t, dir, func() { fillDisk(t, s, c.kind, fills(t, 5, 10)*bound) })
			st := s.Stats()
			t.Logf("at most %.1f MB; %+v, %d keys, %d evicted, %d merges", float64(most)/megabyte, st.Disk, s.Len(), st.Evicted, st.Merge.Merges)
			if most > bound {
				t.Errorf("the directory took %d bytes of %d", most, bound)
			}
			if st.Disk.Live < bound/3 {
				t.Errorf("no more than %d bytes are live", st.Disk.Live)
			}
		})
	}
}

// TestEvictDiskHotKeys: keys that are read again and again stay, but for a few when evictions begin, in segments in which little dies, and
// the tombstones of the others do not take their place; nor after an opening, though it is not known then which segments
// have been merged since when.
func TestEvictDiskHotKeys(t *testing.T) {
	const bound, hot, size = 16 * megabyte, 4000, 100
	dir, value := t.TempDir(), []byte(strings.Repeat("v", size))
	rounds := fills(t, 2, 10) * bound / size
	for opening := range 2 {
		s := diskCache(t, dir, db.Evict{Policy: db.EvictAllKeysLRU, Disk: bound})
		missed := -hot * (1 - opening)
		read := func(i int) {
			handle := s.String(fmt.Sprint("hot", i%hot))
			if _, err := handle.Get(); err != nil {
				must(t, handle.Put(value))
				missed++
			}
		}
		for i := range hot {
			read(i)
		}
		most := sampled(t, dir, func() {
			for i := range rounds {
				must(t, s.String(fmt.Sprint("cold", opening, i)).Put(value))
				read(2 * i)
				read(2*i + 1)
			}
		})
		st := s.Stats()
		var hiding int64
		for _, sg := range s.Segments() {
			hiding += sg.Hiding
		}
		t.Logf("at most %.1f MB; %+v, %d keys, %d evicted, %d merges, %d bytes of tombstones, %d misses", float64(most)/megabyte, st.Disk, s.Len(), st.Evicted, st.Merge.Merges, hiding, missed)
		if missed > 2*rounds/100 {
			t.Errorf("%d of %d reads find nothing", missed, 2*rounds)
		}
		if most > bound {
			t.Errorf("the directory took %d bytes of %d", most, bound)
		}
		if hiding > bound/8 {
			t.Errorf("tombstones take %d bytes of %d", hiding, bound)
		}
		if s.Len() < bound/4/(size+60) {
			t.Errorf("%d keys are left", s.Len())
		}
		must(t, first(s.Check(t.Context(), func(f db.Finding) { t.Error(f) })))
		must(t, s.Close())
	}
}

// TestEvictDiskRefuses: where no policy evicts, writes that add something fail with ErrBound when the live data take the bound,
// deletes and notes of the store itself do not, and after these there is room again. Overwrites go on as long as merges find something.
func TestEvictDiskRefuses(t *testing.T) {
	const bound, size = 16 * megabyte, 10_000
	for _, policy := range []db.EvictPolicy{db.EvictNone, db.EvictVolatileLRU} {
		t.Run(string(policy), func(t *testing.T) {
			dir := t.TempDir()
			var unnoted atomic.Bool
			logger := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if strings.Contains(a.Value.String(), "could bring back what has expired") {
					unnoted.Store(true)
				}
				return a
			}}))
			s := checkedAtEnd(t, ok[*db.Store](t)(db.Open(dir, &db.Options{Sync: db.SyncNone, Evict: db.Evict{Policy: policy, Disk: bound}, ExpireEvery: -1, Logger: logger})))
			value := []byte(strings.Repeat("v", size))
			const short = 20
			for i := range short { // they are looked at when they have long expired
				must(t, s.String(fmt.Sprint("short", i)).Put(nil, db.ExpireAt(time.Now().Add(time.Duration(10+i)*time.Millisecond))))
			}
			put, refused := 0, error(nil)
			most := sampled(t, dir, func() {
				for i := range 3 * bound / size {
					must(t, s.String(fmt.Sprint(i%300)).Put(value))
				}
				for ; refused == nil && put < 3*bound/size; put++ {
					refused = s.String(fmt.Sprint(300 + put)).Put(value)
				}
			})
			var figures *db.BoundError
			if !errors.Is(refused, db.ErrBound) || !errors.As(refused, &figures) || figures.Bound != bound || !strings.Contains(refused.Error(), "maxdisk") {
				t.Fatalf("%d more keys, and then %v", put, refused)
			}
			if 300+put < bound*3/4/size {
				t.Errorf("refused with %d keys", 300+put)
			}
			if most > bound {
				t.Errorf("the directory took %d bytes of %d", most, bound)
			}
			for i := 0; !errors.Is(refused, db.ErrBound) || i == 0; i++ { // a measurement may have found room since the last refusal
				refused = s.Update(func(tx *db.Tx) error {
					return serverside.DB.PutLibrary(tx, fmt.Sprint("lib", i), strings.Repeat("x", 5000))
				})
				if refused != nil && !errors.Is(refused, db.ErrBound) || i > bound/16/5000 {
					t.Fatalf("library %d: %v", i, refused)
				}
			}
			for i := range short {
				for refused = nil; refused == nil; put++ {
					refused = s.String(fmt.Sprint(300 + put)).Put(value[:1000])
				}
				if err := first(s.String(fmt.Sprint("short", i)).Get()); !errors.Is(err, db.ErrNotFound) || unnoted.Load() {
					t.Fatalf("key %d that has expired: %v; that this was shown could not be noted: %v", i, err, unnoted.Load())
				}
			}
			for range 5 {
				must(t, serverside.DB.SetReplicaOf(s, asReplica, true)) // a full store may become a replica
				must(t, serverside.DB.SetReplicaOf(s, nil, false))
				for refused = nil; refused == nil; put++ {
					refused = s.String(fmt.Sprint(300 + put)).Put(value[:1000])
				}
			}
			for i := range 300 {
				must(t, first(s.Keyspace().Delete(fmt.Sprint(i))))
			}
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				err := s.String("again").Put(value)
				if err == nil {
					break
				}
				if !errors.Is(err, db.ErrBound) || time.Since(begin) > time.Minute {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEvictDiskChanges: a bound that is set, lowered and raised while the store is used, and found at an opening, also after a
// kill, is reached, and kept from then on.
func TestEvictDiskChanges(t *testing.T) {
	dir := t.TempDir()
	s := diskCache(t, dir, db.Evict{})
	fillDisk(t, s, "strings", 40*megabyte)
	for i, bound := range []int64{20 * megabyte, 32 * megabyte, 16 * megabyte, 24 * megabyte} {
		e := db.Evict{Policy: evictPolicies[i], Disk: bound}
		switch i {
		case 2:
			must(t, s.Close())
			s = diskCache(t, dir, e)
		case 3:
			must(t, s.SetEvict(db.Evict{}))
			s.Merger().Pause()
			killed := t.TempDir() // with what a kill leaves
			for {
				before, is := diskUsed(t, dir)
				if err := os.CopyFS(killed, os.DirFS(dir)); err == nil && is {
					if after, is := diskUsed(t, dir); is && before == after {
						break
					}
				}
				killed = t.TempDir()
			}
			must(t, s.Close())
			dir = killed
			s = diskCache(t, dir, e)
		default:
			must(t, s.SetEvict(e))
		}
		if s.Stats().Disk.Bound == 0 {
			t.Error("what the directory takes is not known from the beginning")
		}
		for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) { // with room for outputs of merges of segments that are longer, from before
			if used, is := diskUsed(t, dir); is && used <= bound*7/8 && s.Stats().Disk.Bound > 0 {
				break
			}
			if time.Since(begin) > time.Minute {
				t.Fatalf("bound %d is not reached: %+v", bound, s.Stats().Disk)
			}
		}
		most := sampled(t, dir, func() { fillDisk(t, s, "strings", 40*megabyte) })
		if most > bound {
			t.Errorf("the directory took %d bytes of %d", most, bound)
		}
	}
	must(t, s.Close())
}

// TestEvictDiskTells: evictions for the bound of the disk are events and counted, replicas get DEL, and while writes would wait for room
// whoever asks learns that (an event loop has such a write run elsewhere).
func TestEvictDiskTells(t *testing.T) {
	const bound, size = 16 * megabyte, 10_000
	s := checkedAtEnd(t, diskCache(t, t.TempDir(), db.Evict{}))
	value := []byte(strings.Repeat("v", size))
	for i := range 2 * bound / size {
		must(t, s.String(fmt.Sprint(i)).Put(value))
	}
	var mu sync.Mutex
	evicted, deleted := map[string]bool{}, map[string]bool{}
	stop := s.OnEvents(db.ClassEvicted, func(e db.Event) {
		mu.Lock()
		defer mu.Unlock()
		evicted[e.Key] = true
	})
	defer stop()
	stopCapture := ok[func()](t)(serverside.DB.Capture(s, serverside.Capture{Written: func(c serverside.Commit) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range commandLines(t, c.RESP) {
			if words := strings.Fields(line); words[0] == "DEL" || words[0] == "UNLINK" {
				for _, key := range words[1:] {
					deleted[key] = true
				}
			}
		}
	}}))
	defer stopCapture()
	must(t, s.SetEvict(db.Evict{Policy: db.EvictAllKeysRandom, Disk: bound}))
	told := false
	for begin := time.Now(); ; time.Sleep(100 * time.Microsecond) {
		told = told || serverside.DB.IsOverBound(s)
		if st := s.Stats().Disk; st.Bound > 0 && st.Used < bound && st.Live <= bound/2 {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("%+v", s.Stats().Disk)
		}
	}
	must(t, s.SetEvict(db.Evict{}))
	must(t, s.Update(func(*db.Tx) error { return nil })) // what had begun has ended
	mu.Lock()
	defer mu.Unlock()
	n := int(s.Stats().Evicted)
	if n == 0 || len(evicted) != n || len(deleted) != n {
		t.Errorf("%d evicted, %d events, %d deletes", n, len(evicted), len(deleted))
	}
	if !told {
		t.Error("nobody learns that a write waits")
	}
}

// TestEvictDiskAfterRest: a cache with which nothing was done for a while takes many writes at once: they wait.
func TestEvictDiskAfterRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache(t, db.Evict{Policy: db.EvictAllKeysLRU, Disk: 16 * megabyte})
		time.Sleep(time.Minute)
		value := []byte(strings.Repeat("v", 10_000))
		for i := range 5000 {
			must(t, s.String(fmt.Sprint(i)).Put(value))
		}
		if n := s.Len(); n < 500 || n > 1000 {
			t.Errorf("%d keys are left", n)
		}
	})
}
