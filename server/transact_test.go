package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestTransactionsAreIsolated moves an amount between accounts from many sessions and looks at the sum from others.
func TestTransactionsAreIsolated(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	const accounts, total, movers, rounds = 5, 1000, 4, 200
	var keys []string
	for i := range accounts {
		keys = append(keys, fmt.Sprintf("account:%d", i))
	}
	ask(v.NewSession(), fmt.Sprintf("SET %s %d\r\n", keys[0], total))
	var work sync.WaitGroup
	for m := range movers {
		work.Go(func() {
			s := v.NewSession()
			for i := range rounds {
				from, to := keys[(m+i)%accounts], keys[(m+3*i+1)%accounts]
				out := ask(s, fmt.Sprintf("MULTI\r\nDECRBY %s %d\r\nINCRBY %s %d\r\nEXEC\r\n", from, i, to, i))
				if !strings.Contains(out, "*2\r\n:") {
					t.Errorf("a transaction failed: %q", out)
				}
			}
		})
		work.Go(func() {
			s := v.NewSession()
			for range rounds {
				reply, _, err := resp.Decode([]byte(ask(s, "MGET "+strings.Join(keys, " ")+"\r\n")))
				sum := 0
				for _, item := range reply.Items {
					n, _ := strconv.Atoi(string(item.Text)) // a null is an unused account
					sum += n
				}
				if err != nil || sum != total {
					t.Errorf("the accounts hold %d, want %d: %v", sum, total, err)
				}
			}
		})
	}
	work.Wait()
}

// TestNothingIsAcknowledgedBeforeItIsDurable lets the fsync fail after a pipeline of writes.
func TestNothingIsAcknowledgedBeforeItIsDurable(t *testing.T) {
	disk := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("data", seam.With(&db.Options{Sync: db.SyncAlways}, seam.Options{FS: disk}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // reports the failure again
	v := newServer(t, store, nil)
	s := v.NewSession()
	if got := ask(s, "SET a 1\r\nSET b 2\r\n"); got != "+OK\r\n+OK\r\n" {
		t.Fatal(got)
	}
	disk.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO, Sticky: true})
	got := ask(s, "GET a\r\nSET a 3\r\nMULTI\r\nSET b 4\r\nEXEC\r\nPING\r\n")
	if !strings.HasPrefix(got, "-MISCONF ") || strings.Count(got, "\r\n") != 1 || !s.Closed() {
		t.Errorf("replies before the failed fsync: %q, closed %t", got, s.Closed())
	}
	other := v.NewSession()
	if got := ask(other, "SET a 5\r\n"); !strings.HasPrefix(got, "-MISCONF ") || other.Closed() {
		t.Errorf("a store that cannot sync takes writes: %q", got)
	}
	if got := ask(other, "PING\r\nEXISTS a b\r\n"); got != "+PONG\r\n:2\r\n" {
		t.Errorf("a store that cannot sync does not serve reads: %q", got)
	}
}

// TestFailedWriteLeavesNothing fills the disk.
func TestFailedWriteLeavesNothing(t *testing.T) {
	disk := vfstest.NewFault(vfs.NewMem())
	store, err := db.Open("data", seam.With(&db.Options{}, seam.Options{FS: disk}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // reports the failure again
	s := newSession(t, store, nil)
	ask(s, "RPUSH l a\r\n")
	disk.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.ENOSPC, Sticky: true})
	got := ask(s, "RPUSH l b c\r\nLRANGE l 0 -1\r\nMULTI\r\nRPUSH l d\r\nSELECT 3\r\nEXEC\r\nLLEN l\r\n")
	parts := strings.SplitN(got, "\r\n", 2)
	if !strings.HasPrefix(parts[0], "-MISCONF ") || !strings.HasPrefix(parts[1], "*1\r\n$1\r\na\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n-MISCONF ") || !strings.HasSuffix(got, ":1\r\n") {
		t.Errorf("%q", got)
	}
	if s.Namespace() != 0 {
		t.Errorf("a transaction that failed left the session in namespace %d", s.Namespace())
	}
}

func TestAdmin(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for range 50 {
		ask(s, "SET a 1\r\nHSET h f v\r\n")
	}
	field := func(in, name string) string {
		t.Helper()
		reply, _, err := resp.Decode([]byte(ask(s, in)))
		if err != nil || reply.IsError() {
			t.Fatalf("%q: %q, %v", in, reply.Text, err)
		}
		for i := 0; i+1 < len(reply.Items); i += 2 {
			if string(reply.Items[i].Text) == name {
				return reply.Items[i+1].String()
			}
		}
		t.Fatalf("%q has no %s", in, name)
		return ""
	}
	for _, tt := range []struct{ in, name, want string }{
		{"CHECK\r\n", "findings", "0"},
		{"CHECK\r\n", "keys", "2"},
		{"STATS\r\n", "keys", "2"},
		{"MERGE ALL\r\n", "segments", "1"},
		{"MERGE STATUS\r\n", "merges", "1"},
		{"MERGE STATUS\r\n", "running", "0"},
		{"MERGE STATUS\r\n", "last_segments", "1"},
		{"CHECK\r\n", "findings", "0"},
	} {
		if got := field(tt.in, tt.name); got != tt.want {
			t.Errorf("%q: %s is %s, want %s", tt.in, tt.name, got, tt.want)
		}
	}
	for in, want := range map[string]string{
		"MERGE PAUSE\r\nMERGE RESUME\r\nMERGE STOP\r\n": "+OK\r\n+OK\r\n+OK\r\n",
		"MERGE nope\r\n":                "-ERR syntax error\r\n",
		"MULTI\r\nMERGE\r\nDISCARD\r\n": "+OK\r\n-ERR Command not allowed inside a transaction\r\n+OK\r\n",
		// EXEC would look up hosts with keys locked.
		"MULTI\r\nCONFIG SET timeout 0 Bind nohost.invalid\r\nDISCARD\r\n": "+OK\r\n-ERR Command not allowed inside a transaction\r\n+OK\r\n",
	} {
		if got := ask(s, in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzSession feeds anything at all. The seeds are all commands of the table.
func FuzzSession(f *testing.F) {
	for _, c := range server.Commands {
		f.Add([]byte(c.Name + " a 1 b 2\r\n"))
	}
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\nMULTI\r\nSPOP a 3\r\nEXEC\r\n"))
	store, err := db.Open("data", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()}))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := store.Close(); err != nil {
			f.Error(err)
		}
	})
	v := newServer(f, store, &server.Options{MaxReply: 1 << 20})
	f.Fuzz(func(t *testing.T, in []byte) {
		s := v.NewSession()
		out := ask(s, string(in))
		for rest := []byte(out); len(rest) > 0; {
			var err error
			if _, rest, err = resp.Decode(rest); err != nil {
				t.Fatalf("%q is answered by %q: %v", in, out, err)
			}
		}
		if strings.Contains(v.Info("stats"), "unexpected_error_replies:0") {
			return
		}
		t.Fatalf("%q panics", in)
	})
}

