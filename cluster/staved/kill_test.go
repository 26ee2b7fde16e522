package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var (
	kills   = flag.Int("kills", 0, "TestKills: so many kills in all (0: as many as there are in 40 s)")
	gaps    = flag.Int("gaps", 0, "TestGaps: so many kills")
	fill    = flag.Int("gaps.fill", 0, "TestGaps: of a group with so many megabytes")
	silence = flag.Duration("silence", 300*time.Millisecond, "TestKills: --insync-timeout of the members")
)

// harm is what has been done to a group.
type harm struct {
	r    *rig
	l    *load
	gaps []time.Duration // without service, after the primary alone was killed
	long time.Duration   // the longest of others

	kills, inFlight     int // of processes; in flight: while the primary had writes that it had not answered
	ofPrimary, ofFlight int // of the primary; of one that had such writes
	ofSeveral           int // rounds that killed several
	stops, etcds        int
}

// round does something to the group, and has it serve again.
func (h *harm) round() {
	r := h.r
	switch p := r.rng.IntN(20); {
	case p < 6:
		if p := r.primary(); p != nil {
			h.kill([]*process{p}, nil)
		}
	case p < 8:
		h.kill([]*process{r.members[r.rng.IntN(len(r.members))]}, nil)
	case p < 10:
		some := slices.Clone(r.members)
		r.rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		h.kill(some[:2+r.rng.IntN(2)], nil)
	case p < 13:
		h.killAllButLast()
	case p < 14 && !r.own:
		h.etcds++
		r.apart.Server.HardStop()
		r.apart.Close()
		r.wait(2 * time.Second)
		r.startEtcd()
	default:
		p := r.primary()
		if p == nil || r.rng.IntN(3) == 0 {
			p = r.members[r.rng.IntN(len(r.members))]
		}
		h.stop(p, 200*time.Millisecond+time.Duration(r.rng.Int64N(int64(3800*time.Millisecond))))
	}
	h.l.watch()
	h.serves()
	r.wait(300 * time.Millisecond)
	if r.rng.IntN(2) == 0 {
		r.awaitAll()
	}
}

// wait waits for a time at random.
func (r *rig) wait(most time.Duration) { time.Sleep(time.Duration(r.rng.Int64N(int64(most)))) }

// serves waits until a write is acknowledged that was sent later than h.l.watch was called, and returns how much later.
func (h *harm) serves() time.Duration {
	h.r.t.Helper()
	h.r.eventually("a write is acknowledged again", func() bool { return h.l.gap() > 0 })
	return h.l.gap()
}

// kill kills members by SIGKILL, and starts them again, each after a while; the last one, if there is one, when a write has been acknowledged
// without it, or that takes long: if it was the only one in sync, no other one takes over.
func (h *harm) kill(some []*process, last *process) {
	r := h.r
	primary := r.primary()
	isPrimary := false
	kill := func(p *process) {
		flying := primary != nil && slices.ContainsFunc(h.l.inFlight, func(at *atomic.Pointer[process]) bool { return at.Load() == primary })
		p.signal(syscall.SIGKILL)
		h.kills++
		h.inFlight += count(flying)
		if p == primary {
			isPrimary = true
			h.ofPrimary++
			h.ofFlight += count(flying)
		}
	}
	for _, p := range some {
		kill(p)
	}
	if last != nil {
		r.wait(100 * time.Millisecond) // with nobody else: nothing may be acknowledged
		kill(last)
		<-last.ended
	} else {
		last = some[0]
		some = some[1:]
	}
	h.l.watch()
	h.ofSeveral += count(len(some) > 0)
	for _, p := range some {
		<-p.ended
		h.start(p)
	}
	<-last.ended
	for again := time.Now().Add(time.Duration(r.rng.Int64N(int64(3 * time.Second)))); time.Now().Before(again) && h.l.gap() == 0; {
		time.Sleep(5 * time.Millisecond)
	}
	h.start(last)
	switch gap := h.serves(); {
	case isPrimary && len(some) == 0:
		h.gaps = append(h.gaps, gap)
	default:
		h.long = max(h.long, gap)
	}
}

// fill writes so many megabytes, in values of 4 KB.
func (h *harm) fill(megabytes int) {
	c, value := newCaller(h.r, 0), strings.Repeat("v", 4<<10)
	defer c.close()
	for i := range megabytes {
		write := []string{"MSET"}
		for k := range 1 << 20 / len(value) {
			write = append(write, fmt.Sprintf("{fill}%d-%d", i, k), value)
		}
		h.r.eventually("a write is acknowledged", func() bool { return c.does(write...) == "OK" })
	}
}

