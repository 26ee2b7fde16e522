// Package grouptest checks a service of records with the drivers of a group in one process, whose members are killed.
package grouptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/test/chance"
)

const ms = time.Millisecond

// members is how many a group has here.
const members = 3

// Group is a group whose members have a log each, in memory: it is kept when they are killed.
type Group struct {
	t       testing.TB
	service group.Service
	members []*member

	mu sync.Mutex // guards r
	r  *rand.Rand

	// Of the goroutine that writes.
	entries      uint64
	acknowledged []uint64
}

// member is a node with its log. The log is the stream's: an entry's offset is its place, from 1 on.
type member struct {
	g      *Group
	id     string
	driver *group.Driver // of the life that runs
	end    func()        // ends that one, and waits; nil: it is down

	length atomic.Uint64 // of log: what the driver is told

	mu   sync.Mutex // guards the rest
	log  []uint64
	line uint64 // the term along whose stream the log is
}

// Start makes a group, whose record must not be there yet.
func Start(t testing.TB, service group.Service) *Group {
	g := &Group{t: t, service: service, r: chance.Rand(t)}
	first := group.Record{Term: 1, Primary: name(0)}
	for i := range members {
		g.members = append(g.members, &member{g: g, id: name(i), log: []uint64{0}})
		first.InSync = append(first.InSync, group.Member{ID: name(i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := service.Swap(ctx, group.Swap{Record: first}); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.members {
		m.start()
	}
	t.Cleanup(func() {
		for _, m := range g.members {
			m.kill()
		}
	})
	return g
}

// sometime is a moment between now and the most.
func (g *Group) sometime(most time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.r.Int64N(int64(most)))
}

func name(i int) string { return fmt.Sprint("node", i) }

func (m *member) start() {
	ctx, cancel := context.WithCancel(context.Background())
	d := group.NewDriver(group.Options{
		Self: group.Member{ID: m.id}, MinInSync: 2,
		Interval: 20 * ms, Silence: 200 * ms, Lease: 200 * ms, Patience: 400 * ms, Yield: 60 * ms, Retry: 100 * ms,
	}, m.g.service, group.Hooks{Send: m.send, Changed: func() {}, Offset: m.length.Load})
	var running sync.WaitGroup
	m.mu.Lock()
	m.line, m.driver = 0, d
	m.length.Store(uint64(len(m.log)))
	m.end = func() { cancel(); running.Wait() }
	m.mu.Unlock()
	running.Go(func() { d.Run(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			m.stream(d)
			time.Sleep(5 * ms)
		}
	})
}

// kill ends the process of a member.
func (m *member) kill() {
	m.mu.Lock()
	end := m.end
	m.end, m.driver = nil, nil
	m.mu.Unlock()
	if end != nil {
		end()
	}
}

// lives returns the driver of the life that runs, nil if there is none.
func (m *member) lives() *group.Driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.driver
}

// send delivers a message a moment later.
func (m *member) send(s group.Send) {
	for _, to := range m.g.members {
		if to != m && (s.To == "" || s.To == to.id) {
			time.AfterFunc(m.g.sometime(2*ms), func() { to.receive(m.id, s.Message) })
		}
	}
}

func (m *member) receive(from string, message any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return
	}
	switch message := message.(type) {
	case group.Ping:
		var offset uint64
		if m.line == message.Term {
			offset = uint64(len(m.log))
		}
		m.driver.Pinged(from, message, offset)
	case group.Ack:
		m.driver.Acked(message)
	}
}

// stream sends the log of a primary to the others, a moment later.
func (m *member) stream(d *group.Driver) {
	state := d.State()
	m.mu.Lock()
	log, lives := m.log[:len(m.log):len(m.log)], m.driver == d
	m.mu.Unlock()
	if !state.IsPrimary || !lives {
		return
	}
	for _, to := range m.g.members {
		if to == m {
			continue
		}
		if life := to.lives(); life != nil {
			time.AfterFunc(m.g.sometime(2*ms), func() { to.follow(life, m.id, state.Known.Term, log) })
		}
	}
}

// follow takes what a primary has sent in a life of the member: a connection does not outlive the process.
func (m *member) follow(life *group.Driver, from string, term uint64, log []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := life.State().Known
	if m.driver != life || known.Term != term || known.Primary != from {
		return
	}
	switch n := len(m.log); {
	case n <= len(log) && log[n-1] == m.log[n-1]:
		m.log = append(m.log, log[n:]...)
	case term == m.line:
		return // an older one
	default:
		m.log = slices.Clone(log)
	}
	m.line = term
	m.length.Store(uint64(len(m.log)))
	life.Applied(term, uint64(len(m.log)))
}

// Write writes an entry to a member that takes writes, and waits until it is acknowledged, or never will be as far as its client
// can know. It reports whether it was. It is for one goroutine.
func (g *Group) Write() bool {
	for _, m := range g.members {
		d := m.lives()
		if d == nil {
			continue
		}
		began := d.State()
		if !began.TakesWrites {
			continue
		}
		g.entries++
		entry := g.entries
		m.mu.Lock()
		if now := d.State(); m.driver != d || !now.IsPrimary || now.Known.Term != began.Known.Term { // it may follow another one by now
			m.mu.Unlock()
			return false
		}
		m.log = append(m.log, entry)
		offset := uint64(len(m.log))
		m.length.Store(offset)
		m.mu.Unlock()
		m.stream(d)
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(ms) {
			switch now := d.State(); {
			case !now.IsPrimary || now.Known.Term != began.Known.Term:
				return false
			case now.TakesWrites && now.Gate >= offset:
				g.acknowledged = append(g.acknowledged, entry)
				return true
			}
		}
		return false
	}
	time.Sleep(ms)
	return false
}

// KillSome kills members by chance and starts them again, one after another, while entries are written, for some time.
func (g *Group) KillSome(long time.Duration) {
	done, writing := make(chan bool), sync.WaitGroup{}
	writing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				g.Write()
			}
		}
	})
	kills := 0
	for began := time.Now(); time.Since(began) < long; kills++ {
		time.Sleep(g.sometime(800 * ms))
		m := g.members[g.sometime(members)]
		m.kill()
		time.Sleep(g.sometime(800 * ms))
		m.start()
	}
	close(done)
	writing.Wait()
	g.t.Logf("%d kills, %d entries, %d acknowledged", kills, g.entries, len(g.acknowledged))
}

