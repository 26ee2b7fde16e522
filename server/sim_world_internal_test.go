package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/test/timeline"
)

const ms = time.Millisecond

// sim is a whole group in one goroutine, as TestSimulatedGroup says. What happens when is drawn from a seed.
type sim struct {
	timeline.Line
	t       *testing.T
	seed    uint64
	nodes   []*simNode
	service simService
	min     int  // in sync, for a write
	always  bool // each commit is synced before it counts
	strict  bool
	defect  simDefect

	cut  map[[2]int]time.Duration // until when bytes from one node to another one, or to a client, stay on their way
	calm bool                     // no more faults

	asked  [3]*simNode // by each client
	judge  simJudge
	counts *simCounts
}

// simDefect is something that the simulator does wrong, to see whether it notices.
type simDefect string

const (
	sound           simDefect = ""
	gateOff         simDefect = "gate off"                     // replies leave when their commits are durable
	tableOff        simDefect = "table of offsets off"         // reads owe nothing
	removedTooEarly simDefect = "reply before the removal"     // what a swap would leave in sync counts before it is done
	impatient       simDefect = "takeover before the lease"    // clocks differ by more than the lease allows
	acksArrived     simDefect = "acknowledged before applied"  // what has arrived
	forgetful       simDefect = "an old log is as good as any" // a loss of power leaves a member what it was
)

// simCounts says what runs have had, so that a test can tell whether they have tried anything.
type simCounts struct {
	writes, reads, refused, unknown, takeovers, removals, joins, kills, powerCuts, withinSteps, fulls, partials, cutFiles, connections, stops int
}

// simulate lets a group have faults for some time, and then none.
func simulate(t *testing.T, seed uint64, defect simDefect, c *simCounts) *sim {
	cryptotest.SetGlobalRandom(t, seed) // ids of streams, and incarnations
	w := &sim{
		Line: timeline.Line{R: rand.New(rand.NewPCG(seed, 9)), Trace: true},
		t:    t, seed: seed, counts: c, defect: defect, cut: map[[2]int]time.Duration{},
	}
	w.service.w = w
	n := 2 + int(seed%3)
	w.always, w.strict, w.min = w.Chance(50), w.Chance(35), 1+w.R.IntN(min(n, 3))
	switch defect {
	case impatient:
		n, w.strict, w.min = 2, false, 1
	case forgetful:
		w.always = false
	}
	w.Note("%d members, %d in sync for a write, always %t, strict %t", n, w.min, w.always, w.strict)
	w.judge.init(w)
	for i := range n {
		w.nodes = append(w.nodes, newSimNode(w, i))
	}
	defer func() {
		for _, o := range w.nodes {
			o.end(false)
		}
	}()
	for _, o := range w.nodes {
		o.start()
	}
	w.clients()
	w.Run(2 * time.Second)
	if defect == impatient {
		w.Run(4 * time.Second) // the slow one serves late
	}
	w.faults()
	w.Run(w.Between(8*time.Second, 16*time.Second))
	w.heal()
	for i := 0; i < 15 && len(w.Wrong) == 0 && (i < 2 || len(w.service.record.InSync) < n); i++ {
		w.Run(time.Second)
	}
	if len(w.Wrong) == 0 && !w.isStuck() {
		w.judge.final()
	}
	return w
}

// isStuck reports whether all in sync have lost their power so that what they had acknowledged may be gone.
func (w *sim) isStuck() bool {
	for _, m := range w.service.record.InSync {
		if w.nodeOf(m.ID).member() == m {
			return false
		}
	}
	return w.service.record.Version > 0
}

func (w *sim) nodeOf(id string) *simNode { return w.nodes[id[0]-'a'] }

// simService is what keeps the record. Requests reach it late or never, and it carries out each at once.
type simService struct {
	w      *sim
	record group.Versioned
	down   time.Duration // until then it answers nothing
}

// request has the service do something for a node, which hears of the outcome or never does.
func (s *simService) request(o *simNode, do func() group.Versioned, answer func(v group.Versioned)) {
	w, life := s.w, o.life
	unreachable := w.Now() < s.down || w.Now() < o.alone
	delay := w.Between(1*ms, 20*ms)
	if !w.calm && w.Chance(5) {
		delay = w.Between(20*ms, 3000*ms)
	}
	if !w.calm && (unreachable && w.Chance(80) || w.Chance(2)) {
		return // the request is lost
	}
	w.After(delay, func() {
		if w.Now() < s.down && !w.Chance(30) {
			return
		}
		v := do()
		if !w.calm && (w.Now() < o.alone || w.Chance(5)) {
			return // the answer is lost
		}
		w.After(w.Between(1*ms, 20*ms), func() { o.later(life, func() { answer(v) }) })
	})
}

