package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// pubSubScripts are conversations as scripts has them. Published messages are read with < by who hears them.
var pubSubScripts = map[string]string{
	"a channel": `
		a: SUBSCRIBE c
		b: PUBLISH c hello
		a: <
		b: PUBLISH d nobody
		a: UNSUBSCRIBE c
		b: PUBLISH c nobody`,
	"several channels and patterns": `
		a: ~SUBSCRIBE c d c
		a: <
		a: <
		a: <
		a: ~PSUBSCRIBE c* [cd]
		a: <
		a: <
		b: SUBSCRIBE d
		c: PUBLISH d x
		a: <
		a: <
		b: <
		c: PUBSUB NUMSUB c d e
		c: PUBSUB NUMPAT
		c: PUBSUB CHANNELS d*
		c: PUBSUB CHANNELS nope
		c: PUBSUB NUMSUB`,
	"what a subscriber may do": `
		a: SUBSCRIBE c
		a: GET k
		a: PING
		a: PING x
		a: PING x y
		a: MULTI
		a: nope
		a: CLIENT ID
		a: PUBLISH c x
		a: SSUBSCRIBE s
		a: PSUBSCRIBE p*
		a: UNSUBSCRIBE c
		a: GET k
		a: PUNSUBSCRIBE p*
		a: SUNSUBSCRIBE s
		a: GET k
		a: PING`,
	"reset": `
		a: SUBSCRIBE c
		a: SSUBSCRIBE s
		a: RESET
		a: GET k
		b: PUBLISH c x
		b: SPUBLISH s x`,
	"quit": `
		a: SUBSCRIBE c
		a: QUIT
		b: sleep
		b: PUBLISH c x`,
	"gone": `
		a: SUBSCRIBE c
		a: quit
		b: PUBLISH c x
		b: PUBSUB CHANNELS`,
	"leaving all": `
		a: UNSUBSCRIBE
		a: PUNSUBSCRIBE
		a: SUNSUBSCRIBE
		a: UNSUBSCRIBE never
		a: SUBSCRIBE c
		a: PSUBSCRIBE p
		a: UNSUBSCRIBE
		a: PUNSUBSCRIBE
		a: PING`,
	"shard channels": `
		a: ~SSUBSCRIBE s t
		a: <
		a: <
		a: PSUBSCRIBE *
		b: SUBSCRIBE s
		c: SPUBLISH s x
		a: <
		c: PUBLISH s y
		a: <
		b: <
		c: PUBSUB SHARDNUMSUB s t u
		c: PUBSUB SHARDCHANNELS t
		c: PUBSUB CHANNELS
		a: SUNSUBSCRIBE t`,
	"RESP3": `
		a: HELLO3
		a: SUBSCRIBE c
		a: SET k v
		b: PUBLISH c x
		a: <
		a: GET k
		a: PING
		a: PSUBSCRIBE c*
		b: PUBLISH c y
		a: <
		a: <
		a: UNSUBSCRIBE`,
	"a pattern waits while its client is blocked": `
		a: HELLO3
		a: SUBSCRIBE c
		a: ~BLPOP k 0
		b: PUBLISH c x
		a: <
		b: RPUSH k v
		a: <`,
	"within a transaction": `
		b: SUBSCRIBE c
		a: MULTI
		a: PUBLISH c x
		a: SSUBSCRIBE s
		a: SUBSCRIBE d
		a: EXEC
		b: <
		a: PING
		a: GET k`,
	"a transaction with messages and notifications": `
		a: CONFIG SET notify-keyspace-events KEAm
		b: PSUBSCRIBE *
		a: MULTI
		a: PUBLISH c 1
		a: SET k v
		a: PUBLISH c 2
		a: PUBLISH d 3
		a: GET none
		a: INCR k
		a: LPUSH l x
		a: PUBLISH c 4
		a: EXEC
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <
		a: MULTI
		a: PUBLISH c 5
		a: PUBLISH d 6
		a: EXEC
		b: <
		b: <`,
	"a transaction that does not happen": `
		b: SUBSCRIBE c
		a: WATCH k
		c: SET k v
		a: MULTI
		a: PUBLISH c 1
		a: SET l v
		a: EXEC
		a: MULTI
		a: PUBLISH c 2
		a: NOPE
		a: EXEC
		a: MULTI
		a: PUBLISH c 3
		a: DISCARD
		a: PUBLISH c 4
		b: <`,
	"joining and leaving within a transaction": `
		a: HELLO3
		a: MULTI
		a: PUBLISH c early
		a: SUBSCRIBE c
		a: PSUBSCRIBE [c]
		a: SET k v
		a: UNSUBSCRIBE c
		a: PUNSUBSCRIBE [c]
		a: PUBLISH c late
		a: EXEC
		a: PING
		a: GET k`,
	"a script with messages": `
		b: SUBSCRIBE c
		a: EVAL return(redis.call('PUBLISH','c','1')+redis.call('PUBLISH','d','2')) 0
		b: <
		a: EVAL redis.call('PUBLISH','c','3');redis.call('SET',KEYS[1],'v');redis.call('PUBLISH','c','4');return(redis.call('GET','other')) 1 k
		b: <
		b: <
		a: EVAL redis.call('PUBLISH','c','5');redis.call('SET',KEYS[1],'w');redis.call('PUBLISH','c','6');return(redis.call('LPUSH',KEYS[1],'x')) 1 k
		b: <
		b: <
		a: EVAL redis.call('PUBLISH','c','7');error('no') 0
		b: <
		a: EVAL_RO redis.call('PUBLISH','c','8') 0
		a: MULTI
		a: PUBLISH c 9
		a: EVAL return(redis.call('PUBLISH','c','10')) 0
		a: PUBLISH c 11
		a: EXEC
		b: <
		b: <
		b: <
		a: GET k
		a: PING`,
	"names of keys and events": `
		a: CONFIG SET notify-keyspace-events KEA
		b: PSUBSCRIBE __key*
		a: SET k v EX 100
		b: <
		b: <
		b: <
		b: <
		a: SELECT 3
		a: MULTI
		a: LPUSH l x y
		a: LPOP l 2
		a: EXEC
		b: <
		b: <
		b: <
		b: <
		b: <
		b: <`,
	"keys that are missed": `
		a: CONFIG SET notify-keyspace-events Em
		b: PSUBSCRIBE __key*
		a: GET none
		b: <
		a: SET k v
		a: MGET k l m
		b: <
		b: <
		a: HGET h f
		b: <
		a: EXISTS none
		b: <`,
	"a push and who waited for it": `
		a: CONFIG SET notify-keyspace-events Klg
		b: PSUBSCRIBE __key*
		c: ~BLPOP k 0
		a: RPUSH k x
		c: <
		b: <
		b: <
		b: <`,
	"settings": `
		a: CONFIG SET notify-keyspace-events KEA
		a: CONFIG GET notify-keyspace-events
		a: CONFIG SET notify-keyspace-events g$lshzxetdn
		a: CONFIG GET notify-keyspace-events
		a: CONFIG SET notify-keyspace-events nmEKxA
		a: CONFIG GET notify-keyspace-events
		a: CONFIG SET notify-keyspace-events mxzKl
		a: CONFIG GET notify-keyspace-events
		a: CONFIG SET notify-keyspace-events KEy
		a: CONFIG SET maxclients 0
		a: CONFIG SET maxclients x
		a: CONFIG SET timeout -1
		a: CONFIG SET timeout 10 TIMEOUT 11
		a: CONFIG SET timeout 10 nope 1
		a: CONFIG SET timeout 10 databases 1
		a: CONFIG SET timeout 10 maxclients
		a: CONFIG SET timeout
		a: CONFIG SET maxmemory-clients 1gb timeout 77
		a: CONFIG GET maxmemory-clients
		a: CONFIG GET timeout
		a: CONFIG SET maxmemory-clients 1x
		a: CONFIG SET maxmemory-clients 0 timeout 0
		a: CONFIG REWRITE
		a: CONFIG RESETSTAT`,
	"errors": `
		a: SUBSCRIBE
		a: PUBLISH c
		a: PUBSUB
		a: PUBSUB NOPE
		a: PUBSUB CHANNELS a b
		a: PUBSUB NUMPAT x`,
}

