package tracking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/storetest"
	"github.com/stavedb/stave/server/internal/tracking"
)

// follow adds prefixes to those of a client.
func (w *world) follow(id int64, prefixes ...string) {
	w.t.Helper()
	mode := &tracking.Mode{Broadcast: true, Prefixes: prefixes}
	if err := mode.Follow(w.clients[id].Mode()); err != nil {
		w.t.Fatal(err)
	}
	w.table.Add(w.clients[id], mode)
}

// TestPrefixesOneByOne: prefixes that come one after another to many that are there take little each: an event loop that
// executes some hundred of these requests serves nobody else.
func TestPrefixesOneByOne(t *testing.T) {
	w := newWorld(t)
	const many = 100_000
	more := 1000
	if storetest.UnderRace {
		more = 50
	}
	var prefixes []string
	for i := range many {
		prefixes = append(prefixes, fmt.Sprintf("%06d", i))
	}
	w.follow(1, prefixes...)
	began := time.Now()
	for i := range more {
		w.follow(1, fmt.Sprint("more", i, "."))
	}
	if took := time.Since(began); took > 20*time.Second { // a fraction of a second; a minute if all are looked at each time
		t.Errorf("%d prefixes took %v", more, took)
	}
	if got := w.clients[1].Mode().Prefixes; len(got) != many+more || !slices.IsSorted(got) || w.table.Usage().Prefixes != many+more {
		t.Errorf("%d prefixes, and %d in the table", len(got), w.table.Usage().Prefixes)
	}
	if w.table.Remove(w.clients[1]); w.table.Usage().Prefixes != 0 {
		t.Errorf("%d prefixes are left", w.table.Usage().Prefixes)
	}
}

// TestPrefixesOfManyLengths: a key is compared with prefixes of ten thousand lengths in the time that its bytes take, and not in
// that of all prefixes, during which no other commit could end.
func TestPrefixesOfManyLengths(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("k", 10_000)
	var prefixes []string
	for n := range len(long) {
		prefixes = append(prefixes, long[:n]+"-")
	}
	w.follow(1, prefixes...)
	began := time.Now()
	keys := 2000
	if storetest.UnderRace { // whose detector looks at each step
		keys = 50
	}
	for range keys {
		w.write(2, long)
	}
	if took := time.Since(began); took > 20*time.Second { // 1 s; where each length takes a look at all bytes before it, 15 s and more
		t.Errorf("%d keys took %v", keys, took)
	}
	w.expect(1)
	w.write(2, long[:5000]+"-x")
	w.expect(1, long[:5000]+"-x")
}

// TestPrefixesComeAndGo: whoever follows a prefix of a key is told, whatever others follow or do not follow any more.
func TestPrefixesComeAndGo(t *testing.T) {
	rng := chance.Rand(t)
	for range 50 {
		w := newWorld(t)
		all := map[int64][]string{}
		for range 100 {
			id := 1 + rng.Int64N(3)
			text := make([]byte, rng.IntN(5))
			for i := range text {
				text[i] = "ab"[rng.IntN(2)]
			}
			switch rng.IntN(8) {
			case 0:
				w.table.Remove(w.clients[id])
				delete(all, id)
			case 1, 2, 3:
				mode := &tracking.Mode{Broadcast: true, Prefixes: []string{string(text)}}
				if mode.Follow(w.clients[id].Mode()) == nil {
					w.table.Add(w.clients[id], mode)
					all[id] = append(all[id], string(text))
				}
			default:
				key := string(text) + "c"
				w.write(9, key)
				for id := range w.clients {
					var want []string
					if slices.ContainsFunc(all[id], func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
						want = []string{key}
					}
					w.expect(id, want...)
				}
			}
		}
		if got, want := w.table.Usage().Clients, len(all); got != want {
			t.Fatalf("%d clients, want %d", got, want)
		}
	}
}
