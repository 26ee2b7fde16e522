package keydir_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// dump returns the dump of a stripe, taken in pieces of about that many bytes.
func dump(d *keydir.Directory, stripe, piece int) []byte {
	var b []byte
	for c := d.Dump(stripe); !c.Done(); {
		b = c.Append(b, piece)
	}
	return b
}

// reload returns a directory loaded from the dumps of another.
func reload(t testing.TB, d *keydir.Directory, seed keydir.Seed, weak, piece int) *keydir.Directory {
	t.Helper()
	n := keydir.NewDirectory(seed)
	keydir.WeakHash(n, weak)
	l := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
	for stripe := range keydir.Stripes {
		if err := l.Load(n, stripe, dump(d, stripe, piece)); err != nil {
			t.Fatalf("stripe %d: %v", stripe, err)
		}
	}
	check(t, n)
	return n
}

// contents lists everything in a directory.
func contents(d *keydir.Directory) []string {
	all := []string{fmt.Sprint(d.Len(), d.LenDeadlines(), d.LenFieldDeadlines())}
	for stripe := range keydir.Stripes {
		d.Scan(stripe, 0, func(h uint64, s keydir.Slot) bool {
			if s.Type == keydir.String || s.Type == keydir.Deadline {
				all = append(all, fmt.Sprint(h, s))
				return true
			}
			f := d.CollectionOf(h, s)
			all = append(all, fmt.Sprint(h, s.Type, f.Key(), f.Len(), f.Meta()))
			all = append(all, elementsOf(f)...)
			return true
		})
	}
	slices.Sort(all) // slots of one hash are in no order
	return all
}

func elementsOf(f keydir.Collection) (all []string) {
	if f.Type().Indexed() {
		head, tail := f.Bounds()
		for i := head; i <= tail; i++ {
			if loc, ok := f.LocAt(i); ok {
				all = append(all, fmt.Sprint(f.Key(), i, loc))
			}
		}
		return append(all, fmt.Sprint(f.Key(), head, tail))
	}
	if f.Type() == keydir.Stream {
		f.AscendEntries(keydir.StreamID{}, func(id keydir.StreamID, loc keydir.Loc) bool {
			all = append(all, fmt.Sprint(f.Key(), id, loc))
			return true
		})
		return all
	}
	f.Scan(0, func(hash uint64, elem []byte, loc keydir.Loc) bool {
		all = append(all, fmt.Sprintf("%s %x %q %d", f.Key(), hash, elem, loc))
		return true
	})
	if scored(f) {
		rank := 0
		f.AscendRank(0, func(elem []byte, score uint64) bool {
			all = append(all, fmt.Sprintf("%s #%d %q %d %d", f.Key(), rank, elem, score, f.Rank(score, string(elem))))
			rank++
			return true
		})
	}
	return all
}

func equalDirectories(t *testing.T, got, want *keydir.Directory) {
	t.Helper()
	g, w := contents(got), contents(want)
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("entry %d of %d: %s, want %s", i, len(w), g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d entries, want %d", len(g), len(w))
	}
}

// populate fills a directory with everything there is.
func populate(r *rand.Rand, d *keydir.Directory, seed keydir.Seed, n int) {
	loc := keydir.Loc(1)
	next := func() keydir.Loc { loc += 256; return loc }
	for i := range n {
		key := fmt.Sprint("key", i)
		h := seed.Hash(key)
		if i%7 == 0 {
			d.Insert(h, keydir.Slot{Type: keydir.Deadline, Loc: next()})
		}
		if i%3 != 0 {
			d.Insert(h, keydir.Slot{Type: keydir.String, Loc: next()})
			continue
		}
		typ := dumpTypes[r.IntN(len(dumpTypes))]
		f := d.NewCollection(h, typ, key)
		f.SetMeta(next())
		if typ == keydir.Hash && i%2 == 0 {
			g := d.NewCollection(h, keydir.FieldDeadlines, key)
			for range 1 + r.IntN(1+i%11*i%13*30) {
				g.PutScored(fmt.Sprint("element", r.IntN(3000)), r.Uint64N(100), next())
			}
		}
		if typ == keydir.Stream && i%2 == 0 {
			g := d.NewCollection(h, keydir.StreamGroups, key)
			for range 1 + r.IntN(1+i%11*i%13*30) {
				g.PutScored(fmt.Sprint("pending", r.IntN(3000)), r.Uint64N(100)<<40, next())
			}
		}
		size := r.IntN(20)
		if i%60 == 0 {
			size = 100 + r.IntN(3000)
		}
		for j := range size {
			name := fmt.Sprint("element", r.IntN(4*size))
			if j == 0 && i%120 == 0 {
				name = string(make([]byte, 100+r.IntN(5000)))
			}
			switch typ {
			case keydir.List, keydir.Chunks:
				f.PutAt(int64(r.IntN(3*size))-50, next())
			case keydir.Stream:
				f.PutEntry(idOf(r.IntN(3*size)), next())
			case keydir.ZSet:
				f.PutScored(name, uint64(r.IntN(size)), next())
			default:
				f.Put(name, next())
			}
		}
		for range size / 3 {
			name := fmt.Sprint("element", r.IntN(4*size))
			switch typ {
			case keydir.List, keydir.Chunks:
				f.DeleteAt(int64(r.IntN(3*size)) - 50)
			case keydir.Stream:
				f.DeleteEntry(idOf(r.IntN(3 * size)))
			case keydir.ZSet:
				f.DeleteScored(name)
			default:
				f.Delete(name)
			}
		}
	}
}

