package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/internal/gate"
)

// fakeGroup is the group of a server, which confirms when the test says.
type fakeGroup struct {
	*server.Server
	*gate.Gate
	address string
}

const always = time.Duration(math.MaxInt64)

// serveMember runs a server that is primary of a group, and has confirmed all that it has.
func serveMember(t *testing.T, o *server.Options) *fakeGroup {
	t.Helper()
	f := &fakeGroup{}
	f.Server, f.address = serve(t, o, func(v *server.Server) {
		f.Gate = v.JoinGroup()
		if err := v.BeginTerm(); err != nil {
			t.Fatal(err)
		}
		f.Extend(always, true)
		f.confirmAll(v)
	})
	return f
}

func (f *fakeGroup) confirmAll(v *server.Server) { f.Confirm(v.StreamOffset()) }

// confirmed does commands, and has the group confirm them.
func (f *fakeGroup) confirmed(t *testing.T, commands ...string) {
	t.Helper()
	c := dial(t, f.address)
	for _, command := range commands {
		c.send(command + "\r\n")
		replied := make(chan struct{})
		var confirming sync.WaitGroup
		confirming.Go(func() {
			for {
				select {
				case <-replied:
					return
				case <-time.After(time.Millisecond):
					f.confirmAll(f.Server)
				}
			}
		})
		if got := c.line(); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", command, got)
		}
		close(replied)
		confirming.Wait() // what is written from here on is not confirmed
	}
	_ = c.Close()
	f.confirmAll(f.Server)
}

// written sends a command, and returns the length of the stream with what it writes.
func (f *fakeGroup) written(c *testClient, command string) int64 {
	before := f.StreamOffset()
	c.send(command + "\r\n")
	for f.StreamOffset() == before {
		time.Sleep(100 * time.Microsecond)
	}
	return f.StreamOffset()
}

// executed waits until a command has been executed so often since the server began.
func (f *fakeGroup) executed(command string, calls int) {
	s := f.NewSession()
	defer s.Close()
	for !strings.Contains(string(s.Do(bytesOf([]string{"INFO", "commandstats"}))), fmt.Sprintf("cmdstat_%s:calls=%d,", command, calls)) {
		time.Sleep(100 * time.Microsecond)
	}
}

// isSilent wants nothing to arrive for a while.
func (c *testClient) isSilent(what string) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	if b, err := c.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		rest, _ := c.in.Peek(c.in.Buffered())
		c.t.Errorf("%s got %q, %v before it was confirmed", what, append(b[:0], rest...), err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		c.t.Fatal(err)
	}
}

