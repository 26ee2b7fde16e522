package server_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestExecOnAFullDisk: the disk fills up at each write of an EXEC that publishes, or file that it makes, until one has
// room for all. It is all or nothing, also for who opens the store again, its message comes if and only if it was
// carried out, other clients read on meanwhile, and writes go on when there is room again.
func TestExecOnAFullDisk(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for _, size := range []int{10, 300_000} {
			for _, mode := range []db.SyncMode{db.SyncAlways, db.SyncInterval, db.SyncNone} {
				skip := 0
				for execOnAFullDisk(t, transport, mode, size, skip) {
					if skip++; skip == 100 {
						t.Fatalf("%v, %d bytes: refused after %d operations", mode, size, skip)
					}
				}
				if skip == 0 {
					t.Errorf("%v, %d bytes: nothing was refused", mode, size)
				}
				t.Logf("%v, %d bytes: %d points", mode, size, skip)
			}
		}
	})
}

// execOnAFullDisk lets so many operations that need room pass; then there is none. It reports whether EXEC was refused.
func execOnAFullDisk(t *testing.T, transport server.Transport, mode db.SyncMode, size, skip int) (refused bool) {
	t.Helper()
	what := fmt.Sprintf("%v, %d bytes, %d operations", mode, size, skip)
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	options := func() *db.Options {
		return seam.With(&db.Options{Sync: mode, NoMerge: true, SegmentSize: 128 << 10}, seam.Options{FS: fault, NoMapping: true})
	}
	store, err := db.Open("d", options())
	if err != nil {
		t.Fatal(err)
	}
	connect := serveStoreBy(t, store, server.Options{Transport: transport})
	writer, listener, other := connect(), connect(), connect()
	listener.send("SUBSCRIBE c\r\n")
	listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
	other.send("SET there v\r\n")
	other.expect("+OK\r\n")
	const keys = 4
	value := strings.Repeat("x", size)
	transaction := func(name string) string {
		t.Helper()
		writer.send("MULTI\r\n" + requestOf("PUBLISH", "c", name+" begins"))
		for i := range keys {
			writer.sendArray("SET", fmt.Sprint(name, i), value)
		}
		writer.send(requestOf("PUBLISH", "c", name+" ends") + "EXEC\r\n")
		writer.expect("+OK\r\n" + strings.Repeat("+QUEUED\r\n", keys+2))
		line := writer.line()
		if strings.HasPrefix(line, "*6") {
			writer.expect(":1\r\n" + strings.Repeat("+OK\r\n", keys) + ":1\r\n")
		}
		return line
	}
	expectMessage := func(text string) {
		t.Helper()
		listener.expect(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", len(text), text))
	}
	// Truncating what a write has left does not fail here: if a torn write cannot be taken back, the store is read-only
	// from then on.
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpCreate}, Skip: skip, Sticky: true, Err: syscall.ENOSPC, Partial: 7})
	reply := transaction("full")
	refused = strings.HasPrefix(reply, "-")
	if refused && !strings.HasPrefix(reply, "-MISCONF") && !strings.HasPrefix(reply, "-EXECABORT") {
		t.Errorf("%s: %q", what, reply)
	}
	other.send("GET there\r\nPUBLISH c between\r\n")
	other.expect("$1\r\nv\r\n:1\r\n")
	if !refused {
		expectMessage("full begins")
		expectMessage("full ends")
	}
	expectMessage("between")
	expectKeys := func(from string, name string, want int) {
		t.Helper()
		if got, err := countOf(store, name, keys, value); err != nil || got != want {
			t.Errorf("%s: %s, %d keys of %s are whole, want %d: %v", what, from, got, name, want, err)
		}
	}
	stands := keys
	if refused {
		stands = 0
	}
	expectKeys("then", "full", stands)
	fault.Heal()
	for i := 0; ; i++ {
		other.send("SET again v\r\n")
		if got := other.line(); got == "+OK" {
			break
		} else if i == 3000 {
			t.Fatalf("%s: EXEC %q; healed, SET: %q", what, reply, got)
		}
		time.Sleep(time.Millisecond)
	}
	if got := transaction("later"); !strings.HasPrefix(got, "*6") {
		t.Errorf("%s: with room again: %q", what, got)
	} else {
		expectMessage("later begins")
		expectMessage("later ends")
	}
	if err := store.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if store, err = db.Open("d", options()); err != nil {
		t.Fatal(err)
	}
	expectKeys("opened again", "full", stands)
	expectKeys("opened again", "later", keys)
	if err := store.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return refused
}

// countOf says how many of name0, name1 ... there are; another value is an error.
func countOf(store *db.Store, name string, keys int, value string) (n int, err error) {
	for i := range keys {
		got, err := store.String(fmt.Sprint(name, i)).Get()
		switch {
		case err == nil && string(got) == value:
			n++
		case err == nil:
			return n, fmt.Errorf("%s%d has %d bytes", name, i, len(got))
		case !errors.Is(err, db.ErrNotFound):
			return n, err
		}
	}
	return n, nil
}
