package gate_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server/internal/gate"
)

const forever = time.Duration(math.MaxInt64)

func still() time.Duration { return 0 }

func slotsOf(keys ...string) (list []uint16) {
	for _, key := range keys {
		list = append(list, gate.SlotOf(key))
	}
	return list
}

// begun is a gate in a term that has shown what was before.
func begun() *gate.Gate {
	g := gate.New(still)
	g.Begin(10, 100)
	g.Extend(forever, true)
	g.Confirm(100)
	return g
}

func wantShown(t *testing.T, g *gate.Gate, what string, ticket uint64, want bool) {
	t.Helper()
	if got := g.Shows(ticket); got != want {
		t.Errorf("%s, ticket %d: shown %t, want %t", what, ticket, got, want)
	}
}

// TestKeys has a reply owe the newest commit of the keys that it has looked at, and no other.
func TestKeys(t *testing.T) {
	g := begun()
	wantShown(t, g, "nothing is owed", 0, true)
	wantShown(t, g, "what was before", g.Owed([]string{"a", "b"}), true)
	g.Wrote(12, 150, slotsOf("a"), false)
	wantShown(t, g, "the commit", 12, false)
	wantShown(t, g, "a key of it", g.Owed([]string{"b", "a"}), false)
	wantShown(t, g, "another key", g.Owed([]string{"b"}), true)
	wantShown(t, g, "everything", g.Newest(), false)
	g.Wrote(15, 170, slotsOf("b"), false)
	g.Confirm(169)
	wantShown(t, g, "the first commit", g.Owed([]string{"a"}), true)
	wantShown(t, g, "the second", g.Owed([]string{"b"}), false)
	g.Confirm(170)
	wantShown(t, g, "all of them", g.Newest(), true)
	g.Wrote(16, 180, nil, true)
	wantShown(t, g, "a key after FLUSHALL", g.Owed([]string{"c"}), false)
}

// TestTerms lets nothing leave of a term that is over, nor before all that the store has when one begins is confirmed.
func TestTerms(t *testing.T) {
	g := gate.New(still)
	wantShown(t, g, "no primary yet", g.Owed([]string{"a"})+1, false)
	g.Begin(10, 100)
	g.Extend(forever, true)
	wantShown(t, g, "what was before", g.Owed([]string{"a"}), false)
	g.Confirm(99)
	wantShown(t, g, "but a byte of it", g.Owed([]string{"a"}), false)
	g.Confirm(100)
	wantShown(t, g, "all of it", g.Owed([]string{"a"}), true)
	g.Wrote(12, 150, slotsOf("a"), false)
	g.End()
	g.Extend(forever, true)
	g.Confirm(150)
	wantShown(t, g, "after the end", 12, false)
	wantShown(t, g, "what was shown, without a lease", 10, false)
	g.Wrote(13, 160, slotsOf("b"), false)
	g.Begin(20, 130) // the stream of another primary, which lacks some of it
	g.Extend(forever, true)
	wantShown(t, g, "before it is confirmed", g.Owed([]string{"a"}), false)
	g.Confirm(1000)
	for _, ticket := range []uint64{9, 10, 12, 13, 19} {
		wantShown(t, g, "of a term before", ticket, false)
	}
	wantShown(t, g, "of this one", g.Owed([]string{"a"}), true)
}

func TestLease(t *testing.T) {
	var now time.Duration
	g := gate.New(func() time.Duration { return now })
	g.Begin(10, 100)
	g.Confirm(100)
	wantShown(t, g, "no lease yet", 10, false)
	if g.Answers() {
		t.Error("serves without a lease")
	}
	g.Extend(100, false)
	wantShown(t, g, "a lease", 10, true)
	if !g.Answers() || !g.TooFew() {
		t.Error("with a lease, and too few members in sync")
	}
	g.Extend(100, true)
	if now = 99; !g.Answers() || g.TooFew() {
		t.Error("with a lease, and enough members in sync")
	}
	now = 100
	wantShown(t, g, "the lease is over", 10, false)
	if g.Answers() {
		t.Error("serves when the lease is over")
	}
	g.SetPatience(time.Millisecond)
	if err := g.Wait(10); !errors.Is(err, gate.ErrUnknown) {
		t.Errorf("the lease is over: %v", err)
	}
}

