package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// linearMembers is a group of three servers, each behind a relay through which clients and the other members reach it, and with a
// connection of its own to the service of records. Faults are drawn: servers are killed, cut off, and heard late, without the
// service or with it. What a server writes is in memory, and is there after it was killed.
type linearMembers struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand       // of faults
	clients   atomic.Uint64    // so far
	size      int              // members; 0: three
	transport server.Transport // of all; "": by turns
	strict    bool
	silence   time.Duration // 0: 100 ms
	records   *register
	members   []*faultyMember
	faults    map[string]int
}

// faultyMember is a place in the group, at which one server after another runs.
type faultyMember struct {
	*groupMember
	relay *faultyRelay
	mem   *vfs.Mem
	line  *recordLine
}

// recordLine is what a process asks the service of records by.
type recordLine struct {
	group.Service
	mu   sync.Mutex // guards down
	down bool
}

var errNoRecords = errors.New("the service of records does not answer")

func (l *recordLine) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

func (l *recordLine) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *recordLine) Read(ctx context.Context) (group.Versioned, error) {
	if l.isDown() {
		return group.Versioned{}, errNoRecords
	}
	return l.Service.Read(ctx)
}

func (l *recordLine) Swap(ctx context.Context, s group.Swap) (group.Versioned, error) {
	if l.isDown() {
		return group.Versioned{}, errNoRecords
	}
	return l.Service.Swap(ctx, s)
}

func (l *recordLine) Watch(ctx context.Context, fn func(group.Versioned)) {
	l.Service.Watch(ctx, func(v group.Versioned) {
		if !l.isDown() { // else it is missed: nodes read the record, too
			fn(v)
		}
	})
}

// faultyRelay passes on what comes for a server, and its replies.
type faultyRelay struct {
	ln      net.Listener
	address string
	late    func() time.Duration // before each piece of a reply; nil: none is

	mu    sync.Mutex // guards the rest
	to    string     // "": nobody is there
	conns []net.Conn
	held  chan struct{} // nothing is passed on until it is closed; nil: all is
}

func newFaultyRelay(t *testing.T, late func() time.Duration) *faultyRelay {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &faultyRelay{ln: ln, address: ln.Addr().String(), late: late}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s, ok := r.connect(c)
			if !ok {
				_ = c.Close()
				continue
			}
			running.Go(func() {
				defer c.Close()
				defer s.Close()
				var both sync.WaitGroup
				both.Go(func() { r.pass(s, c, nil) })
				both.Go(func() { r.pass(c, s, r.late) })
				both.Wait()
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); r.set(""); r.hold(false); running.Wait() })
	return r
}

func (r *faultyRelay) connect(c net.Conn) (s net.Conn, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == "" {
		return nil, false
	}
	s, err := net.Dial("tcp", r.to)
	if err != nil {
		return nil, false
	}
	r.conns = append(r.conns, c, s)
	return s, true
}

func (r *faultyRelay) pass(to, from net.Conn, late func() time.Duration) {
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if held != nil {
			<-held
		}
		if late != nil {
			time.Sleep(late())
		}
		_, failed := to.Write(buf[:n])
		switch {
		case err == io.EOF && failed == nil: // the other way is open
			_ = to.(*net.TCPConn).CloseWrite()
			return
		case err != nil || failed != nil:
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// set has it lead to another server, or to none, and closes all connections.
func (r *faultyRelay) set(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

func (r *faultyRelay) target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}

// hold has it keep all bytes for a time.
func (r *faultyRelay) hold(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case on && r.held == nil:
		r.held = make(chan struct{})
	case !on && r.held != nil:
		close(r.held)
		r.held = nil
	}
}

func (l *linearMembers) start() {
	l.records, l.faults = newRegister(), map[string]int{}
	for i := range cmp.Or(l.size, 3) {
		m := &faultyMember{
			groupMember: &groupMember{
				t: l.t, id: string(rune('a' + i)), sync: db.SyncNone, options: server.Options{Transport: cmp.Or(l.transport, transports()[i%len(transports())]), ShutdownGrace: time.Millisecond},
			},
			relay: newFaultyRelay(l.t, nil), mem: vfs.NewMem(),
		}
		m.address = m.relay.address
		m.silence, m.strict = cmp.Or(l.silence, 100*time.Millisecond), l.strict
		m.run(l.records, i == 0)
		l.members = append(l.members, m)
		l.t.Cleanup(func() { m.line.setDown(false); m.relay.hold(false); m.end() })
	}
	l.await()
}

// run starts a process.
func (m *faultyMember) run(records group.Service, bootstrap bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Error(err)
		return
	}
	m.line = &recordLine{Service: records}
	m.records, m.fs = m.line, m.mem
	m.groupMember.start(ln, bootstrap)
	m.relay.set(ln.Addr().String())
}

// await waits until all are in sync.
func (l *linearMembers) await() {
	l.t.Helper()
	eventually(l.t, "all are in sync", func() bool { return len(l.records.inSync()) == len(l.members) })
}

func (l *linearMembers) sometime(most time.Duration) time.Duration {
	return time.Duration(l.rng.Int64N(int64(most)))
}