var dumpTypes = []keydir.Type{keydir.Hash, keydir.List, keydir.Set, keydir.ZSet, keydir.Chunks, keydir.Stream}

func TestLoadEqualsDumped(t *testing.T) {
	for _, c := range []struct{ n, weak, piece int }{{0, 64, 100}, {1, 64, 1}, {rounds(3000), 64, 1 << 30}, {rounds(3000), 64, 1}, {rounds(3000), 64, 700}, {rounds(1000), 3, 700}} {
		t.Run(fmt.Sprintf("%d keys, %d bits, %d bytes", c.n, c.weak, c.piece), func(t *testing.T) {
			seed := keydir.Seed{3, 4}
			d := keydir.NewDirectory(seed)
			keydir.WeakHash(d, c.weak)
			populate(chance.Rand(t), d, seed, c.n)
			equalDirectories(t, reload(t, d, seed, c.weak, c.piece), d)
		})
	}
}

// TestLoadedGoesOn changes a directory and one loaded from it in the same way.
func TestLoadedGoesOn(t *testing.T) {
	r := chance.Rand(t)
	seed := keydir.Seed{5, 6}
	d := keydir.NewDirectory(seed)
	populate(r, d, seed, 1000)
	n := reload(t, d, seed, 64, 1<<20)
	for i := range rounds(60_000) {
		key := fmt.Sprint("key", r.IntN(1000))
		h, name, loc, put := seed.Hash(key), fmt.Sprint("element", r.IntN(3000)), keydir.Loc(i+1), r.IntN(3) > 0
		index, score := int64(r.IntN(4000)-100), r.Uint64N(50)
		for _, x := range []*keydir.Directory{d, n} {
			f, ok := x.FindCollection(h, key)
			switch {
			case !ok:
			case f.Type().Indexed() && put:
				f.PutAt(index, loc)
			case f.Type().Indexed():
				f.DeleteAt(index)
			case f.Type() == keydir.Stream && put:
				f.PutEntry(idOf(int(index+100)), loc)
			case f.Type() == keydir.Stream:
				f.DeleteEntry(idOf(int(index + 100)))
			case f.Type() == keydir.ZSet && put:
				f.PutScored(name, score, loc)
			case f.Type() == keydir.ZSet:
				f.DeleteScored(name)
			case put:
				f.Put(name, loc)
			default:
				f.Delete(name)
			}
		}
	}
	check(t, n)
	equalDirectories(t, n, d)
}

// TestLoadLarge has tables that are split in several.
func TestLoadLarge(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	r := chance.Rand(t)
	for range 60_000 {
		d.Insert(r.Uint64()>>8, keydir.Slot{Type: keydir.String, Loc: keydir.Loc(r.Uint32())})
	}
	n := reload(t, d, keydir.Seed{}, 64, 1<<20)
	equalDirectories(t, n, d)
	if n.Bytes() > 60_000*20 {
		t.Errorf("%d bytes for 60,000 slots", n.Bytes())
	}
	for range 60_000 {
		n.Insert(r.Uint64()>>8, keydir.Slot{Type: keydir.String, Loc: 1})
	}
	check(t, n)
}

