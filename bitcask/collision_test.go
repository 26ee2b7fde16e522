package bitcask_test

import (
	crand "crypto/rand"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Two keys whose hashes agree in the 61 bits that count, in a store whose seed
// came from bytes that count up.
const collidingA, collidingB = "1a23e43931ed8f18", "199d1796dbeb392a"

// countingBytes is a source of randomness that is not.
type countingBytes byte

func (c *countingBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// holding is what a key holds: a string, or elements.
type holding struct {
	value    string
	elems    map[string]bool
	deadline int64
}

func (h *holding) String() string {
	if h == nil {
		return "nothing"
	}
	return fmt.Sprint(h.value, slices.Sorted(maps.Keys(h.elems)), " until ", h.deadline)
}

// TestCollidingKeys does random things to two keys of one hash, and to a third, and opens
// the store again and again, in every way: neither key ever has a value, a type or a
// deadline of the other.
func TestCollidingKeys(t *testing.T) {
	seed := keydir.Seed{0x1716151413121110, 0x1f1e1d1c1b1a1918}
	if seed.Hash(collidingA)>>3 != seed.Hash(collidingB)>>3 {
		t.Fatal("the keys do not collide")
	}
	rng := chance.Rand(t)
	for range 40 {
		c := &colliding{t: t, rng: rng, mem: vfs.NewMem(), model: map[string]*holding{}}
		c.o = bitcask.Options{SegmentSize: 400, Loading: c.loading}
		random := crand.Reader
		crand.Reader = new(countingBytes)
		c.s = openMem(t, c.mem, c.o)
		crand.Reader = random
		for step := range 80 {
			c.change(int64(step))
			if rng.IntN(6) == 0 {
				mergeSealed(t, c.s)
			}
			if rng.IntN(5) == 0 {
				c.reopen()
			}
		}
		closeStore(t, c.s)
	}
}

type colliding struct {
	t         *testing.T
	rng       *rand.Rand
	mem       *vfs.Mem
	o         bitcask.Options
	s         *bitcask.Store
	model     map[string]*holding
	deadlines map[string]int64
	mu        sync.Mutex // guards deadlines while the store opens
}

// loading keeps the deadlines that Open reports.
func (c *colliding) loading([16]byte, uint64) (func(bitcask.DeadlineEvent), bool) {
	c.deadlines = map[string]int64{}
	return func(ev bitcask.DeadlineEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deadlines[strings.Clone(ev.Key)] = ev.Deadline
	}, false
}

// change changes one of the keys.
func (c *colliding) change(step int64) {
	c.t.Helper()
	key := []string{collidingA, collidingB, "other"}[c.rng.IntN(3)]
	tx, err := c.s.Begin(true, key)
	if err != nil {
		c.t.Fatal(err)
	}
	defer tx.End()
	now := c.model[key]
	switch op := c.rng.IntN(10); {
	case op < 4:
		value := fmt.Sprint("value ", step)
		err = tx.PutString(0, key, []byte(value))
		was := now
		if now = (&holding{value: value}); was != nil {
			now.deadline = was.deadline
		}
	case op < 6:
		if now == nil || now.elems == nil {
			if _, err := tx.Drop(0, key); err != nil {
				c.t.Fatal(err)
			}
			now = &holding{elems: map[string]bool{}}
		}
		elem := fmt.Sprint("element ", c.rng.IntN(3))
		now.elems[elem] = true
		var coll keydir.Collection
		if coll, err = tx.Collection(0, key, keydir.Set); err == nil {
			err = tx.PutElem(0, key, coll, elem, nil)
		}
	case op < 8 && now != nil:
		now.deadline = 1e12 + step
		err = tx.SetDeadline(0, key, now.deadline)
	case op < 9 && now != nil:
		now.deadline = 0
		_, err = tx.ClearDeadline(0, key)
	default:
		now = nil
		_, err = tx.Drop(0, key)
	}
	if err == nil {
		_, err = tx.Commit()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.model[key] = now
}

// reopen closes the store or kills it, and opens it under other options.
func (c *colliding) reopen() {
	c.t.Helper()
	killed := c.mem.Clone()
	closeStore(c.t, c.s)
	if c.rng.IntN(2) == 0 {
		c.mem = killed
		if err := c.mem.Remove("d/LOCK"); err != nil {
			c.t.Fatal(err)
		}
	}
	seam.Of(&c.o).NoIndex, seam.Of(&c.o).NoHints = c.rng.IntN(2) == 0, c.rng.IntN(3) == 0
	c.s = openMem(c.t, c.mem, c.o)
	check(c.t, c.s)
	for _, key := range []string{collidingA, collidingB, "other"} {
		if got := c.holding(key); got.String() != c.model[key].String() {
			c.t.Fatalf("%s holds %v, want %v", key, got, c.model[key])
		}
	}
}

// holding reads what a key holds.
func (c *colliding) holding(key string) *holding {
	c.t.Helper()
	tx, err := c.s.Begin(false, key)
	if err != nil {
		c.t.Fatal(err)
	}
	defer tx.End()
	slot, coll, err := tx.Find(0, key)
	if err != nil {
		c.t.Fatal(err)
	}
	h := &holding{deadline: c.deadlines[key]}
	switch slot.Type {
	case keydir.None:
		return nil
	case keydir.String:
		value, err := tx.Value(nil, 0, key, "", keydir.String, slot.Loc)
		if err != nil {
			c.t.Fatal(err)
		}
		h.value = string(value)
	default:
		h.elems = map[string]bool{}
		coll.Each(func(elem []byte, _ keydir.Loc) bool {
			h.elems[string(elem)] = true
			return true
		})
	}
	return h
}
