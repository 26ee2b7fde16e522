package replication_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// restarting is a server that a test starts and ends, on one port.
type restarting struct {
	*testing.T
	dir, address string
	transport    server.Transport
	bound        bool     // as stave serve does it
	settings     []string // names and values in turn
	store        *db.Store
	end          func()
	lingers      time.Duration // how long the store stays open after its server
}

func (m *restarting) start() *client {
	m.Helper()
	var err error
	if m.store, err = db.Open(m.dir, nil); err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	store := m.store
	o := configured(m.T, m.settings...)
	o.Transport = m.transport
	serve := m.listen(o)
	go func() { ended <- serve(ctx) }()
	m.end = func() {
		m.Helper()
		cancel()
		if err := <-ended; err != nil {
			m.Error(err)
		}
		time.Sleep(m.lingers)
		if err := store.Close(); err != nil {
			m.Error(err)
		}
		m.end = func() {}
	}
	return dial(m.T, m.address)
}

// listen opens the port, and returns what serves the store there.
func (m *restarting) listen(o *server.Options) (serve func(context.Context) error) {
	m.Helper()
	v, err := server.New(m.store, o)
	if err != nil {
		m.Fatal(err)
	}
	if !m.bound {
		ln, err := net.Listen("tcp", m.address)
		if err != nil {
			m.Fatal(err)
		}
		m.address = ln.Addr().String()
		return func(ctx context.Context) error { return v.Serve(ctx, ln) }
	}
	b, err := (&server.Listen{Addr: m.address}).Open(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	m.address = b.Addrs()[0].String()
	return func(ctx context.Context) error { return v.ServeBound(ctx, b) }
}

// TestRestart: a replica goes on where it was when its master was ended and started again, under load, unless the store was
// written to in between.
func TestRestart(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			rng := chance.Rand(t)
			m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0", transport: transport}
			master := m.start()
			defer func() { m.end() }()
			prepare(master)
			_, port, _ := net.SplitHostPort(m.address)
			replica := startRedis(t, port)
			awaitCaughtUp(t, master, replica)
			for round := range 3 {
				work(t, m.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 600)
				m.lingers = time.Duration(round) * 200 * time.Millisecond // a cycle of expiry and more
				master.must("SET", "expires meanwhile", "1", "PX", "100")
				began := time.Now()
				m.end()
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the end took %v", took)
				}
				time.Sleep(60 * time.Millisecond) // what expires meanwhile is deleted when there are replicas again
				master = m.start()
				work(t, m.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 300)
				expireAll(master)
				awaitCaughtUp(t, master, replica)
				wantSame(t, master, replica)
				wantSyncs(t, master, replica, 0)
			}
			id := master.info("replication", "master_replid")
			m.end()
			store, err := db.Open(m.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.String("in between").Set([]byte("1")); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			master = m.start()
			awaitCaughtUp(t, master, replica)
			wantSame(t, master, replica)
			wantSyncs(t, master, replica, 1)
			if again := master.info("replication", "master_replid"); again == id || strings.Trim(again, "0") == "" {
				t.Errorf("the stream has the id %s after a write that is not in it, before %s", again, id)
			}
		})
	}
}

// TestRestartWithAnotherSetting: a master whose setting replicaof is another one than before goes on where it was: as the replica of
// who was promoted, and as a master that is told to be one.
func TestRestartWithAnotherSetting(t *testing.T) {
	m := &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	first, second := m.start(), startInstance(t, "redis")
	defer func() { m.end() }()
	first.must("CONFIG", "SET", "repl-ping-replica-period", "1000") // with which it would be ahead of its successor
	_, port, _ := net.SplitHostPort(m.address)
	second.must("REPLICAOF", "127.0.0.1", port)
	prepare(first)
	awaitCaughtUp(t, first, second.client)
	m.end()
	m.settings = []string{"replicaof", "no one"}
	first = m.start()
	first.must("CONFIG", "SET", "repl-ping-replica-period", "1000")
	first.must("SET", "after", "1")
	awaitCaughtUp(t, first, second.client)
	wantSame(t, first, second.client)
	wantSyncs(t, first, second.client, 0)
	second.must("REPLICAOF", "NO", "ONE")
	await(t, "it is alone", func() bool { return first.info("replication", "connected_slaves") == "0" })
	m.end()
	second.must("SET", "of the successor", "1")
	m.settings = []string{"replicaof", "127.0.0.1:" + second.port}
	first = m.start()
	awaitCaughtUp(t, second.client, first)
	wantSame(t, second.client, first)
	wantSyncs(t, second.client, first, 0)
	if files := orphansIn(t, m.dir); len(files) != 0 {
		t.Errorf("%d files of orphans", len(files))
	}
}