// TestValuesBeyondTheLimitOfAReply: a command that changes fields and returns their values reads no more of them than
// the reply may have, even if one field is asked for again and again, and has then changed nothing.
func TestValuesBeyondTheLimitOfAReply(t *testing.T) {
	store := openStore(t)
	s := newServer(t, store, &server.Options{MaxReply: 1000}).NewSession()
	do(s, "HSET", "h", "f", strings.Repeat("x", 400), "g", strings.Repeat("y", 400), "i", strings.Repeat("z", 400))
	do(s, "HEXPIRE", "h", "1000", "FIELDS", "1", "g")
	before := do(s, "HEXPIRETIME", "h", "FIELDS", "3", "f", "g", "i")
	many := slices.Repeat([]string{"f", "g"}, 500_000)
	for _, words := range [][]string{
		{"HGETEX", "h", "EX", "100", "FIELDS", "1000000"}, {"HGETEX", "h", "PERSIST", "FIELDS", "1000000"}, {"HGETEX", "h", "FIELDS", "1000000"},
	} {
		if got := do(s, append(words, many...)...); got != "-ERR the reply is too large; ask for it in parts\r\n" {
			t.Errorf("%q: %.100q", words, got)
		}
	}
	if got := do(s, "HGETDEL", "h", "FIELDS", "3", "f", "g", "i"); got != "-ERR the reply is too large; ask for it in parts\r\n" {
		t.Errorf("HGETDEL: %q", got)
	}
	if got := do(s, "HEXPIRETIME", "h", "FIELDS", "3", "f", "g", "i"); got != before {
		t.Errorf("deadlines %q, want %q", got, before)
	}
	read := 0
	enough := func(int, []byte) bool { read++; return read%2 != 0 }
	for name, err := range map[string]error{
		"expire":  store.Hash("h").VisitAndExpireAt(time.Now().Add(time.Hour), []string{"f", "i", "g"}, enough),
		"persist": store.Hash("h").VisitAndPersist([]string{"f", "i", "g"}, enough),
		"delete":  store.Hash("h").VisitAndDelete([]string{"f", "i", "g"}, enough),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := do(s, "HKEYS", "h"); read != 6 || got != "*1\r\n$1\r\ng\r\n" {
		t.Errorf("%d values read, and then %q", read, got)
	}
}

// TestLastReplyOfExecTooLong: the limit of a reply is for all of an EXEC. The command that exceeds it is refused and
// has done nothing, also if it is the last one; the others stand.
func TestLastReplyOfExecTooLong(t *testing.T) {
	for _, alone := range []bool{true, false} {
		s := newServer(t, openStore(t), &server.Options{MaxReply: 1000}).NewSession()
		if got := do(s, "RPUSH", "l", strings.Repeat("x", 400), strings.Repeat("y", 400), strings.Repeat("z", 400)); got != ":3\r\n" {
			t.Fatal(got)
		}
		want := "-ERR the reply is too large; ask for it in parts\r\n"
		queued := [][]string{{"MULTI"}, {"LPOP", "l", "3"}, {"EXEC"}}
		count := "*1\r\n"
		if !alone {
			queued = [][]string{{"MULTI"}, {"INCR", "n"}, {"LINDEX", "l", "0"}, {"LINDEX", "l", "1"}, {"LPOP", "l", "1"}, {"EXEC"}}
			count = "*4\r\n:1\r\n$400\r\n" + strings.Repeat("x", 400) + "\r\n$400\r\n" + strings.Repeat("y", 400) + "\r\n"
		}
		var got string
		for _, words := range queued {
			got = do(s, words...)
		}
		if got != count+want {
			t.Errorf("alone %t: EXEC: %q", alone, got)
		}
		if got := do(s, "LLEN", "l"); got != ":3\r\n" {
			t.Errorf("alone %t: the list has %q elements", alone, got)
		}
		if got := do(s, "GET", "n"); alone != (got == "$-1\r\n") {
			t.Errorf("alone %t: the counter is %q", alone, got)
		}
		if got := do(s, "PING"); got != "+PONG\r\n" {
			t.Errorf("alone %t: PING: %q", alone, got)
		}
	}
}