func TestPubSubAgreesWithRedis(t *testing.T) {
	redis := startRedis(t)
	address := redis.conn.RemoteAddr().String()
	for name, script := range pubSubScripts {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"flushall"}, {"config", "set", "notify-keyspace-events", ""}} {
				if _, err := redis.do(args); err != nil {
					t.Fatal(err)
				}
			}
			theirs := talk(t, address, script)
			eachTransport(t, func(t *testing.T, transport server.Transport) {
				ours := talk(t, serveUnix(t, transport), script)
				for i := range ours {
					if ours[i] != theirs[i] {
						t.Errorf("stave %s, redis %s", ours[i], theirs[i])
					}
				}
			})
		})
	}
}

// TestPublishToOneself: since Redis 7.2 the message comes after the reply.
func TestPublishToOneself(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		a := dial(t, address)
		a.send("HELLO 3\r\n")
		if _, err := resp.NewDecoder(a.in).Read(); err != nil {
			t.Fatal(err)
		}
		a.send("SUBSCRIBE c\r\n")
		a.expect(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		a.send("PUBLISH c x\r\nPUBLISH d y\r\nPING\r\n")
		a.expect(":1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n:0\r\n+PONG\r\n")
	})
}

// TestSlowSubscriber publishes to a client that reads nothing until it is disconnected. The publisher never waits
// for it.
func TestSlowSubscriber(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport, WriteTimeout: time.Hour})
		slow, publisher := dial(t, address), dial(t, address)
		slow.send("SUBSCRIBE c\r\n")
		slow.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		message := resp.AppendCommandStrings(nil, "PUBLISH", "c", strings.Repeat("x", 1<<20))
		for i := 0; ; i++ {
			publisher.send(string(message))
			heard, err := publisher.in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if heard == ":0\r\n" {
				break // the client is gone
			}
			if i == 100 {
				t.Fatal("100 MiB wait for a client that reads nothing")
			}
		}
		if info := v.Info("stats"); !strings.Contains(info, "client_output_buffer_limit_disconnections:1\r\n") {
			t.Error(info)
		}
		if _, err := io.Copy(io.Discard, slow.Conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	})
}