// TestDumpWhileChanging changes a directory between the pieces of its dump, and makes all the changes again on the
// loaded copy: both end up equal.
func TestDumpWhileChanging(t *testing.T) {
	r := chance.Rand(t)
	seed := keydir.Seed{7, 8}
	for range 20 {
		d := keydir.NewDirectory(seed)
		key := func(i int) string { return fmt.Sprint("key", i) }
		h := func(i int) uint64 { return seed.Hash(key(i)) >> 8 } // all in one stripe
		for i := range 50 {
			f := d.NewCollection(h(i), dumpTypes[i%len(dumpTypes)], key(i))
			f.SetMeta(1)
			for j := range 20 + i%3*500 {
				set(f, j, keydir.Loc(j+1))
			}
		}
		var b []byte
		var changes []func(*keydir.Directory)
		dumped, loaded := map[keydir.Loc]int{}, map[keydir.Loc]int{}
		c := d.Dump(0)
		for c.OnLoc = func(loc keydir.Loc) { dumped[loc]++ }; !c.Done(); {
			b = c.Append(b, 1000)
			for range 20 {
				fn := change(r, h, key, keydir.Loc(1<<20+len(b)))
				fn(d)
				changes = append(changes, fn)
			}
		}
		n := keydir.NewDirectory(seed)
		n.Promise(0, c.Counts) // which Load compares
		l := keydir.Loader{OnLoc: func(loc keydir.Loc) bool { loaded[loc]++; return true }}
		if err := l.Load(n, 0, b); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(dumped, loaded) {
			t.Fatal("the dump reported other locations than it holds")
		}
		check(t, n)
		for _, fn := range changes {
			fn(n)
		}
		check(t, n)
		equalDirectories(t, n, d)
	}
}

func set(f keydir.Collection, j int, loc keydir.Loc) {
	switch f.Type() {
	case keydir.List, keydir.Chunks:
		f.PutAt(int64(j), loc)
	case keydir.Stream:
		f.PutEntry(idOf(j), loc)
	case keydir.ZSet:
		f.PutScored(fmt.Sprint(j), uint64(loc)%7, loc)
	default:
		f.Put(fmt.Sprint(j), loc)
	}
}

// change returns a change as a log has it: it sets a new state whatever the old one.
func change(r *rand.Rand, h func(int) uint64, key func(int) string, loc keydir.Loc) func(*keydir.Directory) {
	i, j, op, typ := r.IntN(60), r.IntN(1200), r.IntN(100), dumpTypes[r.IntN(len(dumpTypes))]
	return func(d *keydir.Directory) {
		f, ok := d.FindCollection(h(i), key(i))
		if ok && (op < 5 || f.Type() != typ && op < 60) {
			d.DropCollection(h(i), f)
			ok = false
		}
		switch {
		case op < 5:
		case op < 60:
			if !ok {
				f = d.NewCollection(h(i), typ, key(i))
			}
			f.SetMeta(loc)
			set(f, j, loc)
		case ok && f.Type() == typ:
			switch typ {
			case keydir.List, keydir.Chunks:
				f.DeleteAt(int64(j))
			case keydir.Stream:
				f.DeleteEntry(idOf(j))
			case keydir.ZSet:
				f.DeleteScored(fmt.Sprint(j))
			default:
				f.Delete(fmt.Sprint(j))
			}
		}
	}
}

