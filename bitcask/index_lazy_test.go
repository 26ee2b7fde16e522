package bitcask_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// lazyStore is the files of a closed store with everything a stripe can hold: strings, deadlines, collections,
// deadlines of fields, in two namespaces of which one was flushed before, over several segments.
func lazyStore(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	s := openMem(t, mem, bitcask.Options{SegmentSize: 16 << 10, Sync: bitcask.SyncNone})
	fill(t, s, 1, 0, 300)
	all, err := s.BeginAll(true)
	mustBe(t, err)
	_, _, err = all.Flush(1)
	mustBe(t, err)
	all.End()
	fill(t, s, 0, 0, 900)
	fill(t, s, 1, 100, 200)
	fill(t, s, 0, 500, 600) // and some again
	closeStore(t, s)
	return mem
}

func mustBe(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes keys from to to of a namespace: i%4 says what they are.
func fill(t *testing.T, s *bitcask.Store, ns, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		mustBe(t, fillKey(s, ns, i))
	}
}

func fillKey(s *bitcask.Store, ns, i int) error {
	key, value := fmt.Sprint("key", i), fmt.Appendf(nil, "value %d of %d", i, ns)
	tx, err := s.Begin(true, key)
	if err != nil {
		return err
	}
	defer tx.End()
	if i%4 < 2 {
		err = tx.PutString(ns, key, value)
	} else {
		coll, cerr := tx.Collection(ns, key, keydir.Hash)
		err = cerr
		for k := 0; k < i%5 && err == nil; k++ {
			field := fmt.Sprint("field", k)
			if err = tx.PutElem(ns, key, coll, field, value); err == nil && i%4 == 3 && i%100 == 3 {
				err = tx.SetFieldDeadline(ns, key, field, 1<<50)
			}
		}
	}
	if err == nil && i%4 == 1 {
		err = tx.SetDeadline(ns, key, 1<<50+int64(i))
	}
	if err == nil {
		_, err = tx.Commit()
	}
	return err
}

