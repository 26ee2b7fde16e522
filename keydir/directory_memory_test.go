package keydir_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// fill puts n entries of one kind into a directory. before is called ahead of each,
// after its name has been made.
type fill func(d *keydir.Directory, seed keydir.Seed, n int, before func(i int))

func fillStrings(d *keydir.Directory, seed keydir.Seed, n int, before func(i int)) {
	for i := range n {
		h := seed.Hash(fmt.Sprintf("%016d", i))
		before(i)
		d.Insert(h, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)})
	}
}

func fillOne(t keydir.Type) fill {
	return func(d *keydir.Directory, seed keydir.Seed, n int, before func(i int)) {
		f := d.NewCollection(seed.Hash("key"), t, "key")
		for i := range n {
			name, score := fmt.Sprintf("%010d", i), seed.Hash(fmt.Sprint(i))
			before(i)
			switch t {
			case keydir.List:
				f.PutAt(int64(i), keydir.Loc(i+1))
			case keydir.ZSet:
				f.PutScored(name, score, keydir.Loc(i+1))
			default:
				f.Put(name, keydir.Loc(i+1))
			}
		}
	}
}

// fillMany makes hashes of ten fields: one after the other, or all at once, field by field.
func fillMany(atOnce bool) fill {
	return func(d *keydir.Directory, seed keydir.Seed, n int, before func(i int)) {
		for i := range n {
			hash, field := i/10, i%10
			if atOnce {
				hash, field = i%(n/10), i/(n/10)
			}
			key, name := fmt.Sprintf("key:%012d", hash), fmt.Sprintf("field:%04d", field)
			h := seed.Hash(key)
			before(i)
			f, ok := d.FindCollection(h, key)
			if !ok {
				f = d.NewCollection(h, keydir.Hash, key)
			}
			f.Put(name, keydir.Loc(i+1))
		}
	}
}

var loads = []struct {
	name  string
	bytes float64 // most an entry may take
	fill  fill
}{
	{"string, 16-byte key", 24, fillStrings},
	{"set member, 10 bytes", 28, fillOne(keydir.Set)},
	{"hash field, 10 bytes, one big hash", 28, fillOne(keydir.Hash)},
	{"hash field in 10-field hashes", 40, fillMany(false)},
	{"hash field in 10-field hashes that grow together", 40, fillMany(true)},
	{"zset member, 10 bytes", 64, fillOne(keydir.ZSet)},
	{"list element", 14, fillOne(keydir.List)},
}

// heap returns the bytes of the heap in use, after all garbage is gone.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func TestMemoryPerEntry(t *testing.T) {
	if underRace {
		t.Skip("the race detector has memory of its own")
	}
	const n = 200_000
	for _, load := range loads {
		t.Run(load.name, func(t *testing.T) {
			seed := keydir.Seed{1, 2}
			before := heap()
			d := keydir.NewDirectory(seed)
			load.fill(d, seed, n, func(int) {})
			bytes := (heap() - before) / n
			t.Logf("%.1f bytes an entry, %.1f by its own estimate", bytes, float64(d.Bytes())/n)
			if bytes > load.bytes {
				t.Errorf("%.1f bytes an entry, want at most %.0f", bytes, load.bytes)
			}
			if estimate := float64(d.Bytes()) / n; estimate < 0.85*bytes || estimate > 1.1*bytes {
				t.Errorf("estimated %.1f bytes an entry, in fact %.1f", estimate, bytes)
			}
			check(t, d)
		})
	}
}

// Deleted elements release their memory.
func TestMemoryShrinks(t *testing.T) {
	n := 50_000
	if underRace {
		n = 5_000
	}
	for _, typ := range []keydir.Type{keydir.Set, keydir.ZSet, keydir.List} {
		t.Run(typ.String(), func(t *testing.T) {
			seed := keydir.Seed{1, 2}
			d := keydir.NewDirectory(seed)
			fillOne(typ)(d, seed, n, func(int) {})
			f, _ := d.FindCollection(seed.Hash("key"), "key")
			full := d.Bytes()
			for i := range n {
				switch name := fmt.Sprintf("%010d", i); typ {
				case keydir.ZSet:
					f.DeleteScored(name)
				case keydir.List:
					f.DeleteAt(int64(i))
				default:
					f.Delete(name)
				}
				left := n - i - 1
				if left == n/10 && d.Bytes() > full/5 {
					t.Errorf("a tenth of %d bytes takes %d", full, d.Bytes())
				}
				if left == 10 && d.Bytes() > 4096 {
					t.Errorf("10 elements take %d bytes", d.Bytes())
				}
			}
			check(t, d)
		})
	}
}