// looks are the ways in which a client could learn of a write of another one: none shows it before the group has confirmed it. The
// first commands are confirmed before. Those of before are executed by the client that looks, with replies of so many lines; write
// is what another one does.
var looks = []struct {
	name        string
	first       []string
	before      string
	beforeReply string
	write       string
	look        string
	want        string // how the reply begins
	cluster     bool
}{
	{name: "a read", write: "SET k new", look: "GET k", want: "$3\r\nnew\r\n"},
	{name: "a read of several", write: "SET k new", look: "MGET a b c k", want: "*4\r\n"},
	{name: "reads that share a transaction", write: "SET k new", look: "GET other\r\nGET k", want: "$-1\r\n$3\r\nnew\r\n"},
	{name: "a deleted key", first: []string{"SET k v"}, write: "DEL k", look: "EXISTS k", want: ":0\r\n"},
	{name: "a write that changes nothing", write: "SET k new", look: "SETNX k other", want: ":0\r\n"},
	{name: "an error", write: "SET k new", look: "INCR k", want: "-ERR value"},
	{name: "the type of a key", write: "SADD k m", look: "TYPE k", want: "+set\r\n"},
	{name: "a part of a collection", first: []string{"HSET k f v"}, write: "HSET k g v", look: "HGET k f", want: "$1\r\nv\r\n"},
	{name: "what moved away", first: []string{"SET k v"}, write: "RENAME k l", look: "GET k", want: "$-1\r\n"},
	{name: "what moved here", first: []string{"SET k v"}, write: "RENAME k l", look: "GET l", want: "$1\r\nv\r\n"},
	{name: "EXEC", write: "SET k new", before: "MULTI\r\nGET k\r\n", beforeReply: "+OK\r\n+QUEUED\r\n", look: "EXEC", want: "*1\r\n$3\r\nnew\r\n"},
	{name: "EXEC of a watch", write: "SET k new", before: "WATCH k\r\nMULTI\r\nPING\r\n", beforeReply: "+OK\r\n+OK\r\n+QUEUED\r\n", look: "EXEC", want: "*-1\r\n"},
	{name: "EXEC of everything", write: "SET k new", before: "MULTI\r\nDBSIZE\r\n", beforeReply: "+OK\r\n+QUEUED\r\n", look: "EXEC", want: "*1\r\n:"},
	{name: "a script with its key", write: "SET k new", look: "EVAL \"return redis.call('get',KEYS[1])\" 1 k", want: "$3\r\nnew\r\n"},
	{name: "a script without its key", write: "SET k new", look: "EVAL \"return redis.call('get','k')\" 0", want: "$3\r\nnew\r\n"},
	{name: "all keys", write: "SET k new", look: "KEYS *", want: "*"},
	{name: "a scan", write: "SET k new", look: "SCAN 0", want: "*2\r\n"},
	{name: "the number of keys", write: "SET k new", look: "DBSIZE", want: ":"},
	{name: "the number of keys in a slot", cluster: true, write: "SET k new", look: "CLUSTER COUNTKEYSINSLOT 7629", want: ":1\r\n"},
	{name: "the keys in a slot", cluster: true, write: "SET k new", look: "CLUSTER GETKEYSINSLOT 7629 9", want: "*1\r\n$1\r\nk\r\n"},
	{name: "a random key", write: "SET k new", look: "RANDOMKEY", want: "$"},
	{name: "keys that are found in others", first: []string{"RPUSH list 1 2", "SET w1 5"}, write: "SET w1 0", look: "SORT list BY w*", want: "*2\r\n"},
	{name: "an object", write: "SET k new", look: "OBJECT ENCODING k", want: "$6\r\nembstr"},
	{name: "FLUSHALL", first: []string{"SET k v"}, write: "FLUSHALL", look: "GET k", want: "$-1\r\n"},
	{name: "SWAPDB", first: []string{"SET k v"}, write: "SWAPDB 0 1", look: "GET k", want: "$-1\r\n"},
	{name: "a library", write: "FUNCTION LOAD \"#!lua name=l\\nredis.register_function('f',function()return(1)end)\"", look: "FCALL f 0", want: ":1\r\n"},
	{name: "the list of libraries", write: "FUNCTION LOAD \"#!lua name=l\\nredis.register_function('f',function()return(1)end)\"", look: "FUNCTION LIST", want: "*1\r\n"},
	{name: "an element that is waited for", write: "RPUSH list e", before: "BLPOP list 60\r\n", want: "*2\r\n$4\r\nlist\r\n$1\r\ne\r\n"},
	{name: "a wait that is over", first: []string{"RPUSH list e"}, write: "LPOP list", look: "BLPOP list 0.005", want: "*-1\r\n"},
	{name: "a notification", first: []string{"CONFIG SET notify-keyspace-events KEA"}, before: "SUBSCRIBE __keyspace@0__:k\r\n", beforeReply: "*3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n", write: "SET k new", want: "*3\r\n$7\r\nmessage\r\n"},
	{name: "a message after a write", before: "SUBSCRIBE c\r\n", beforeReply: "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", write: "SET k new\r\nPUBLISH c written", want: "*3\r\n$7\r\nmessage\r\n"},
	{
		name: "a message of a script that reads", before: "SUBSCRIBE c\r\n", beforeReply: "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
		write: "SET k new\r\nEVAL \"return redis.call('publish','c',redis.call('get',KEYS[1]))\" 1 k", want: "*3\r\n$7\r\nmessage\r\n",
	},
	{name: "an invalidation", first: []string{"SET k v"}, before: "HELLO 3\r\nCLIENT TRACKING ON\r\nGET k\r\n", beforeReply: "%", write: "SET k new", want: ">2\r\n$10\r\ninvalidate\r\n"},
	{name: "MONITOR", before: "MONITOR\r\n", beforeReply: "+OK\r\n", write: "SET k new", want: "+"},
}

