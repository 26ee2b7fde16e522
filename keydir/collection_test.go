package keydir_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

type element struct {
	hash  uint64
	name  string
	score uint64
	loc   keydir.Loc
}

// members is a hash, set or sorted set as simple as can be.
type members struct {
	f   keydir.Collection
	all map[string]element
	insertionOrder
}

func scored(f keydir.Collection) bool {
	return f.Type() == keydir.ZSet || f.Type() == keydir.FieldDeadlines || f.Type() == keydir.StreamGroups
}

func (m *members) put(t *testing.T, name string, score uint64, loc keydir.Loc) {
	t.Helper()
	was, had := m.all[name]
	var oldScore uint64
	var old keydir.Loc
	var existed bool
	if scored(m.f) {
		oldScore, old, existed = m.f.PutScored(name, score, loc)
	} else {
		score = 0
		old, existed = m.f.Put(name, loc)
	}
	if existed != had || old != was.loc || oldScore != was.score {
		t.Fatalf("put %q: had %v (%d, %d), want %v (%d, %d)", name, existed, old, oldScore, had, was.loc, was.score)
	}
	m.all[name] = element{m.f.HashOf(name), name, score, loc}
	if !had {
		m.add(name)
	}
	m.follow()
}

func (m *members) delete(t *testing.T, name string) {
	t.Helper()
	was, had := m.all[name]
	var oldScore uint64
	var old keydir.Loc
	var existed bool
	if scored(m.f) {
		oldScore, old, existed = m.f.DeleteScored(name)
	} else {
		old, existed = m.f.Delete(name)
	}
	if existed != had || old != was.loc || oldScore != was.score {
		t.Fatalf("delete %q: had %v (%d, %d), want %v (%d, %d)", name, existed, old, oldScore, had, was.loc, was.score)
	}
	delete(m.all, name)
	if i := slices.Index(m.order, name); i >= 0 {
		m.order = slices.Delete(m.order, i, i+1)
	}
	m.follow()
}

// sorted returns the elements by hash, or by score.
func (m *members) sorted(byScore bool) []element {
	all := make([]element, 0, len(m.all))
	for _, e := range m.all {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b element) int {
		if byScore {
			return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
		}
		return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.name, b.name))
	})
	return all
}

func (m *members) equal(t *testing.T, r *rand.Rand) {
	t.Helper()
	f := m.f
	if f.Len() != len(m.all) {
		t.Fatalf("%d elements, want %d", f.Len(), len(m.all))
	}
	all := m.sorted(false)
	i := 0
	f.Scan(0, func(hash uint64, elem []byte, loc keydir.Loc) bool {
		if i >= len(all) || hash != all[i].hash || string(elem) != all[i].name || loc != all[i].loc {
			t.Fatalf("scan: element %d is %x %q %d", i, hash, elem, loc)
		}
		i++
		return true
	})
	if i != len(all) {
		t.Fatalf("scan returns %d of %d", i, len(all))
	}
	each := make([]element, 0, len(all))
	f.Each(func(elem []byte, loc keydir.Loc) bool {
		if m.all[string(elem)].loc != loc {
			t.Fatalf("each: %q at %d", elem, loc)
		}
		each = append(each, m.all[string(elem)])
		return true
	})
	if len(each) != len(all) {
		t.Fatalf("each returns %d of %d", len(each), len(all))
	}
	m.equalOrder(t)
	places := all // of At
	if !f.Private() {
		places = each
	}
	for range min(len(all), 200) {
		k := r.IntN(len(all))
		want := places[k]
		if elem, loc := f.At(k); string(elem) != want.name || loc != want.loc {
			t.Fatalf("at %d: %q %d, want %q %d", k, elem, loc, want.name, want.loc)
		}
		if loc, ok := f.Get(want.name); !ok || loc != want.loc {
			t.Fatalf("get %q: %d %v, want %d", want.name, loc, ok, want.loc)
		}
		from := want.hash + uint64(r.IntN(3)) - 1
		first := sort.Search(len(all), func(i int) bool { return all[i].hash >= from })
		f.Scan(from, func(hash uint64, elem []byte, loc keydir.Loc) bool {
			if first == len(all) || string(elem) != all[first].name {
				t.Fatalf("scan from %x begins with %q", from, elem)
			}
			first = -1
			return false
		})
		if first >= 0 && first < len(all) {
			t.Fatalf("scan from %x returns nothing", from)
		}
	}
	if scored(f) {
		m.equalScores(t, r)
	}
}