// Deleted slots release their memory, too, and the remaining pages are not spread over all slabs.
func TestMemoryOfSlotsShrinks(t *testing.T) {
	if underRace {
		t.Skip("the race detector has memory of its own")
	}
	const n = 400_000
	seed := keydir.Seed{1, 2}
	before := heap()
	d := keydir.NewDirectory(seed)
	fillStrings(d, seed, n, func(int) {})
	full := heap() - before
	for i := range n {
		if h := seed.Hash(fmt.Sprintf("%016d", i)); !d.Delete(h, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(i + 1)}) {
			t.Fatalf("key %d is not there", i)
		}
		switch left := n - i - 1; left {
		case n / 2, n / 4, n / 16, 0:
			check(t, d)
			most := full*float64(left)/n*3 + 512<<10 // tables shrink when they are three eighths full, and an empty slab may be kept
			if now := heap() - before; now > most || float64(d.Bytes()) > most {
				t.Errorf("%d of %d slots take %.0f bytes of %.0f, %d by their own estimate", left, n, now, full, d.Bytes())
			}
		}
	}
	runtime.KeepAlive(d)
}

// objects returns how many the collector has left.
func objects() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapObjects
}

// The collector has few objects to look at, however many collections there are, and slots: neither one for each
// collection nor one for each page.
func TestFewObjects(t *testing.T) {
	if underRace {
		t.Skip("needs many entries, which takes long")
	}
	for _, test := range []struct {
		name    string
		fill    fill
		entries int
		most    uint64
	}{
		{"collections", fillMany(false), 500_000, 12_500},
		{"slots", fillStrings, 1_000_000, 3000},
	} {
		t.Run(test.name, func(t *testing.T) {
			seed := keydir.Seed{3, 4}
			before := objects()
			d := keydir.NewDirectory(seed)
			test.fill(d, seed, test.entries, func(int) {})
			if n := objects() - before; n > test.most {
				t.Errorf("%d entries are %d objects", test.entries, n)
			}
			runtime.KeepAlive(d)
		})
	}
}

func TestNothingIsAllocated(t *testing.T) {
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	fillStrings(d, seed, 5000, func(int) {})
	h := seed.Hash(fmt.Sprintf("%016d", 7))
	slot, _ := d.Find(h, 0)
	for _, n := range []int{10, 5000} {
		set := d.NewCollection(1, keydir.Set, fmt.Sprint("set", n))
		zset := d.NewCollection(1, keydir.ZSet, fmt.Sprint("zset", n))
		list := d.NewCollection(1, keydir.List, fmt.Sprint("list", n))
		key := fmt.Sprint("zset", n)
		for i := range n {
			name := fmt.Sprint(i)
			set.Put(name, 1)
			zset.PutScored(name, uint64(i), 1)
			list.PutAt(int64(i), 1)
		}
		seen := 0
		named := func([]byte, keydir.Loc) bool { seen++; return true }
		hashed := func(uint64, []byte, keydir.Loc) bool { seen++; return true }
		scored := func([]byte, uint64) bool { seen++; return true }
		slots := func(uint64, keydir.Slot) bool { seen++; return true }
		for name, f := range map[string]func(){
			"find":            func() { d.Find(h, 0) },
			"swap":            func() { d.Replace(h, slot, slot) },
			"scan slots":      func() { d.Scan(3, 0, slots) },
			"near":            func() { d.RandomSlot(3, 77) },
			"find collection": func() { d.FindCollection(1, key) },
			"get":             func() { set.Get("5") },
			"replace":         func() { set.Put("5", 2) },
			"at":              func() { set.At(5) },
			"each":            func() { set.Each(named) },
			"scan":            func() { set.Scan(0, hashed) },
			"score":           func() { zset.Score("5") },
			"replace zset":    func() { zset.PutScored("5", 5, 3) },
			"rank":            func() { zset.Rank(5, "5") },
			"ascend":          func() { zset.AscendRank(2, scored) },
			"descend":         func() { zset.DescendRank(8, scored) },
			"list at":         func() { list.LocAt(5) },
			"replace at":      func() { list.PutAt(5, 4) },
			"bounds":          func() { list.Bounds() },
		} {
			if got := testing.AllocsPerRun(20, f); got != 0 {
				t.Errorf("%s of %d: %v allocations", name, n, got)
			}
		}
	}
}