func TestNothingShowsWhatIsNotConfirmed(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for _, l := range looks {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				f := serveMember(t, &server.Options{Transport: transport, Cluster: l.cluster})
				f.confirmed(t, l.first...)
				looker, writer := dial(t, f.address), dial(t, f.address)
				if l.before != "" {
					looker.send(l.before)
					if l.beforeReply == "%" { // HELLO says a lot
						for looker.line() != "+OK" {
						}
						looker.expect("$1\r\nv\r\n")
					} else {
						looker.expect(l.beforeReply)
					}
				}
				if l.look == "" {
					time.Sleep(20 * time.Millisecond) // until it waits
				}
				f.written(writer, l.write)
				for strings.HasPrefix(l.write, "FUNCTION") && f.Libraries() == 0 { // no lock has others wait until the commit can be seen
					time.Sleep(100 * time.Microsecond)
				}
				if l.look != "" {
					looker.send(l.look + "\r\n")
				}
				writer.isSilent("the writer")
				looker.isSilent("another one")
				f.confirmAll(f.Server)
				if err := looker.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				looker.expect(l.want)
				if reply := writer.line(); strings.HasPrefix(reply, "-") {
					t.Errorf("the writer got %s", reply)
				}
			})
		}
	})
}

// TestOthersAreNotHeld has no reply wait that shows nothing of what is not confirmed.
func TestOthersAreNotHeld(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport})
		f.confirmed(t, "SET other v", "HSET hash f v")
		writer := dial(t, f.address)
		f.written(writer, "SET k new")
		writer.isSilent("the writer")
		for _, look := range []struct{ command, want string }{
			{"PING", "+PONG"}, {"GET other", "$1"}, {"HGET hash f", "$1"}, {"EXISTS other missing", ":1"}, {"CLIENT ID", ":"}, {"INFO keyspace", "$"}, {"CONFIG GET port", "*2"},
			{"ROLE", "*3"}, {"TIME", "*2"}, {"LASTSAVE", ":"}, {"WAIT 0 0", ":0"},
		} {
			c := dial(t, f.address)
			c.send(look.command + "\r\n")
			if got := c.line(); !strings.HasPrefix(got, look.want) {
				t.Errorf("%s: %s", look.command, got)
			}
		}
		f.confirmAll(f.Server)
		writer.expect("+OK\r\n")
	})
}

// TestEachWaitsForItsOwn has a writer replied to when its own commit is confirmed, whatever others have written since.
func TestEachWaitsForItsOwn(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport})
		var writers [4]*testClient
		var ends [4]int64
		for i := range writers {
			writers[i] = dial(t, f.address)
			ends[i] = f.written(writers[i], fmt.Sprintf("SET key%d v", i))
		}
		for i, c := range writers {
			f.Confirm(ends[i])
			c.expect("+OK\r\n")
			if i+1 < len(writers) {
				writers[i+1].isSilent("the next writer")
			}
		}
	})
}

// TestTermBeginsAgain has a primary begin a new term though it has written nothing since the last one: all that it has is to be confirmed
// once more.
func TestTermBeginsAgain(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport})
		f.confirmed(t, "SET k v")
		for _, reader := range []*testClient{dial(t, f.address), dial(t, f.address)} {
			if err := f.BeginTerm(); err != nil {
				t.Fatal(err)
			}
			f.Extend(always, true)
			reader.send("GET k\r\n")
			reader.isSilent("a reader")
			f.confirmAll(f.Server)
			reader.expect("$1\r\nv\r\n")
		}
	})
}

