package server

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// simClock is a node's clock, which never goes back.
type simClock struct {
	from, shown time.Duration // at from it has shown this
	rate        float64
	jump        time.Duration
	still       time.Duration // until then it stands
	coarse      time.Duration // what it shows are multiples of it; 0: anything
}

func (c *simClock) at(now time.Duration) time.Duration {
	shown := c.shown + c.jump
	if now > max(c.from, c.still) {
		shown += time.Duration(float64(now-max(c.from, c.still)) * c.rate)
	}
	if c.coarse > 0 {
		return shown.Truncate(c.coarse)
	}
	return shown
}

func (c *simClock) setRate(now time.Duration, rate float64) {
	coarse := c.coarse
	c.coarse = 0
	c.shown = c.at(now)
	c.from, c.jump, c.still, c.rate, c.coarse = now, 0, 0, rate, coarse
}

func (c *simClock) stop(now, until time.Duration) {
	c.setRate(now, c.rate)
	c.still = until
}

// simNode is a machine with its disk, on which processes of a member run, one after another.
type simNode struct {
	w     *sim
	i     int
	id    string
	clock simClock
	alone time.Duration // until then it does not reach the service
	quiet time.Duration // until then clients only read here: a read of a key with a write that waits waits, too
	boots int

	mem      *vfs.Mem
	disk     *crash.Disk
	recorder *vfstest.Recorder
	values   map[string]string // of a process that has ended: what its disk has
	self     group.Member      // of the newest process

	// Of a process.
	store      *db.Store // nil: there is none
	life       int       // counts starts and ends: what was about to happen in another life does not
	stopped    time.Duration
	server     *Server
	driver     *group.Driver
	play       func() error
	playAfter  time.Duration // it has failed
	syncing    bool
	link       *simLink
	linkAfter  time.Duration
	linkWait   time.Duration
	linkAnew   bool
	peers      []*simPeer
	requests   []*simRequest // whose replies have not left
	takes      []*simRequest // that wait for a lock or the disk
	ending     bool          // it is killed within what it does now
	endPower   bool
	outputs    []func() // what leaves it when it has done what it does
	withinStep bool
}

const simDir = "d"

func newSimNode(w *sim, i int) *simNode {
	o := &simNode{w: w, i: i, id: string(rune('a' + i)), mem: vfs.NewMem(), disk: crash.NewDisk(simDir, nil)}
	rate := 0.87 + 0.26*w.R.Float64()
	switch {
	case w.strict:
		rate = 0.4 + 1.6*w.R.Float64()
	case w.defect == impatient:
		rate = []float64{0.4, 2}[i]
	}
	o.clock = simClock{shown: time.Hour * time.Duration(i+1), rate: rate}
	if w.strict {
		o.clock.coarse = 20 * ms
	}
	return o
}

func (o *simNode) member() group.Member { return o.self }

// later does something in this life, when the node does not stand still, and then what follows from it.
func (o *simNode) later(life int, do func()) {
	switch {
	case o.life != life || o.store == nil:
	case o.w.Now() < o.stopped:
		o.w.After(o.stopped-o.w.Now(), func() { o.later(life, do) })
	default:
		o.step(do)
	}
}

// every does something again and again in this life.
func (o *simNode) every(from, to time.Duration, do func()) {
	life := o.life
	var again func()
	again = func() {
		do()
		o.w.After(o.w.Between(from, to), func() { o.later(life, again) })
	}
	o.w.After(o.w.Between(0, to), func() { o.later(life, again) })
}

// step does something, and what follows from it at once. A process that is killed within a step has done some of it to its disk, and
// nothing has left it.
func (o *simNode) step(do func()) {
	if o.withinStep {
		do()
		return
	}
	o.withinStep, o.outputs = true, nil
	before := 0
	if o.ending {
		before = len(o.recorder.Events())
	}
	do()
	if o.store != nil {
		o.follows()
	}
	o.withinStep = false
	out := o.outputs
	o.outputs = nil
	if o.ending && o.store != nil {
		if after := len(o.recorder.Events()); after > before {
			o.endAt(o.endPower, before+o.w.R.IntN(after-before+1))
			return
		}
	}
	for _, send := range out {
		send()
	}
}

// leaves is called with what is to happen when bytes leave the node.
func (o *simNode) leaves(send func()) { o.outputs = append(o.outputs, send) }