// lazyContents is everything that a store says of itself and of its keys.
func lazyContents(t *testing.T, s *bitcask.Store) string {
	t.Helper()
	var all []string
	for _, ns := range s.Namespaces() {
		all = append(all, fmt.Sprint(ns, s.Len(ns), s.Deadlines(ns)))
	}
	mustBe(t, s.EachFieldDeadline(func(space uint32, key string, ms int64) { all = append(all, fmt.Sprint(space, key, ms)) }))
	tx, err := s.BeginAll(false)
	mustBe(t, err)
	defer tx.End()
	for _, ns := range s.Namespaces() {
		mustBe(t, tx.EachName(ns, func(name []byte, _ keydir.Type) bool {
			key := string(name)
			slot, coll, err := tx.Find(ns, key)
			mustBe(t, err)
			usage, _, err := tx.Usage(ns, key, 0) // which includes the deadline
			mustBe(t, err)
			line := fmt.Sprint(ns, key, slot.Type, usage.Disk)
			if coll.Valid() {
				coll.Each(func(name []byte, _ keydir.Loc) bool { line += " " + string(name); return true })
			} else {
				value, err := tx.Value(nil, ns, key, "", keydir.String, slot.Loc)
				mustBe(t, err)
				line += string(value)
			}
			all = append(all, line)
			return true
		}))
	}
	for id, live := range bitcask.LiveBytes(s) {
		all = append(all, fmt.Sprintf("segment %d: %d bytes live", id, live))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// differing lists the lines that one of two texts lacks.
func differing(a, b string) string {
	var all []string
	for i, pair := range [][2]string{{a, b}, {b, a}} {
		for line := range strings.Lines(pair[0]) {
			if !strings.Contains(pair[1], strings.TrimSpace(line)) {
				all = append(all, "+-"[i:i+1]+line)
			}
		}
	}
	return strings.Join(all, "")
}

func openLazy(t *testing.T, fsys vfs.FS, load seam.Load, change ...func(*bitcask.Options)) *bitcask.Store {
	t.Helper()
	o := seam.With(&bitcask.Options{SegmentSize: 16 << 10, Sync: bitcask.SyncNone, Logger: slog.New(slog.DiscardHandler)}, seam.Options{FS: fsys, Load: load})
	for _, fn := range change {
		fn(o)
	}
	s, err := bitcask.Open("d", o)
	mustBe(t, err)
	return s
}

// lazyOperations are what meets a store of which nothing is loaded. Each leaves the content as it is.
var lazyOperations = map[string]func(t *testing.T, s *bitcask.Store){
	"nothing": func(*testing.T, *bitcask.Store) {},
	"get":     func(t *testing.T, s *bitcask.Store) { want(t, s, "key0", "value 0 of 0") },
	"miss": func(t *testing.T, s *bitcask.Store) {
		if _, err := s.Get("none"); !errors.Is(err, bitcask.ErrNotFound) {
			t.Error(err)
		}
	},
	"has": func(t *testing.T, s *bitcask.Store) {
		if ok, err := s.Has("key4"); !ok || err != nil {
			t.Error(ok, err)
		}
	},
	"put and delete": func(t *testing.T, s *bitcask.Store) {
		put(t, s, "new", "value")
		if ok, err := s.Delete("new"); !ok || err != nil {
			t.Error(ok, err)
		}
	},
	"put again": func(t *testing.T, s *bitcask.Store) { fill(t, s, 0, 500, 502) },
	"rolled back": func(t *testing.T, s *bitcask.Store) {
		tx, err := s.BeginAll(true)
		mustBe(t, err)
		_, err = tx.Drop(0, "key0")
		mustBe(t, err)
		tx.End()
	},
	"batch": func(t *testing.T, s *bitcask.Store) {
		b := s.NewBatch()
		for i := range 300 {
			b.Put(fmt.Sprint("batch", i), nil)
		}
		for i := range 300 {
			b.Delete(fmt.Sprint("batch", i))
		}
		mustBe(t, b.Commit())
	},
	"try": func(t *testing.T, s *bitcask.Store) {
		tx, ok, err := s.TryBegin(false, "key0")
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			tx.End()
		}
	},
	"random key": func(t *testing.T, s *bitcask.Store) {
		if key, ok, err := s.RandomKey(1, rand.New(rand.NewPCG(1, 2)).Uint64); !strings.HasPrefix(key, "key1") || !ok || err != nil {
			t.Error(key, ok, err)
		}
	},
	"all": func(t *testing.T, s *bitcask.Store) {
		n := 0
		for _, err := range s.All() {
			mustBe(t, err)
			n++
		}
		if n != 450 {
			t.Errorf("%d strings", n)
		}
	},
	"swapped there and back": func(t *testing.T, s *bitcask.Store) {
		for range 2 {
			tx, err := s.BeginAll(true)
			mustBe(t, err)
			_, err = tx.Swap(0, 1)
			mustBe(t, err)
			tx.End()
		}
	},
	"another namespace": func(t *testing.T, s *bitcask.Store) {
		fill(t, s, 2, 0, 4)
		tx, err := s.BeginAll(true)
		mustBe(t, err)
		_, _, err = tx.Flush(2)
		mustBe(t, err)
		tx.End()
	},
	"merge":      mergeSealed,
	"save INDEX": func(t *testing.T, s *bitcask.Store) { mustBe(t, s.SaveIndex()) },
	"rotate":     func(t *testing.T, s *bitcask.Store) { mustBe(t, s.Rotate()) },
	"hold": func(t *testing.T, s *bitcask.Store) {
		tx, err := s.BeginHold()
		mustBe(t, err)
		if _, _, err := tx.Find(0, "key0"); err == nil {
			t.Error("a transaction on no key found one")
		}
		tx.End()
	},
	"snapshot": func(t *testing.T, s *bitcask.Store) {
		snap, err := s.Snapshot(context.Background(), bitcask.SnapshotOptions{})
		mustBe(t, err)
		want(t, snap, "key0", "value 0 of 0")
		closeStore(t, snap)
	},
	"backup": func(t *testing.T, s *bitcask.Store) {
		_, err := s.BackupTo(context.Background(), io.Discard)
		mustBe(t, err)
	},
	"check": func(t *testing.T, s *bitcask.Store) { check(t, s) },
}

// TestLazyMeetsEverything does every operation first thing on a store of which nothing is loaded, whose figures are
// right before it and after it, and then reads all of it, opens it again and compares it with the log.
func TestLazyMeetsEverything(t *testing.T) {
	files := lazyStore(t)
	s := openLazy(t, files.Clone(), seam.LoadAtOpen)
	whole := lazyContents(t, s)
	closeStore(t, s)
	figures := func(s *bitcask.Store) string {
		return fmt.Sprint(s.Namespaces(), s.Len(0), s.Len(1), s.Deadlines(0), s.Deadlines(1), s.Stats().Keys, s.Stats().Deadlines, s.Sequence())
	}
	for name, operation := range lazyOperations {
		t.Run(name, func(t *testing.T) {
			for _, load := range []seam.Load{seam.LoadOnDemand, seam.LoadLate} {
				mem := files.Clone()
				eager := openLazy(t, mem.Clone(), seam.LoadAtOpen)
				s := openLazy(t, mem, load)
				if bitcask.Unloaded(s) == 0 && load == seam.LoadOnDemand {
					t.Fatal("everything is loaded")
				}
				if got, want := figures(s), figures(eager); got != want {
					t.Errorf("figures %s, want %s", got, want)
				}
				operation(t, s)
				operation(t, eager)
				if got, want := figures(s), figures(eager); got != want {
					t.Errorf("figures %s afterwards, want %s", got, want)
				}
				killed := mem.Clone()
				got, want := lazyContents(t, s), lazyContents(t, eager)
				if got != want || name == "nothing" && want != whole {
					t.Fatalf("content is not the same:\n%s", differing(got, want))
				}
				check(t, s)
				closeStore(t, eager)
				closeStore(t, s)
				if leaks := mem.Leaks(); len(leaks) > 0 {
					t.Errorf("left open: %v", leaks)
				}
				for _, mem := range []*vfs.Mem{mem, killed} {
					again := openLazy(t, mem, load)
					if again := lazyContents(t, again); again != got {
						t.Fatalf("opened again:\n%s", differing(again, got))
					}
					check(t, again)
					closeStore(t, again)
					log := openLazy(t, mem, load, func(o *bitcask.Options) { seam.Of(o).NoIndex, o.ReadOnly = true, true })
					check(t, log) // compares the INDEX
					closeStore(t, log)
				}
			}
		})
	}
}

func flipIndex(t *testing.T, mem *vfs.Mem, bit int64) {
	t.Helper()
	f, err := mem.Open(filepath.Join("d", bitcask.IndexFile), vfs.ReadWrite)
	mustBe(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, bit/8)
	mustBe(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1<<(bit%8)}, bit/8)
	mustBe(t, err)
	mustBe(t, f.Close())
}