// TestPromise loads stripes that were promised before: counts are there from the first moment, lock-free readers are
// turned away until then, and a dump that does not hold what was promised is refused and changes nothing.
func TestPromise(t *testing.T) {
	seed := keydir.Seed{5, 6}
	d := keydir.NewDirectory(seed)
	populate(chance.Rand(t), d, seed, 3000)
	n := keydir.NewDirectory(seed)
	var dumps [keydir.Stripes][]byte
	var promised [keydir.Stripes]keydir.Counts
	seen := map[keydir.Loc]int{}
	for stripe := range dumps {
		c := d.Dump(stripe)
		for c.OnLoc = func(loc keydir.Loc) { seen[loc]++ }; !c.Done(); {
			dumps[stripe] = c.Append(dumps[stripe], 500)
		}
		promised[stripe] = c.Counts
		n.Promise(stripe, c.Counts)
	}
	counts := func(d *keydir.Directory) [3]int { return [3]int{d.Len(), d.LenDeadlines(), d.LenFieldDeadlines()} }
	if counts(n) != counts(d) {
		t.Fatalf("promised %v, there are %v", counts(n), counts(d))
	}
	var removed atomic.Uint64
	l := keydir.Loader{OnLoc: func(loc keydir.Loc) bool { seen[loc]--; return true }}
	for stripe := range dumps {
		h := uint64(stripe) << 56
		if _, lookup := n.TryGet(h, &removed); lookup != keydir.LookupRetry {
			t.Fatalf("stripe %d: lookup %v before it is loaded", stripe, lookup)
		}
		if c, ok := n.Promised(stripe); !ok || c != promised[stripe] {
			t.Fatalf("stripe %d: promised %+v, %v", stripe, c, ok)
		}
		quiet := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
		for _, bad := range [][]byte{dumps[stripe][:len(dumps[stripe])/2], nil} {
			// A dump that ends within a collection, and between two of its items, has all that is promised: how many
			// elements there are is not. Only the sum of the bytes would tell.
			cut := keydir.NewDirectory(seed)
			if err := quiet.Load(cut, stripe, bad); err == nil && counts(cut) == [3]int{int(promised[stripe].Keys), int(promised[stripe].Deadlines), int(promised[stripe].FieldDeadlines)} {
				continue
			}
			if err := quiet.Load(n, stripe, bad); promised[stripe] != (keydir.Counts{}) && !errors.Is(err, keydir.ErrDump) {
				t.Fatalf("stripe %d: loaded %d of %d bytes: %v", stripe, len(bad), len(dumps[stripe]), err)
			}
		}
		if err := l.Load(n, stripe, dumps[stripe]); err != nil {
			t.Fatalf("stripe %d: %v", stripe, err)
		}
		if _, ok := n.Promised(stripe); ok || counts(n) != counts(d) {
			t.Fatalf("stripe %d is loaded: promised %v, counts %v", stripe, ok, counts(n))
		}
	}
	check(t, n)
	equalDirectories(t, n, d)
	for loc, k := range seen {
		if k != 0 {
			t.Fatalf("%v: dump and loader differ by %d", loc, k)
		}
	}
	// What was rebuilt may hold more or less.
	n = keydir.NewDirectory(seed)
	n.Promise(7, keydir.Counts{Keys: 5, Deadlines: 1})
	if err := (&keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }, Rebuilt: true}).Load(n, 7, dumps[7]); err != nil {
		t.Fatal(err)
	}
	if n.Len() != int(promised[7].Keys) || n.LenDeadlines() != int(promised[7].Deadlines) {
		t.Errorf("%v after rebuilding, want %+v", counts(n), promised[7])
	}
	check(t, n)
}

// TestFindInDump: a search in a dump finds what a lock-free search finds in the stripe that is loaded from it, of every
// type and of hashes of several slots.
func TestFindInDump(t *testing.T) {
	seed := keydir.Seed{5, 7}
	d := keydir.NewDirectory(seed)
	populate(chance.Rand(t), d, seed, 3000)
	for i := range 100 { // hashes that collide
		d.Insert(seed.Hash(fmt.Sprint("key", i)), keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(1, uint32(100+i), 64)})
	}
	var dumps [keydir.Stripes][]byte
	for stripe := range dumps {
		dumps[stripe] = dump(d, stripe, 1<<20)
	}
	n := reload(t, d, seed, 64, 1<<20)
	found := map[keydir.Lookup]int{}
	for i := range 6000 {
		h := seed.Hash(fmt.Sprint("key", i))
		stripe := keydir.StripeOf(h)
		found[sameInDump(t, n, dumps[stripe], stripe, h)]++
		sameInDump(t, n, dumps[stripe], stripe, h^8) // its neighbour
		if loc, lookup := keydir.FindInDump(dumps[stripe], stripe^1, h); lookup != keydir.LookupRetry && len(dumps[stripe]) > 0 {
			t.Fatalf("found %v, %v in the dump of another stripe", loc, lookup)
		}
	}
	if len(found) != 3 {
		t.Errorf("not everything occurred: %v", found)
	}
	for stripe, b := range dumps { // however many collections there are
		last := uint64(stripe)<<56 | (1<<56 - 1)
		if n := testing.AllocsPerRun(1, func() { keydir.FindInDump(b, stripe, last) }); n > 1 {
			t.Fatalf("%v allocations in a dump of %d bytes", n, len(b))
		}
	}
}