func (h *harm) start(p *process) {
	if err := p.start(); err != nil {
		h.r.t.Fatal(err)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// killAllButLast kills the others, and the primary a moment later. What it has acknowledged alone meanwhile would be gone when the others
// are there again.
func (h *harm) killAllButLast() {
	primary := h.r.primary()
	if primary == nil {
		return
	}
	h.kill(slices.DeleteFunc(slices.Clone(h.r.members), func(p *process) bool { return p == primary }), primary)
}

// stop stops a member for a while: it takes itself for what it was when it goes on.
func (h *harm) stop(p *process, long time.Duration) {
	h.stops++
	p.signal(syscall.SIGSTOP)
	time.Sleep(long)
	h.l.watch()
	p.signal(syscall.SIGCONT)
}

func (h *harm) String() string {
	slices.Sort(h.gaps)
	gaps := fmt.Sprintf("gaps of service of up to %s", h.long.Round(time.Millisecond))
	if n := len(h.gaps); n > 0 {
		gaps += fmt.Sprintf(", %d after a kill of the primary alone of %s in the middle and %s at most", n, h.gaps[n/2].Round(time.Millisecond), h.gaps[n-1].Round(time.Millisecond))
	}
	return fmt.Sprintf("%d kills, %d with writes in flight; %d of the primary, %d of these with writes in flight; %d times several at once; %d stops; %d times etcd was away; %s", h.kills, h.inFlight, h.ofPrimary, h.ofFlight, h.ofSeveral, h.stops, h.etcds, gaps)
}

// whileUsed starts a group, does something to it while clients write and read, and checks what they have been told.
func whileUsed(t *testing.T, seed uint64, own bool, mode string, harmful func(*harm)) {
	whileUsedBy(t, startRig(t, rand.New(rand.NewPCG(seed, 0)), own, mode, *silence), seed, harmful)
}

// whileUsedBy is whileUsed with a group that has been started.
func whileUsedBy(t *testing.T, r *rig, seed uint64, harmful func(*harm)) {
	h := &harm{r: r, l: newLoad(r)}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { h.l.run(ctx, seed) })
	defer working.Wait()
	defer stop()
	harmful(h)
	stop()
	working.Wait()
	h.l.check()
	t.Log(h)
}

// TestKills kills and stops members at random: no write is lost that was acknowledged, and none that was seen.
func TestKills(t *testing.T) {
	seed := chance.Seed(t)
	for i, c := range []struct {
		name, sync string
		own        bool
	}{
		{"own etcds, everysec", "interval", true}, {"etcd apart, always", "always", false},
		{"own etcds, always", "always", true}, {"etcd apart, everysec", "interval", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			whileUsed(t, seed+uint64(i), c.own, c.sync, func(h *harm) {
				h.r.awaitAll()
				for began := time.Now(); (*kills == 0 && time.Since(began) < 8*time.Second || h.kills < *kills/4) && !t.Failed(); {
					h.round()
				}
			})
		})
	}
}

// TestNobodyElseHasIt kills the others, and the primary a moment later: what that has acknowledged alone would be gone.
func TestNobodyElseHasIt(t *testing.T) {
	whileUsed(t, chance.Seed(t), false, "interval", func(h *harm) {
		for range 4 {
			h.r.awaitAll()
			h.r.wait(200 * time.Millisecond)
			h.killAllButLast()
		}
	})
}

// TestStoppedPrimary stops the primary until there is another one, and asks it for what that has written meanwhile: it finds the questions
// when it goes on.
func TestStoppedPrimary(t *testing.T) {
	whileUsed(t, chance.Seed(t), true, "interval", func(h *harm) {
		for range 4 {
			h.r.awaitAll()
			p := h.r.primary()
			h.stops++
			h.l.watch()
			p.signal(syscall.SIGSTOP)
			h.serves()
			time.Sleep(300 * time.Millisecond)
			var asking sync.WaitGroup
			for i := range 40 {
				c := newCaller(&rig{t: t, members: []*process{p}}, uint64(i))
				asking.Go(func() {
					defer c.close()
					h.l.look(c, h.l.numbers[c.rng.IntN(writers)][c.rng.IntN(keysOfEach)])
				})
			}
			time.Sleep(50 * time.Millisecond)
			p.signal(syscall.SIGCONT)
			asking.Wait()
		}
	})
}

// TestGaps measures how long no write is acknowledged after the primary was killed, when all were in sync.
func TestGaps(t *testing.T) {
	if *gaps == 0 {
		t.Skip("-gaps N: kills the primary N times, of members with --insync-timeout 1s")
	}
	*silence = time.Second
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%t", own), func(t *testing.T) {
			whileUsed(t, chance.Seed(t), own, "interval", func(h *harm) {
				h.fill(*fill)
				for range *gaps {
					h.r.awaitAll()
					time.Sleep(time.Second)
					h.kill([]*process{h.r.primary()}, nil)
				}
			})
		})
	}
}