// TestWait ends waits: by the confirmation, by the end of the term, and when it takes too long.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begun()
		g.SetPatience(time.Second)
		wait := func(ticket uint64) chan error {
			ended := make(chan error, 1)
			go func() { ended <- g.Wait(ticket) }()
			synctest.Wait()
			return ended
		}
		g.Wrote(12, 150, nil, false)
		g.Wrote(13, 160, nil, false)
		first, second := wait(12), wait(13)
		g.Confirm(150)
		if err := <-first; err != nil {
			t.Errorf("confirmed: %v", err)
		}
		g.End()
		if err := <-second; !errors.Is(err, gate.ErrUnknown) {
			t.Errorf("the term is over: %v", err)
		}
		g.Begin(20, 200)
		g.Extend(forever, true)
		began := time.Now()
		if err := g.Wait(20); !errors.Is(err, gate.ErrUnknown) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		third := wait(20)
		g.End()
		g.Begin(30, 200)
		if err := <-third; !errors.Is(err, gate.ErrUnknown) {
			t.Errorf("of a term before: %v", err)
		}
		g.Extend(0, true) // a lease that is over, and comes back
		g.Confirm(200)
		began = time.Now()
		fourth := wait(30)
		time.Sleep(time.Second / 2)
		select {
		case err := <-fourth:
			t.Errorf("without a lease: %v", err)
		default:
		}
		g.Extend(forever, true)
		if err := <-fourth; err != nil || time.Since(began) != time.Second/2 {
			t.Errorf("the lease has come back: %v after %s", err, time.Since(began))
		}
	})
}

// TestTermsWithoutWrites has terms begin though nothing was written since the one before, or something was that the gate knows of. A
// primary does not follow without a write.
func TestTermsWithoutWrites(t *testing.T) {
	g := begun()
	g.Wrote(12, 150, slotsOf("a"), false)
	term := g.Term()
	g.Begin(12, 150)
	g.Extend(forever, true)
	if g.Term() == term {
		t.Error("it is the same term")
	}
	wantShown(t, g, "what was not confirmed", 12, false)
	g.Confirm(149)
	wantShown(t, g, "what was not confirmed, still", g.Owed([]string{"b"}), false)
	g.Confirm(150)
	wantShown(t, g, "the same, confirmed", 12, true)
	wantPanic(t, "it follows without a write", func() { g.Follow(12) })
	g.Follow(13)
	g.End()
	wantShown(t, g, "neither primary nor follower", 13, false)
	g.Follow(13)
	wantShown(t, g, "it follows again", 13, true)
	wantPanic(t, "an older ticket", func() { g.Begin(12, 150) })
	g.End()
	g.Wrote(14, 160, slotsOf("a"), false) // the store writes by itself as soon as it may: what has expired is deleted
	g.Begin(14, 160)
	g.Extend(forever, true)
	wantShown(t, g, "what was written before the term", 14, false)
	g.Confirm(160)
	wantShown(t, g, "the same, confirmed", 14, true)
}

func wantPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s, and nothing says so", what)
		}
	}()
	fn()
}

// world is a group whose members may have more or less of what the primary commits, by chance.
type world struct {
	g         *gate.Gate
	r         *rand.Rand
	log       []entry        // of the primary
	confirmed int            // entries that all have
	newest    map[string]int // the newest entry of each key
	whole     int            // the newest one of all keys
	ticket    uint64
	end       int64
	begun     int // terms
	serving   bool
	replies   []held
}

type entry struct {
	ticket uint64
	end    int64
}

// held is a reply that shows some of the log.
type held struct {
	what   string
	ticket uint64
	shows  int // entries of the log
	term   int
}