// TestDemoted ends the connections whose replies wait when the server ceases to be the primary.
func TestDemoted(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport})
		f.confirmed(t, "SET other v")
		writer, reader, subscriber := dial(t, f.address), dial(t, f.address), dial(t, f.address)
		subscriber.send("SUBSCRIBE c\r\n")
		subscriber.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		f.written(writer, "SET k new\r\nPING")
		writer.isSilent("the writer")
		reader.send("GET other\r\nGET k\r\n")
		f.executed("get", 2)
		reader.isSilent("the reader of both")
		admin := dial(t, f.address)
		admin.send("REPLICAOF 127.0.0.1 1\r\n")
		admin.expect("+OK\r\n")
		writer.expect("-UNKNOWNOUTCOME ")
		writer.ends()
		reader.expect("-UNKNOWNOUTCOME ")
		reader.ends()
		subscriber.ends()
		replica := dial(t, f.address) // which may show what is taken back later
		replica.send("GET k\r\nSET k v\r\n")
		replica.expect("$3\r\nnew\r\n-READONLY ")
		admin.send("REPLICAOF NO ONE\r\n")
		admin.expect("+OK\r\n")
		c := dial(t, f.address)
		c.send("GET k\r\nSET k v\r\n")
		c.expect("-CLUSTERDOWN ")
		c.line()
		c.expect("-CLUSTERDOWN ")
		if err := f.BeginTerm(); err != nil {
			t.Fatal(err)
		}
		f.Extend(always, false)
		next := dial(t, f.address)
		next.send("SET k v\r\n")
		next.expect("-NOREPLICAS ")
		f.Extend(always, true)
		reader = dial(t, f.address)
		reader.send("GET other\r\n")
		reader.isSilent("a reader before all is confirmed that there is")
		f.confirmAll(f.Server)
		reader.expect("$1\r\nv\r\n")
	})
}

// ends wants the connection to be closed, whatever comes before that.
func (c *testClient) ends() {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c.in); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		c.t.Errorf("the connection goes on: %v", err)
	}
}

// TestLeaseIsOver refuses reads while the lease is over, holds the replies that wait then until it comes back, and withdraws them if it
// does not.
func TestLeaseIsOver(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport})
		patient, c := dial(t, f.address), dial(t, f.address)
		f.written(patient, "SET k new")
		patient.isSilent("the writer")
		f.Extend(0, true)
		f.confirmAll(f.Server)
		patient.isSilent("the writer without a lease")
		f.Extend(always, true)
		patient.expect("+OK\r\n")
		f.SetPatience(300 * time.Millisecond)
		f.written(c, "SET k newer")
		f.Extend(0, true)
		f.confirmAll(f.Server)
		c.expect("-UNKNOWNOUTCOME ")
		c.ends()
		c = dial(t, f.address)
		for _, command := range []string{"GET k", "SET k v", "EVAL \"return redis.call('get','k')\" 0", "DBSIZE"} {
			c.send(command + "\r\n")
			if got := c.line(); !strings.HasPrefix(got, "-CLUSTERDOWN ") {
				t.Errorf("%s without a lease: %s", command, got)
			}
		}
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		f.Extend(always, true)
		c.send("GET k\r\n")
		c.expect("$5\r\nnewer\r\n")
	})
}

// TestNobodyConfirms tells a writer after a while that the outcome is not known, and lets the server end.
func TestNobodyConfirms(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport, ShutdownGrace: 10 * time.Millisecond})
		f.SetPatience(50 * time.Millisecond)
		c := dial(t, f.address)
		c.send("SET k new\r\n")
		c.expect("-UNKNOWNOUTCOME ")
		c.ends()
		f.SetPatience(time.Hour)
		dial(t, f.address).send("SET k newer\r\n")
	})
}

// TestOneListenerEnds: a primary that ends one of two listeners stays one, though replies of that have waited for longer than the grace.
func TestOneListenerEnds(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		f := serveMember(t, &server.Options{Transport: transport, ShutdownGrace: 10 * time.Millisecond})
		f.SetPatience(200 * time.Millisecond)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Serve(ctx, ln) }()
		c := dial(t, ln.Addr().String())
		c.send("SET k v\r\n")
		c.isSilent("the writer")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		f.confirmAll(f.Server)
		f.Extend(always, true)
		other := dial(t, f.address)
		other.send("GET k\r\n")
		other.expect("$1\r\nv\r\n")
	})
}
