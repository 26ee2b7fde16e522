package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// eval runs a script on a session and returns the reply as it was sent.
func eval(s *server.Session, script string, keysAndArgs ...string) string {
	return do(s, append([]string{"EVAL", script}, keysAndArgs...)...)
}

func do(s *server.Session, args ...string) string {
	return ask(s, string(resp.AppendCommandStrings(nil, args...)))
}

func TestScriptIsOneCommit(t *testing.T) {
	store := openStore(t)
	s := newSession(t, store, nil)
	before := store.Stats().Sequence
	if got := eval(s, `for i = 1, 10 do redis.call("SET", KEYS[1] .. i, i) end return redis.call("GET", KEYS[1] .. 10)`, "1", "k"); got != "$2\r\n10\r\n" {
		t.Fatalf("got %q", got)
	}
	// What a script writes before an error stays.
	if got := eval(s, `redis.call("SET", KEYS[1], "there") redis.call("LPUSH", KEYS[1], 1)`, "1", "kept"); !strings.HasPrefix(got, "-WRONGTYPE ") {
		t.Fatalf("got %q", got)
	}
	if got := do(s, "GET", "kept"); got != "$5\r\nthere\r\n" {
		t.Errorf("after an error: %q", got)
	}
	// A command that fails alone is rolled back alone.
	if got := eval(s, `redis.call("SET", KEYS[1], 1) redis.pcall("LPUSH", KEYS[1], 1) redis.call("INCR", KEYS[1]) return redis.call("GET", KEYS[1])`, "1", "n"); got != "$1\r\n2\r\n" {
		t.Errorf("got %q", got)
	}
	if store.Stats().Sequence == before {
		t.Error("nothing was written")
	}
}