// flipSections flips bits of all sections of the INDEX, one in 64 bytes or so.
func flipSections(t *testing.T, mem *vfs.Mem, rng *rand.Rand) {
	t.Helper()
	f, err := mem.Open(filepath.Join("d", bitcask.IndexFile), vfs.ReadWrite)
	mustBe(t, err)
	const header, offsetOfContents = 72, 48
	b := make([]byte, header)
	_, err = f.ReadAt(b, 0)
	mustBe(t, err)
	b = make([]byte, binary.LittleEndian.Uint64(b[offsetOfContents:])-header)
	_, err = f.ReadAt(b, header)
	mustBe(t, err)
	for i := 0; i < len(b); i += 1 + rng.IntN(128) {
		b[i] ^= 1 << rng.IntN(8)
	}
	_, err = f.WriteAt(b, header)
	mustBe(t, err)
	mustBe(t, f.Close())
}

// untimedStore is lazyStore without deadlines of fields, so that Open needs no stripe.
func untimedStore(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := lazyStore(t)
	s := openLazy(t, mem, seam.LoadAtOpen)
	for i := 3; i < 900; i += 100 {
		tx, err := s.Begin(true, fmt.Sprint("key", i))
		mustBe(t, err)
		for ns := range 2 {
			_, err = tx.Drop(ns, fmt.Sprint("key", i))
			mustBe(t, err)
		}
		_, err = tx.Commit()
		mustBe(t, err)
		tx.End()
	}
	mustBe(t, s.SaveIndex())
	closeStore(t, s)
	return mem
}

