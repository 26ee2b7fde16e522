package bitcask_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
)

// given is a commit, and its sequence number in a history.
type given struct {
	history bitcask.HistoryID
	seq     uint64
	key     string
	events  int // that the disk had seen when it was acknowledged
}

// lives is a store through several power cuts, each at a random event with a random part of the unsynced
// changes.
type lives struct {
	t      *testing.T
	rand   *rand.Rand
	files  crash.State
	given  []given
	places map[string]string // key by history and sequence
	next   int               // key
}

// TestHistoryInPowerCuts: a sequence number of a history is given to one commit for ever, whatever tail of the log a
// power cut takes away; and of a history that the store has left it has all commits up to the last one that it names,
// and none beyond.
func TestHistoryInPowerCuts(t *testing.T) {
	x := &lives{t: t, rand: chance.Rand(t)}
	for range 30 {
		x.files, x.given, x.places = nil, nil, map[string]string{}
		for range 8 {
			x.live()
		}
	}
}

// live opens the store, looks at its past, commits, and ends in a power cut.
func (x *lives) live() {
	x.t.Helper()
	mem, err := x.files.Mem("d")
	x.must(err)
	rec := vfstest.NewRecorder(mem)
	o := bitcask.Options{
		SegmentSize: 4 << 10,
		Sync:        []bitcask.SyncMode{bitcask.SyncNone, bitcask.SyncInterval, bitcask.SyncAlways}[x.rand.IntN(3)],
	}
	s, err := bitcask.Open("d", seam.With(&o, seam.Options{FS: rec, NoIndex: x.rand.IntN(2) == 0, NoHints: true}))
	x.must(err)
	x.past(s)
	h, err := s.History()
	x.must(err)
	if h.Term == 0 || x.rand.IntN(6) == 0 {
		h, err = s.BeginHistory()
		x.must(err)
	}
	var now []given
	for range x.rand.IntN(40) {
		x.next++
		g := given{history: h.ID, key: fmt.Sprintf("key %05d", x.next)}
		x.must(s.Put(g.key, []byte(strings.Repeat("v", x.rand.IntN(300)))))
		g.seq, g.events = s.Sequence(), len(rec.Events())
		now = append(now, g)
		if x.rand.IntN(15) == 0 {
			x.must(s.Sync())
		}
	}
	x.must(s.Close())
	events := rec.Events()
	cut := len(events) // in half of the lives, after Close
	switch x.rand.IntN(4) {
	case 0:
		cut = x.rand.IntN(cut + 1)
	case 1:
		if len(now) > 0 {
			cut = now[x.rand.IntN(len(now))].events // right after a commit
		}
	}
	disk := crash.NewDisk("d", x.files)
	for i, e := range events[:cut] {
		disk.Apply(i, e)
	}
	for _, g := range now {
		if g.events <= cut {
			x.note(g)
		}
	}
	x.files = disk.Cut(crash.Weak, x.choice(disk.Units()))
}

// choice keeps none of n units, all, or any.
func (x *lives) choice(n int) crash.Choice {
	switch x.rand.IntN(4) {
	case 0, 1:
		return crash.Choice{}
	case 2:
		return crash.All(n)
	}
	text := "0x0"
	for range n/4 + 1 {
		text += fmt.Sprintf("%x", x.rand.IntN(16))
	}
	c, ok := crash.ParseChoice(text)
	if !ok {
		x.t.Fatal(text)
	}
	return c
}

func (x *lives) note(g given) {
	x.t.Helper()
	place := fmt.Sprint(g.history, " ", g.seq)
	if other, ok := x.places[place]; ok {
		x.t.Errorf("%s was given to %s and to %s", place, other, g.key)
	}
	x.places[place] = g.key
	x.given = append(x.given, g)
}

// past checks that the store has what it says to have of each history.
func (x *lives) past(s *bitcask.Store) {
	x.t.Helper()
	h, err := s.History()
	x.must(err)
	through := map[bitcask.HistoryID]uint64{h.ID: s.Sequence()}
	for _, p := range h.Past {
		through[p.ID] = p.Last
	}
	for _, g := range x.given {
		last, ok := through[g.history]
		if !ok {
			continue // of a history whose beginning was lost
		}
		_, err := s.Get(g.key)
		if err != nil && !errors.Is(err, bitcask.ErrNotFound) {
			x.t.Fatal(err)
		}
		if has := err == nil; has != (g.seq <= last) {
			x.t.Errorf("%s, %d of %v: there %v; the store has that history up to %d", g.key, g.seq, g.history, has, last)
		}
	}
}

func (x *lives) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}
