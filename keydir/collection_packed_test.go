package keydir

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// FuzzEntry writes an entry between two others and reads all three back.
func FuzzEntry(f *testing.F) {
	f.Add("", uint64(0), uint64(0), uint64(0))
	f.Add("name", uint64(1)<<63, uint64(1)<<40|3, ^uint64(0))
	f.Add(string(make([]byte, 127)), uint64(77), uint64(5), uint64(6))
	f.Add(string(make([]byte, 128)), uint64(77), uint64(5), uint64(6))
	f.Add(string(make([]byte, MaxName)), ^uint64(0), ^uint64(0), uint64(1))
	f.Fuzz(func(t *testing.T, name string, key, loc, score uint64) {
		if len(name) > MaxName {
			t.Skip()
		}
		for _, layout := range []layout{plain, scored, ranked} {
			names := []string{"before", name, "after"}
			size := 0
			for _, name := range names {
				size += layout.entrySize(len(name))
			}
			entries := packed{data: make([]byte, size), n: 3, layout: layout, tags: tagRange{key / 2, uint8(key % 64)}, hash: &hasher{}}
			off := 0
			for _, name := range names {
				entries.write(off, key, name, Loc(loc), score)
				off += layout.entrySize(len(name))
			}
			if off != size {
				t.Fatalf("layout %d: entries end at %d, want %d", layout, off, size)
			}
			off = 0
			for i, name := range names {
				if entries.at(i) != off {
					t.Fatalf("layout %d: entry %d is at %d, want %d", layout, i, entries.at(i), off)
				}
				e := entries.entryAt(off)
				if string(entries.nameOf(e)) != name {
					t.Fatalf("layout %d: name %q reads %q", layout, name, entries.nameOf(e))
				}
				if layout == ranked && entries.key(e) != key || layout != ranked && entries.data[off] != entries.tags.tag(key) {
					t.Fatalf("layout %d: key %x is lost", layout, key)
				}
				if layout != ranked && entries.loc(e) != Loc(loc) || layout == scored && entries.score(e) != score {
					t.Fatalf("layout %d: values are lost", layout)
				}
				off = e.end
			}
			if cut, i := entries.middle(); i < 1 || i > 2 || entries.at(i) != cut {
				t.Fatalf("layout %d: middle is %d at %d", layout, i, cut)
			}
		}
	})
}

func TestTagsRiseWithHashes(t *testing.T) {
	for _, r := range []tagRange{allHashes, {1 << 40, 20}, {1 << 63, 0}, tagRangeOf(5, 5), tagRangeOf(0, ^uint64(0)), tagRangeOf(100, 355)} {
		last := uint8(0)
		for _, hash := range []uint64{0, 1, 99, 100, 101, 200, 355, 356, 1 << 39, 1 << 40, 1<<40 + 1<<27, 1 << 41, 1 << 62, 1 << 63, 1<<63 + 7, ^uint64(0)} {
			tag := r.tag(hash)
			if tag < last {
				t.Errorf("tag range %v: tag %d of %x after %d", r, tag, hash, last)
			}
			last = tag
		}
	}
	r := tagRangeOf(1000, 1255)
	if r.tag(1000) != 0 || r.tag(1001) != 1 || r.tag(1255) != 255 || !r.holds(1255) || r.holds(1256) || r.holds(999) {
		t.Errorf("tag range %v does not fit", r)
	}
}

func TestFenwick(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		plain := make([]int, n)
		for i := range plain {
			plain[i] = r.IntN(5)
		}
		tree := append(fenwick(nil), plain...)
		tree.build()
		for range 20 {
			if n > 0 {
				i, delta := r.IntN(n), r.IntN(9)
				plain[i] += delta
				tree.add(i, delta)
			}
			before := 0
			for i := range n {
				if got := tree.sum(i); got != before {
					t.Fatalf("sum of the first %d of %v is %d, want %d", i, plain, got, before)
				}
				for k := range plain[i] {
					if at, rest := tree.find(before + k); at != i || rest != k {
						t.Fatalf("%d of %v is at %d, %d, want %d, %d", before+k, plain, at, rest, i, k)
					}
				}
				before += plain[i]
			}
			if at, rest := tree.find(before + 3); at != n || rest != 3 {
				t.Fatalf("%d of %v is at %d, %d", before+3, plain, at, rest)
			}
		}
	}
}

