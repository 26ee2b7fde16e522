package replication_test

import (
	"context"
	"math/rand/v2"
	"net"
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
	bound        bool // as stave serve does it
	store        *db.Store
	end          func()
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
	serve := m.listen(&server.Options{Transport: m.transport})
	go func() { ended <- serve(ctx) }()
	m.end = func() {
		m.Helper()
		cancel()
		if err := <-ended; err != nil {
			m.Error(err)
		}
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
			for range 3 {
				work(t, m.address, rand.New(rand.NewPCG(rng.Uint64(), 1)), 3, 600)
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
