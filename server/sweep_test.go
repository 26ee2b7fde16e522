//go:build unix

package server_test

import (
	"bytes"
	"context"
	"flag"
	"net"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

var sweepAll = flag.String("sweep", "", "TestSweep: all requests whose name matches a regular expression, in RESP2 and RESP3, instead of a sample")

// The bounds of the sweep. Time is the processor's, of this process: a busy machine makes nothing longer.
const (
	sweepClientMemory = 64 << 20  // maxmemory-clients, of which replies have a half
	sweepPeak         = 256 << 20 // heap while a request is executed, garbage included, besides
	sweepTimes        = 12        // so many times the request, of which the test has two copies itself
	sweepKept         = 24 << 20  // heap that is in use afterwards
	sweepUnknown      = 16 << 20  // heap while a client that has not authenticated sends
	sweepProcessor    = 15 * time.Second
	sweepSettles      = 5 * time.Second // for the hints and merges of segments that are full, which read whole commits
	sweepWithin       = 5 * time.Minute // however busy the machine is
)

// sweepHard are requests that every run has: each of them was a defect.
var sweepHard = []string{
	"client|tracking: prefix often, each another", "command|docs: command-name often", "script|load: script of 1048576 bytes", "eval: script of 1048576 bytes",
	"config|get: parameter often, each another", "subscribe: channel often, each another", "command|info: command-name often", "echo: message of 33554432 bytes",
	"acl|setuser: rule often, each another",
}

// sweepLeftOut are commands after which no PING is answered as before, or that end the server.
var sweepLeftOut = []string{"shutdown", "multi", "quit", "reset", "exec", "discard", "replicaof", "slaveof"}

// sweep is a server that requests are sent to.
type sweep struct {
	t       *testing.T
	store   *db.Store
	server  *server.Server
	address string
	stop    func()
	done    chan error
}

func newSweep(t *testing.T, o server.Options) *sweep {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.ClientMemory, o.ShutdownGrace, o.Debug = sweepClientMemory, 100*time.Millisecond, true
	w := &sweep{t: t, store: openStore(t), address: ln.Addr().String(), done: make(chan error, 1)}
	w.server = newServer(t, w.store, &o)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.done <- w.server.Serve(ctx, ln) }()
	return w
}

// prepare empties the server of what a request may have left, and fills the keys that the next one finds.
func (w *sweep) prepare() {
	s := w.server.NewSession()
	defer s.Close()
	for _, line := range []string{
		"FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "CONFIG RESETSTAT", "ACL LOG RESET", "SLOWLOG RESET", "LATENCY RESET", "CLIENT UNPAUSE", "ACL DELUSER sweeper",
		"SET string value", "HSET hash v0000000 a b c", "RPUSH list 1 2 3", "SADD set 1 2 3", "GEOADD zset 13.5 52.5 v0000000 13.6 52.6 b", "PFADD hll a b",
		"XADD stream 1-1 a b", "XGROUP CREATE stream group 0",
	} {
		if reply := ask(s, line+"\r\n"); strings.HasPrefix(reply, "-") {
			w.t.Fatal(line, reply)
		}
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inUse is liveHeap in half the time.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtime.GC()
	runtime.GC()
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peak returns the greatest heap until stop is called.
func peak() (stop func() uint64) {
	read := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	var most atomic.Uint64
	ended, last := make(chan struct{}), make(chan struct{})
	most.Store(read())
	go func() {
		defer close(last)
		for {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
				most.Store(max(most.Load(), read()))
			}
		}
	}()
	return func() uint64 {
		close(ended)
		<-last
		return max(most.Load(), read())
	}
}

// sweepMark is what the PING after a request has back.
const sweepMark = "the-end-of-the-sweep"

// begin sends a request on a connection of its own. The channel is closed when it has been answered, or the server has
// closed the connection: a PING that follows it has come back then, or mark.
func (w *sweep) begin(text []byte, mark string, resp3 bool) (conn *net.TCPConn, answered <-chan struct{}) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	var hello []byte
	if resp3 {
		hello = []byte(requestOf("HELLO", "3"))
	}
	go func() { // the server may not want to read all of it
		for _, part := range [][]byte{hello, text, []byte(requestOf("PING", sweepMark))} {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf, kept := make([]byte, 64<<10), 0
		for {
			n, err := c.Read(buf[kept:])
			n += kept
			if err != nil || bytes.Contains(buf[:n], []byte(mark)) {
				return
			}
			kept = copy(buf, buf[max(0, n-len(mark)):n])
		}
	}()
	return c.(*net.TCPConn), ended
}

// within waits for something, and fails the test if it takes too much of the processor, or for ever.
func (w *sweep) within(what string, over func() bool) {
	w.t.Helper()
	began, start := processorTime(w.t), time.Now()
	for !over() {
		if used := processorTime(w.t) - began; used > sweepProcessor || time.Since(start) > sweepWithin {
			w.t.Fatalf("%s: goes on after %v, %v of the processor", what, time.Since(start), used)
		}
		time.Sleep(time.Millisecond)
	}
}

// closed says whether a channel is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run sends a request, leaves when it takes longer than the patience, and compares what is in memory meanwhile and
// afterwards. It reports whether the request was answered by then.
func (w *sweep) run(r sweepRequest, resp3 bool, patience time.Duration) (inTime bool) {
	w.t.Helper()
	w.prepare()
	text := []byte(requestOf(r.words()...))
	before := inUse()
	most := peak()
	conn, answered := w.begin(text, sweepMark, resp3)
	for start := time.Now(); !inTime && time.Since(start) < patience; time.Sleep(time.Millisecond) {
		inTime = closed(answered)
	}
	_ = conn.SetLinger(0)
	_ = conn.Close()
	w.within(r.name+", whose client has left", func() bool {
		return strings.Contains(w.server.Info("clients"), "connected_clients:0\r\n")
	})
	size := uint64(len(text))
	if took := most() - before; took > sweepPeak+sweepTimes*size {
		w.t.Errorf("%s: %d bytes of heap for a request of %d", r.name, took, size)
	}
	w.prepare()
	after := inUse()
	for start := time.Now(); after > before+sweepKept && time.Since(start) < sweepSettles; after = inUse() {
		time.Sleep(100 * time.Millisecond)
	}
	if after > before+sweepKept {
		w.t.Errorf("%s: %d bytes more are in use afterwards, for a request of %d", r.name, after-before, size)
	}
	return inTime
}

// end sends a request to a server of its own, which is to end while it is executed.
func (w *sweep) end(r sweepRequest, patience time.Duration) {
	w.t.Helper()
	w.prepare()
	conn, answered := w.begin([]byte(requestOf(r.words()...)), sweepMark, false)
	defer conn.Close()
	for start := time.Now(); !closed(answered) && time.Since(start) < patience; time.Sleep(time.Millisecond) {
	}
	w.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := <-w.done; err != nil {
			w.t.Error(err)
		}
		if err := w.store.Close(); err != nil {
			w.t.Error(err)
		}
	}()
	w.within(r.name+", and the server is to end", func() bool { return closed(ended) })
}

