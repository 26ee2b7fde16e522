package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/internal/gate"
)

// linearGroup is two servers, one of which is primary, and the other one follows it, some milliseconds late. A kill deposes the primary,
// whose last commits the other one lacks: it takes over with what it has, and the deposed one follows.
type linearGroup struct {
	t   *testing.T
	rng *rand.Rand // of who kills

	mu      sync.RWMutex
	members [2]*linearMember
	primary int
	paired  bool          // the other one is in sync
	life    chan struct{} // closed when the primary is deposed
	lost    int           // bytes of streams that were not taken over
}

// linearMember is a server of a group.
type linearMember struct {
	*server.Server
	gate    *gate.Gate
	address string
	relay   *faultyRelay // to it, which is late
}

func (l *linearGroup) start() {
	for i := range l.members {
		s, err := db.Open("d", linearOptions(vfs.NewMem(), db.SyncNone))
		if err != nil {
			l.t.Fatal(err)
		}
		v, err := server.New(s, &server.Options{Transport: transports()[i%len(transports())]})
		if err != nil {
			l.t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			l.t.Fatal(err)
		}
		m := &linearMember{Server: v, gate: v.JoinGroup(), address: ln.Addr().String()}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- v.Serve(ctx, ln) }()
		m.relay = l.lateRelay(m.address)
		l.members[i] = m
		l.t.Cleanup(func() {
			stop()
			if err := errors.Join(<-done, s.Close()); err != nil {
				l.t.Error(err)
			}
		})
	}
	l.begin(0)
	ctx, stop := context.WithCancel(context.Background())
	var confirming sync.WaitGroup
	confirming.Go(func() { l.confirm(ctx) })
	l.t.Cleanup(func() { stop(); confirming.Wait() })
}

// lateRelay is a relay to a server, whose replies are up to two milliseconds late.
func (l *linearGroup) lateRelay(to string) *faultyRelay {
	rng := rand.New(rand.NewPCG(l.rng.Uint64(), 1))
	var mu sync.Mutex // guards rng
	r := newFaultyRelay(l.t, func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(int64(2 * time.Millisecond)))
	})
	r.set(to)
	return r
}

// begin makes a member the primary, and has the other one follow it.
func (l *linearGroup) begin(i int) {
	l.primary, l.paired, l.life = i, false, make(chan struct{})
	m, other := l.members[i], l.members[1-i]
	if err := m.BeginTerm(); err != nil {
		l.t.Error(err)
	}
	m.gate.Extend(always, true)
	host, port, _ := net.SplitHostPort(m.relay.address)
	l.admin(other, "REPLICAOF", host, port)
}

// admin does a command of the one who runs the group.
func (l *linearGroup) admin(m *linearMember, words ...string) {
	session := m.NewSession()
	if reply := session.Do(bytesOf(words)); string(reply) != "+OK\r\n" {
		l.t.Errorf("%v: %q", words, reply)
	}
	session.Close()
}

// confirm confirms what both have, or the primary alone while the other one is not in sync.
func (l *linearGroup) confirm(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		m, other := l.members[l.primary], l.members[1-l.primary]
		all, has := m.StreamOffset(), int64(0)
		if other.StreamID() == m.StreamID() {
			has = other.StreamOffset()
		}
		if l.paired = l.paired || has >= all; l.paired {
			all = min(all, has)
		}
		m.gate.Confirm(all)
		l.mu.Unlock()
	}
}

// kill deposes the primary when the other one is in sync.
func (l *linearGroup) kill() {
	l.mu.Lock()
	for deadline := time.Now().Add(time.Minute); !l.paired; l.mu.Lock() {
		l.mu.Unlock()
		if time.Sleep(time.Millisecond); time.Now().After(deadline) {
			l.t.Error("the other member does not get in sync")
			return
		}
	}
	defer l.mu.Unlock()
	old, next := l.members[l.primary], l.members[1-l.primary]
	old.relay.set("")
	time.Sleep(time.Duration(l.rng.Int64N(int64(2 * time.Millisecond)))) // it goes on, and nobody confirms
	old.gate.End()
	time.Sleep(time.Millisecond)
	close(l.life) // from here on it may answer as a replica does
	l.admin(next, "REPLICAOF", "NO", "ONE")
	l.lost += int(old.StreamOffset() - next.StreamOffset())
	old.relay.set(old.address)
	l.begin(1 - l.primary)
}

func (l *linearGroup) client() func([][]string) (string, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	life := l.life
	c, err := net.Dial("tcp", l.members[l.primary].address)
	if err == nil {
		l.t.Cleanup(func() { _ = c.Close() })
	}
	var in *resp.Decoder
	return func(commands [][]string) (string, error) {
		if err != nil {
			return "", err
		}
		if in == nil {
			in = resp.NewDecoder(c)
		}
		var out []byte
		for _, args := range transaction(commands) {
			out = resp.AppendCommand(out, bytesOf(args)...)
		}
		if _, err := c.Write(out); err != nil {
			return "", err
		}
		text, err := replies(func() (resp.Reply, error) {
			r, err := in.Read()
			if refused := r.Err(); err == nil && refused != nil && isOfGroup(refused.Error()) {
				return r, errKilled
			}
			return r, err
		}, commands)
		select {
		case <-life:
			return "", errKilled
		default:
			return text, err
		}
	}
}

// isOfGroup reports whether a reply is an error of one who is no primary.
func isOfGroup(text string) bool {
	return slices.ContainsFunc([]string{"UNKNOWNOUTCOME", "CLUSTERDOWN", "NOREPLICAS", "READONLY", "EXECABORT", "LOADING"}, func(code string) bool { return strings.HasPrefix(text, code) })
}

// TestLinearizableGroup has a group lose its primary with what nobody else has, again and again: nothing acknowledged is lost, and nobody
// has read what is.
func TestLinearizableGroup(t *testing.T) {
	n := max(*linearHistories/20, 1)
	if testing.Short() {
		n = 2
	}
	seed := chance.Draw(*linearSeed)
	t.Logf("%d histories; replay the commands with -linear.seed %d", n, seed)
	lost := 0
	for i := range n {
		untilJudged(t, seed+uint64(i), func(seed uint64) (result porcupine.CheckResult) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				l := &linearGroup{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
				l.start()
				result = linearHistory(t, l, seed, linearKilled, 40, 2)
				lost += l.lost
			})
			return result
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d bytes of streams were lost", lost)
}