func TestArenaAgainstMap(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		for _, most := range []int{40, 400, 3000, 100_000} {
			t.Run(fmt.Sprintf("up to %d bytes, reuse=%v", most, reuse), func(t *testing.T) {
				var bytes atomic.Int64
				a := &arena{reuse: reuse}
				a.init(&bytes)
				arenaChurn(t, a, rand.New(rand.NewPCG(uint64(most), 9)), most)
				if a.total != 0 || a.free != 0 {
					t.Errorf("emptied: %d of %d bytes free", a.free, a.total)
				}
			})
		}
	}
}

// arenaChurn fills an arena, changes it, and empties it again, and compares all blocks with
// copies.
func arenaChurn(t *testing.T, a *arena, r *rand.Rand, most int) {
	blocks := map[uint32][]byte{}
	var handles []uint32
	live := 0
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	size := func() int { return r.IntN(1 + r.IntN(most)) }
	steps := 3_000_000 / (most + 300)
	for step := range steps {
		switch op := r.IntN(10); {
		case len(handles) == 0 || op < 4 && step < steps/2 || op < 1:
			h, n := a.newHandle(), size()
			b := a.alloc(h, n)[:n]
			fill(b)
			blocks[h], handles = bytes.Clone(b), append(handles, h)
			live += n
		case op < 7:
			h, n := handles[r.IntN(len(handles))], size()
			old := blocks[h]
			b := a.resize(h, n)[:n]
			if kept := min(n, len(old)); !bytes.Equal(b[:kept], old[:kept]) {
				t.Fatalf("block %d changed as it was resized", h)
			}
			fill(b)
			live += n - len(old)
			blocks[h] = bytes.Clone(b)
		default:
			i := r.IntN(len(handles))
			h := handles[i]
			handles[i] = handles[len(handles)-1]
			handles = handles[:len(handles)-1]
			live -= len(blocks[h])
			delete(blocks, h)
			a.release(h)
			a.freeHandle(h)
		}
		if step%(steps/20) == 0 {
			if err := a.check(); err != nil {
				t.Fatal(err)
			}
			for h, want := range blocks {
				if !bytes.Equal(a.block(h)[:len(want)], want) {
					t.Fatalf("block %d is not what it was", h)
				}
			}
			if a.total > 200_000 && a.free > a.total/6 {
				t.Errorf("%d of %d bytes free for %d in use", a.free, a.total, live)
			}
		}
	}
	for h := range blocks {
		a.release(h)
		a.freeHandle(h)
	}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
}

func TestPaged(t *testing.T) {
	var p paged[int]
	for i := range 3*pagedSize + 5 {
		if got := p.push(i); got != i {
			t.Fatalf("pushed at %d, want %d", got, i)
		}
	}
	for i := range p.n {
		if *p.at(i) != i {
			t.Fatalf("element %d is %d", i, *p.at(i))
		}
	}
}

// TestSeekAgainstWalk compares searches among entries of one size, which need not be walked, with walks, for every name and
// score that is there, is between two, or is before or after all.
func TestSeekAgainstWalk(t *testing.T) {
	rng := rand.New(rand.NewPCG(chance.Seed(t), 0))
	for range 300 {
		scores := 1 + rng.IntN(40)
		layout := layout(rng.IntN(3))
		h := &hasher{seed: Seed{rng.Uint64(), 2}, mask: ^uint64(0) << (rng.IntN(2) * 60)} // few hashes, or many
		type item struct {
			key  uint64
			name string
		}
		var items []item
		for i := range rng.IntN(60) {
			it := item{uint64(2 * rng.IntN(scores)), fmt.Sprintf("%04d", 2*i)}
			if layout != ranked {
				it.key = h.sum(it.name)
			}
			items = append(items, it)
		}
		slices.SortFunc(items, func(a, b item) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.name, b.name))
		})
		walked := packed{n: len(items), layout: layout, tags: allHashes, hash: h}
		size := layout.entrySize(4)
		walked.data = make([]byte, size*len(items))
		for i, it := range items {
			walked.write(i*size, it.key, it.name, 1, 2)
		}
		if len(items) > 0 && walked.evenSize() != size {
			t.Fatalf("entries of %d bytes each have %d", size, walked.evenSize())
		}
		even := walked
		even.even = walked.evenSize()
		for range 200 {
			key, name := uint64(rng.IntN(2*scores+1)), fmt.Sprintf("%04d", rng.IntN(122))
			if layout != ranked {
				key = h.sum(name)
			}
			off, i, found := even.seek(key, name)
			if wantOff, want, wantFound := walked.seek(key, name); off != wantOff || i != want || found != wantFound {
				t.Fatalf("layout %d: %x, %q is number %d at %d (%v), a walk finds %d at %d (%v)", layout, key, name, i, off, found, want, wantOff, wantFound)
			}
		}
	}
}