// TestLongMatchDelaysNobody publishes a message that takes about a second to match, while others publish and subscribe.
func TestLongMatchDelaysNobody(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		a, b, c := dial(t, address), dial(t, address), dial(t, address)
		pattern := "*" + strings.Repeat("a", 20_000) + "b"
		a.send(string(resp.AppendCommandStrings(nil, "PSUBSCRIBE", pattern)))
		a.expect(fmt.Sprintf("*3\r\n$10\r\npsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(pattern), pattern))
		b.send(string(resp.AppendCommandStrings(nil, "PUBLISH", strings.Repeat("a", 60_000), "m")))
		matched := make(chan error, 1)
		go func() {
			_, err := resp.NewDecoder(b.in).Read()
			matched <- err
		}()
		time.Sleep(100 * time.Millisecond)
		c.send("PUBLISH x y\r\nSUBSCRIBE d\r\nUNSUBSCRIBE d\r\n")
		c.expect(":0\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:0\r\n")
		answered := time.Now()
		if err := <-matched; err != nil {
			t.Error(err)
		}
		if early := time.Since(answered); early < 50*time.Millisecond {
			t.Errorf("others were answered %v before the long match ended", early)
		}
	})
}

// TestClientFilters: CLIENT LIST and CLIENT KILL select by the words of Valkey 9, each of which NOT- negates but for the last.
func TestClientFilters(t *testing.T) {
	_, address := serve(t, &server.Options{})
	a, b := dial(t, address), dial(t, address)
	a.send("CLIENT SETNAME alice\r\nCLIENT SETINFO LIB-NAME lib\r\nCLIENT SETINFO LIB-VER 1.5\r\nSELECT 3\r\nSUBSCRIBE c\r\n")
	a.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
	local, host := a.LocalAddr().String(), a.LocalAddr().(*net.TCPAddr).IP.String()
	decoder := resp.NewDecoder(b.in)
	ask := func(cmd string) resp.Reply {
		t.Helper()
		b.send(cmd + "\r\n")
		reply, err := decoder.Read()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	for filter, want := range map[string]int{
		"": 2, "NAME alice": 1, "NOT-NAME alice": 1, "NAME bob": 0, "LIB-NAME lib": 1, "not-lib-name lib": 1, "LIB-VER 1.5": 1, "LIB-VER 1": 0, "NOT-LIB-VER 1.5": 1,
		"DB 3": 1, "DB 0": 1, "NOT-DB 3": 1, "DB 5": 0, "FLAGS P": 1, "FLAGS N": 1, "NOT-FLAGS P": 1, "FLAGS PN": 0, "IP " + host: 2, "NOT-IP " + host: 0, "IP 1.2.3.4": 0,
		"ADDR " + local: 1, "NOT-ADDR " + local: 1, "LADDR " + local: 0, "NOT-LADDR " + address: 0, "LADDR " + address: 2, "USER default": 2, "NOT-USER default": 0,
		"TYPE pubsub": 1, "NOT-TYPE pubsub": 1, "TYPE primary": 0, "SKIPME yes": 1, "SKIPME no": 2, "ID 1": 1, "ID 1 2 3": 2, "NOT-ID 1 3": 1, "ID 1 2 NOT-TYPE pubsub": 1,
		"ID 1 SKIPME yes": 1, "NAME alice DB 3 FLAGS P": 1, "NAME alice DB 0": 0, "NAME bob NAME alice": 1, "IDLE 1000": 0, "MAXAGE 1000": 0,
	} {
		reply := ask("CLIENT LIST " + filter)
		if n := bytes.Count(reply.Text, []byte("\n")); n != want || reply.IsError() {
			t.Errorf("CLIENT LIST %s: %d clients, want %d: %s", filter, n, want, show(reply))
		}
	}
	for cmd, want := range map[string]string{
		"LIST ID": syntaxLine, "LIST ID x": "-ERR Invalid client ID\r\n", "LIST ID 1 x": "-ERR Invalid client ID\r\n", "LIST NAME": syntaxLine, "LIST WHAT x": syntaxLine,
		"LIST DB 99": "-ERR DB index is out of range\r\n", "LIST DB x": "-ERR value is not an integer or out of range\r\n", "LIST SKIPME maybe": syntaxLine,
		"LIST FLAGS ?": "-ERR Unknown flags found in the provided filter: ?\r\n", "LIST IDLE 0": "-ERR idle should be greater than 0\r\n",
		"LIST IDLE x": "-ERR idle is not an integer or out of range\r\n", "LIST NOT-IDLE 5": syntaxLine, "LIST NOT-MAXAGE 5": syntaxLine, "LIST NOT-SKIPME no": syntaxLine,
		"LIST USER nobody": "-ERR No such user 'nobody'\r\n", "KILL NAME bob": ":0\r\n", "KILL ID x": "-ERR client-id should be greater than 0\r\n",
		"KILL ID 1 2 DB 7": ":0\r\n", "KILL NOT-NAME alice": ":0\r\n",
	} {
		b.send("CLIENT " + cmd + "\r\n")
		b.expect(want)
	}
	if reply := ask("CLIENT KILL LIB-NAME lib NOT-DB 0 FLAGS P"); reply.Int != 1 {
		t.Error(show(reply))
	}
	a.expectEnd()
}

// TestSubscriberInList looks at what CLIENT LIST and CLIENT KILL make of a subscriber.
func TestSubscriberInList(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		a, b := dial(t, address), dial(t, address)
		a.send("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n$1\r\nd\r\n*2\r\n$10\r\nPSUBSCRIBE\r\n$1\r\np\r\n")
		a.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n*3\r\n$10\r\npsubscribe\r\n$1\r\np\r\n:3\r\n")
		decoder := resp.NewDecoder(b.in)
		for cmd, want := range map[string]int{"CLIENT LIST": 2, "CLIENT LIST TYPE normal": 1, "CLIENT LIST TYPE pubsub": 1, "CLIENT LIST TYPE master": 0} {
			b.send(cmd + "\r\n")
			reply, err := decoder.Read()
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(reply.Text, []byte("\n")); n != want {
				t.Errorf("%s: %d clients, want %d", cmd, n, want)
			}
			if want == 1 && bytes.Contains(reply.Text, []byte(" flags=P ")) != strings.HasSuffix(cmd, "pubsub") {
				t.Errorf("%s: %s", cmd, reply.Text)
			}
			if want == 2 && !bytes.Contains(reply.Text, []byte(" sub=2 psub=1 ssub=0 ")) {
				t.Errorf("%s: %s", cmd, reply.Text)
			}
		}
		b.send("CLIENT KILL TYPE pubsub\r\n")
		if reply, err := decoder.Read(); err != nil || reply.Int != 1 {
			t.Fatal(reply, err)
		}
		a.expectEnd()
	})
}