// follows does what the goroutines of a server do when something has happened.
func (o *simNode) follows() {
	if now := o.w.Now(); now >= o.playAfter {
		if err := o.play(); err != nil {
			o.w.Note("%s cannot play its part: %v", o.id, err)
			o.playAfter = now + 300*ms
		}
	}
	o.follow()
	o.feed()
	o.reply()
}

// time is that of the store and of the server.
func (o *simNode) time() time.Time { return time.Unix(1_700_000_000, int64(o.w.Now())) }

func (o *simNode) start() {
	w := o.w
	o.life++
	life := o.life
	o.recorder = vfstest.NewRecorder(o.mem, vfstest.OpOpen, vfstest.OpCreate, vfstest.OpLock, vfstest.OpMkdir, vfstest.OpRemove, vfstest.OpRemoveDir,
		vfstest.OpRename, vfstest.OpRenameDir, vfstest.OpLink, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpSync, vfstest.OpSyncDir)
	mode := db.SyncNone
	if w.always {
		mode = db.SyncAlways
	}
	store, err := db.Open(simDir, simOptions(mode, o.recorder, o.time))
	if err != nil {
		w.Fail("%s cannot open its store: %v", o.id, err)
		return
	}
	o.store, o.values = store, nil
	o.clock.setRate(w.Now(), o.clock.rate) // it stands still no more
	o.stopped, o.playAfter, o.linkAfter, o.linkWait = 0, 0, 0, 0
	o.syncing, o.linkAnew, o.link, o.peers, o.requests, o.takes = false, false, nil, nil, nil, nil
	o.ending, o.withinStep, o.outputs = false, false, nil
	o.server, err = New(store, &Options{Logger: slog.New(slog.DiscardHandler), Group: &Group{
		Name: "g", ID: o.id, Address: o.id + ":1", Records: group.Service(nilRecords{}), Bootstrap: o.i == 0 && w.service.record.Version == 0, MinInSync: w.min, StrictReads: w.strict,
		Silence: time.Second, clock: func() time.Duration { return o.clock.at(w.Now()) }, boot: fmt.Sprint(o.boots),
	}})
	if err != nil {
		w.Fail("%s cannot start: %v", o.id, err)
		return
	}
	before := o.self
	o.self = group.Member{ID: o.id, Incarnation: binary.LittleEndian.Uint64(serverside.DB.Member(store)[1:])} // see member.identify
	w.Note("%s starts, as who it was before %t", o.id, before == o.self)
	o.server.state.AddServing(1)
	o.driver, o.play = o.server.member.Simulate(o.asks)
	o.every(15*ms, 25*ms, o.driver.Step)
	o.every(time.Second, 4*time.Second, func() { // a watch that has missed something begins anew
		if w.Now() >= max(o.alone, w.service.down) {
			o.driver.Answer(nil, w.service.record)
		}
	})
	o.every(900*ms, 1100*ms, func() {
		if o.link != nil && o.link.Link != nil {
			o.link.Tick()
		}
	})
	if !w.always {
		o.every(500*ms, time.Second, func() { o.sync() })
	}
	w.After(0, func() { o.later(life, func() {}) })
}

// nilRecords is asked nothing.
type nilRecords struct{ group.Service }

func simOptions(mode db.SyncMode, fsys vfs.FS, now func() time.Time) *db.Options {
	return seam.With(&db.Options{Sync: mode, NoMerge: true, ExpireEvery: -1, SyncEvery: 24 * time.Hour, Namespaces: 1},
		seam.Options{FS: fsys, NoIndex: true, NoHints: true, NoMapping: true, Copies: seam.CopiesOff, Clock: now})
}

// asks asks the service.
func (o *simNode) asks(a group.Action) {
	o.leaves(func() {
		s := &o.w.service
		answer := func(v group.Versioned) { o.driver.Answer(a, v) }
		switch swap, isSwap := a.(group.Swap); {
		case isSwap:
			self := o.self
			s.request(o, func() group.Versioned { return s.swap(o, self, swap) }, answer)
			if o.w.defect == removedTooEarly && swap.Record.Term == s.record.Term && len(swap.Record.InSync) < len(s.record.InSync) {
				o.confirmEarly(swap.Record.InSync)
			}
		default:
			s.request(o, func() group.Versioned { return s.record }, answer)
		}
	})
}