// sameInDump compares a search in a dump with one in the directory that was loaded from it.
func sameInDump(t *testing.T, d *keydir.Directory, dump []byte, stripe int, h uint64) keydir.Lookup {
	t.Helper()
	loc, lookup := d.TryGet(h, new(atomic.Uint64))
	if lookup == keydir.LookupHit && loc.Pending() {
		loc, lookup = 0, keydir.LookupRetry // in chunks
	}
	if gotLoc, got := keydir.FindInDump(dump, stripe, h); got != lookup || gotLoc != loc {
		t.Fatalf("hash %x of stripe %d: %v, %v in the dump, %v, %v in the directory", h, stripe, gotLoc, got, loc, lookup)
	}
	return lookup
}

func TestLoadRefuses(t *testing.T) {
	seed := keydir.Seed{3, 4}
	d := keydir.NewDirectory(seed)
	populate(chance.Rand(t), d, seed, 5000)
	b := dump(d, 7, 1<<20)
	load := func(stripe int, b []byte, see func(keydir.Loc) bool) error {
		l := keydir.Loader{OnLoc: see}
		return l.Load(keydir.NewDirectory(seed), stripe, b)
	}
	yes := func(keydir.Loc) bool { return true }
	if err := load(7, b, yes); err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, err := range map[string]error{
		"another stripe":     load(8, b, yes),
		"cut off":            load(7, b[:len(b)-1], yes),
		"with more":          load(7, append(slices.Clone(b), 0), yes),
		"a refused location": load(7, b, func(keydir.Loc) bool { n++; return n < 5 }),
		"out of order":       load(7, append(slices.Clone(b), b...), yes),
	} {
		if !errors.Is(err, keydir.ErrDump) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLoad loads arbitrary bytes: they are refused, or make a sound directory, in which is found what is found in them.
func FuzzLoad(f *testing.F) {
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	populate(rand.New(rand.NewPCG(1, 2)), d, seed, 300)
	f.Add(byte(0), []byte{})
	for stripe := range 40 {
		f.Add(byte(stripe), dump(d, stripe, 100))
	}
	f.Fuzz(func(t *testing.T, stripe byte, b []byte) {
		d := keydir.NewDirectory(seed)
		l := keydir.Loader{OnLoc: func(loc keydir.Loc) bool { return loc != 0 }}
		some := uint64(stripe)<<56 | 1<<55 // a hash that is in most of them, or before or after others
		keydir.FindInDump(b, int(stripe), some)
		if err := l.Load(d, int(stripe), b); err != nil {
			if !errors.Is(err, keydir.ErrDump) {
				t.Fatal(err)
			}
			return
		}
		check(t, d)
		if d.Bytes() > int64(64<<10+20*len(b)) {
			t.Fatalf("%d bytes in memory of %d", d.Bytes(), len(b))
		}
		equalDirectories(t, reload(t, d, seed, 64, 50), d)
		d.Scan(int(stripe), 0, func(h uint64, _ keydir.Slot) bool { sameInDump(t, d, b, int(stripe), h); return true })
		sameInDump(t, d, b, int(stripe), some)
	})
}

// TestCountsWhileLoading: a stripe that is loaded is counted all the time, for who asks without a lock.
func TestCountsWhileLoading(t *testing.T) {
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	h := seed.Hash("k")
	d.Insert(h, keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(1, 100, 64)})
	stripe := keydir.StripeOf(h)
	text := dump(d, stripe, 1<<20)
	var current atomic.Pointer[keydir.Directory]
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			n := current.Load()
			for range 200 {
				if n != nil && n.Len() != 1 {
					t.Errorf("%d keys instead of 1", n.Len())
					return
				}
			}
		}
	})
	l := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !t.Failed(); {
		n := keydir.NewDirectory(seed)
		n.Promise(stripe, keydir.Counts{Keys: 1})
		current.Store(n)
		if err := l.Load(n, stripe, text); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	wg.Wait()
}

func BenchmarkDumpAndLoad(b *testing.B) {
	d := filled(hashes(benchKeys))
	var dumps [keydir.Stripes][]byte
	b.Run("dump", func(b *testing.B) {
		for b.Loop() {
			for i := range dumps {
				c := d.Dump(i)
				for dumps[i] = dumps[i][:0]; !c.Done(); {
					dumps[i] = c.Append(dumps[i], 64<<10)
				}
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		l := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
		for b.Loop() {
			n := keydir.NewDirectory(keydir.Seed{})
			for i := range dumps {
				if err := l.Load(n, i, dumps[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
