package server_test

import (
	"fmt"
	"slices"
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

// TestReadWrongType draws ids of XREAD, also those after which nothing comes: a key of another type is an error, whatever
// is read of it, and a stream without later entries is none.
func TestReadWrongType(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	do(s, "SET", "other", "v")
	do(s, "XADD", "stream", "1-1", "f", "v")
	for _, id := range []string{"0", "1-1", "$", "+", "18446744073709551615", "18446744073709551615-18446744073709551614", "18446744073709551615-18446744073709551615"} {
		for _, more := range [][]string{nil, {"COUNT", "1"}, {"BLOCK", "1"}} {
			args := append(append([]string{"XREAD"}, more...), "STREAMS")
			if got := do(s, append(args, "other", id)...); !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%q other %s: %q", args, id, got)
			}
			if got := do(s, append(args, "stream", "other", id, id)...); !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%q stream other %s: %q", args, id, got)
			}
			if id == "0" || id == "+" || slices.Contains(more, "BLOCK") { // there is an entry, or it waits for one
				continue
			}
			if got := do(s, append(args, "stream", id)...); got != "*-1\r\n" {
				t.Errorf("%q stream %s: %q", args, id, got)
			}
		}
	}
}

// TestReadLastEntry: + is the last entry that a stream has, as in Redis 7.4, whatever its last id and the count.
func TestReadLastEntry(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	read := func(args ...string) string {
		return strings.NewReplacer("\r\n", " ").Replace(do(s, append([]string{"XREAD"}, args...)...))
	}
	if got := read("STREAMS", "s", "+"); got != "*-1 " {
		t.Errorf("no stream: %q", got)
	}
	for _, id := range []string{"1-1", "2-0", "3-0"} {
		do(s, "XADD", "s", id, "f", id)
	}
	entry := func(id string) string { return "*1 *2 $1 s *1 *2 $3 " + id + " *2 $1 f $3 " + id + " " }
	if got := read("COUNT", "5", "STREAMS", "s", "+"); got != entry("3-0") {
		t.Errorf("the last of three: %q", got)
	}
	do(s, "XDEL", "s", "3-0")
	if got := read("BLOCK", "1", "STREAMS", "s", "+"); got != entry("2-0") {
		t.Errorf("the last that is there: %q", got)
	}
	do(s, "XTRIM", "s", "MAXLEN", "0")
	if got := read("STREAMS", "s", "+"); got != "*-1 " {
		t.Errorf("a stream without entries: %q", got)
	}
	if got := read("STREAMS", "s", "s", "+", "x"); !strings.HasPrefix(got, "-ERR Invalid stream ID") {
		t.Errorf("a bad id: %q", got)
	}
}

// TestWaitingConsumerIsThere: XREADGROUP makes its consumer also if it has to wait for an entry, in each stream that it
// names, and the wait is not disturbed by that.
func TestWaitingConsumerIsThere(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		admin := v.NewSession()
		for _, stream := range []string{"{s}1", "{s}2"} {
			do(admin, "XGROUP", "CREATE", stream, "g", "$", "MKSTREAM")
		}
		for i, read := range []string{"XREADGROUP GROUP g %s BLOCK 0 STREAMS {s}1 >", "XREADGROUP GROUP g %s NOACK BLOCK 0 STREAMS {s}1 >", "XREADGROUP GROUP g %s BLOCK 0 STREAMS {s}1 {s}2 > >"} {
			name := fmt.Sprint("consumer", i)
			keys := strings.Count(read, "{s}")
			c := dial(t, address)
			c.send(fmt.Sprintf(read, name) + "\r\n")
			for began := time.Now(); !strings.Contains(v.Info("clients"), "blocked_clients:1\r\n"); time.Sleep(time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("%s does not wait", read)
				}
			}
			if info := v.Info("clients"); !strings.Contains(info, fmt.Sprintf("total_blocking_keys:%d\r\ntotal_blocking_keys_on_nokey:%d\r\n", keys, keys)) {
				t.Errorf("%s: %s", read, info)
			}
			for _, stream := range strings.Fields(read) {
				if !strings.HasPrefix(stream, "{s}") {
					continue
				}
				if got := do(admin, "XINFO", "CONSUMERS", stream, "g"); !strings.Contains(got, name) {
					t.Errorf("%s: %s has the consumers %q", read, stream, got)
				}
				if got := do(admin, "XGROUP", "CREATECONSUMER", stream, "g", name); got != ":0\r\n" {
					t.Errorf("%s: made once more, %q", read, got)
				}
			}
			do(admin, "XADD", "{s}1", "*", "f", "v")
			if got := c.line(); got != "*1" {
				t.Errorf("%s: %q", read, got)
			}
			c.Close()
		}
	})
}

// TestWaitThatCannotBegin: if the consumer of XREADGROUP cannot be stored, the client gets the error and does not wait.
func TestWaitThatCannotBegin(t *testing.T) {
	disk := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("data", seam.With(&db.Options{}, seam.Options{FS: disk}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // reports the failure again
	v := newServer(t, store, nil)
	s := v.NewSession()
	ask(s, "XGROUP CREATE s g $ MKSTREAM\r\n")
	disk.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.ENOSPC, Sticky: true})
	if got := ask(s, "XREADGROUP GROUP g new BLOCK 0 STREAMS s >\r\nPING\r\n"); !strings.HasPrefix(got, "-MISCONF ") || !strings.HasSuffix(got, "+PONG\r\n") {
		t.Errorf("%q", got)
	}
	if info := v.Info("clients"); s.Blocked() || !strings.Contains(info, "blocked_clients:0\r\n") {
		t.Errorf("it waits: %t, %s", s.Blocked(), info)
	}
}

// TestSetIDBelowDeleted: no id of a deleted entry is given again, as in Redis since 7.2.
func TestSetIDBelowDeleted(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "XADD x 1-1 a 1\r\nXADD x 1-2 b 1\r\nXADD x 1-3 c 1\r\nXDEL x 1-2\r\nXDEL x 1-3\r\n")
	const refused = "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id\r\n"
	for _, more := range []string{"", " ENTRIESADDED 5", " MAXDELETEDID 1-1"} {
		if got := ask(s, "XSETID x 1-2"+more+"\r\n"); got != refused {
			t.Errorf("%q: %q", more, got)
		}
	}
	if got := ask(s, "XSETID x 1-3\r\nXADD x 1-3 f v\r\n"); !strings.HasPrefix(got, "+OK\r\n-ERR The ID") {
		t.Errorf("%q", got)
	}
}
