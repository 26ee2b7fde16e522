package keydir

import (
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
)

// TestItems: slot and location are read as they were written, take some 12 bytes where there are as many keys as in
// a store of a million, and are written in one way only.
func TestItems(t *testing.T) {
	rng := chance.Rand(t)
	const stripe, n = 200, 4096
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = stripe<<56 | rng.Uint64()>>8&^typeMask
	}
	hashes = append(hashes, stripe<<56, stripe<<56|1<<56-1-typeMask)
	slices.Sort(hashes)
	types := []Type{String, Hash, List, Set, ZSet, Deadline, FieldDeadlines, Chunks}
	locs := make([]Loc, len(hashes))
	writing := itemContext{stripe: stripe}
	var b []byte
	for i, h := range hashes {
		locs[i] = MakeLoc(1+rng.Uint32N(3), rng.Uint32N(64<<20), 150)
		switch i % 64 {
		case 0:
			locs[i] = Loc(rng.Uint64())
		case 1:
			locs[i] = 0
		}
		b = writing.append(b, h, types[i%len(types)], locs[i])
	}
	if each := float64(len(b)) / float64(len(hashes)); each > 12 {
		t.Errorf("%.1f bytes an item", each)
	}
	reading := itemContext{stripe: stripe}
	rest, ok := reading.open(b)
	if !ok {
		t.Fatal("not opened")
	}
	for i, want := range hashes {
		h, typ, loc, n := reading.next(rest)
		if n == 0 || h != want || typ != types[i%len(types)] || loc != locs[i] {
			t.Fatalf("item %d: %x %v %x, %d", i, h, typ, loc, n)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	for cut := range 20 {
		reading := itemContext{stripe: stripe}
		rest, ok := reading.open(b[:cut])
		if _, _, _, n := reading.next(rest); ok && n > 0 && (n >= cut || cut < 8) {
			t.Errorf("an item of %d bytes in %d", n, cut)
		}
	}
	for what, b := range map[string][]byte{
		"as it should be":       {stripe, 1 << 3, 1, 0, 0, 0, 0, 9},
		"another stripe":        {stripe + 1, 1 << 3, 1, 0, 0, 0, 0, 9},
		"a long slot":           {stripe, 1<<3 | 1, 0, 1, 0, 0, 0, 0, 9},
		"a long segment":        {stripe, 1 << 3, 0x81, 0, 0, 0, 0, 0, 9},
		"a segment too high":    {stripe, 1 << 3, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 9},
		"the class of before":   {stripe, 1 << 3, 1, 0, 0, 0, 0, 0},
		"a hash of the next":    {stripe, 1<<3 | 7, 0, 0, 0, 0, 0, 0, 0xf0, 1, 0, 0, 0, 0, 9},
		"no class":              {stripe, 1 << 3, 1, 0, 0, 0, 0},
		"no place":              {stripe, 1 << 3},
		"no slot":               {stripe},
		"a slot that is cut":    {stripe, 1<<3 | 3, 1, 1},
		"a segment that is cut": {stripe, 1 << 3, 0x81},
	} {
		reading := itemContext{stripe: stripe}
		rest, ok := reading.open(b)
		h, typ, loc, n := reading.next(rest)
		if good := what == "as it should be"; (ok && n > 0) != good {
			t.Errorf("%s: %x %v %x, %d", what, h, typ, loc, n)
		} else if good && (h != stripe<<56 || typ != String || loc != 1<<40|9 || n != len(rest)) {
			t.Errorf("%x %v %x", h, typ, loc)
		}
	}
}
