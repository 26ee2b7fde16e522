package group_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stavedb/stave/internal/group"
)

// node is a member with its disk, and what a driver does for it.
type node struct {
	w    *world
	i    int
	id   string
	rate float64 // of its clock

	// On its disk.
	disk        []uint64 // its log; no entry is written over
	durable     int      // as much survives a loss of power
	incarnation uint64
	noted       group.Noted

	passing   passing
	records   group.Service // of this life: it notes what passes through
	core      *group.Node   // nil while it is down
	life      int           // counts starts and ends: what was about to happen in another life does not
	stopped   time.Duration // until then it does nothing
	lost      time.Duration // by its clock, while it stood still
	alone     time.Duration // until then it does not reach the service
	line      uint64        // the term along whose stream its log is
	syncing   bool          // it takes a whole log
	writing   bool          // the disk is about to keep the log
	installed int           // counts logs that were taken whole
	held      []held
}

// held is a reply that waits for the gate.
type held struct {
	log   []uint64
	read  bool
	at    time.Duration // by the clock of the node
	since int           // how much had been shown when it began
	until time.Duration
}

func (o *node) clock() time.Duration {
	now := time.Duration(float64(o.w.Now()-o.lost)*o.rate) + time.Hour*time.Duration(o.i)
	if o.w.strict {
		return now.Truncate(20 * ms) // a coarse clock
	}
	return now
}

// later does something in this life, when the node does not stand still.
func (o *node) later(life int, do func()) {
	switch {
	case o.life != life || o.core == nil:
	case o.w.Now() < o.stopped:
		o.w.After(o.stopped-o.w.Now(), func() { o.later(life, do) })
	default:
		do()
	}
}

func (o *node) has(offset int, entry uint64) bool {
	return offset <= o.position() && o.disk[offset-1] == entry
}

// position is how far its log counts.
func (o *node) position() int {
	if o.w.always {
		return o.durable
	}
	return len(o.disk)
}

func (o *node) start() {
	o.life++
	o.line, o.syncing, o.writing, o.held = 0, false, false, nil
	o.records = group.Noting(&o.passing, o.noted, func(n group.Noted) error { o.noted = n; return nil })
	o.core = group.New(group.Options{
		Self: group.Member{ID: o.id, Incarnation: o.incarnation}, MinInSync: o.w.min, StrictReads: o.w.strict,
		Interval: 200 * ms, Silence: time.Second, Lease: time.Second, Patience: 1500 * ms, Yield: 300 * ms, Retry: 300 * ms,
	}, o.clock())
	o.w.Note("%s#%d starts with %d", o.id, o.incarnation, len(o.disk))
	o.moved()
	if old := o.w.service.old; len(old) > 0 && o.w.Chance(50) { // a watch that lags
		life, v := o.life, old[len(old)-1-o.w.R.IntN(min(len(old), 3))]
		o.w.After(o.w.Between(0, 50*ms), func() { o.later(life, func() { o.learn(v) }) })
	}
	o.every(15*ms, 25*ms, func() { o.act(o.core.Tick(o.clock())) })
	o.every(50*ms, 250*ms, o.stream)
	o.every(time.Second, 4*time.Second, func() { // a watch that has missed something begins anew
		if o.w.Now() >= max(o.alone, o.w.service.down) {
			o.learn(o.w.service.record)
		}
	})
}

// passing is a service that has the answer already.
type passing struct{ record group.Versioned }

func (p *passing) Read(context.Context) (group.Versioned, error) { return p.record, nil }
func (p *passing) Swap(context.Context, group.Swap) (group.Versioned, error) {
	return group.Versioned{}, errLater
}
func (p *passing) Watch(_ context.Context, fn func(group.Versioned)) { fn(p.record) }

var errLater = errors.New("the answer comes later")

