package group_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/test/timeline"
)

// world is a whole group in one goroutine: nodes, the network between them, the service that keeps the record, and clients.
// What happens when is drawn from a seed: messages are late, lost and overtake each other, nodes stop, are killed and lose
// their power, clocks differ in rate. Each step is judged by what the whole world knows.
type world struct {
	timeline.Line
	nodes   []*node
	service service
	min     int  // in sync, for a write
	always  bool // each commit is synced before it counts
	strict  bool
	frozen  bool // clocks stand still while a node stops

	cut     map[[2]int]time.Duration // until when messages from one node to another one are lost
	calm    bool                     // no more faults
	entries uint64
	shown   []uint64 // what was acknowledged or read: the longest log
	counts  *counts
}

// counts says what a run has had, so that a test can tell whether it has tried anything.
type counts struct {
	writes, acknowledged, unknown, reads, takeovers, removals, joins, kills, unacknowledged, fullSyncs, unanswered, late, recovered, refused int
}

const ms = time.Millisecond

// newWorld returns a group of n nodes whose logs are empty.
func newWorld(seed uint64, n int, c *counts) *world {
	w := &world{Line: timeline.Line{R: rand.New(rand.NewPCG(seed, 7))}, counts: c, cut: map[[2]int]time.Duration{}}
	w.always, w.strict, w.min = w.Chance(50), w.Chance(35), 1+w.R.IntN(min(n, 3))
	w.frozen = w.strict
	w.shown = []uint64{0}
	first := group.Record{Term: 1, Primary: "a"}
	for i := range n {
		o := &node{w: w, i: i, id: string(rune('a' + i)), rate: 0.87 + 0.26*w.R.Float64(), disk: []uint64{0}, durable: 1}
		w.nodes = append(w.nodes, o)
		first.InSync = append(first.InSync, group.Member{ID: o.id})
	}
	w.service = service{w: w, record: group.Versioned{Version: 1, Record: first}}
	for _, o := range w.nodes {
		o.start()
	}
	return w
}

// service is what keeps the record. Requests reach it late or never, and it carries out each at once.
type service struct {
	w      *world
	record group.Versioned
	old    []group.Versioned // earlier records
	down   time.Duration     // until then it answers nothing
}

// request has the service do something for a node, which hears of the outcome or, after a time, that there is none.
func (s *service) request(o *node, do func() group.Versioned, answer func(v group.Versioned, ok bool)) {
	w, life, open := s.w, o.life, true
	reply := func(v group.Versioned, ok bool) {
		o.later(life, func() {
			if open {
				open = false
				answer(v, ok)
			}
		})
	}
	w.After(400*ms, func() { reply(group.Versioned{}, false) })
	unreachable := w.Now() < s.down || w.Now() < o.alone
	delay := w.Between(1*ms, 20*ms)
	if !w.calm && w.Chance(5) {
		delay = w.Between(20*ms, 3000*ms)
		w.counts.late++
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
			w.counts.unanswered++
			return // the answer is lost
		}
		w.After(w.Between(1*ms, 20*ms), func() { reply(v, true) })
	})
}

// swap is carried out at one moment.
func (s *service) swap(o *node, a group.Swap) group.Versioned {
	w := s.w
	if s.record.Version != a.If {
		return s.record
	}
	before := s.record
	s.old = append(s.old, before)
	s.record = group.Versioned{Version: a.If + 1, Record: a.Record}
	w.Note("%s swaps: %+v", o.id, s.record)
	switch {
	case a.Record.Term != before.Term:
		w.counts.takeovers++
		w.judgeTakeover(o, before)
	case len(a.Record.InSync) < len(before.InSync):
		w.counts.removals++
	default:
		w.counts.joins++
	}
	w.judgeInSync("after a swap")
	w.judgeRecovery()
	v := s.record
	for _, other := range w.nodes {
		if life := other.life; w.Chance(80) {
			w.After(w.Between(1*ms, 300*ms), func() {
				if w.Now() >= other.alone && w.Now() >= s.down {
					other.later(life, func() { other.learn(v) })
				}
			})
		}
	}
	return v
}

// judgeTakeover: S2.
func (w *world) judgeTakeover(o *node, before group.Versioned) {
	if !slices.ContainsFunc(before.InSync, func(m group.Member) bool { return m.ID == o.id }) {
		w.Fail("S2: %s takes over, which is not in sync: %+v", o.id, before)
	}
}

// judgeInSync: each one in sync has everything that was shown. One that has come back with a log that may be shorter is none
// of them.
func (w *world) judgeInSync(why string) {
	n := len(w.shown)
	for _, m := range w.service.record.InSync {
		if o := w.nodes[m.ID[0]-'a']; o.incarnation == m.Incarnation && !o.has(n, w.shown[n-1]) {
			w.Fail("S1: %s: %s is in sync and lacks %d at %d", why, o.id, w.shown[n-1], n)
		}
	}
}

// judgeRecovery: if all processes ended now, and the service lost its data, the record that some members can be used to recover would have none
// in sync that lacks what was shown. All of them are enough, unless one in sync has lost its power.
func (w *world) judgeRecovery() {
	n := len(w.shown)
	for some := 1; some < 1<<len(w.nodes); some++ {
		var there []group.Witness
		for _, o := range w.nodes {
			if some>>o.i&1 == 1 {
				there = append(there, group.Witness{Member: group.Member{ID: o.id, Incarnation: o.incarnation}, Noted: o.noted})
			}
		}
		r, err := group.Recover(there)
		if err != nil {
			w.counts.refused++
			if len(there) == len(w.nodes) && !strings.Contains(err.Error(), "loss of power") && w.service.record.Version > 1 {
				w.Fail("all are there: %v", err)
			}
			continue
		}
		if len(there) < len(w.nodes) {
			w.counts.recovered++
		}
		for _, m := range r.InSync {
			if o := w.nodes[m.ID[0]-'a']; !o.has(n, w.shown[n-1]) {
				w.Fail("recovery with %v: %+v has %s in sync, which lacks %d at %d", there, r, o.id, w.shown[n-1], n)
			}
		}
	}
}

// judgeStores: a write that is acknowledged is in as many stores as it needs.
func (w *world) judgeStores(o *node, log []uint64) {
	stores := 0
	for _, other := range w.nodes {
		if other.has(len(log), log[len(log)-1]) {
			stores++
		}
	}
	if w.always && stores < w.min { // else one may have lost its power since
		w.Fail("%s acknowledges %d at %d, which %d stores have, not %d", o.id, log[len(log)-1], len(log), stores, w.min)
	}
}

// show is called when an acknowledgement or the result of a read leaves a node: its log, up to an offset.
func (w *world) show(o *node, why string, log []uint64) {
	n := len(w.shown)
	w.Note("%s %s: %d at %d", o.id, why, log[len(log)-1], len(log))
	switch {
	case len(log) < n:
		if w.shown[len(log)-1] != log[len(log)-1] {
			w.Fail("%s %s: %d at %d, where %d was shown", o.id, why, log[len(log)-1], len(log), w.shown[len(log)-1])
		}
	case log[n-1] != w.shown[n-1]:
		w.Fail("%s %s: a log without %d at %d, which was shown", o.id, why, w.shown[n-1], n)
	default:
		w.shown = log
		w.judgeInSync(o.id + " " + why)
	}
}