// TestLazyDamageMeetsEverything does every operation first thing on a store of whose INDEX nearly every stripe is
// damaged, unnoticed by Open. It gives what it gives on one that was sound, and so does the store afterwards, whether
// it is closed or killed.
func TestLazyDamageMeetsEverything(t *testing.T) {
	rng := chance.Rand(t)
	files := untimedStore(t)
	for name, operation := range lazyOperations {
		t.Run(name, func(t *testing.T) {
			if name == "check" {
				operation = func(t *testing.T, s *bitcask.Store) {
					_, err := s.Check(context.Background(), func(f bitcask.Finding) {
						if f.Rule != "I8" || f.File != bitcask.IndexFile {
							t.Errorf("check: %v", f)
						}
					})
					mustBe(t, err)
				}
			}
			sound := openLazy(t, files.Clone(), seam.LoadAtOpen)
			operation(t, sound)
			whole := lazyContents(t, sound)
			closeStore(t, sound)
			for _, load := range []seam.Load{seam.LoadOnDemand, seam.LoadLate} {
				mem := files.Clone()
				flipSections(t, mem, rng)
				s := openLazy(t, mem, load)
				wantReplayed(t, s, true, 0)
				operation(t, s)
				killed := mem.Clone()
				if rng.IntN(2) == 0 {
					if got := lazyContents(t, s); got != whole {
						t.Fatal(differing(got, whole))
					}
				}
				closeStore(t, s)
				if leaks := mem.Leaks(); len(leaks) > 0 {
					t.Errorf("left open: %v", leaks)
				}
				for _, mem := range []*vfs.Mem{mem, killed} {
					again := openLazy(t, mem, load)
					if got := lazyContents(t, again); got != whole {
						t.Fatalf("opened again:\n%s", differing(got, whole))
					}
					closeStore(t, again)
				}
			}
		})
	}
}

func indexSize(t *testing.T, mem *vfs.Mem) int64 {
	t.Helper()
	f, err := mem.Open(filepath.Join("d", bitcask.IndexFile), vfs.ReadOnly)
	mustBe(t, err)
	size, err := f.Size()
	mustBe(t, err)
	mustBe(t, f.Close())
	return size
}

// TestLazyDamage flips bits of the INDEX. What is not noticed at Open is noticed when the stripe is needed, after other
// stripes have been written and the log has been rotated, and is rebuilt: nothing differs from a store that was sound,
// and the INDEX is gone.
func TestLazyDamage(t *testing.T) {
	rng := chance.Rand(t)
	files := lazyStore(t)
	size, rounds, late := indexSize(t, files), 150, 0
	if testing.Short() {
		rounds = 25
	}
	write := func(s *bitcask.Store) {
		fill(t, s, 0, 900, 904)
		mustBe(t, s.Rotate())
		fill(t, s, 1, 904, 908)
	}
	sound := openLazy(t, files.Clone(), seam.LoadAtOpen)
	write(sound)
	whole := lazyContents(t, sound)
	closeStore(t, sound)
	for n := 0; n < rounds || late < rounds/5 && n < 5*rounds; n++ {
		mem := files.Clone()
		for range 1 + rng.IntN(3) {
			flipIndex(t, mem, rng.Int64N(size*8))
		}
		s := openLazy(t, mem, seam.LoadOnDemand, func(o *bitcask.Options) { seam.Of(o).NoHints = rng.IntN(2) == 0 })
		refused := !s.Recovery().Indexed
		write(s)
		if rng.IntN(2) == 0 { // all at once
			for i := range 900 {
				if i%4 < 2 {
					want(t, s, fmt.Sprint("key", i), fmt.Sprintf("value %d of 0", i))
				}
			}
		}
		if got := lazyContents(t, s); got != whole {
			t.Fatalf("refused at Open: %v; content:\n%s", refused, differing(got, whole))
		}
		_, err := s.Check(context.Background(), func(f bitcask.Finding) {
			if f.Rule != "I8" || f.File != bitcask.IndexFile {
				t.Errorf("check: %v", f)
			}
		})
		mustBe(t, err)
		closeStore(t, s)
		if !refused {
			late++
			if stale := s.Recovery().Stale; !slices.Equal(stale, []string{bitcask.IndexFile}) {
				t.Errorf("stale: %v", stale)
			}
		}
		s = openLazy(t, mem, seam.LoadAtOpen)
		wantReplayed(t, s, true, 0)
		closeStore(t, s)
	}
	if late < rounds/5 {
		t.Errorf("only %d of %d were found late", late, rounds)
	}
}

