package server_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestAppendfsyncInPowerCuts: clients write while another one changes appendfsync, and the power goes after each reply
// and each sync. What was replied to before the reply to CONFIG SET appendfsync always, or after it, is there.
func TestAppendfsyncInPowerCuts(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		rng := chance.Rand(t)
		rec := vfstest.NewRecorder(vfs.NewMem())
		store, err := db.Open("d", seam.With(&db.Options{Sync: db.SyncNone, NoMerge: true, SegmentSize: 8 << 10}, seam.Options{FS: rec, NoMapping: true}))
		if err != nil {
			t.Fatal(err)
		}
		connect := serveStoreBy(t, store, server.Options{Transport: transport})
		const clients = 4
		var wait sync.WaitGroup
		for n := range clients {
			c := connect()
			wait.Go(func() {
				for i := 1; i <= 60; i++ {
					c.send(fmt.Sprintf("SET k%d %d\r\n", n, i))
					if line, err := c.in.ReadString('\n'); err != nil || line != "+OK\r\n" {
						t.Errorf("%q, %v", line, err)
						return
					}
					rec.Mark(fmt.Sprintf("acked %d %d", n, i))
				}
			})
		}
		admin := connect()
		for range 20 {
			value := []string{"always", "everysec", "no"}[rng.IntN(3)]
			if value != "always" {
				rec.Mark("leaving")
			}
			admin.send("CONFIG SET appendfsync " + value + "\r\n")
			admin.expect("+OK\r\n")
			if value == "always" {
				rec.Mark("always")
			}
		}
		wait.Wait()
		events := rec.Events()
		disk := crash.NewDisk("d", nil)
		var acked, promised [clients]int
		always := false
		for i, e := range events {
			disk.Apply(i, e)
			var n, value int
			switch {
			case e.Op != vfstest.OpMark && e.Op != vfstest.OpSync:
				continue
			case e.Op == vfstest.OpSync:
			case e.Name == "always":
				always = true
			case e.Name == "leaving":
				always = false
			default:
				if _, err := fmt.Sscanf(e.Name, "acked %d %d", &n, &value); err != nil {
					t.Fatal(err)
				}
				acked[n] = value
			}
			if always {
				promised = acked
			}
			if promised != [clients]int{} {
				judgeFsync(t, fmt.Sprintf("event %d, %v", i, e), disk.Cut(crash.Weak, crash.Choice{}), promised[:])
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// judgeFsync opens what is left.
func judgeFsync(t *testing.T, what string, state crash.State, promised []int) {
	t.Helper()
	mem, err := state.Mem("d")
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.Open("d", seam.With(&db.Options{NoMerge: true, SegmentSize: 8 << 10}, seam.Options{FS: mem, NoMapping: true}))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = s.Close() }()
	for n, least := range promised {
		value, _ := s.String(fmt.Sprint("k", n)).Get()
		if have, _ := strconv.Atoi(string(value)); have < least {
			t.Errorf("%s: client %d has %d, and %d was promised", what, n, have, least)
		}
	}
}

// TestAppendfsyncLive: the setting is that of the store; a sync that fails refuses the change and all that comes with
// it; a file changes it too.
func TestAppendfsyncLive(t *testing.T) {
	c, path, _, err := load(t, "timeout 5\n")
	if err != nil {
		t.Fatal(err)
	}
	fault := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("d", seam.With(&db.Options{Sync: db.SyncAlways, NoMerge: true}, seam.Options{FS: fault, NoMapping: true}))
	if err != nil {
		t.Fatal(err)
	}
	v := newServer(t, store, &server.Options{Config: c})
	s := v.NewSession()
	expect := func(in, want string) {
		t.Helper()
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	wantMode := func(value string, mode db.SyncMode) {
		t.Helper()
		expect("CONFIG GET appendfsync", fmt.Sprintf("*2\r\n$11\r\nappendfsync\r\n$%d\r\n%s\r\n", len(value), value))
		if got := store.SyncMode(); got != mode {
			t.Errorf("the store has %v, not %v", got, mode)
		}
	}
	wantMode("always", db.SyncAlways) // the store's own, for the file has none
	expect("CONFIG SET appendfsync nope", "-ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no\r\n")
	expect("CONFIG SET appendfsync no timeout x", "-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer\r\n")
	wantMode("always", db.SyncAlways)
	expect("CONFIG SET APPENDFSYNC NO timeout 6", "+OK\r\n")
	wantMode("no", db.SyncNone)
	expect("MULTI", "+OK\r\n")
	expect("CONFIG SET timeout 7 Appendfsync always", "-ERR Command not allowed inside a transaction\r\n")
	expect("DISCARD", "+OK\r\n")
	expect("CONFIG REWRITE", "+OK\r\n")
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "appendfsync no\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := os.WriteFile(path, []byte("appendfsync everysec\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Reload(); err != nil {
		t.Error(err)
	}
	wantMode("everysec", db.SyncInterval)
	expect("SET k v", "+OK\r\n")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	expect("CONFIG SET timeout 77 appendfsync always", "-ERR CONFIG SET failed (possibly related to argument 'appendfsync') - the log could not be synced; the log of the server says why\r\n")
	wantMode("everysec", db.SyncInterval)
	expect("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")
	if err := os.WriteFile(path, []byte("appendfsync always\ntimeout 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Reload(); err == nil || !strings.Contains(err.Error(), "appendfsync stays as it is") {
		t.Error(err)
	}
	wantMode("everysec", db.SyncInterval)
	expect("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n8\r\n")
	_ = store.Close() // a store that has failed
}