// learn takes a record that was watched, or there when a swap was tried. It is noted first, and may be lost then.
func (o *node) learn(v group.Versioned) {
	o.passing.record = v
	o.records.Watch(context.Background(), func(v group.Versioned) {
		if o.w.calm || !o.w.Chance(3) {
			o.act(o.core.Learn(o.clock(), v))
		}
	})
}

// answer takes the answer to a read.
func (o *node) answer(v group.Versioned) {
	o.passing.record = v
	v, err := o.records.Read(context.Background())
	switch {
	case err != nil:
		o.w.Fail("%s: %v", o.id, err)
	case o.w.calm || !o.w.Chance(3):
		o.act(o.core.Answer(o.clock(), v))
	}
}

// every does something again and again in this life.
func (o *node) every(from, to time.Duration, do func()) {
	life := o.life
	var again func()
	again = func() {
		do()
		o.w.After(o.w.Between(from, to), func() { o.later(life, again) })
	}
	o.w.After(o.w.Between(0, to), func() { o.later(life, again) })
}

// sync has the disk keep the log, after a time. What is appended meanwhile waits for the next sync.
func (o *node) sync() {
	if o.writing || o.durable == len(o.disk) {
		return
	}
	o.writing = true
	life, n, installed, long := o.life, len(o.disk), o.installed, o.w.Between(2*ms, 30*ms)
	if !o.w.always {
		long = o.w.Between(500*ms, time.Second)
	}
	o.w.After(long, func() {
		o.later(life, func() {
			if o.writing = false; o.installed == installed {
				o.durable = max(o.durable, n)
			}
			o.moved()
		})
	})
}

// end kills the process, or takes its power as well.
func (o *node) end(power bool) {
	if o.core == nil {
		return
	}
	w := o.w
	w.Note("%s ends, power %t", o.id, power)
	w.counts.kills++
	if len(o.held) > 0 {
		w.counts.unacknowledged++
	}
	o.life++
	o.core, o.stopped = nil, 0
	if power {
		o.disk = slices.Clip(o.disk[:o.durable+w.R.IntN(len(o.disk)-o.durable+1)])
		o.durable = len(o.disk)
		if !w.always {
			o.incarnation++
		}
	}
}

// moved tells the core how far the log has come.
func (o *node) moved() {
	o.core.Move(uint64(o.position()))
	o.act(o.core.Applied(o.line, uint64(o.position())))
	o.sync()
}

// act does what the core asks for.
func (o *node) act(actions []group.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case group.Read:
			o.w.service.request(o, func() group.Versioned { return o.w.service.record }, func(v group.Versioned, ok bool) {
				if ok {
					o.answer(v)
				}
			})
		case group.Swap:
			_, _ = o.records.Swap(context.Background(), a)
			o.w.service.request(o, func() group.Versioned { return o.w.service.swap(o, a) }, func(v group.Versioned, ok bool) {
				if ok {
					o.learn(v)
				}
			})
		case group.Send:
			for _, other := range o.w.nodes {
				if other != o && (a.To == "" || a.To == other.id) {
					o.send(other, func() { other.receive(o, a.Message) })
				}
			}
		}
	}
	o.release()
}

// send delivers a message, if the network does.
func (o *node) send(to *node, receive func()) {
	w := o.w
	if w.Now() < w.cut[[2]int{o.i, to.i}] || !w.calm && w.Chance(1) {
		return
	}
	delay := w.Between(200*time.Microsecond, 3*ms)
	if !w.calm && w.Chance(2) {
		delay = w.Between(3*ms, 1500*ms)
	}
	w.After(delay, func() { to.later(to.life, receive) }) // to another life, too
}

func (o *node) receive(from *node, message any) {
	now := o.clock()
	switch m := message.(type) {
	case group.Ping:
		var offset uint64
		if o.line == m.Term {
			offset = uint64(o.position())
		}
		o.act(o.core.Pinged(now, from.id, m, offset))
	case group.Ack:
		o.core.Acked(m)
		o.release()
	}
}