// swap is carried out at one moment, though the process that has asked for it, as self, may be gone by then.
func (s *simService) swap(o *simNode, self group.Member, a group.Swap) group.Versioned {
	w := s.w
	if s.record.Version != a.If {
		return s.record
	}
	before := s.record
	s.record = group.Versioned{Version: a.If + 1, Record: a.Record}
	w.Note("%s swaps: %s", o.id, w.describe(s.record))
	switch {
	case before.Version == 0:
	case a.Record.Term != before.Term:
		w.counts.takeovers++
		if !slices.Contains(before.InSync, self) {
			w.Fail("S2: %s takes over, which is not in sync: %s", o.id, w.describe(before))
		}
	case len(a.Record.InSync) < len(before.InSync):
		w.counts.removals++
	default:
		w.counts.joins++
	}
	w.judge.inSync("after a swap")
	v := s.record
	for _, other := range w.nodes {
		if life := other.life; w.Chance(80) {
			most := 300 * ms
			if !w.calm && w.Chance(30) {
				most = 2 * time.Second
			}
			w.After(w.Between(1*ms, most), func() {
				if w.Now() >= other.alone && w.Now() >= s.down {
					other.later(life, func() { other.driver.Answer(nil, v) })
				}
			})
		}
	}
	return v
}

// describe is a record without what is drawn by others than the seed.
func (w *sim) describe(v group.Versioned) string {
	var names []string
	for _, m := range v.InSync {
		name := m.ID
		if w.nodeOf(m.ID).member() != m {
			name += "(before)"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("version %d term %d primary %s in sync %s", v.Version, v.Term, v.Primary, strings.Join(names, " "))
}

// faults happens every now and then.
func (w *sim) faults() {
	w.After(w.Between(50*ms, 1500*ms), func() {
		if w.calm {
			return
		}
		o := w.nodes[w.R.IntN(len(w.nodes))]
		if w.Chance(40) && w.service.record.Version > 0 {
			o = w.nodeOf(w.service.record.Primary)
		}
		long := w.Between(10*ms, 500*ms)
		if w.Chance(50) {
			long = w.Between(500*ms, 5*time.Second)
		}
		w.fault(o, long)
		w.faults()
	})
}

func (w *sim) fault(o *simNode, long time.Duration) {
	if w.defect == impatient && w.Chance(60) { // what shows it: only clients reach the primary
		o = w.nodeOf(w.service.record.Primary)
		o.alone = w.Now() + 3*time.Second
		o.quiet = o.alone
		w.cut[[2]int{o.i, 1 - o.i}] = o.alone
		w.Note("only clients reach %s", o.id)
		return
	}
	switch w.R.IntN(11) {
	case 0, 1:
		w.killFor(o, w.Chance(40), long)
	case 2, 3:
		if o.store != nil && w.Now() >= o.stopped {
			w.Note("%s stops for %s", o.id, long)
			w.counts.stops++
			o.stopped = w.Now() + long
			if w.strict {
				o.clock.stop(w.Now(), o.stopped)
			}
		}
	case 4, 5, 6:
		both := w.Chance(50)
		var others []string
		for i := range len(w.nodes) + 1 { // the last one is all clients
			if i != o.i && w.Chance(70) && (i < len(w.nodes) || w.Chance(40)) {
				others = append(others, fmt.Sprint(i))
				w.cut[[2]int{o.i, i}] = w.Now() + long
				if both {
					w.cut[[2]int{i, o.i}] = w.Now() + long
				}
			}
		}
		if w.Chance(40) {
			o.alone = w.Now() + long
		}
		if w.Chance(50) {
			o.quiet = w.Now() + long
		}
		w.Note("%s is cut off from %v for %s, both ways %t, from the service %t", o.id, others, long, both, o.alone > w.Now())
	case 7:
		w.Note("the service is down for %s", long)
		w.service.down = w.Now() + long
	case 8:
		w.Note("%s is without the service for %s", o.id, long)
		o.alone = w.Now() + long
	case 9:
		w.Note("the connections of %s break", o.id)
		o.breakConnections()
	default:
		if w.strict {
			o.clock.jump += w.Between(0, 5*time.Second)
			w.Note("the clock of %s jumps", o.id)
		} else if w.Chance(20) { // all at once: a loss of power in the whole place
			for _, o := range w.nodes {
				w.killFor(o, w.always, w.Between(10*ms, long+10*ms))
			}
		}
	}
}

// killFor kills a process, or takes its machine's power as well, and starts it again later.
func (w *sim) killFor(o *simNode, power bool, long time.Duration) {
	if o.store == nil {
		return
	}
	if w.Chance(50) {
		o.killWithin(power, long)
		return
	}
	o.end(power)
	o.startAfter(long)
}

// heal ends all faults.
func (w *sim) heal() {
	w.Note("healed")
	w.calm = true
	w.service.down = 0
	clear(w.cut)
	for _, o := range w.nodes {
		o.alone, o.ending = 0, false
		o.clock.setRate(w.Now(), 1)
		if o.store == nil {
			o.start()
		}
	}
}

var simContext = context.Background()
