package group_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var worlds = flag.Int("worlds", 1000, "how many seeds TestWorlds tries")

// TestWorlds tries seeds: nothing that was shown is lost or hidden, and when the faults are over the group goes on.
func TestWorlds(t *testing.T) {
	first := chance.Seed(t)
	n := *worlds
	if testing.Short() {
		n = min(n, 100)
	}
	var all counts
	for i := range uint64(n) {
		w := live(first+i, false, &all)
		if len(w.wrong) == 0 {
			continue
		}
		w = live(first+i, true, new(counts))
		for _, line := range w.history[max(0, len(w.history)-2000):] {
			t.Log(line)
		}
		t.Fatalf("%v (repeat with -run '^%s$' -worlds 1 -seed %d)", w.wrong, t.Name(), first+i)
	}
	t.Logf("%d worlds: %+v", n, all)
	if n < 100 {
		return
	}
	if all.acknowledged == 0 || all.reads == 0 || all.takeovers == 0 || all.removals == 0 || all.joins == 0 || all.fullSyncs == 0 || all.late == 0 || all.recovered == 0 || all.refused == 0 || all.unacknowledged == 0 {
		t.Error("it has not tried everything")
	}
}

// live lets a world have faults for some time, and then none.
func live(seed uint64, trace bool, c *counts) *world {
	w := newWorld(seed, 2+int(seed%4), c)
	w.trace = trace
	w.note("%d in sync for a write, always %t, strict %t", w.min, w.always, w.strict)
	w.clients()
	w.faults()
	w.run(w.between(10*time.Second, 20*time.Second))
	w.heal()
	w.run(9 * time.Second)
	if len(w.wrong) > 0 || w.isStuck() {
		return w
	}
	before := *w.counts
	w.run(time.Second)
	if len(w.wrong) == 0 && (w.counts.acknowledged == before.acknowledged || w.counts.reads == before.reads) {
		w.states()
		w.fail("nothing goes on: %+v", w.service.record)
	}
	if got := len(w.service.record.InSync); len(w.wrong) == 0 && got != len(w.nodes) {
		w.fail("%d in sync of %d", got, len(w.nodes))
	}
	return w
}

// isStuck reports whether all in sync have lost their power so that what they had acknowledged may be gone.
func (w *world) isStuck() bool {
	for _, m := range w.service.record.InSync {
		if w.nodes[m.ID[0]-'a'].incarnation == m.Incarnation {
			return false
		}
	}
	return true
}

// clients write and read, everywhere.
func (w *world) clients() {
	w.after(w.between(1*ms, 80*ms), func() {
		for _, o := range w.nodes {
			if life := o.life; w.chance(60) {
				o.later(life, o.write)
			}
			if life := o.life; w.chance(60) {
				o.later(life, o.read)
			}
		}
		w.clients()
	})
}

// faults happens every now and then.
func (w *world) faults() {
	w.after(w.between(50*ms, 1500*ms), func() {
		if w.calm {
			return
		}
		o := w.nodes[w.r.IntN(len(w.nodes))]
		if w.chance(40) {
			o = w.nodes[w.service.record.Primary[0]-'a']
		}
		long := w.between(10*ms, 500*ms)
		if w.chance(50) {
			long = w.between(500*ms, 5*time.Second)
		}
		w.fault(o, long)
		w.judgeRecovery()
		w.faults()
	})
}

func (w *world) fault(o *node, long time.Duration) {
	switch w.r.IntN(8) {
	case 0, 1:
		if o.core != nil {
			o.end(w.chance(40))
			w.after(long, func() {
				if o.core == nil {
					o.start()
				}
			})
		}
	case 2, 3:
		if o.core != nil && w.now >= o.stopped {
			w.note("%s stops for %s", o.id, long)
			o.stopped = w.now + long
			if w.frozen {
				o.lost += long // not exact while it stands still: nothing asks for the time then
			}
		}
	case 4, 5:
		both := w.chance(50)
		w.note("%s is cut off for %s, both ways %t", o.id, long, both)
		for _, other := range w.nodes {
			if w.chance(70) {
				w.cut[[2]int{o.i, other.i}] = w.now + long
				if both {
					w.cut[[2]int{other.i, o.i}] = w.now + long
				}
			}
		}
	case 6:
		w.note("the service is down for %s", long)
		w.service.down = w.now + long
	default:
		w.note("%s is without the service for %s", o.id, long)
		o.alone = w.now + long
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.note("healed")
	w.calm = true
	w.service.down = 0
	clear(w.cut)
	for _, o := range w.nodes {
		o.alone = 0
		if o.core == nil {
			o.start()
		}
	}
}

func (w *world) states() {
	for _, o := range w.nodes {
		if o.core == nil {
			w.note("%s is down", o.id)
			continue
		}
		w.note("%s#%d: stopped until %s, alone until %s, line %x, log %d, durable %d: %s", o.id, o.incarnation, o.stopped, o.alone, o.line, len(o.disk), o.durable, o.core)
	}
}
