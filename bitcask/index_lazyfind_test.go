package bitcask_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// lazyDir is the files of lazyStore in a directory, where they can be mapped.
func lazyDir(t *testing.T) (open func(load seam.Load) *bitcask.Store, dir string) {
	t.Helper()
	if !bitcask.Lockless {
		t.Skip("gets take locks, and load")
	}
	dir = t.TempDir()
	mem := lazyStore(t)
	names, err := mem.List("d")
	mustBe(t, err)
	for _, name := range names {
		f, err := mem.Open(filepath.Join("d", name), vfs.ReadOnly)
		mustBe(t, err)
		size, err := f.Size()
		mustBe(t, err)
		data := make([]byte, size)
		if size > 0 {
			_, err = f.ReadAt(data, 0)
			mustBe(t, err)
		}
		mustBe(t, f.Close())
		mustBe(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return func(load seam.Load) *bitcask.Store {
		s, err := bitcask.Open(dir, seam.With(&bitcask.Options{SegmentSize: 16 << 10, Sync: bitcask.SyncNone}, seam.Options{Load: load}))
		mustBe(t, err)
		return s
	}, dir
}

// tried is what TryGet says of every key there may be, in both namespaces.
func tried(s *bitcask.Store) (all []string) {
	for ns := range 2 {
		for i := range 1000 {
			key := fmt.Sprint("key", i)
			value, lookup := s.TryGet(nil, ns, key)
			if has := s.TryHas(ns, key); has != lookup {
				lookup = 255
			}
			all = append(all, triedLine(ns, i, lookup, string(value)))
		}
	}
	return all
}

func triedLine(ns, i int, lookup keydir.Lookup, value string) string {
	return fmt.Sprintf("%d key%d %d %s", ns, i, lookup, value)
}

// TestLazyFind: of a stripe that is not loaded a lock-free get says what it says when all is loaded, without loading it;
// the second one is for whoever loads it, unless the background does; and after a change nobody asks the INDEX.
func TestLazyFind(t *testing.T) {
	open, _ := lazyDir(t)
	s := open(seam.LoadAtOpen)
	whole := tried(s)
	closeStore(t, s)

	s = open(seam.LoadOnDemand)
	bitcask.LoadSteadily(s)
	unloaded := bitcask.Unloaded(s)
	if got := tried(s); !slices.Equal(got, whole) {
		t.Error("before anything is loaded other values are found")
	}
	if n := bitcask.Unloaded(s); n != unloaded || n < keydir.Stripes/2 {
		t.Errorf("%d stripes not loaded after gets that load none, of %d", n, unloaded)
	}
	for i := range 300 { // strings, which a lock-free get finds no more
		key := fmt.Sprint("key", 4*i)
		tx, err := s.Begin(true, key)
		mustBe(t, err)
		mustBe(t, tx.PutString(1, key, []byte("new")))
		mustBe(t, tx.SetDeadline(1, key, 1<<50))
		_, err = tx.Commit()
		mustBe(t, err)
		tx.End()
		if value, lookup := s.TryGet(nil, 1, key); lookup != keydir.LookupRetry {
			t.Errorf("%s: %q, %v after it was given a deadline", key, value, lookup)
		}
	}
	tx, err := s.BeginAll(true) // which loads all
	mustBe(t, err)
	_, err = tx.Swap(0, 1)
	mustBe(t, err)
	_, err = tx.Commit()
	mustBe(t, err)
	tx.End()
	swapped := tried(s)
	mustBe(t, s.SaveIndex()) // after which nothing is replayed
	closeStore(t, s)

	s = open(seam.LoadOnDemand)
	bitcask.LoadSteadily(s)
	if n := bitcask.Unloaded(s); n < keydir.Stripes/2 {
		t.Errorf("%d stripes not loaded", n)
	}
	if got := tried(s); !slices.Equal(got, swapped) {
		t.Error("after swapping the namespaces other values are found")
	}
	closeStore(t, s)
	if _, lookup := s.TryGet(nil, 1, "key0"); lookup != keydir.LookupRetry {
		t.Errorf("%v after Close", lookup)
	}

	s = open(seam.LoadOnDemand)
	unloaded = bitcask.Unloaded(s)
	var first, second int
	for i := range 300 {
		for _, times := range []*int{&first, &second} {
			if s.TryHas(1, fmt.Sprint("key", 4*i)) != keydir.LookupRetry {
				*times++
			}
		}
	}
	if first <= second || bitcask.Unloaded(s) != unloaded {
		t.Errorf("without a background %d keys are found at first, and %d of these again", first, second)
	}
	closeStore(t, s)
}

// TestLazyFindIsShort: the section of a huge collection is not searched: that would take as long as it is, each time.
func TestLazyFindIsShort(t *testing.T) {
	open, _ := lazyDir(t)
	s := open(seam.LoadOnDemand)
	late := bitcask.LoadOrder(s) // the others are loaded at Open, for they have deadlines of fields
	key := ""
	for i := 0; key == ""; i++ {
		if name := fmt.Sprint("key", i); slices.Contains(late, s.StripeOfKey(name)) {
			key = name
		}
	}
	closeStore(t, s)

	s = open(seam.LoadAtOpen)
	tx, err := s.Begin(true, key)
	mustBe(t, err)
	huge, err := tx.Collection(2, key, keydir.Set) // in the stripe of the string
	mustBe(t, err)
	for i := range 60_000 {
		mustBe(t, tx.PutElem(2, key, huge, fmt.Sprintf("member%08d", i), nil))
	}
	mustBe(t, tx.PutString(3, key, []byte("short")))
	_, err = tx.Commit()
	mustBe(t, err)
	tx.End()
	mustBe(t, s.SaveIndex())
	closeStore(t, s)

	s = open(seam.LoadOnDemand)
	bitcask.LoadSteadily(s)
	unloaded := bitcask.Unloaded(s)
	if lookup := s.TryHas(2, key); lookup != keydir.LookupRetry || bitcask.Unloaded(s) != unloaded {
		t.Errorf("%v in a long section", lookup)
	}
	if lookup := s.TryHas(3, key); lookup != keydir.LookupHit {
		t.Errorf("%v in a short section of the same stripe", lookup)
	}
	if i := s.StripeOfKey(key); bitcask.LoadOrder(s)[0] != i {
		t.Errorf("stripe %d is not loaded next", i)
	}
	closeStore(t, s)
}

// TestLazyFindOfDamage: of a stripe whose section is damaged, or is gone, nothing is said before it is rebuilt.
func TestLazyFindOfDamage(t *testing.T) {
	rng := chance.Rand(t)
	for name, harm := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 200) },
		"bits flipped": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for at := 200; at < len(b); at += 1 + rng.IntN(30) {
				b[at] ^= 1 << rng.IntN(8)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // the file that is mapped
			if err != nil {
				return err
			}
			_, err = f.WriteAt(b, 0)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			open, dir := lazyDir(t)
			s := open(seam.LoadAtOpen)
			whole := tried(s)
			closeStore(t, s)
			s = open(seam.LoadOnDemand)
			bitcask.LoadSteadily(s)
			mustBe(t, harm(filepath.Join(dir, bitcask.IndexFile)))
			for i, line := range tried(s) {
				if retry := triedLine(i/1000, i%1000, keydir.LookupRetry, ""); line != whole[i] && line != retry {
					t.Fatalf("%s, want %s", line, whole[i])
				}
			}
			want(t, s, "key0", "value 0 of 0")
			want(t, s, "key4", "value 4 of 0")
			if _, err := s.Get("none"); !errors.Is(err, bitcask.ErrNotFound) {
				t.Error(err)
			}
			tx, err := s.BeginAll(false)
			mustBe(t, err)
			tx.End()
			if got := tried(s); !slices.Equal(got, whole) {
				t.Error("other values are found in what was rebuilt")
			}
			closeStore(t, s)
		})
	}
}