// TestSchedules draws what a group does: commits of keys and of all, looks, confirmations, and switches that lose what is not confirmed.
// No reply leaves that shows what may be lost; all of a term leave once it is confirmed.
func TestSchedules(t *testing.T) {
	w := &world{g: gate.New(still), r: chance.Rand(t), newest: map[string]int{}}
	left := 0
	for step := range 20_000 {
		key := strconv.Itoa(w.r.IntN(20))
		switch p := w.r.IntN(100); {
		case !w.serving:
			w.begin()
		case p < 35:
			w.write(key, w.r.IntN(50) == 0)
		case p < 70:
			w.replies = append(w.replies, held{"a look at " + key, w.g.Owed([]string{key}), max(w.newest[key], w.whole), w.begun})
		case p < 75:
			w.replies = append(w.replies, held{"a look at all", w.g.Newest(), len(w.log), w.begun})
		case p < 98:
			w.confirm()
		case p == 98:
			w.switchOver()
		}
		for i := 0; i < len(w.replies); {
			h := w.replies[i]
			switch shown := w.g.Shows(h.ticket); {
			case shown && h.term != w.begun:
				t.Fatalf("step %d: %s of term %d left in term %d", step, h.what, h.term, w.begun)
			case shown && h.shows > w.confirmed:
				t.Fatalf("step %d: %s shows entry %d, and %d are confirmed", step, h.what, h.shows, w.confirmed)
			case !shown && h.term == w.begun && w.serving && w.confirmed == len(w.log):
				t.Fatalf("step %d: %s is held, and all is confirmed", step, h.what)
			case shown:
				left++
				fallthrough
			case h.term != w.begun && w.r.IntN(50) == 0: // it has been told
				w.replies[i] = w.replies[len(w.replies)-1]
				w.replies = w.replies[:len(w.replies)-1]
			default:
				i++
			}
		}
	}
	if w.begun < 50 || left < 1000 {
		t.Errorf("%d terms, %d replies have left: too few to say anything", w.begun, left)
	}
}

func (w *world) begin() {
	w.ticket += 1 + w.r.Uint64N(3)
	w.confirmed = 0 // the new members in sync may lack anything
	w.begun++
	w.g.Begin(w.ticket, w.end)
	w.g.Extend(forever, true)
	w.log = append(w.log, entry{w.ticket, w.end}) // all of it counts
	w.whole, w.serving = len(w.log), true
}

func (w *world) write(key string, whole bool) {
	w.ticket += 1 + w.r.Uint64N(3)
	w.end += 1 + w.r.Int64N(100)
	w.log = append(w.log, entry{w.ticket, w.end})
	if whole {
		w.whole = len(w.log)
		w.g.Wrote(w.ticket, w.end, nil, true)
	} else {
		w.newest[key] = len(w.log)
		w.g.Wrote(w.ticket, w.end, slotsOf(key), false)
	}
	if w.r.IntN(2) == 0 {
		w.replies = append(w.replies, held{fmt.Sprint("a write of ", key), w.ticket, len(w.log), w.begun})
	}
}

func (w *world) confirm() {
	offset := w.end - w.r.Int64N(300)
	for w.confirmed < len(w.log) && w.log[w.confirmed].end <= offset {
		w.confirmed++
	}
	w.g.Confirm(offset)
}

// switchOver ends the term: another primary has the log up to anywhere after what is confirmed, and goes on from there.
func (w *world) switchOver() {
	w.g.End()
	w.serving = false
	if keep := w.confirmed + w.r.IntN(len(w.log)-w.confirmed+1); keep > 0 {
		w.log = w.log[:keep]
		w.end = w.log[keep-1].end
	}
	w.whole = len(w.log)
	clear(w.newest)
}

// TestLooksBesideCommits has looks and commits run at the same time: what is seen before it is confirmed is held.
func TestLooksBesideCommits(t *testing.T) {
	g := begun()
	const commits, keys = 20_000, 8
	var stored [keys]atomic.Uint64 // the newest commit of each key, as everybody sees it
	var confirmed, written atomic.Uint64
	var running, looking sync.WaitGroup
	var done atomic.Bool
	name := func(i uint64) string { return strconv.FormatUint(i%keys, 10) }
	running.Go(func() {
		for ticket := uint64(11); ticket < 11+commits; ticket++ {
			g.Wrote(ticket, int64(ticket)*10, slotsOf(name(ticket)), false)
			stored[ticket%keys].Store(ticket)
			written.Store(ticket)
		}
	})
	running.Go(func() {
		for at := uint64(0); at < 10+commits; {
			if now := written.Load(); now > at {
				at = now - (now-at)/2
				confirmed.Store(at)
				g.Confirm(int64(at) * 10)
			}
		}
	})
	for i := range uint64(2) {
		looking.Go(func() {
			for n := i; !done.Load(); n++ {
				seen := stored[n%keys].Load()
				if owed := g.Owed([]string{name(n)}); g.Shows(owed) && seen > confirmed.Load() {
					t.Errorf("commit %d leaves with ticket %d, and is not confirmed", seen, owed)
					return
				}
			}
		})
	}
	running.Wait()
	done.Store(true)
	looking.Wait()
}
