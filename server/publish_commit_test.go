package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/server"
)

// TestGivenUpPublishesNothing: what EXEC or a script has published, and missed, before it is given up, is not sent.
func TestGivenUpPublishesNothing(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	listener, s := v.NewSession(), v.NewSession()
	ask(s, "CONFIG SET notify-keyspace-events Em\r\n")
	ask(listener, "SUBSCRIBE c __keyevent@0__:keymiss\r\n")
	var elements strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&elements, " e%d", i)
	}
	if got := ask(s, "SADD set"+elements.String()[:12_000]+"\r\n"); got[0] != ':' {
		t.Fatal(got)
	}
	long := []string{"SUNION"}
	for range 20_000 {
		long = append(long, "set")
	}
	expectMessages := func(what, want string) {
		t.Helper()
		got := ask(listener, "PING\r\n")
		got = strings.TrimSuffix(got, "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
		var list []string
		for _, m := range strings.Split(got, "$7\r\nmessage\r\n")[1:] {
			list = append(list, strings.Split(m, "\r\n")[3])
		}
		if all := strings.Join(list, " "); all != want {
			t.Errorf("%s: the messages are %q, want %q", what, all, want)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	queue := func(last ...string) {
		t.Helper()
		for _, words := range [][]string{{"MULTI"}, {"PUBLISH", "c", "queued"}, {"GET", "none"}, last} {
			if got := do(s, words...); got[0] != '+' {
				t.Fatalf("%s: %q", words[0], got)
			}
		}
	}
	queue(long...)
	if got := s.DoContext(gone, [][]byte{[]byte("EXEC")}); got[0] != '-' {
		t.Fatalf("EXEC for nobody: %.100q", got)
	}
	expectMessages("an EXEC that is given up", "")
	queue("GET", "set2")
	if got := do(s, "EXEC"); got[0] != '*' {
		t.Fatalf("EXEC: %.100q", got)
	}
	expectMessages("an EXEC", "queued none set2")

	source := `redis.call("PUBLISH", "c", "early") redis.call("GET", KEYS[1]) redis.call("PUBLISH", "c", "late") while ARGV[1] == "long" do end`
	evaluate := func(how string) [][]byte {
		return [][]byte{[]byte("EVAL"), []byte(source), []byte("1"), []byte("nokey"), []byte(how)}
	}
	if got := s.DoContext(gone, evaluate("long")); got[0] != '-' {
		t.Fatalf("EVAL for nobody: %q", got)
	}
	expectMessages("a script that is given up", "")
	if got := s.DoContext(t.Context(), evaluate("short")); string(got) != "$-1\r\n" {
		t.Fatalf("EVAL: %q", got)
	}
	expectMessages("a script", "early nokey late")
}

// TestMessagesOfATransactionAreBounded: as many as MULTI may queue.
func TestMessagesOfATransactionAreBounded(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{MaxQueue: 100_000})
	listener, s := v.NewSession(), v.NewSession()
	ask(listener, "SUBSCRIBE c\r\n")
	const publish = `for i = 1, tonumber(ARGV[1]) do redis.call("PUBLISH", ARGV[2], string.rep("x", 1000)) end return "done"`
	if got := eval(s, publish, "0", "80", "c"); got != "$4\r\ndone\r\n" {
		t.Errorf("80 messages: %q", got)
	}
	if got := ask(listener, "PING\r\n"); strings.Count(got, "message") != 80 {
		t.Errorf("%d messages came", strings.Count(got, "message"))
	}
	if got := eval(s, publish, "0", "100", "c"); !strings.HasPrefix(got, "-ERR the messages of the transaction are too large") {
		t.Errorf("100 messages: %q", got)
	}
	ask(listener, "PING\r\n")
	if got := eval(s, publish, "0", "100", "nobody"); got != "$4\r\ndone\r\n" {
		t.Errorf("100 messages to nobody: %q", got)
	}
}

// TestPublishKeepsItsOrder: with several clients at work, a message within a transaction comes after the events of what
// was written before it, and before those after it, through each transport.
func TestPublishKeepsItsOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		listener, writer, other := dial(t, address), dial(t, address), dial(t, address)
		writer.send("CONFIG SET notify-keyspace-events E$\r\n")
		writer.expect("+OK\r\n")
		listener.send("SUBSCRIBE m __keyevent@0__:set\r\n")
		listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nm\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$18\r\n__keyevent@0__:set\r\n:2\r\n")
		const rounds = 50
		for range rounds {
			other.send("GET a\r\nINCR n\r\n")
			writer.send("MULTI\r\nSET a 1\r\nPUBLISH m x\r\nSET b 1\r\nEXEC\r\n" + requestOf("EVAL", "redis.call('SET', KEYS[1], 1) redis.call('PUBLISH', 'm', 'y') redis.call('SET', KEYS[2], 1)", "2", "c", "d"))
		}
		for range rounds {
			for _, want := range []string{"a", "x", "b", "c", "y", "d"} {
				channel := "__keyevent@0__:set"
				if want == "x" || want == "y" {
					channel = "m"
				}
				listener.expect(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$1\r\n%s\r\n", len(channel), channel, want))
			}
		}
	})
}

// TestGivenUpEndsWithItsCommand: a command that was given up leaves no error for the next one.
func TestGivenUpEndsWithItsCommand(t *testing.T) {
	s := newServer(t, openStore(t), nil).NewSession()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if got := s.DoContext(gone, [][]byte{[]byte("EVAL"), []byte("while true do end"), []byte("0")}); got[0] != '-' {
		t.Fatalf("EVAL for nobody: %q", got)
	}
	for _, words := range [][]string{{"PUBLISH", "c", "m"}, {"PUBSUB", "CHANNELS", "*"}, {"MULTI"}, {"PUBLISH", "c", "m"}, {"EXEC"}} {
		if got := do(s, words...); got[0] == '-' {
			t.Errorf("%s: %q", words[0], got)
		}
	}
}

// TestOwnMessagesFollowExec: with RESP3 a client that publishes to itself within EXEC, or a script, gets the reply
// whole and then the messages. Redis 7.0 sends them within the reply, before it is known that they will stand.
func TestOwnMessagesFollowExec(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "HELLO 3\r\nSUBSCRIBE ch\r\n")
	message := func(text string) string {
		return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$%d\r\n%s\r\n", len(text), text)
	}
	for in, want := range map[string]string{
		"MULTI\r\nSET a 1\r\nPUBLISH ch m1\r\nPUBLISH ch m2\r\nGET a\r\nEXEC\r\n": "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n:1\r\n:1\r\n$1\r\n1\r\n" + message("m1") + message("m2"),
		"EVAL \"redis.call('publish','ch','m3') return 7\" 0\r\n":                 ":7\r\n" + message("m3"),
	} {
		if got := ask(s, in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