// kill draws a fault, mostly of the primary, and ends it.
func (l *linearMembers) kill() {
	l.await()
	v, _ := l.records.Read(context.Background())
	m := l.members[l.rng.IntN(len(l.members))]
	if l.rng.IntN(4) > 0 {
		m = l.members[v.Primary[0]-'a']
	}
	switch fault := [...]string{"killed", "held", "held without records", "cut off without records"}[l.rng.IntN(4)]; fault {
	case "killed":
		l.faults[fault]++
		m.line.setDown(true)
		m.relay.set("")
		m.server.StopLink()
		mem, end := m.mem.Clone(), m.stop // what it does from here on is as if it had not been
		m.mem = mem
		time.Sleep(l.sometime(300 * time.Millisecond))
		m.run(l.records, false)
		if err := end(); err != nil {
			l.t.Errorf("%s: %v", m.id, err)
		}
	default:
		l.faults[fault]++
		if fault != "held" {
			m.line.setDown(true)
		}
		if strings.HasPrefix(fault, "held") {
			m.relay.hold(true)
		} else {
			to := m.relay.target()
			m.relay.set("")
			defer m.relay.set(to)
		}
		time.Sleep(l.sometime(400 * time.Millisecond))
		if l.rng.IntN(2) == 0 {
			m.line.setDown(false)
			time.Sleep(l.sometime(20 * time.Millisecond))
		}
		m.relay.hold(false)
		time.Sleep(l.sometime(20 * time.Millisecond)) // what it has kept arrives, and it may not know that it is no primary any more
		m.line.setDown(false)
	}
}

// memberClient talks to one member after another, until one says that it is the primary. What that replies counts only if it says so
// afterwards, too: others show what they have.
type memberClient struct {
	l    *linearMembers
	rng  *rand.Rand
	conn net.Conn // nil: none
	in   *resp.Decoder
}

// errNotDone is the end of commands that were not executed.
var errNotDone = errors.New("not executed")

func (l *linearMembers) client() func([][]string) (string, error) {
	c := &memberClient{l: l, rng: rand.New(rand.NewPCG(l.seed, l.clients.Add(1)))}
	l.t.Cleanup(c.close)
	return func(commands [][]string) (string, error) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			text, err := c.try(commands)
			if err != nil {
				c.close()
			}
			if !errors.Is(err, errNotDone) {
				return text, err
			}
			if time.Now().After(deadline) {
				l.t.Error("no primary for a minute")
				return "", err
			}
		}
	}
}

func (c *memberClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *memberClient) connect() (err error) {
	v, _ := c.l.records.Read(context.Background())
	m := c.l.members[v.Primary[0]-'a']
	if c.rng.IntN(3) == 0 {
		m = c.l.members[c.rng.IntN(len(c.l.members))]
	}
	if c.conn, err = net.Dial("tcp", m.relay.address); err != nil {
		c.conn = nil
		return err
	}
	c.in = resp.NewDecoder(c.conn)
	return nil
}

// send sends commands, whose replies are to come within a time.
func (c *memberClient) send(commands ...[]string) error {
	var out []byte
	for _, args := range commands {
		out = resp.AppendCommand(out, bytesOf(args)...)
	}
	_ = c.conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, err := c.conn.Write(out)
	return err
}

// isPrimary reads what ROLE replies.
func (c *memberClient) isPrimary() bool {
	r, err := c.in.Read()
	return err == nil && len(r.Items) > 0 && string(r.Items[0].Text) == "master"
}

func (c *memberClient) try(commands [][]string) (string, error) {
	role := []string{"ROLE"}
	if c.conn == nil {
		if err := c.connect(); err != nil {
			return "", errNotDone
		}
		if err := c.send(role); err != nil || !c.isPrimary() {
			return "", errNotDone
		}
	}
	if err := c.send(append(transaction(commands), role)...); err != nil {
		return "", err
	}
	text, err := replies(func() (resp.Reply, error) {
		r, err := c.in.Read()
		if err != nil || r.Err() == nil || !isOfGroup(r.Err().Error()) {
			return r, err
		}
		if strings.HasPrefix(r.Err().Error(), "UNKNOWNOUTCOME") {
			return r, r.Err()
		}
		return r, errNotDone
	}, commands)
	if err == nil && !c.isPrimary() {
		err = errKilled
	}
	return text, err
}

// TestLinearizableMembers has the members of a group killed and cut off, again and again: nothing acknowledged is lost, and nobody has
// read what is, nor what was old.
func TestLinearizableMembers(t *testing.T) {
	n := max(*linearHistories/40, 1)
	if testing.Short() {
		n = 1
	}
	seed := chance.Draw(*linearSeed)
	t.Logf("%d histories; replay the commands with -linear.seed %d", n, seed)
	faults := map[string]int{}
	for i := range n {
		untilJudged(t, seed+uint64(i), func(seed uint64) (result porcupine.CheckResult) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				l := &linearMembers{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), strict: seed%2 == 0}
				l.start()
				result = linearHistory(t, l, seed, linearKilled, 40, 3)
				for fault, n := range l.faults {
					faults[fault] += n
				}
			})
			return result
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("faults: %v", faults)
}