func (m *members) equalScores(t *testing.T, r *rand.Rand) {
	t.Helper()
	f, all := m.f, m.sorted(true)
	if len(all) > 0 {
		if elem, score := f.First(); string(elem) != all[0].name || score != all[0].score {
			t.Fatalf("first is %q %d, want %q %d", elem, score, all[0].name, all[0].score)
		}
	}
	from := 0
	ascend := func(elem []byte, score uint64) bool {
		if from >= len(all) || string(elem) != all[from].name || score != all[from].score {
			t.Fatalf("ascend: rank %d is %q %d", from, elem, score)
		}
		from++
		return true
	}
	f.AscendRank(0, ascend)
	if from != len(all) {
		t.Fatalf("ascend returns %d of %d", from, len(all))
	}
	descend := func(elem []byte, score uint64) bool {
		if from < 0 || string(elem) != all[from].name || score != all[from].score {
			t.Fatalf("descend: rank %d is %q %d", from, elem, score)
		}
		from--
		return true
	}
	from = len(all) - 1
	f.DescendRank(len(all)+5, descend)
	if from != -1 {
		t.Fatalf("descend stops before %d", from)
	}
	f.AscendRank(len(all), func([]byte, uint64) bool { t.Fatal("ascend beyond the end"); return false })
	f.DescendRank(-1, func([]byte, uint64) bool { t.Fatal("descend beyond the start"); return false })
	for range min(len(all), 100) {
		k := r.IntN(len(all))
		want := all[k]
		if got := f.Rank(want.score, want.name); got != k {
			t.Fatalf("rank of %d %q is %d, want %d", want.score, want.name, got, k)
		}
		if got := f.Rank(want.score, want.name+"\x00"); got != k+1 {
			t.Fatalf("rank after %d %q is %d, want %d", want.score, want.name, got, k+1)
		}
		if score, loc, ok := f.Score(want.name); !ok || score != want.score || loc != want.loc {
			t.Fatalf("score of %q is %d, %d, %v", want.name, score, loc, ok)
		}
		score := want.score + uint64(r.IntN(3)) - 1
		if got, want := f.Rank(score, ""), sort.Search(len(all), func(i int) bool { return all[i].score >= score }); got != want {
			t.Fatalf("rank of score %d is %d, want %d", score, got, want)
		}
		n := 0
		f.AscendRank(k, func(elem []byte, score uint64) bool {
			if string(elem) != all[k+n].name {
				t.Fatalf("ascend from %d: %q, want %q", k, elem, all[k+n].name)
			}
			n++
			return n < 3
		})
		n = 0
		f.DescendRank(k, func(elem []byte, score uint64) bool {
			if string(elem) != all[k-n].name {
				t.Fatalf("descend from %d: %q, want %q", k, elem, all[k-n].name)
			}
			n++
			return n < 3
		})
	}
}

// names returns functions that make names: of several habits, from few so that they meet again.
func names(r *rand.Rand, space int) map[string]func() string {
	return map[string]func() string{
		"numbers": func() string { return fmt.Sprintf("member:%d", r.IntN(space)) },
		"short":   func() string { return string(binaryName(r.IntN(space))) },
		"integers": func() string {
			if k := r.IntN(space); k%10 == 9 && space == 150 {
				return "n" + strconv.Itoa(k) // a set of integers does not stay one
			}
			return strconv.Itoa((r.IntN(space) - space/2) * 1_000_003)
		},
		"mixed": func() string {
			k := r.IntN(space)
			switch k % 50 {
			case 0:
				return strings.Repeat("x", k%3000) + fmt.Sprint(k)
			case 1:
				return strings.Repeat("y", 120+k%16)
			}
			return fmt.Sprintf("%0*d", k%40, k)
		},
	}
}

func binaryName(k int) []byte {
	b := []byte{}
	for ; k > 0; k >>= 8 {
		b = append(b, byte(k))
	}
	return b
}

func TestCollectionAgainstMap(t *testing.T) {
	for _, typ := range []keydir.Type{keydir.Hash, keydir.Set, keydir.ZSet} {
		for _, size := range []int{8, 60, 150, 2000, 20000} {
			for _, weak := range []int{64, 3, 0} {
				for habit := range names(nil, 1) {
					if size > 2000 && (weak < 64 || habit != "mixed") || size == 60 && habit != "mixed" {
						continue
					}
					t.Run(fmt.Sprintf("%v/%d/%d/%s", typ, size, weak, habit), func(t *testing.T) {
						r := chance.Rand(t)
						d := keydir.NewDirectory(keydir.Seed{r.Uint64(), r.Uint64()})
						keydir.WeakHash(d, weak)
						churn(t, r, d, typ, size, names(r, size)[habit])
					})
				}
			}
		}
	}
}