// TestLazyDamageOfTheLogToo: where neither INDEX nor log can say what a stripe holds, its keys give an error that names
// the log's file and offset, and all others are read and written. The next Open is refused, as it is without an INDEX.
func TestLazyDamageOfTheLogToo(t *testing.T) {
	mem := lazyStore(t)
	s := openLazy(t, mem, seam.LoadAtOpen)
	mustBe(t, s.Rotate())
	names := s.Segments()
	closeStore(t, s)
	for _, sg := range names {
		if err := mem.Remove(filepath.Join("d", strings.TrimSuffix(sg.File, ".data")+".hint")); err != nil {
			t.Log(err) // of the active one
		}
	}
	f, err := mem.Open(filepath.Join("d", names[0].File), vfs.ReadWrite)
	mustBe(t, err)
	_, err = f.WriteAt([]byte("damaged"), 1000)
	mustBe(t, err)
	mustBe(t, f.Close())
	s = nil
	for at := int64(200); s == nil; at += 50 {
		s, mem = openHalf(t, mem, at, names[0].File)
	}
	if err := s.SaveIndex(); !errors.As(err, new(*bitcask.CorruptError)) {
		t.Errorf("INDEX saved without a stripe: %v", err)
	}
	var ids []uint32
	for _, sg := range names {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); !errors.As(err, new(*bitcask.CorruptError)) {
		t.Errorf("merged without a stripe: %v", err)
	}
	closeStore(t, s)
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %v", leaks)
	}
	_, err = bitcask.Open("d", seam.With(&bitcask.Options{Logger: slog.New(slog.DiscardHandler)}, seam.Options{FS: mem}))
	if !errors.As(err, new(*bitcask.CorruptError)) {
		t.Errorf("opened again: %v", err)
	}
}

// openHalf opens a damaged store whose INDEX has a flipped bit too, and gets all strings of a namespace. It returns nil
// if that is of a stripe that Open needs, or that has no such string.
func openHalf(t *testing.T, mem *vfs.Mem, at int64, file string) (*bitcask.Store, *vfs.Mem) {
	t.Helper()
	damaged := mem.Clone()
	flipIndex(t, damaged, 8*at)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Logger: slog.New(slog.DiscardHandler)}, seam.Options{FS: damaged, Load: seam.LoadLate}))
	if err != nil {
		return nil, mem
	}
	failed, intact := 0, 0
	for i := 0; i < 900; i += 1 + i%2*2 {
		value, err := s.Get(fmt.Sprint("key", i))
		c := (*bitcask.CorruptError)(nil)
		switch {
		case err == nil && string(value) == fmt.Sprintf("value %d of 0", i):
			intact++
		case errors.As(err, &c) && c.File == file:
			failed++
		default:
			t.Errorf("%d: %q, %v", i, value, err)
		}
	}
	if intact < 200 {
		t.Errorf("%d gets failed, %d succeeded", failed, intact)
	}
	if failed == 0 {
		closeStore(t, s)
		return nil, mem
	}
	return s, damaged
}