// TestLazyFindBesideTheEnd: gets search the INDEX while its last stripes are loaded and changed, it is closed and the
// store is closed.
func TestLazyFindBesideTheEnd(t *testing.T) {
	open, _ := lazyDir(t)
	rng := chance.Rand(t)
	var latest [600]atomic.Int64
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	for round := range rounds {
		s := open([]seam.Load{seam.LoadLate, seam.LoadOnDemand}[round%2])
		bitcask.LoadSteadily(s)
		var wait sync.WaitGroup
		for range 3 {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
			wait.Go(func() {
				for {
					i := rng.IntN(len(latest)/4) * 4
					version := latest[i].Load()
					text := fmt.Sprintf("value %d of 0", i)
					value, err := s.Get(fmt.Sprint("key", i))
					if errors.Is(err, bitcask.ErrClosed) {
						return
					}
					if err == nil && version > 0 {
						var n int64
						if _, err = fmt.Sscanf(string(value), text+" for the %d time", &n); n >= version {
							continue
						}
					}
					if err != nil || version > 0 || len(value) < len(text) || string(value[:len(text)]) != text {
						t.Errorf("key%d: %q, %v, after version %d", i, value, err, version)
						return
					}
				}
			})
		}
		for range 40 {
			i := rng.IntN(len(latest)/4) * 4
			n := latest[i].Load() + 1
			put(t, s, fmt.Sprint("key", i), fmt.Sprintf("value %d of 0 for the %d time", i, n))
			latest[i].Store(n)
		}
		if round%3 == 0 {
			tx, err := s.BeginAll(false)
			mustBe(t, err)
			tx.End()
		}
		closeStore(t, s)
		wait.Wait()
	}
}

// TestBackgroundLoadsWhatIsAskedForFirst: the stripes that gets have searched for come before the others, each once.
func TestBackgroundLoadsWhatIsAskedForFirst(t *testing.T) {
	open, _ := lazyDir(t)
	s := open(seam.LoadOnDemand)
	all, changed := bitcask.LoadOrder(s), s.StripeOfKey("key101")
	var asked, others []int
	for i := range 5 {
		s.TryHas(0, fmt.Sprint("key", 100*i))
		asked = append(asked, s.StripeOfKey(fmt.Sprint("key", 100*i)))
	}
	fill(t, s, 0, 101, 102) // which loads its stripe
	for _, i := range all {
		if !slices.Contains(asked, i) && i != changed {
			others = append(others, i)
		}
	}
	asked = slices.DeleteFunc(asked, func(i int) bool { return !slices.Contains(all, i) || i == changed })
	slices.Sort(asked)
	asked = slices.Compact(asked)
	if order := bitcask.LoadOrder(s); !slices.Equal(order, append(asked, others...)) || len(asked) == 0 || len(order) != bitcask.Unloaded(s) {
		t.Errorf("asked for %v, loads %v, of %d", asked, order, bitcask.Unloaded(s))
	}
	closeStore(t, s)
}