// churn fills a collection, changes it, and empties it again.
func churn(t *testing.T, r *rand.Rand, d *keydir.Directory, typ keydir.Type, size int, name func() string) {
	h := r.Uint64()
	m := newMembers(d.NewCollection(h, typ, "key"))
	m.f.SetMeta(77)
	score := [...]func() uint64{
		func() uint64 { return r.Uint64N(20) },
		func() uint64 { return r.Uint64() },
		func() uint64 { return uint64(len(m.all)) },
	}[r.IntN(3)]
	ops := min(2*size, 20000)
	if underRace {
		ops = min(ops, 300)
	}
	for _, deletes := range []int{5, 50, 85, 10, 95} {
		for range ops {
			if r.IntN(100) >= deletes {
				m.put(t, name(), score(), keydir.Loc(r.Uint64()))
				continue
			}
			m.delete(t, name())
			m.move(t, r, name())
		}
		check(t, d)
		m.equal(t, r)
	}
	for name := range m.all {
		m.delete(t, name)
	}
	check(t, d)
	m.equal(t, r)
	if f, ok := d.FindCollection(h, "key"); !ok || f != m.f || f.Meta() != 77 || f.Key() != "key" || f.Type() != typ {
		t.Fatal("the collection is not what it was")
	}
}

func TestOrderOfArrival(t *testing.T) {
	score := map[string]func(i int) uint64{
		"rising":  func(i int) uint64 { return uint64(i) },
		"falling": func(i int) uint64 { return 1<<40 - uint64(i) },
		"equal":   func(i int) uint64 { return 1 },
	}
	for name, score := range score {
		t.Run(name, func(t *testing.T) {
			d := keydir.NewDirectory(keydir.Seed{1, 2})
			m := newMembers(d.NewCollection(1, keydir.ZSet, "k"))
			n := 30000
			if underRace {
				n = 3000
			}
			for i := range n {
				m.put(t, fmt.Sprintf("%08d", i), score(i), keydir.Loc(i+1))
			}
			check(t, d)
			m.equal(t, chance.Rand(t))
		})
	}
}

func TestLongNames(t *testing.T) {
	r := chance.Rand(t)
	long := func() string { return strings.Repeat("n", keydir.MaxName-4) + fmt.Sprintf("%04d", r.IntN(200)) }
	for _, typ := range []keydir.Type{keydir.Hash, keydir.ZSet} {
		d := keydir.NewDirectory(keydir.Seed{})
		key := long()
		m := newMembers(d.NewCollection(5, typ, key))
		for range 300 {
			m.put(t, long(), r.Uint64N(3), keydir.Loc(r.Uint64()))
			m.put(t, fmt.Sprint(r.IntN(500)), r.Uint64N(3), keydir.Loc(r.Uint64()))
			m.delete(t, long())
		}
		check(t, d)
		m.equal(t, r)
		if f, ok := d.FindCollection(5, key); !ok || f.Key() != key {
			t.Error("long key is lost")
		}
		for name := range m.all {
			m.delete(t, name)
		}
		check(t, d)
	}
}

func TestManyCollections(t *testing.T) {
	r := chance.Rand(t)
	seed := keydir.Seed{r.Uint64(), r.Uint64()}
	d := keydir.NewDirectory(seed)
	model := map[string]*members{}
	key := func() string { return fmt.Sprintf("key:%d", r.IntN(1000)) }
	hash := func(key string) uint64 { return seed.Hash(key)&3<<56 | 8 } // two stripes' worth of collisions
	for i := range rounds(40000) {
		k := key()
		m := model[k]
		f, ok := d.FindCollection(hash(k), k)
		if ok != (m != nil) || ok && f != m.f {
			t.Fatalf("collection %q: found %v", k, ok)
		}
		switch op := r.IntN(100); {
		case m == nil:
			model[k] = newMembers(d.NewCollection(hash(k), keydir.Type(2+2*r.IntN(2)), k))
		case op < 2:
			x := d.DropCollection(hash(k), f)
			sameDropped(t, x, m)
			if r.IntN(2) == 0 {
				delete(model, k)
			} else if g := d.Restore(hash(k), x); g != m.f {
				t.Fatal("restored as another collection")
			}
		case op < 70:
			m.put(t, fmt.Sprintf("field:%d", r.IntN(200)), 0, keydir.Loc(r.Uint64()|1))
		default:
			m.delete(t, fmt.Sprintf("field:%d", r.IntN(200)))
		}
		if i%10000 == 0 {
			check(t, d)
		}
	}
	check(t, d)
	for k, m := range model {
		if m.f.Key() != k {
			t.Fatalf("collection %q has key %q", k, m.f.Key())
		}
		m.equal(t, r)
	}
}

func sameDropped(t *testing.T, x keydir.Dropped, m *members) {
	t.Helper()
	var got, want []keydir.Loc
	x.Each(func(loc keydir.Loc) bool { got = append(got, loc); return true })
	for _, e := range m.all {
		want = append(want, e.loc)
	}
	if meta := m.f; x.Len() != len(want) || !meta.Valid() {
		t.Fatalf("dropped %d elements of %d", x.Len(), len(want))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("dropped %d locations of %d", len(got), len(want))
	}
}

