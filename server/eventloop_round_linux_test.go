package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// serveStore serves a store by the event loop, on a Unix socket, until the test ends.
func serveStore(t *testing.T, store *db.Store, o server.Options) (connect func() *testClient) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	o.Transport = server.TransportEventLoop
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- newServer(t, store, &o).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() *testClient {
		t.Helper()
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return &testClient{t, conn, bufio.NewReader(conn)}
	}
}

// TestRoundsOfManyClients: clients whose commands are executed in the same transactions each get the replies to their own commands,
// whatever the others do: commands that are refused, that panic, that leave the loop, that wait.
func TestRoundsOfManyClients(t *testing.T) {
	defer server.AddPanics()()
	for _, mode := range []db.SyncMode{db.SyncNone, db.SyncAlways} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			store, err := db.Open(t.TempDir(), &db.Options{Sync: mode})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
			connect := serveStore(t, store, server.Options{})
			rounds := 200
			if testing.Short() {
				rounds = 30
			}
			var clients sync.WaitGroup
			for i := range 16 {
				c := connect()
				clients.Go(func() {
					for n := range rounds {
						if err := manyClientsRound(c, fmt.Sprint("key", i), n); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			ended := make(chan struct{})
			go func() { clients.Wait(); close(ended) }()
			for panics := 0; ; panics++ {
				select {
				case <-ended:
					t.Logf("%d commands panicked meanwhile", panics)
					return
				default:
				}
				c := connect()
				c.send("SET boomed 1\r\nboomkey boomed\r\n")
				if got, err := io.ReadAll(c.in); err != nil || !strings.HasSuffix(string(got), "-ERR internal error; the connection is closed\r\n") {
					t.Fatalf("%q, %v", got, err)
				}
				_ = c.Close()
			}
		})
	}
}

// manyClientsRound is what one client does in a round: n is how often it has done so.
func manyClientsRound(c *testClient, key string, n int) error {
	for _, step := range []struct{ send, want string }{
		{fmt.Sprintf("SET %s %d\r\nGET %s\r\nINCR shared\r\n", key, n, key), fmt.Sprintf("+OK\r\n$%d\r\n%d\r\n:", len(fmt.Sprint(n)), n)},
		{fmt.Sprintf("LPUSH %s x\r\nINCR %s\r\n", key, key), fmt.Sprintf("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n:%d\r\n", n+1)},
		{fmt.Sprintf("SELECT 1\r\nSET %s other\r\nSELECT 0\r\nSTRLEN %s\r\n", key, key), fmt.Sprintf("+OK\r\n+OK\r\n+OK\r\n:%d\r\n", len(fmt.Sprint(n+1)))},
		{fmt.Sprintf("MULTI\r\nAPPEND %s !\r\nEXEC\r\nDEL %s\r\n", key, key), fmt.Sprintf("+OK\r\n+QUEUED\r\n*1\r\n:%d\r\n:1\r\n", len(fmt.Sprint(n+1))+1)},
		{fmt.Sprintf("RPUSH %s a b\r\nLRANGE %s 0 -1\r\nBLPOP %s 0\r\nDEL %s\r\n", key, key, key, key),
			fmt.Sprintf(":2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$%d\r\n%s\r\n$1\r\na\r\n:1\r\n", len(key), key)},
		{fmt.Sprintf("BLPOP %s 0.001\r\nGET %s\r\n", key, key), "*-1\r\n$-1\r\n"},
	} {
		if _, err := io.WriteString(c.Conn, step.send); err != nil {
			return err
		}
		got := make([]byte, len(step.want))
		if _, err := io.ReadFull(c.in, got); err != nil || string(got) != step.want {
			return fmt.Errorf("%q: got %q, %w, want %q", step.send, got, err, step.want)
		}
		if strings.HasSuffix(step.want, ":") { // a number that others change as well
			if _, err := c.in.ReadString('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestLockedKeysDoNotStopTheLoop: who needs a lock that somebody holds waits outside of the loop, and nobody else does.
func TestLockedKeysDoNotStopTheLoop(t *testing.T) {
	store := openStore(t)
	connect := serveStore(t, store, server.Options{})
	a, b, c := connect(), connect(), connect()
	tx, err := store.Begin(true, "locked")
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() {
		if _, err := tx.End(nil); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release) // before the server is to end
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	a.send("SET mine 1\r\nSET locked 2\r\nGET locked\r\nPING\r\n") // in a batch
	b.send("SET locked 3\r\n")                                     // alone
	for i := range 100 {
		c.send(fmt.Sprintf("SET other %d\r\nGET other\r\n", i))
		c.expect(fmt.Sprintf("+OK\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i))
	}
	release()
	a.expect("+OK\r\n+OK\r\n$1\r\n")
	if got, err := a.in.ReadString('\n'); got != "2\r\n" && got != "3\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	a.expect("+PONG\r\n")
	b.expect("+OK\r\n")
}

// TestSlowCommandsLeaveTheLoop: others are served meanwhile, and what the same client has sent after it comes after it.
func TestSlowCommandsLeaveTheLoop(t *testing.T) {
	connect := serveStore(t, openStore(t), server.Options{Debug: true})
	slow, gone, other := connect(), connect(), connect()
	slow.send("SET k 1\r\nDEBUG SLEEP 0.5\r\nINCR k\r\n")
	gone.send("DEBUG SLEEP 0.3\r\nINCR gone\r\n")
	time.Sleep(20 * time.Millisecond)
	_ = gone.Close()
	slow.send("INCR k\r\n")
	for range 100 {
		other.send("GET k\r\n")
		other.expect("$1\r\n1\r\n")
	}
	slow.expect("+OK\r\n+OK\r\n:2\r\n:3\r\n")
	other.send("GET gone\r\n") // it had been sent before the client left
	other.expect("$1\r\n1\r\n")
}

// TestLoopDoesNotWaitForTheDisk: no reply leaves before its commit is on the disk, and nobody else waits for that. If the disk
// fails, the replies are errors.
func TestLoopDoesNotWaitForTheDisk(t *testing.T) {
	faults := vfs.NewFault(vfs.NewMem())
	store, err := db.Open("d", seam.With(&db.Options{Sync: db.SyncAlways, NoMerge: true}, seam.Options{FS: faults}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // its disk has failed
	connect := serveStore(t, store, server.Options{})
	clients := []*testClient{connect(), connect(), connect()}
	other := connect()
	for _, broken := range []error{nil, syscall.EIO} {
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		t.Cleanup(open) // before the store is closed
		faults.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSync}, Path: "*.data", Sticky: broken != nil, Err: broken, Do: func(vfs.Event) { <-gate }})
		for i, c := range clients {
			c.send(fmt.Sprintf("SET k%d v\r\nPING\r\n", i))
		}
		for i := range clients {
			for reply := ""; reply != "$1\r\n"; { // until it is written
				other.send(fmt.Sprintf("GET k%d\r\n", i))
				if reply, err = other.in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			other.expect("v\r\n")
		}
		for _, c := range clients {
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if reply, err := c.in.ReadByte(); err == nil {
				t.Fatalf("%c: acknowledged before it is on the disk", reply)
			}
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		for i, c := range clients {
			if broken == nil {
				c.expect("+OK\r\n+PONG\r\n")
				other.send(fmt.Sprintf("DEL k%d\r\n", i))
				other.expect(":1\r\n")
				continue
			}
			if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, "-") || err != nil {
				t.Errorf("the disk has failed: %q, %v", line, err)
			}
			c.expectEnd()
		}
	}
}