// TestScriptLocks: a script sees one moment and is seen as one, whatever it has declared, beside others that write the
// same keys.
func TestScriptLocks(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	const rounds = 150
	scripts := []struct {
		name, source string
		keys         []string
	}{
		{"declared", `redis.call("INCR", KEYS[1]) return redis.call("INCR", KEYS[2])`, []string{"a", "b"}},
		{"undeclared", `redis.call("INCR", "a") return redis.call("INCR", "b")`, nil},
		{"half declared", `redis.call("INCR", KEYS[1]) return redis.call("INCR", "b")`, []string{"a"}},
		{"words put together", `redis.call("GET", KEYS[1]) redis.call("IN" .. "CR", KEYS[1]) return redis.call("IN" .. "CR", "b")`, []string{"a"}},
		{"declared, and looked at as a whole", `redis.call("INCR", KEYS[1]) redis.call("DBSIZE") return redis.call("INCR", KEYS[2])`, []string{"a", "b"}},
	}
	var wg sync.WaitGroup
	for _, tt := range scripts {
		wg.Go(func() {
			s := v.NewSession()
			for range rounds {
				if got := eval(s, tt.source, append([]string{strconv.Itoa(len(tt.keys))}, tt.keys...)...); got[0] != ':' {
					t.Errorf("%s: %q", tt.name, got)
					return
				}
			}
		})
	}
	wg.Go(func() {
		s := v.NewSession()
		for range rounds {
			got := eval(s, `return {redis.call("GET", KEYS[1]), redis.call("GET", "b")}`, "1", "a")
			reply, _, err := resp.Decode([]byte(got))
			if err != nil || len(reply.Items) != 2 || string(reply.Items[0].Text) != string(reply.Items[1].Text) {
				t.Errorf("the keys are not of one moment: %q", got)
				return
			}
		}
	})
	wg.Wait()
	want := strconv.Itoa(rounds * len(scripts))
	err := store.View(func(tx *db.Tx) error {
		for _, key := range []string{"a", "b"} {
			if got, err := tx.String(key).Get(); err != nil || string(got) != want {
				return fmt.Errorf("%s is %q, want %s: %w", key, got, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestScriptThatReadsLocksForReading: two scripts that only read run at the same time.
func TestScriptThatReadsLocksForReading(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	do(v.NewSession(), "SET", "k", "v")
	tx, err := store.Begin(false) // a reader of everything
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 2)
	for _, args := range [][]string{{`return redis.call("GET", KEYS[1])`, "1", "k"}, {`return redis.call("GET", "k")`, "0"}} {
		go func() { done <- eval(v.NewSession(), args[0], args[1:]...) }()
	}
	for range 2 {
		select {
		case got := <-done:
			if got != "$1\r\nv\r\n" {
				t.Errorf("got %q", got)
			}
		case <-time.After(time.Minute):
			t.Error("the script waits for a reader")
		}
	}
	if _, err := tx.End(nil); err != nil {
		t.Fatal(err)
	}
}

func TestScriptWithinMulti(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	in := "MULTI\r\nSET k 1\r\n" + string(resp.AppendCommandStrings(nil, "EVAL", `redis.call("INCR", "k") redis.call("SET", "other", "x") error("failed")`, "0")) +
		string(resp.AppendCommandStrings(nil, "EVAL", `return redis.call("INCR", "k")`, "0")) + "EXEC\r\nGET other\r\n"
	got := ask(s, in)
	if !strings.HasPrefix(got, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n-ERR user_script:1: failed") || !strings.HasSuffix(got, ":3\r\n$1\r\nx\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestScriptEffects(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	a, b := v.NewSession(), v.NewSession()
	// WATCH notices what a script writes.
	ask(a, "WATCH k\r\nMULTI\r\nSET k mine\r\n")
	eval(b, `return redis.call("SET", KEYS[1], "theirs")`, "1", "k")
	if got := ask(a, "EXEC\r\n"); got != "*-1\r\n" {
		t.Errorf("EXEC after a script has written: %q", got)
	}
	// SELECT holds for the script only.
	if got := eval(a, `redis.call("SELECT", 3) redis.call("SET", "in3", 1) return redis.call("EXISTS", "in3")`, "0"); got != ":1\r\n" {
		t.Errorf("got %q", got)
	}
	if got := ask(a, "EXISTS in3\r\nSELECT 3\r\nEXISTS in3\r\nSELECT 0\r\n"); got != ":0\r\n+OK\r\n:1\r\n+OK\r\n" {
		t.Errorf("got %q", got)
	}
	// A pop within a script does not wait, and is served to those who do.
	if got := eval(a, `return redis.call("BLPOP", KEYS[1], 0)`, "1", "list"); got != "$-1\r\n" && got != "*-1\r\n" {
		t.Errorf("BLPOP in a script: %q", got)
	}
	ask(b, "BLPOP list 0\r\n")
	if got := eval(a, `return redis.call("RPUSH", KEYS[1], "x")`, "1", "list"); got != ":1\r\n" {
		t.Errorf("got %q", got)
	}
	b.Resume()
	if got := string(b.Output()); got != "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n" {
		t.Errorf("the client that waited got %q", got)
	}
	// Messages, once also if the script had to begin again.
	ask(b, "RESET\r\n")
	b.Flushed(len(b.Output()))
	ask(b, "SUBSCRIBE c\r\n")
	if got := eval(a, `redis.call("GET", KEYS[1]) return redis.call("PUBLISH", "c", "m") + redis.call("INCR", "unde" .. "clared")`, "1", "k"); got != ":2\r\n" {
		t.Errorf("got %q", got)
	}
	if got := ask(b, "PING\r\n"); strings.Count(got, "message") != 1 {
		t.Errorf("got %q", got)
	}
}

// TestBusyScript: while a script lasts, those who need its locks are told so, others are not disturbed, and it can be
// killed unless it has written.
func TestBusyScript(t *testing.T) {
	v, address := serve(t, nil)
	dial := func() (net.Conn, func(args ...string) string) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		decoder := resp.NewDecoder(conn)
		return conn, func(args ...string) string {
			if _, err := conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
				t.Fatal(err)
			}
			r, err := decoder.Read()
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Kind) + r.String()
		}
	}
	_, ask := dial()
	if got := ask("CONFIG", "SET", "busy-reply-threshold", "50"); got != "+OK" {
		t.Fatalf("got %q", got)
	}
	endless := func(script string, keys ...string) (ended chan string) {
		conn, _ := dial()
		if _, err := conn.Write(resp.AppendCommandStrings(nil, append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)...)); err != nil {
			t.Fatal(err)
		}
		ended = make(chan string, 1)
		go func() {
			b := make([]byte, 1024)
			n, err := conn.Read(b)
			if err != nil && err != io.EOF && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			ended <- string(b[:n])
		}()
		awaitScript(t, v, strings.Contains(script, "SET"))
		return ended
	}
	ended := endless(`redis.call("GET", KEYS[1]) while true do pcall(redis.call, "GET", KEYS[1]) end`, "k")
	if got := ask("SET", "k", "v"); !strings.HasPrefix(got, "-BUSY ") {
		t.Errorf("SET of its key: %q", got)
	}
	if got := ask("GET", "k"); got != "$" {
		t.Errorf("GET of a key that it reads: %q", got)
	}
	refused := ""
	for i := range 8 { // one in 256 shares its lock with the key of the script
		if got := ask("SET", fmt.Sprintf("other%d", i), "v"); got != "+OK" {
			refused += got
		}
	}
	if strings.Count(refused, "-BUSY ") > 2 || refused != "" && !strings.HasPrefix(refused, "-BUSY ") {
		t.Errorf("SET of other keys: %q", refused)
	}
	if got := ask("SCRIPT", "KILL"); got != "+OK" {
		t.Errorf("SCRIPT KILL: %q", got)
	}
	if got := <-ended; !strings.Contains(got, "Script killed by user with SCRIPT KILL") {
		t.Errorf("the script ended with %q", got)
	}
	if got := ask("SCRIPT", "KILL"); !strings.HasPrefix(got, "-NOTBUSY ") {
		t.Errorf("SCRIPT KILL without a script: %q", got)
	}
	if got := ask("SET", "k", "v"); got != "+OK" {
		t.Errorf("SET after the script: %q", got)
	}
	endless(`redis.call("SET", KEYS[1], 1) while true do end`, "w")
	if got := ask("SCRIPT", "KILL"); !strings.HasPrefix(got, "-UNKILLABLE ") {
		t.Errorf("SCRIPT KILL of a script that has written: %q", got)
	}
	if got := ask("GET", "w"); !strings.HasPrefix(got, "-BUSY ") {
		t.Errorf("GET of its key: %q", got)
	}
	// The end of the server ends it too: see the cleanup of serve.
}

// TestScriptCache: the cache keeps what was loaded, and of what was only evaluated the last 500.
func TestScriptCache(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	sha := strings.Split(do(s, "SCRIPT", "LOAD", "return 'loaded'"), "\r\n")[1]
	for i := range 600 {
		eval(s, fmt.Sprintf("return %d", i), "0")
	}
	for _, tt := range []struct{ script, want string }{{"return 5", ":0\r\n"}, {"return 599", ":1\r\n"}, {"return 'loaded'", ":1\r\n"}} {
		shaOf := strings.Split(do(s, "EVAL", "return redis.sha1hex(ARGV[1])", "0", tt.script), "\r\n")[1]
		if got := do(s, "SCRIPT", "EXISTS", shaOf); got != "*1\r\n"+tt.want {
			t.Errorf("%s: %q", tt.script, got)
		}
	}
	if got := do(s, "EVALSHA", strings.ToUpper(sha), "0"); got != "$6\r\nloaded\r\n" {
		t.Errorf("got %q", got)
	}
	if got := do(s, "SCRIPT", "FLUSH"); got != "+OK\r\n" {
		t.Errorf("got %q", got)
	}
	if got := do(s, "EVALSHA", sha, "0"); !strings.HasPrefix(got, "-NOSCRIPT ") {
		t.Errorf("got %q", got)
	}
}

// TestScriptMayDoWhatItsUserMay: permissions hold for each command of a script, also for keys that it has not declared.
func TestScriptMayDoWhatItsUserMay(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	do(s, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "-lpush", "~a*", "resetchannels", "&c*")
	if got := do(s, "AUTH", "u", "x"); got != "+OK\r\n" {
		t.Fatalf("AUTH: %q", got)
	}
	const who = "-ERR The user executing the script "
	for _, tt := range []struct{ script, want string }{
		{`return redis.call("LPUSH", "a", 1)`, who + "can't run this command or subcommand script: "},
		{`return redis.call("GET", "b")`, who + "can't access at least one of the keys mentioned in the command arguments script: "},
		{`return redis.call("PUBLISH", "d", "m")`, who + "can't publish to the channel mentioned in the command script: "},
		{`redis.call("SET", "a", 1) pcall(redis.call, "SET", "b", 1) return redis.call("GET", "a")`, "$1\r\n1\r\n"},
		{`return {redis.acl_check_cmd("LPUSH", "a", 1), redis.acl_check_cmd("GET", "a")}`, "*2\r\n$-1\r\n:1\r\n"},
	} {
		if got := eval(s, tt.script, "0"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q", tt.script, got)
		}
	}
	if got := eval(s, "return 1", "1", "b"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Errorf("a key that is declared: %q", got)
	}
}

func BenchmarkEval(b *testing.B) {
	for _, tt := range []struct{ name, script string }{
		{"nothing", `return 1`}, {"get", `return redis.call("get", KEYS[1])`}, {"incr", `return redis.call("incr", KEYS[1])`},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := newSession(b, openStore(b), nil)
			in := resp.AppendCommandStrings(nil, "EVAL", tt.script, "1", "key")
			b.ReportAllocs()
			for b.Loop() {
				s.Feed(in)
				s.Flushed(len(s.Output()))
			}
		})
	}
}

// TestWaiterOfAScriptIsToldEarly: a client that waits for a key of a script since before anyone could know that the
// script lasts gets BUSY like those that come later, or ends when it leaves; and nothing is held when the script has
// ended.
func TestWaiterOfAScriptIsToldEarly(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		locked := make(chan struct{}, 1)
		logger := slog.New(signal{slog.DiscardHandler, "it has the locks", locked})
		_, address := serve(t, &server.Options{Transport: transport, Logger: logger})
		admin := dial(t, address)
		admin.send("CONFIG SET busy-reply-threshold 100\r\n")
		admin.expect("+OK\r\n")
		script, early, leaver := dial(t, address), dial(t, address), dial(t, address)
		script.send(string(resp.AppendCommandStrings(nil, "EVAL", `redis.call("GET", KEYS[1]) redis.log(redis.LOG_WARNING, "it has the locks") while true do end`, "1", "k")))
		<-locked
		early.send("SET k v\r\n")
		leaver.send("SET k v\r\n")
		early.expect("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n")
		leaver.Close()
		admin.send("SCRIPT KILL\r\n")
		admin.expect("+OK\r\n")
		admin.until("SET k w", "+OK")
		admin.send("GET k\r\n")
		admin.expect("$1\r\nw\r\n")
	})
}

