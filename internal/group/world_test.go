package group_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/group"
)

// world is a whole group in one goroutine: nodes, the network between them, the service that keeps the record, and clients.
// What happens when is drawn from a seed: messages are late, lost and overtake each other, nodes stop, are killed and lose
// their power, clocks differ in rate. Each step is judged by what the whole world knows.
type world struct {
	r       *rand.Rand
	now     time.Duration
	queue   events
	order   uint64
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
	wrong   []string
	trace   bool
	history []string
	counts  *counts
}

// counts says what a run has had, so that a test can tell whether it has tried anything.
type counts struct {
	writes, acknowledged, unknown, reads, takeovers, removals, joins, kills, unacknowledged, fullSyncs, unanswered, late, recovered, refused int
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, event{w.now + d, w.order, do})
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for len(w.queue) > 0 && w.queue[0].at <= end && len(w.wrong) == 0 {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// between returns a random time.
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.r.Int64N(int64(to-from)+1))
}

func (w *world) chance(percent int) bool { return w.r.IntN(100) < percent }

func (w *world) note(format string, args ...any) {
	if w.trace {
		w.history = append(w.history, fmt.Sprintf("%10.4f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	w.note(format, args...)
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

const ms = time.Millisecond

// newWorld returns a group of n nodes whose logs are empty.
func newWorld(seed uint64, n int, c *counts) *world {
	w := &world{counts: c, r: rand.New(rand.NewPCG(seed, 7)), cut: map[[2]int]time.Duration{}}
	w.always, w.strict, w.min = w.chance(50), w.chance(35), 1+w.r.IntN(min(n, 3))
	w.frozen = w.strict
	w.shown = []uint64{0}
	first := group.Record{Term: 1, Primary: "a"}
	for i := range n {
		o := &node{w: w, i: i, id: string(rune('a' + i)), rate: 0.87 + 0.26*w.r.Float64(), disk: []uint64{0}, durable: 1}
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
	w.after(400*ms, func() { reply(group.Versioned{}, false) })
	unreachable := w.now < s.down || w.now < o.alone
	delay := w.between(1*ms, 20*ms)
	if !w.calm && w.chance(5) {
		delay = w.between(20*ms, 3000*ms)
		w.counts.late++
	}
	if !w.calm && (unreachable && w.chance(80) || w.chance(2)) {
		return // the request is lost
	}
	w.after(delay, func() {
		if w.now < s.down && !w.chance(30) {
			return
		}
		v := do()
		if !w.calm && (w.now < o.alone || w.chance(5)) {
			w.counts.unanswered++
			return // the answer is lost
		}
		w.after(w.between(1*ms, 20*ms), func() { reply(v, true) })
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
	w.note("%s swaps: %+v", o.id, s.record)
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
		if life := other.life; w.chance(80) {
			w.after(w.between(1*ms, 300*ms), func() {
				if w.now >= other.alone && w.now >= s.down {
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
		w.fail("S2: %s takes over, which is not in sync: %+v", o.id, before)
	}
}

// judgeInSync: each one in sync has everything that was shown. One that has come back with a log that may be shorter is none
// of them.
func (w *world) judgeInSync(why string) {
	n := len(w.shown)
	for _, m := range w.service.record.InSync {
		if o := w.nodes[m.ID[0]-'a']; o.incarnation == m.Incarnation && !o.has(n, w.shown[n-1]) {
			w.fail("S1: %s: %s is in sync and lacks %d at %d", why, o.id, w.shown[n-1], n)
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
				w.fail("all are there: %v", err)
			}
			continue
		}
		if len(there) < len(w.nodes) {
			w.counts.recovered++
		}
		for _, m := range r.InSync {
			if o := w.nodes[m.ID[0]-'a']; !o.has(n, w.shown[n-1]) {
				w.fail("recovery with %v: %+v has %s in sync, which lacks %d at %d", there, r, o.id, w.shown[n-1], n)
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
		w.fail("%s acknowledges %d at %d, which %d stores have, not %d", o.id, log[len(log)-1], len(log), stores, w.min)
	}
}

// show is called when an acknowledgement or the result of a read leaves a node: its log, up to an offset.
func (w *world) show(o *node, why string, log []uint64) {
	n := len(w.shown)
	w.note("%s %s: %d at %d", o.id, why, log[len(log)-1], len(log))
	switch {
	case len(log) < n:
		if w.shown[len(log)-1] != log[len(log)-1] {
			w.fail("%s %s: %d at %d, where %d was shown", o.id, why, log[len(log)-1], len(log), w.shown[len(log)-1])
		}
	case log[n-1] != w.shown[n-1]:
		w.fail("%s %s: a log without %d at %d, which was shown", o.id, why, w.shown[n-1], n)
	default:
		w.shown = log
		w.judgeInSync(o.id + " " + why)
	}
}
