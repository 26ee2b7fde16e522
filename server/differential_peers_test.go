package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// peer is one of the two servers that are compared.
type peer interface {
	// do sends one command and returns its reply.
	do(args []string) (resp.Reply, error)
	// send sends commands in one piece; receive returns their replies.
	send(commands [][]string) error
	receive(n int) ([]resp.Reply, error)
}

// patience is how long a reply may take.
const patience = time.Minute

// redisPeer is a connection to a real redis-server.
type redisPeer struct {
	conn    net.Conn
	decoder *resp.Decoder
}

func (p *redisPeer) do(args []string) (resp.Reply, error) {
	if err := p.send([][]string{args}); err != nil {
		return resp.Reply{}, err
	}
	return p.decoder.Read()
}

func (p *redisPeer) send(commands [][]string) error {
	if err := p.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	var out []byte
	for _, args := range commands {
		out = resp.AppendCommandStrings(out, args...)
	}
	_, err := p.conn.Write(out) // Redis keeps unread replies, so this ends
	return err
}

func (p *redisPeer) receive(n int) ([]resp.Reply, error) {
	replies := make([]resp.Reply, n)
	for i := range replies {
		var err error
		if replies[i], err = p.decoder.Read(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// redisServer is a redis-server of a test.
type redisServer struct {
	t      *testing.T
	socket string
}

// startRedis starts a redis-server for this test and connects to it.
func startRedis(t *testing.T) *redisPeer {
	t.Helper()
	return startRedisServer(t).dial()
}

// startRedisServer starts a redis-server for this test, on a unix socket, without persistence.
func startRedisServer(t *testing.T, flags ...string) *redisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: nothing to compare with")
	}
	dir, err := os.MkdirTemp("", "stave-redis") // short: the path of a unix socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	// It looks whether a wait is over as often as hz says, 10 times a second by default.
	cmd := exec.Command(path, append([]string{
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir, "--loglevel", "warning", "--hz", "500",
	}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	return &redisServer{t, socket}
}

// dial connects to the server once it has started.
func (s *redisServer) dial() *redisPeer {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			s.t.Cleanup(func() { _ = conn.Close() })
			return &redisPeer{conn, resp.NewDecoder(conn)}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

// stavePeer is a session of ours.
type stavePeer struct{ session *server.Session }

func (p *stavePeer) do(args []string) (resp.Reply, error) {
	if err := p.send([][]string{args}); err != nil {
		return resp.Reply{}, err
	}
	replies, err := p.receive(1)
	if err != nil {
		return resp.Reply{}, err
	}
	return replies[0], nil
}

func (p *stavePeer) send(commands [][]string) error {
	var in []byte
	for _, args := range commands {
		in = resp.AppendCommandStrings(in, args...)
	}
	if p.session.Feed(in) {
		return fmt.Errorf("the session is closed: %q", p.session.Output())
	}
	return nil
}

func (p *stavePeer) receive(n int) ([]resp.Reply, error) {
	var out []byte
	for {
		if p.session.Blocked() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			p.session.Wait(ctx)
			cancel()
		}
		more := p.session.Output()
		if len(more) == 0 {
			break
		}
		out = append(out, more...)
		p.session.Flushed(len(more))
	}
	replies := make([]resp.Reply, n)
	for i := range replies {
		var err error
		if replies[i], out, err = resp.Decode(out); err != nil {
			return nil, fmt.Errorf("reply %d of %d: %w", i+1, n, err)
		}
	}
	if len(out) > 0 {
		return nil, fmt.Errorf("%d bytes after the replies: %.40q", len(out), out)
	}
	return replies, nil
}

// pair drives both.
type pair struct {
	t            *testing.T
	files        vfs.FS // nil: the operating system's
	transports   []server.Transport
	dir          string // of the store
	opened       int    // how often it was
	store        *db.Store
	stop         func() // ends the server; nil if there is only a session
	socket       string // of the server
	stave, redis peer
	together     int // how many commands may be sent in one piece
	queued       [][]string
	multi        bool     // between MULTI and EXEC, on both, when queued is what both have queued
	mortal       []string // keys with a deadline that may pass, also those that are not of the pool
	compared     int      // commands whose replies were compared
	outcomes     map[string]*outcome
}

// outcome is how often a command was compared: when it was carried out, and when it was refused.
type outcome struct{ done, refused int }

func newPair(t *testing.T) *pair {
	t.Helper()
	return newPairOn(t, nil, append([]server.Transport{""}, transports()...)...)
}

// newPairOn is newPair on a file system, nil being the operating system's, with the transports that are used in turn; one without a name
// is a session.
func newPairOn(t *testing.T, files vfs.FS, transports ...server.Transport) *pair {
	t.Helper()
	p := &pair{t: t, files: files, transports: transports, redis: startRedis(t), dir: t.TempDir(), together: 1, outcomes: map[string]*outcome{}}
	p.open()
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// close ends the server, if there is one, and closes the store.
func (p *pair) close() error {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	return p.store.Close()
}

// open opens the store: with a new session, or with a server and a connection to it, of each transport in turn.
func (p *pair) open() {
	p.t.Helper()
	var err error
	p.opened++
	if p.store, err = db.Open(p.dir, seam.With(&db.Options{}, seam.Options{FS: p.files, ChunkSize: 16 * p.opened})); err != nil { // few strings are too short to be cut
		p.t.Fatal(err)
	}
	if transport := p.transports[p.opened%len(p.transports)]; transport != "" {
		p.stave = p.connect(transport)
	} else {
		p.stave = &stavePeer{newSession(p.t, p.store, nil)}
	}
}

// connect serves the store and connects to the server.
func (p *pair) connect(transport server.Transport) peer {
	p.t.Helper()
	dir, err := os.MkdirTemp("", "stave") // short, as for redis-server
	if err != nil {
		p.t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.socket = filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	store := p.store
	go func() { done <- server.Serve(ctx, ln, store, &server.Options{Transport: transport}) }()
	conn := p.dial()
	p.stop = func() {
		_ = conn.Close()
		cancel()
		if err := errors.Join(<-done, os.RemoveAll(dir)); err != nil {
			p.t.Error(err)
		}
	}
	return &redisPeer{conn, resp.NewDecoder(conn)}
}

// dial connects to the server.
func (p *pair) dial() net.Conn {
	p.t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	return conn
}

// reset brings both servers into the state of new ones.
func (p *pair) reset() {
	p.queued, p.multi, p.mortal = nil, false, nil
	for _, args := range [][]string{{"reset"}, {"flushall"}} {
		for _, one := range []peer{p.stave, p.redis} {
			if reply, err := one.do(args); err != nil || reply.IsError() {
				p.t.Fatalf("%q: %q, %v", args, reply.Text, err)
			}
		}
	}
}

// both sends commands to both servers in one piece each.
func (p *pair) both(commands [][]string) (ours, theirs []resp.Reply, err error) {
	if err := p.redis.send(commands); err != nil {
		p.t.Fatalf("%.2000q: redis: %v", commands, err)
	}
	if err = p.stave.send(commands); err == nil {
		ours, err = p.stave.receive(len(commands))
	}
	if err != nil {
		err = fmt.Errorf("stave: %w", err)
	}
	theirs, failed := p.redis.receive(len(commands))
	if failed != nil {
		p.t.Fatalf("%.2000q: redis: %v", commands, failed) // nothing more will come from this connection
	}
	return ours, theirs, err
}

// one sends a command to both servers, Stave first.
func (p *pair) one(args []string) (ours, theirs resp.Reply, err error) {
	if ours, err = p.stave.do(args); err != nil {
		return ours, theirs, fmt.Errorf("stave: %w", err)
	}
	theirs, err = p.redis.do(args)
	p.count(args, theirs)
	return ours, theirs, err
}

// reopen merges the log, closes the store and opens it again.
func (p *pair) reopen() error {
	if _, err := p.store.Merge(p.t.Context(), db.MergeOptions{All: true}); err != nil && !errors.Is(err, db.ErrMergeBusy) {
		return err
	}
	if err := p.close(); err != nil {
		return err
	}
	p.open()
	return nil
}
