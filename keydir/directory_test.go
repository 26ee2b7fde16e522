package keydir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

func check(t testing.TB, d *keydir.Directory) {
	t.Helper()
	if err := keydir.Check(d); err != nil {
		t.Fatal(err)
	}
}

type pair struct {
	h uint64
	s keydir.Slot
}

// slots is a directory as simple as can be.
type slots map[uint64][]keydir.Slot // by hash without its low three bits

func (m slots) insert(h uint64, s keydir.Slot) { m[h>>3] = append(m[h>>3], s) }

func (m slots) delete(h uint64, s keydir.Slot) bool {
	i := slices.Index(m[h>>3], s)
	if i < 0 {
		return false
	}
	if m[h>>3] = slices.Delete(m[h>>3], i, i+1); len(m[h>>3]) == 0 {
		delete(m, h>>3)
	}
	return true
}

func (m slots) swap(h uint64, old, new keydir.Slot) bool {
	i := slices.Index(m[h>>3], old)
	if i >= 0 {
		m[h>>3][i] = new
	}
	return i >= 0
}

func (m slots) equal(t *testing.T, d *keydir.Directory) {
	t.Helper()
	n, deadlines := 0, 0
	for h, want := range m {
		var got []keydir.Slot
		for i := 0; ; i++ {
			s, ok := d.Find(h<<3, i)
			if !ok {
				break
			}
			got = append(got, s)
		}
		if !same(got, want) {
			t.Fatalf("hash %x holds %v, want %v", h<<3, got, want)
		}
		for _, s := range want {
			if s.Type == keydir.Deadline {
				deadlines++
			} else {
				n++
			}
		}
	}
	if d.Len() != n || d.LenDeadlines() != deadlines {
		t.Fatalf("%d keys and %d deadlines, want %d and %d", d.Len(), d.LenDeadlines(), n, deadlines)
	}
	seen := 0
	for stripe := range keydir.Stripes {
		last, inStripe := uint64(0), 0
		d.Scan(stripe, 0, func(h uint64, s keydir.Slot) bool {
			if h < last || keydir.StripeOf(h) != stripe || !slices.Contains(m[h>>3], s) {
				t.Fatalf("stripe %d: scan returns %v of hash %x after %x", stripe, s, h, last)
			}
			last = h
			inStripe++
			return true
		})
		if got := d.StripeLen(stripe); got != inStripe {
			t.Fatalf("stripe %d: %d slots, scan returns %d", stripe, got, inStripe)
		}
		seen += inStripe
	}
	if seen != n+deadlines {
		t.Fatalf("scans return %d slots of %d", seen, n+deadlines)
	}
}

func same(a, b []keydir.Slot) bool {
	for _, s := range a {
		if i := slices.Index(b, s); i < 0 {
			return false
		}
	}
	return len(a) == len(b)
}

// slotOf is a slot of any type. A reference has 32 bits, and no location of a record begins with a bit that is set.
func slotOf(r *rand.Rand) keydir.Slot {
	if r.IntN(7) == 0 {
		return keydir.Slot{Type: keydir.Chunks, Loc: keydir.Loc(r.Uint32())}
	}
	return keydir.Slot{Type: keydir.Type(1 + r.IntN(6)), Loc: keydir.Loc(r.Uint64() >> 1)}
}

func TestDirectoryAgainstMap(t *testing.T) {
	tests := []struct {
		name  string
		ops   int
		hash  func(r *rand.Rand) uint64
		grows int // out of 100 operations, inserts while growing
	}{
		{"spread over all stripes", 60000, func(r *rand.Rand) uint64 { return r.Uint64() }, 90},
		{"one stripe", 200000, func(r *rand.Rand) uint64 { return r.Uint64()>>8 | 0xfe<<56 }, 90},
		{"one corner of one stripe", 20000, func(r *rand.Rand) uint64 { return r.Uint64() >> 20 }, 80},
		{"the end of the last stripe", 8000, func(r *rand.Rand) uint64 { return ^(r.Uint64() >> 30) }, 80},
		{"few hashes", 3000, func(r *rand.Rand) uint64 { return r.Uint64N(40) << 58 }, 60},
		{"one hash", 600, func(r *rand.Rand) uint64 { return ^uint64(0) }, 70},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if underRace {
				test.ops /= 10
			}
			r := chance.Rand(t)
			d, m := keydir.NewDirectory(keydir.Seed{}), slots{}
			var live []pair
			step := func(inserts int) {
				switch op := r.IntN(100); {
				case op < inserts || len(live) == 0:
					p := pair{test.hash(r), slotOf(r)}
					d.Insert(p.h, p.s)
					m.insert(p.h, p.s)
					live = append(live, p)
				case op < inserts+4:
					p := &live[r.IntN(len(live))]
					s := slotOf(r)
					if !d.Replace(p.h, p.s, s) || !m.swap(p.h, p.s, s) {
						t.Fatalf("slot %v of %x is not there to swap", p.s, p.h)
					}
					p.s = s
				case op < inserts+5:
					h, s := test.hash(r), keydir.Slot{Type: keydir.String, Loc: 1}
					if d.Delete(h, s) || d.Replace(h, s, s) {
						t.Fatal("found a slot that never was")
					}
				default:
					i := r.IntN(len(live))
					p := live[i]
					live[i] = live[len(live)-1]
					live = live[:len(live)-1]
					if !d.Delete(p.h, p.s) || !m.delete(p.h, p.s) {
						t.Fatalf("slot %v of %x is not there to delete", p.s, p.h)
					}
				}
			}
			for i := range test.ops {
				step(test.grows)
				if i%(test.ops/4) == 0 {
					check(t, d)
				}
			}
			m.equal(t, d)
			for len(live) > test.ops/50 {
				step(5)
			}
			check(t, d)
			m.equal(t, d)
			for _, p := range live {
				d.Delete(p.h, p.s)
			}
			check(t, d)
			if d.Len() != 0 || d.LenDeadlines() != 0 || d.Bytes() != 0 {
				t.Errorf("emptied: %d keys, %d deadlines, %d bytes", d.Len(), d.LenDeadlines(), d.Bytes())
			}
		})
	}
}

