package keydir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// script reads operations from the fuzzer's bytes.
type script []byte

func (s *script) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

// name returns a name of a length from a few habits, so that pages fill up with
// short names and with names longer than a page.
func (s *script) name() string {
	length, fill := int(s.byte()), s.byte()
	switch {
	case length >= 250:
		length *= 20
	case length >= 200:
		length -= 80 // around 128, where lengths take more bytes
	default:
		length %= 20
	}
	b := make([]byte, length)
	for i := range b {
		b[i] = fill
	}
	return string(b)
}

// FuzzCollection runs a script on a collection and on a map.
func FuzzCollection(f *testing.F) {
	f.Add([]byte{0, 64})
	for typ := range byte(3) {
		for _, weak := range []byte{0, 2, 64} {
			seed := []byte{typ, weak}
			r := rand.New(rand.NewPCG(uint64(typ), uint64(weak)))
			for range 4000 {
				seed = append(seed, byte(r.Uint32()))
			}
			f.Add(seed)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := script(data)
		typ := []keydir.Type{keydir.Hash, keydir.Set, keydir.ZSet}[s.byte()%3]
		d := keydir.NewDirectory(keydir.Seed{1, 2})
		keydir.WeakHash(d, min(int(s.byte()), 64))
		m := newMembers(d.NewCollection(7, typ, s.name()))
		for len(s) > 0 {
			switch op := s.byte(); {
			case op < 160:
				m.put(t, s.name(), uint64(s.byte()>>5), keydir.Loc(len(s)+1))
			case op < 250:
				m.delete(t, s.name())
			default:
				x := d.DropCollection(7, m.f)
				sameDropped(t, x, m)
				if f := d.Restore(7, x); f != m.f {
					t.Fatal("restored as another collection")
				}
			}
		}
		check(t, d)
		m.equal(t, rand.New(rand.NewPCG(1, 1)))
	})
}

// FuzzList runs a script on a list and on a map.
func FuzzList(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{10, 3000} {
		seed := make([]byte, n)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := script(data)
		d := keydir.NewDirectory(keydir.Seed{1, 2})
		m := &elements{d.NewCollection(7, keydir.List, s.name()), map[int64]keydir.Loc{}}
		for len(s) > 0 {
			op, by := s.byte(), int64(s.byte())
			head, tail := m.f.Bounds()
			switch {
			case op < 80:
				m.put(t, tail+1+by>>6, keydir.Loc(len(s)+1))
			case op < 130:
				m.put(t, head-1-by>>6, keydir.Loc(len(s)+1))
			case op < 150:
				m.put(t, by<<(op%56), keydir.Loc(len(s)+1))
			case op < 190:
				m.delete(t, head)
			case op < 230:
				m.delete(t, tail)
			default:
				m.delete(t, head+by)
			}
		}
		check(t, d)
		m.equal(t)
	})
}

// FuzzDirectory runs a script on a directory and on a map, with hashes that crowd.
func FuzzDirectory(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	seed := make([]byte, 6000)
	for i := range seed {
		seed[i] = byte(r.Uint32())
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := script(data)
		d, m := keydir.NewDirectory(keydir.Seed{}), slots{}
		for len(s) > 0 {
			op := s.byte()
			h := uint64(s.byte())<<48 | uint64(s.byte())<<(op%50)
			slot := keydir.Slot{Type: keydir.Type(1 + op%6), Loc: keydir.Loc(op % 3)}
			if op < 170 {
				d.Insert(h, slot)
				m.insert(h, slot)
			} else if got, want := d.Delete(h, slot), m.delete(h, slot); got != want {
				t.Fatalf("delete of %x: %v, want %v", h, got, want)
			}
		}
		check(t, d)
		m.equal(t, d)
	})
}