// signal is a handler of log records that sends once it is given a text.
type signal struct {
	slog.Handler
	text string
	sent chan<- struct{}
}

func (h signal) Enabled(context.Context, slog.Level) bool { return true }

func (h signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.text) {
		h.sent <- struct{}{}
	}
	return nil
}

// TestReadersAndAScriptStarveNoWriter: readers of the whole keyspace that overlap keep out no writer, also while a
// script lasts that holds no locks.
func TestReadersAndAScriptStarveNoWriter(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		writer := dial(t, address)
		for i := range 200 {
			writer.send("MSET")
			for j := range 100 {
				writer.send(fmt.Sprintf(" key:%d:%d v", i, j))
			}
			writer.send("\r\n")
			writer.expect("+OK\r\n")
		}
		script := dial(t, address)
		script.send("EVAL \"while true do end\" 0\r\n")
		awaitScript(t, v, false)
		var readers sync.WaitGroup
		stop := make(chan struct{})
		for range 8 {
			c := dial(t, address)
			readers.Go(func() {
				reply := make([]byte, 1024)
				for {
					select {
					case <-stop:
						return
					default:
					}
					c.send("MULTI\r\nKEYS nothing*\r\nKEYS nothing*\r\nEXEC\r\n")
					for read := 0; read < len("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*0\r\n*0\r\n"); {
						n, err := c.Read(reply)
						if err != nil {
							t.Error(err)
							return
						}
						read += n
					}
				}
			})
		}
		began := time.Now()
		for range 20 {
			writer.send("SET k v\r\n")
			writer.expect("+OK\r\n")
		}
		t.Logf("20 writes beside 8 readers of 20,000 keys took %v", time.Since(began))
		close(stop)
		readers.Wait()
	})
}