// TestMessagesInOrder has several publishers and subscribers: all who hear two messages hear them in the same order,
// and each publisher's in the order in which it sent them.
func TestMessagesInOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const publishers, subscribers, each = 3, 3, 200
		_, address := serve(t, &server.Options{Transport: transport})
		heard := make([]chan string, subscribers)
		for i := range heard {
			s := dial(t, address)
			s.send("SUBSCRIBE c\r\n")
			s.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
			heard[i] = make(chan string, 1)
			go func() {
				var all strings.Builder
				decoder := resp.NewDecoder(s.in)
				for range publishers * each {
					reply, err := decoder.Read()
					if err != nil || len(reply.Items) != 3 {
						break
					}
					all.Write(reply.Items[2].Text)
					all.WriteByte(' ')
				}
				heard[i] <- all.String()
			}()
		}
		for p := range publishers {
			c := dial(t, address)
			go func() {
				for i := range each {
					_, _ = fmt.Fprintf(c.Conn, "PUBLISH c %d:%d\r\n", p, i) // missing messages are noticed below
				}
			}()
		}
		first := <-heard[0]
		for p := range publishers {
			at := 0
			for i := range each {
				next := strings.Index(first[at:], fmt.Sprintf("%d:%d ", p, i))
				if next < 0 {
					t.Fatalf("message %d of publisher %d is not where it should be", i, p)
				}
				at += next
			}
		}
		for _, other := range heard[1:] {
			if <-other != first {
				t.Error("two subscribers heard the messages in different orders")
			}
		}
	})
}