// confirmEarly shows what those have that a swap would leave in sync.
func (o *simNode) confirmEarly(inSync []group.Member) {
	stream := o.server.state.Replicas.Stream
	end := stream.Position()
	for _, m := range inSync {
		if other := o.w.nodeOf(m.ID); other != o && other.store != nil {
			at := other.server.state.Replicas.Stream.Position()
			if at.ID != end.ID {
				return
			}
			end.Offset = min(end.Offset, at.Offset)
		}
	}
	if len(inSync) < o.w.min {
		return
	}
	g := o.server.state.Gate
	g.Extend(o.clock.at(o.w.Now())+50*ms, true)
	g.Confirm(end.Offset)
	life := o.life
	o.w.After(0, func() { o.later(life, func() {}) })
}

// sync has the disk keep everything.
func (o *simNode) sync() {
	if err := o.store.Sync(); err != nil {
		o.w.Fail("%s: %v", o.id, err)
	}
}

// syncSoon has the disk keep everything, after a time.
func (o *simNode) syncSoon() {
	if o.syncing {
		return
	}
	o.syncing = true
	life := o.life
	o.w.After(o.w.Between(2*ms, 30*ms), func() {
		o.later(life, func() {
			o.syncing = false
			o.sync()
		})
	})
}

// killWithin kills the process while it does what changes its disk next, or soon, and starts it again.
func (o *simNode) killWithin(power bool, long time.Duration) {
	o.ending, o.endPower = true, power
	life := o.life
	o.w.After(500*ms, func() {
		if o.life == life && o.ending {
			o.end(power)
		}
		o.startAfter(long)
	})
}

// startAfter starts a process, unless one runs by then.
func (o *simNode) startAfter(long time.Duration) {
	o.w.After(long, func() {
		if o.store == nil {
			o.start()
		}
	})
}

// end kills the process, or takes its power as well.
func (o *simNode) end(power bool) {
	if o.store != nil {
		o.endAt(power, len(o.recorder.Events()))
	}
}

// endAt kills the process when so many events have been recorded.
func (o *simNode) endAt(power bool, at int) {
	w := o.w
	events := o.recorder.Events()
	w.Note("%s ends, power %t, before the last %d operations", o.id, power, len(events)-at)
	if w.counts.kills++; at < len(events) {
		w.counts.withinSteps++
	}
	for i, e := range events[:at] {
		o.disk.Apply(i, e)
	}
	mem := o.mem.Clone()
	switch {
	case power:
		w.counts.powerCuts++
		if w.defect != forgetful {
			if o.boots++; !w.always {
				o.self.Incarnation = 0 // it will be another one
			}
		}
		mem = o.cutPower()
	case at < len(events): // all that was written before is there
		mem = o.memOf(o.disk.Cut(crash.Weak, crash.All(o.disk.Units())))
		o.disk = o.disk.Clone()
	default:
		o.disk = o.disk.Clone()
	}
	store := o.store
	o.life++
	o.store, o.mem = nil, mem
	o.breakConnections()
	for _, r := range o.requests {
		r.lost()
	}
	o.requests = nil
	if err := store.Close(); err != nil {
		w.Fail("%s: %v", o.id, err)
	}
	o.values = o.read()
}

func (o *simNode) memOf(s crash.State) *vfs.Mem {
	mem, err := s.Mem(simDir)
	if err != nil {
		o.w.t.Fatal(err)
	}
	return mem
}

// cutPower leaves what a disk may have without what was not synced.
func (o *simNode) cutPower() *vfs.Mem {
	r := rand.New(rand.NewPCG(o.w.R.Uint64(), 3)) // however much there is to lose
	profile := crash.Profile(r.IntN(2))
	n := o.disk.Units()
	keep := crash.Random(n, r)
	switch r.IntN(4) {
	case 0:
		keep = crash.Choice{}
	case 1:
		keep = crash.All(n)
	}
	state := o.disk.Cut(profile, keep)
	o.disk = crash.NewDisk(simDir, state)
	return o.memOf(state)
}

// read reads what the disk of a process has that has ended.
func (o *simNode) read() map[string]string {
	store, err := db.Open(simDir, simOptions(db.SyncNone, o.mem.Clone(), o.time))
	if err != nil {
		o.w.Fail("%s has a store that cannot be opened: %v", o.id, err)
		return nil
	}
	values := map[string]string{}
	for _, key := range simKeys {
		values[key] = valueOf(store, key)
	}
	if err := store.Close(); err != nil {
		o.w.Fail("%s: %v", o.id, err)
	}
	return values
}

// value is what the node has of a key.
func (o *simNode) value(key string) string {
	if o.store == nil {
		return o.values[key]
	}
	return valueOf(o.store, key)
}

func valueOf(store *db.Store, key string) string {
	b, err := store.String(key).Get()
	if err != nil {
		return ""
	}
	return string(b)
}