// promoted is a server that began as the replica that its setting names, was promoted by command, has got a replica, and was
// ended. Its setting says now that it is a master.
func promoted(t *testing.T) (m *restarting, replica instance) {
	t.Helper()
	former, replica := startInstance(t, "redis"), startInstance(t, "redis")
	m = &restarting{T: t, dir: t.TempDir(), address: "127.0.0.1:0", settings: []string{"replicaof", "127.0.0.1:" + former.port}}
	first := m.start()
	awaitCaughtUp(t, former.client, first)
	first.must("REPLICAOF", "NO", "ONE")
	_, port, _ := net.SplitHostPort(m.address)
	replica.must("REPLICAOF", "127.0.0.1", port)
	awaitCaughtUp(t, first, replica.client)
	m.end()
	m.settings = []string{"replicaof", "no one"}
	return m, replica
}

// TestToldToBeMaster: a promoted server whose setting says at last that it is a master goes on where its replicas are.
func TestToldToBeMaster(t *testing.T) {
	m, replica := promoted(t)
	first := m.start()
	defer func() { m.end() }()
	first.must("SET", "after", "1")
	awaitCaughtUp(t, first, replica.client)
	wantSame(t, first, replica.client)
	wantSyncs(t, first, replica.client, 0)
}

// TestStartThatFails: a server that cannot be made, or whose listener is refused, leaves nothing behind: another one on the same store
// goes on with the stream.
func TestStartThatFails(t *testing.T) {
	m, second := promoted(t)
	store, err := db.Open(m.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := configured(t, m.settings...)
	o.ACLFile = filepath.Join(t.TempDir(), "none")
	if _, err := server.New(store, o); err == nil {
		t.Fatal("there are no users")
	}
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(t.Context(), ln, store, configured(t, m.settings...)); !errors.Is(err, server.ErrNoPassword) {
		t.Fatal(err)
	}
	if ln, err = net.Listen("tcp", m.address); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, ln, store, nil) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	first := dial(t, m.address)
	first.must("SET", "after", "1")
	awaitCaughtUp(t, first, second.client)
	wantSame(t, first, second.client)
	wantSyncs(t, first, second.client, 0)
}

// TestFullIsOfOneMoment: while clients count, each replica that comes gets every step once: in its file, or after it.
func TestFullIsOfOneMoment(t *testing.T) {
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			address, _ := serve(t, dbtest.New(t), &server.Options{Transport: transport})
			master := dial(t, address)
			_, port, _ := net.SplitHostPort(address)
			for i := range 300 {
				var some [][]string
				for j := range 100 {
					some = append(some, []string{"SET", strconv.Itoa(100*i + j), "v"})
				}
				master.pipeline(some...)
			}
			stop := make(chan struct{})
			var counting sync.WaitGroup
			for i := range 3 {
				counting.Go(func() {
					c, key := dial(t, address), strconv.Itoa(i)
					for {
						select {
						case <-stop:
							return
						default:
							c.pipeline([]string{"INCR", "n"}, []string{"RPUSH", "list" + key, "x"}, []string{"HINCRBY", "hash", key, "1"})
						}
					}
				})
			}
			var replicas []*client
			for range 3 {
				replica := startRedis(t, port)
				await(t, "the replica follows", func() bool { return replica.info("replication", "master_link_status") == "up" })
				replicas = append(replicas, replica)
			}
			close(stop)
			counting.Wait()
			for i, replica := range replicas {
				awaitCaughtUp(t, master, replica)
				for _, args := range [][]string{{"GET", "n"}, {"LLEN", "list0"}, {"LLEN", "list1"}, {"LLEN", "list2"}, {"HGETALL", "hash"}, {"DBSIZE"}} {
					if have, want := replica.must(args...), master.must(args...); have != want {
						t.Errorf("replica %d: %q: %s, want %s", i, args, have, want)
					}
				}
			}
			wantSyncs(t, master, replicas[0], len(replicas))
		})
	}
}
