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
		if len(w.Wrong) == 0 {
			continue
		}
		w = live(first+i, true, new(counts))
		for _, line := range w.History[max(0, len(w.History)-2000):] {
			t.Log(line)
		}
		t.Fatalf("%v (repeat with -run '^%s$' -worlds 1 -seed %d)", w.Wrong, t.Name(), first+i)
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
	w.Trace = trace
	w.Note("%d in sync for a write, always %t, strict %t", w.min, w.always, w.strict)
	w.clients()
	w.faults()
	w.Run(w.Between(10*time.Second, 20*time.Second))
	w.heal()
	w.Run(9 * time.Second)
	if len(w.Wrong) > 0 || w.isStuck() {
		return w
	}
	before := *w.counts
	w.Run(time.Second)
	if len(w.Wrong) == 0 && (w.counts.acknowledged == before.acknowledged || w.counts.reads == before.reads) {
		w.states()
		w.Fail("nothing goes on: %+v", w.service.record)
	}
	if got := len(w.service.record.InSync); len(w.Wrong) == 0 && got != len(w.nodes) {
		w.Fail("%d in sync of %d", got, len(w.nodes))
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
	w.After(w.Between(1*ms, 80*ms), func() {
		for _, o := range w.nodes {
			if life := o.life; w.Chance(60) {
				o.later(life, o.write)
			}
			if life := o.life; w.Chance(60) {
				o.later(life, o.read)
			}
		}
		w.clients()
	})
}

// faults happens every now and then.
func (w *world) faults() {
	w.After(w.Between(50*ms, 1500*ms), func() {
		if w.calm {
			return
		}
		o := w.nodes[w.R.IntN(len(w.nodes))]
		if w.Chance(40) {
			o = w.nodes[w.service.record.Primary[0]-'a']
		}
		long := w.Between(10*ms, 500*ms)
		if w.Chance(50) {
			long = w.Between(500*ms, 5*time.Second)
		}
		w.fault(o, long)
		w.judgeRecovery()
		w.faults()
	})
}

func (w *world) fault(o *node, long time.Duration) {
	switch w.R.IntN(8) {
	case 0, 1:
		if o.core != nil {
			o.end(w.Chance(40))
			w.After(long, func() {
				if o.core == nil {
					o.start()
				}
			})
		}
	case 2, 3:
		if o.core != nil && w.Now() >= o.stopped {
			w.Note("%s stops for %s", o.id, long)
			o.stopped = w.Now() + long
			if w.frozen {
				o.lost += long // not exact while it stands still: nothing asks for the time then
			}
		}
	case 4, 5:
		both := w.Chance(50)
		w.Note("%s is cut off for %s, both ways %t", o.id, long, both)
		for _, other := range w.nodes {
			if w.Chance(70) {
				w.cut[[2]int{o.i, other.i}] = w.Now() + long
				if both {
					w.cut[[2]int{other.i, o.i}] = w.Now() + long
				}
			}
		}
	case 6:
		w.Note("the service is down for %s", long)
		w.service.down = w.Now() + long
	default:
		w.Note("%s is without the service for %s", o.id, long)
		o.alone = w.Now() + long
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.Note("healed")
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
			w.Note("%s is down", o.id)
			continue
		}
		w.Note("%s#%d: stopped until %s, alone until %s, line %x, log %d, durable %d: %s", o.id, o.incarnation, o.stopped, o.alone, o.line, len(o.disk), o.durable, o.core)
	}
}