// AwaitWrite waits until the group acknowledges an entry, which must be within a minute.
func (g *Group) AwaitWrite() {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); !g.Write(); {
		if time.Now().After(deadline) {
			g.t.Fatal("nothing is acknowledged")
		}
	}
}

// Primary returns the driver of the member that takes writes, which there must be within a minute.
func (g *Group) Primary() *group.Driver {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(ms) {
		for _, m := range g.members {
			if d := m.lives(); d != nil && d.State().TakesWrites {
				return d
			}
		}
	}
	g.t.Fatal("no member takes writes")
	return nil
}

// KillPrimary kills the primary of a group, all of whose members are in sync, for good, and returns what has been its driver.
func (g *Group) KillPrimary() *group.Driver {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(ms) {
		d := g.Primary()
		for _, m := range g.members {
			if m.lives() == d && len(d.State().Known.InSync) == members {
				m.kill()
				if now, err := g.service.Read(g.t.Context()); err != nil || len(now.InSync) == members {
					return d
				}
				m.start() // it has removed others by then, which were silent: a machine stalls at times
			}
		}
	}
	g.t.Fatal("the members are not in sync")
	return nil
}

// Drivers returns those that run.
func (g *Group) Drivers() (list []*group.Driver) {
	for _, m := range g.members {
		if d := m.lives(); d != nil {
			list = append(list, d)
		}
	}
	return list
}

// Check fails the test unless the group acknowledges an entry, after which all members that run have every acknowledged one.
func (g *Group) Check() {
	g.t.Helper()
	g.AwaitWrite()
	for _, m := range g.members {
		if m.lives() == nil {
			continue
		}
		missing := g.missing(m)
		for deadline := time.Now().Add(time.Minute); len(missing) > 0 && time.Now().Before(deadline); time.Sleep(ms) {
			missing = g.missing(m)
		}
		if len(missing) > 0 {
			g.t.Errorf("%s lacks %d of %d acknowledged entries, the first of which is %d", m.id, len(missing), len(g.acknowledged), missing[0])
		}
	}
}

// missing returns which acknowledged entries a member lacks.
func (g *Group) missing(m *member) (list []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	has := make(map[uint64]bool, len(m.log))
	for _, entry := range m.log {
		has[entry] = true
	}
	for _, entry := range g.acknowledged {
		if !has[entry] {
			list = append(list, entry)
		}
	}
	return list
}