// A transaction's rollback undoes, last first, the changes of several collections of a stripe.
// Handles from before must work again.
func TestRestoreUndoesDrop(t *testing.T) {
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{})
	model := map[string]*members{}
	for i := range 50 {
		k := fmt.Sprint(i)
		model[k] = newMembers(d.NewCollection(1, keydir.ZSet, k))
		for j := range r.IntN(200) {
			model[k].put(t, fmt.Sprint(j), r.Uint64(), keydir.Loc(r.Uint64()|1))
		}
	}
	for range 10 {
		var undo []func()
		for range 40 {
			k := fmt.Sprint(r.IntN(70))
			if f, ok := d.FindCollection(1, k); ok {
				x := d.DropCollection(1, f)
				undo = append(undo, func() { d.Restore(1, x) })
			} else {
				f := d.NewCollection(1, keydir.List, k)
				f.PutAt(5, 5)
				undo = append(undo, func() { d.DropCollection(1, f) })
			}
		}
		for _, f := range slices.Backward(undo) {
			f()
		}
		check(t, d)
		for k, m := range model {
			if f, ok := d.FindCollection(1, k); !ok || f != m.f {
				t.Fatalf("collection %q is not what it was", k)
			}
			m.equal(t, r)
		}
		if d.Len() != len(model) {
			t.Fatalf("%d collections, want %d", d.Len(), len(model))
		}
	}
}

// Names that were handed out stay as they are while other collections of the stripe change.
func TestNamesStayWhileOthersChange(t *testing.T) {
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{})
	f := d.NewCollection(1, keydir.Set, "quiet")
	for i := range 40 {
		f.Put(fmt.Sprint(i), 1)
	}
	var others []keydir.Collection
	for i := range 300 {
		others = append(others, d.NewCollection(1, keydir.Set, fmt.Sprint(i)))
	}
	var held, copies [][]byte
	f.Each(func(elem []byte, _ keydir.Loc) bool {
		held = append(held, elem)
		copies = append(copies, slices.Clone(elem))
		for range 300 {
			o := others[r.IntN(len(others))]
			if name := fmt.Sprint(r.IntN(60)); r.IntN(2) == 0 {
				o.Put(name, 1)
			} else {
				o.Delete(name)
			}
		}
		return true
	})
	for i := range held {
		if !bytes.Equal(held[i], copies[i]) {
			t.Fatalf("name %q became %q", copies[i], held[i])
		}
	}
	if len(held) != f.Len() {
		t.Fatalf("each returned %d of %d", len(held), f.Len())
	}
}

// Pages fill up at every place of a full group of pages, so that the group is split before,
// after and between the halves of the page that is split.
func TestGroupsAreCutAnywhere(t *testing.T) {
	r := chance.Rand(t)
	for range rounds(100) {
		crowded := 61 + r.Uint64N(6)
		d := keydir.NewDirectory(keydir.Seed{1, 2})
		m := newMembers(d.NewCollection(1, keydir.ZSet, "k"))
		for i := range uint64(128) {
			if i != crowded { // one entry, one page
				m.put(t, strings.Repeat("n", 2100)+fmt.Sprint(i), i<<32, 1)
			} else {
				m.put(t, "first", i<<32, 1)
			}
		}
		for i := range 150 {
			m.put(t, fmt.Sprint(i), crowded<<32+1+r.Uint64N(1<<20), 1)
		}
		check(t, d)
		m.equal(t, r)
	}
}

// A collection with a long key is never small, not even empty.
func TestEmptyBigCollections(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	key := strings.Repeat("k", 3000)
	zset, list := d.NewCollection(1, keydir.ZSet, key), d.NewCollection(1, keydir.List, key+"l")
	for range 2 {
		if zset.Rank(1, "a") != 0 || zset.Len() != 0 || list.Len() != 0 {
			t.Error("not empty")
		}
		zset.AscendRank(0, func([]byte, uint64) bool { t.Error("an element of nothing"); return true })
		zset.DescendRank(0, func([]byte, uint64) bool { t.Error("an element of nothing"); return true })
		zset.Scan(0, func(uint64, []byte, keydir.Loc) bool { t.Error("an element of nothing"); return true })
		if head, tail := list.Bounds(); head != 0 || tail != -1 {
			t.Errorf("empty list from %d to %d", head, tail)
		}
		zset.PutScored("a", 1, 1)
		list.PutAt(-7, 1)
		zset.DeleteScored("a")
		list.DeleteAt(-7)
		check(t, d)
	}
}
