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
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// serveStore serves a store by the event loop, on a Unix socket, until the test ends.
func serveStore(t *testing.T, store *db.Store, o server.Options) (connect func() *testClient) {
	t.Helper()
	o.Transport = server.TransportEventLoop
	return serveStoreBy(t, store, o)
}

// serveStoreBy serves a store as the options say, on a Unix socket, until the test ends.
func serveStoreBy(t *testing.T, store *db.Store, o server.Options) (connect func() *testClient) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
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

// TestRoundsOfManyClients: clients whose commands are executed in the same transactions each get the replies to their
// own commands, whatever the others do: commands that are refused, that panic, that leave the loop, that wait.
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
			rounds := budget.Rounds(t, 40, 200)
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
					expectCounted(t, connect(), 16*rounds)
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

// expectCounted checks that each command of so many rounds has been counted once, however often it was executed: a
// transaction of several clients that fails is executed again.
func expectCounted(t *testing.T, c *testClient, rounds int) {
	t.Helper()
	c.send("INFO commandstats\r\nINFO errorstats\r\nQUIT\r\n")
	info, err := io.ReadAll(c.in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("cmdstat_strlen:calls=%d,", rounds), fmt.Sprintf("cmdstat_incr:calls=%d,", 2*rounds),
		fmt.Sprintf("cmdstat_get:calls=%d,", 2*rounds), fmt.Sprintf("errorstat_WRONGTYPE:count=%d\r\n", rounds),
	} {
		if !strings.Contains(string(info), want) {
			t.Errorf("want %q in %s", want, info)
		}
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
		{fmt.Sprintf("XADD %s 1-1 f v\r\nXREADGROUP GROUP g c COUNT 1 STREAMS %s >\r\nXGROUP CREATE %s g 0\r\n", key, key, key),
			fmt.Sprintf("$3\r\n1-1\r\n-NOGROUP No such key '%s' or consumer group 'g' in XREADGROUP with GROUP option\r\n+OK\r\n", key)},
		{fmt.Sprintf("XREADGROUP GROUP g c COUNT 1 STREAMS %s >\r\nXREADGROUP GROUP g c COUNT 1 STREAMS %s >\r\nXREAD COUNT 1 STREAMS %s 1-1\r\nXACK %s g 1-1\r\nDEL %s\r\n", key, key, key, key, key),
			fmt.Sprintf("*1\r\n*2\r\n$%d\r\n%s\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*-1\r\n*-1\r\n:1\r\n:1\r\n", len(key), key)},
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

// lockedAlone locks a key that shares no lock with those which are locked: its name begins with some text.
func lockedAlone(t *testing.T, store *db.Store, text string) (key string, unlock func()) {
	t.Helper()
	for i := range 100 {
		key = fmt.Sprint(text, i)
		tx, ok, err := serverside.DB.TryBegin(store, true, nil, key)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		_, err = tx.End(nil)
		if err == nil {
			tx, err = store.Begin(true, key) // not one for which others of its kind would wait
		}
		if err != nil {
			t.Fatal(err)
		}
		return key, func() {
			if _, err := tx.End(nil); err != nil {
				t.Error(err)
			}
		}
	}
	t.Fatal("all locks are taken")
	return "", nil
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
	mine, unlockMine := lockedAlone(t, store, "mine")
	other, unlockOther := lockedAlone(t, store, "other")
	unlockMine()
	unlockOther()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	a.send("SET " + mine + " 1\r\nSET locked 2\r\nGET locked\r\nPING\r\n") // in a batch
	b.send("SET locked 3\r\n")                                             // alone
	for i := range 100 {
		c.send(fmt.Sprintf("SET %s %d\r\nGET %[1]s\r\n", other, i))
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
	slow.send("SET k 1\r\nDEBUG SLEEP 2\r\nINCR k\r\n")
	gone.send("DEBUG SLEEP 0.3\r\nINCR gone\r\n")
	other.until("EXISTS k", ":1") // the command before the slow one has been executed
	_ = gone.Close()
	slow.send("INCR k\r\n")
	time.Sleep(20 * time.Millisecond) // the slow ones have begun
	meanwhile := 0
	for ; meanwhile < 100; meanwhile++ {
		other.send("GET k\r\n")
		if _, err := other.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if got, _ := other.in.ReadString('\n'); got != "1\r\n" {
			break
		}
	}
	if meanwhile < 5 {
		t.Errorf("%d commands of others were executed meanwhile", meanwhile)
	}
	slow.expect("+OK\r\n+OK\r\n:2\r\n:3\r\n")
	other.until("EXISTS gone", ":1") // it had been sent before the client left
}

// TestLoopDoesNotWaitForTheDisk: no reply leaves before its commit is on the disk, and nobody else waits for that. If
// the disk fails, the replies are errors.
func TestLoopDoesNotWaitForTheDisk(t *testing.T) {
	faults := vfstest.NewFault(vfs.NewMem())
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
		faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "*.data", Sticky: broken != nil, Err: broken, Do: func(vfstest.Event) { <-gate }})
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

// TestSlowDiskStopsOnlyWriters: while the disk does not get a full segment sealed, who writes waits for the next,
// outside of the loop, and nobody else does.
func TestSlowDiskStopsOnlyWriters(t *testing.T) {
	faults := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("d", seam.With(&db.Options{SegmentSize: 256 << 10, NoMerge: true}, seam.Options{FS: faults}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	connect := serveStore(t, store, server.Options{})
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open) // before the server is to end
	faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { <-gate }})
	writers := []*testClient{connect(), connect()}
	const n = 500 // of 4 KiB: several segments
	for _, c := range writers {
		go func() {
			_, _ = io.WriteString(c.Conn, strings.Repeat("SET k "+strings.Repeat("x", 4<<10)+"\r\n", n)) // the replies tell
		}()
	}
	other := connect()
	if err := other.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		other.send("PING\r\n")
		other.expect("+PONG\r\n")
		time.Sleep(time.Millisecond)
	}
	if done := store.Stats().Sequence; done >= uint64(len(writers)*n) {
		t.Errorf("the disk has not stopped the writers, which have written %d times: nothing was tested", done)
	}
	open()
	for _, c := range writers {
		c.expect(strings.Repeat("+OK\r\n", n))
	}
}