// TestLazyReadErrors: an INDEX whose disk fails is as good as a damaged one, and one that is removed or replaced by
// another program is still read.
func TestLazyReadErrors(t *testing.T) {
	files := lazyStore(t)
	s := openLazy(t, files.Clone(), seam.LoadAtOpen)
	whole := lazyContents(t, s)
	closeStore(t, s)
	fault := vfstest.NewFault(files.Clone())
	s = openLazy(t, fault, seam.LoadOnDemand)
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRead}, Path: bitcask.IndexFile, Err: errors.New("disk fails"), Sticky: true})
	if got := lazyContents(t, s); got != whole {
		t.Errorf("content:\n%s", differing(got, whole))
	}
	closeStore(t, s)
	mem := files.Clone()
	s = openLazy(t, mem, seam.LoadOnDemand)
	mustBe(t, mem.Remove(filepath.Join("d", bitcask.IndexFile)))
	if got := lazyContents(t, s); got != whole {
		t.Errorf("content:\n%s", differing(got, whole))
	}
	if len(s.Recovery().Stale) > 0 {
		t.Errorf("stale: %v", s.Recovery().Stale)
	}
	closeStore(t, s)
}

// TestLazyBesideEverything opens a store again and again and uses it at once, from many goroutines, while it is loaded,
// merged, saved and closed.
func TestLazyBesideEverything(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	dir := t.TempDir()
	o := func() *bitcask.Options {
		return seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 64 << 10}, seam.Options{Load: seam.LoadLate})
	}
	const keys = 20_000
	s := open(t, dir, o())
	b := s.NewBatch()
	for i := range keys {
		b.Put(fmt.Sprint("k", i), fmt.Appendf(nil, "v%d", i))
	}
	mustBe(t, b.Commit())
	closeStore(t, s)
	for round := range rounds {
		s := open(t, dir, o())
		if n := s.Len(0); n != keys {
			t.Fatalf("%d keys", n)
		}
		var wait sync.WaitGroup
		for g := range 4 {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			wait.Go(func() {
				for range 300 {
					i := rng.IntN(keys)
					key, value := fmt.Sprint("k", i), fmt.Sprint("v", i)
					if got, err := s.Get(key); err != nil || string(got) != value {
						t.Errorf("%s: %q, %v", key, got, err)
					}
					if g == 0 {
						if err := s.Put(key, []byte(value)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wait.Go(func() {
			switch round % 4 {
			case 0:
				mergeSealed(t, s)
			case 1:
				if err := s.SaveIndex(); err != nil {
					t.Error(err)
				}
			case 2:
				tx, err := s.BeginAll(true)
				if err != nil {
					t.Error(err)
				}
				tx.End()
			}
		})
		if round%3 == 0 { // a close in the middle of it
			if got, err := s.Get("k1"); err != nil || string(got) != "v1" {
				t.Error(string(got), err)
			}
		} else {
			wait.Wait()
		}
		wait.Wait()
		if n := s.Len(0); n != keys {
			t.Errorf("%d keys", n)
		}
		closeStore(t, s)
		s = open(t, dir, o()) // and at once
		closeStore(t, s)
	}
	s = open(t, dir, o())
	check(t, s)
}

// TestCloseKeepsOpenShort: after a Close, Open never loads more of a long INDEX than its bound for what was written
// since, and what it does not have to load it does not.
func TestCloseKeepsOpenShort(t *testing.T) {
	const keys = 800_000
	mem := vfs.NewMem()
	o := bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 64 << 20}
	s := openMem(t, mem, o)
	for from := 0; from < keys; from += 20_000 {
		b := s.NewBatch()
		for i := from; i < from+20_000; i++ {
			b.Put(fmt.Sprint("k", i), nil)
		}
		mustBe(t, b.Commit())
	}
	closeStore(t, s)
	seam.Of(&o).Load = seam.LoadOnDemand
	for _, c := range []struct {
		writes   int
		replayed uint64
		loaded   int // at most, at Open
	}{{0, 0, 0}, {3, 3, 3}, {1000, 0, 0}} {
		s = openMem(t, mem, o)
		for i := range c.writes {
			put(t, s, fmt.Sprint("k", i), "")
		}
		closeStore(t, s)
		s = openMem(t, mem, o)
		wantReplayed(t, s, true, c.replayed)
		if n := keydir.Stripes - bitcask.Unloaded(s); n > c.loaded {
			t.Errorf("%d stripes loaded at Open after %d writes", n, c.writes)
		}
		want(t, s, "k7", "")
		if n := s.Len(0); n != keys {
			t.Errorf("%d keys", n)
		}
		closeStore(t, s)
	}
}