// stream sends the log to all others.
func (o *node) stream() {
	if !o.core.IsPrimary() {
		return
	}
	term, log := o.core.Known().Term, o.disk[:len(o.disk):len(o.disk)]
	for _, other := range o.w.nodes {
		if other != o {
			life := other.life
			o.send(other, func() {
				if other.life == life { // a connection does not outlive the process, as pings and acknowledgements may
					other.follow(o, term, log)
				}
			})
		}
	}
}

// follow takes a log that a primary has sent.
func (o *node) follow(from *node, term uint64, log []uint64) {
	known := o.core.Known()
	if o.syncing || known.Term != term || known.Primary != from.id || o.core.IsPrimary() {
		return
	}
	n := len(o.disk)
	switch {
	case n <= len(log) && log[n-1] == o.disk[n-1]:
		if term != o.line {
			o.w.Note("%s follows %s", o.id, from.id)
		}
		o.line = term
		// It applies a part of what it was sent, a moment later.
		n += o.w.R.IntN(len(log) - n + 1)
		o.w.After(o.w.Between(0, 2*ms), func() {
			o.later(o.life, func() {
				if o.line == term && !o.syncing && len(o.disk) < n && log[len(o.disk)-1] == o.disk[len(o.disk)-1] {
					o.disk = append(o.disk, log[len(o.disk):n]...)
				}
				o.moved()
			})
		})
	case term == o.line: // an older message
	default:
		o.syncing, o.line = true, 0
		o.w.counts.fullSyncs++
		o.w.Note("%s takes the log of %s", o.id, from.id)
		life := o.life
		o.w.After(o.w.Between(20*ms, 600*ms), func() {
			o.later(life, func() {
				if o.syncing = false; o.core.Known().Term == term && !o.core.IsPrimary() {
					o.installed++
					o.disk, o.durable, o.line = slices.Clip(slices.Clone(log)), len(log), term
					o.w.judgeInSync(o.id + " has taken a log")
					o.moved()
				}
			})
		})
	}
}

// write is what a client asks for.
func (o *node) write() {
	if o.core == nil || !o.core.TakesWrites(o.clock()) {
		return
	}
	o.w.entries++
	o.w.counts.writes++
	o.disk = append(o.disk, o.w.entries)
	o.held = append(o.held, held{o.disk[:len(o.disk):len(o.disk)], false, o.clock(), len(o.w.shown), o.w.Now() + 5*time.Second})
	o.w.Note("%s writes %d at %d", o.id, o.w.entries, len(o.disk))
	o.moved()
	o.stream()
}

// read looks, and later asks whether that was up to date.
func (o *node) read() {
	if o.core == nil || !o.core.Serves(o.clock()) {
		return
	}
	n := len(o.disk)
	o.held = append(o.held, held{o.disk[:n:n], true, o.clock(), len(o.w.shown), o.w.Now() + time.Second})
	life := o.life
	o.w.After(o.w.Between(0, ms), func() { o.later(life, o.release) })
}

// release lets replies leave. Those of a node that is primary no more are dropped.
func (o *node) release() {
	if !o.core.IsPrimary() {
		o.drop(len(o.held))
		return
	}
	now := o.clock()
	kept := o.held[:0]
	for _, h := range o.held {
		switch {
		case o.w.Now() > h.until:
			o.w.counts.unknown++
		case o.core.Gate(now) < uint64(len(h.log)) || h.read && !o.core.MayRead(h.at, h.at, now) || !h.read && !o.core.TakesWrites(now):
			kept = append(kept, h)
		case h.read:
			o.w.counts.reads++
			o.w.show(o, "reads", h.log)
			if len(h.log) < h.since {
				o.w.Fail("S5: %s reads up to %d, and %d were shown before", o.id, len(h.log), h.since)
			}
		default:
			o.w.counts.acknowledged++
			o.w.judgeStores(o, h.log)
			o.w.show(o, "acknowledges", h.log)
		}
	}
	o.held = kept
}

func (o *node) drop(n int) {
	o.w.counts.unknown += n
	o.held = o.held[:0]
}