// refuse sends a request to a server that asks for a password. Memory that the other server takes for the hints of what it has
// just got is not taken again; memory of a request is.
func (w *sweep) refuse(r sweepRequest) {
	w.t.Helper()
	text := []byte(requestOf(r.words()...))
	var took uint64
	for range 3 {
		if took = w.refusal(r, text); took <= sweepUnknown {
			return
		}
		time.Sleep(time.Second)
	}
	w.t.Errorf("%s, of a client without a password: %d bytes of heap", r.name, took)
}

// refusal sends the text of a request to a server that asks for a password, and returns the memory that it took.
func (w *sweep) refusal(r sweepRequest, text []byte) uint64 {
	w.t.Helper()
	before, most := inUse(), peak()
	conn, answered := w.begin(text, "-", false)
	defer conn.Close()
	w.within(r.name+", of a client without a password", func() bool { return closed(answered) })
	return max(most(), before) - before
}

// TestSweep: whatever command comes with an argument of megabytes, or with a hundred thousand of them, it takes no more
// memory than a multiple of the request and the room for replies, leaves nothing, ends soon after its client has left, and
// holds up no shutdown; of a client without a password it takes next to nothing. A run draws a sample of the requests
// that can be made of the table; -sweep sends all of them, in both protocols.
func TestSweep(t *testing.T) {
	rng := chance.Rand(t)
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	wanted := regexp.MustCompile(*sweepAll)
	var hard, others []sweepRequest
	for _, cmd := range all() {
		if len(cmd.Subcommands) > 0 || slices.Contains(sweepLeftOut, cmd.Name) {
			continue
		}
		for _, r := range sweepRequests(cmd) {
			if slices.Contains(sweepHard, r.name) {
				hard = append(hard, r)
			}
			if *sweepAll == "" && !r.long || *sweepAll != "" && wanted.MatchString(r.name) {
				others = append(others, r)
			}
		}
	}
	if len(hard) != len(sweepHard) {
		t.Fatalf("%d of %d requests that every run has", len(hard), len(sweepHard))
	}
	sample, patience, protocols := 16, 300*time.Millisecond, 1
	if testing.Short() {
		sample = 10
	}
	if *sweepAll != "" {
		sample, patience, protocols = len(others), time.Second, 2
	}
	rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	requests := slices.Concat(hard, others[:sample])
	if *sweepAll != "" {
		requests = others
	}
	w, known := newSweep(t, server.Options{}), newSweep(t, server.Options{RequirePass: "secret"})
	defer w.end(sweepRequest{"the end", func() []string { return []string{"PING"} }, false}, time.Second)
	defer known.stop()
	slow := 0
	for i, r := range requests {
		for protocol := range protocols {
			if w.run(r, (i+protocol)%2 == 0, patience) {
				continue
			}
			slow++
			t.Logf("%s: not answered in %v", r.name, patience)
			newSweep(t, server.Options{}).end(r, patience)
		}
		if i%4 == 0 || *sweepAll != "" {
			known.refuse(r)
		}
	}
	t.Logf("%d requests, of which %d were not answered in %v", len(requests)*protocols, slow, patience)
}