func TestEmptyDirectory(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	if _, ok := d.Find(1, 0); ok {
		t.Error("found a slot")
	}
	if _, _, ok := d.RandomSlot(3, 1); ok {
		t.Error("near a slot")
	}
	if _, ok := d.FindCollection(1, "k"); ok {
		t.Error("found a collection")
	}
	d.Scan(0, 0, func(uint64, keydir.Slot) bool { t.Error("scanned a slot"); return true })
	if d.Replace(1, keydir.Slot{}, keydir.Slot{}) || d.Delete(1, keydir.Slot{}) || d.StripeLen(0) != 0 || d.Bytes() != 0 {
		t.Error("not empty")
	}
}

// Slots that are there all the while are scanned exactly once, whatever else comes and goes
// between the steps of the scan.
func TestScanWhileChanging(t *testing.T) {
	for _, grow := range []bool{true, false} {
		t.Run(fmt.Sprintf("growing=%v", grow), func(t *testing.T) {
			r := chance.Rand(t)
			const stripe = 7
			hash := func() uint64 { return stripe<<56 | r.Uint64()>>8&^7 }
			d := keydir.NewDirectory(keydir.Seed{})
			stay := map[uint64]int{}
			for len(stay) < 3000 {
				h := hash()
				stay[h] = 0
				d.Insert(h, keydir.Slot{Type: keydir.String, Loc: 1})
			}
			var passing []uint64
			come := func() {
				passing = append(passing, hash())
				d.Insert(passing[len(passing)-1], keydir.Slot{Type: keydir.Set, Loc: 2})
			}
			leave := func() {
				if len(passing) > 0 {
					d.Delete(passing[len(passing)-1], keydir.Slot{Type: keydir.Set, Loc: 2})
					passing = passing[:len(passing)-1]
				}
			}
			for range 50000 {
				if !grow {
					come()
				}
			}
			for from, done := uint64(0), false; !done; {
				left := 10
				d.Scan(stripe, from, func(h uint64, s keydir.Slot) bool {
					if _, ok := stay[h]; ok {
						stay[h]++
					}
					from = h | 7 + 1
					left--
					return left > 0
				})
				done = left > 0
				for range 30 {
					if grow {
						come()
					} else {
						leave()
					}
				}
			}
			for h, n := range stay {
				if n != 1 {
					t.Fatalf("slot %x was scanned %d times", h, n)
				}
			}
			check(t, d)
		})
	}
}

func TestRandomSlotIsUniform(t *testing.T) {
	r := chance.Rand(t)
	for _, n := range []int{1, 3, 100, 5000, rounds(40000)} {
		d := keydir.NewDirectory(keydir.Seed{})
		seen := map[uint64]int{}
		for range n {
			h := 9<<56 | r.Uint64()>>8&^7
			seen[h] = 0
			d.Insert(h, keydir.Slot{Type: keydir.String, Loc: 1})
		}
		const each = 50
		for range each * n {
			h, s, ok := d.RandomSlot(9, r.Uint64())
			if _, known := seen[h]; !ok || !known || s.Type != keydir.String {
				t.Fatalf("near returns %x, %v, %v", h, s, ok)
			}
			seen[h]++
		}
		chi := 0.0
		for _, got := range seen {
			chi += float64((got-each)*(got-each)) / each
		}
		if n > 1 && chi > 2*float64(n)+20 {
			t.Errorf("%d slots: chi square %.0f", n, chi)
		}
	}
}

// Where hashes crowd, random positions find nothing but empty tables.
func TestRandomSlotInACrowd(t *testing.T) {
	r := chance.Rand(t)
	d := keydir.NewDirectory(keydir.Seed{})
	for range rounds(24000) {
		d.Insert(200<<56|^uint64(0)>>8&^(r.Uint64()>>24), keydir.Slot{Type: keydir.String, Loc: 1})
	}
	check(t, d)
	for range rounds(100) {
		if h, s, ok := d.RandomSlot(200, r.Uint64()); !ok || keydir.StripeOf(h) != 200 || s.Loc != 1 {
			t.Fatalf("near returns %x, %v, %v", h, s, ok)
		}
	}
}
