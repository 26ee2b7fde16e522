package server_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// standInScripts are conversations about what this server has no mechanism for, or another one.
var standInScripts = map[string]string{
	"replies on and off": `
		a: SET k v
		a: CLIENT REPLY ON
		a: ~CLIENT REPLY SKIP
		a: ~GET k
		a: GET k
		a: ~CLIENT REPLY OFF
		a: ~SET k w
		a: ~nope
		a: ~GET
		a: ~CLIENT REPLY SKIP
		a: ~MULTI
		a: ~GET k
		a: ~EXEC
		a: SUBSCRIBE c
		b: PUBLISH c m
		a: <
		a: UNSUBSCRIBE c
		a: CLIENT REPLY ON
		a: GET k
		a: ~CLIENT REPLY SKIP
		a: ~CLIENT REPLY SKIP
		a: ~GET k
		a: PING
		a: ~CLIENT REPLY SKIP
		a: CLIENT REPLY ON
		a: ~CLIENT REPLY SKIP
		a: ~CLIENT REPLY nope
		a: PING
		a: ~CLIENT REPLY OFF
		a: RESET
		a: PING
		a: ~CLIENT REPLY OFF
		a: ~BLPOP l 0
		b: RPUSH l x
		a: CLIENT REPLY ON
		b: LLEN l
		a: ~CLIENT REPLY SKIP
		a: ~BLPOP l 0
		b: RPUSH l y
		a: PING
		a: CLIENT REPLY nope
		a: CLIENT REPLY
		a: CLIENT REPLY ON OFF`,
	"modes of a client": `
		a: CLIENT NO-EVICT ON
		a: CLIENT NO-EVICT OFF
		a: CLIENT NO-EVICT nope
		a: CLIENT NO-EVICT
		a: CLIENT GETREDIR
		a: CLIENT GETREDIR x`,
	"pauses": `
		a: CLIENT PAUSE
		a: CLIENT PAUSE x
		a: CLIENT PAUSE -1
		a: CLIENT PAUSE 1 nope
		a: CLIENT PAUSE x nope
		a: CLIENT PAUSE 1 WRITE x
		a: CLIENT UNPAUSE
		a: CLIENT UNPAUSE x
		a: SET k v
		a: CLIENT PAUSE 100000 WRITE
		b: GET k
		b: ~SET k w
		c: GET k
		c: ~PUBLISH ch m
		d: ~LPUSH none el
		e: MULTI
		e: GET k
		e: EXEC
		e: MULTI
		e: ~SET k x
		f: PING
		f: SET k
		f: nope
		a: CLIENT UNPAUSE
		b: <
		c: <
		e: <
		e: EXEC
		d: <
		a: CLIENT PAUSE 1 WRITE
		sleep: sleep
		a: SET k y
		a: *CLIENT PAUSE 100 ALL | GET k | SET k z | CLIENT UNPAUSE
		b: GET k
		a: CLIENT PAUSE 100000 WRITE
		a: CLIENT PAUSE 1 WRITE
		b: ~DEL k
		a: GET k
		a: CLIENT UNPAUSE
		b: <`,
	"a master, with its offset and its replicas": `
		a: WAIT 0 100
		a: WAIT 0 0
		a: WAIT -1 0
		a: WAIT 1 1
		a: WAIT x 1
		a: WAIT 1 x
		a: WAIT 1 -1
		a: WAIT x x
		a: MULTI
		a: WAIT 1 0
		a: EXEC
		b: ~WAIT 1 0
		a: UNBLOCK b
		b: <
		b: ~WAIT 1 0
		a: UNBLOCK b ERROR
		b: <
		a: REPLICAOF NO ONE
		a: SLAVEOF no one
		a: SLAVEOF NO
		a: REPLICAOF host x
		a: REPLICAOF host 70000
		a: FAILOVER
		a: FAILOVER ABORT
		a: FAILOVER nope
		a: FAILOVER TO host 1 FORCE
		a: FAILOVER TO host x
		a: FAILOVER TIMEOUT 0
		a: FAILOVER TIMEOUT 10
		a: FAILOVER ABORT x
		a: ROLE`,
	"saving": `
		a: SAVE
		a: SAVE x
		a: BGSAVE nope
		a: BGSAVE SCHEDULE x
		a: MULTI
		a: SAVE
		a: EXEC
		a: MULTI
		a: SET k v
		a: BGSAVE
		a: EXEC
		a: SHUTDOWN nope
		a: SHUTDOWN ABORT
		a: SHUTDOWN NOSAVE SAVE
		a: SHUTDOWN ABORT SAVE
		a: MULTI
		a: SHUTDOWN
		a: EXEC
		a: LASTSAVE x`,
	"no cluster": `
		a: CLUSTER
		a: CLUSTER INFO
		a: CLUSTER INFO x
		a: CLUSTER KEYSLOT k
		a: CLUSTER KEYSLOT
		a: CLUSTER NODES
		a: CLUSTER SLOTS
		a: CLUSTER SHARDS
		a: CLUSTER HELP
		a: CLUSTER nope
		a: READONLY
		a: READWRITE
		a: ASKING
		a: MULTI
		a: CLUSTER INFO
		a: EXEC`,
	"no modules": `
		a: MODULE LIST
		a: MODULE LOAD x
		a: MODULE LOADEX x
		a: MODULE UNLOAD x
		a: MODULE UNLOAD
		a: MODULE nope
		a: MEMORY PURGE
		a: MEMORY PURGE x`,
	"keys and their use": `
		a: COMMAND GETKEYSANDFLAGS MSET a b c d
		a: COMMAND GETKEYSANDFLAGS SET k v
		a: COMMAND GETKEYSANDFLAGS SET k v EX 1 GET
		a: COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0
		a: COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 SET u8 0 1
		a: COMMAND GETKEYSANDFLAGS GETEX k EX 1
		a: COMMAND GETKEYSANDFLAGS SORT k STORE to
		a: COMMAND GETKEYSANDFLAGS GEORADIUS k 1 2 3 m STORE to
		a: COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT
		a: COMMAND GETKEYSANDFLAGS ZUNIONSTORE to 2 a b
		a: COMMAND GETKEYSANDFLAGS PFMERGE to from
		a: COMMAND GETKEYSANDFLAGS nope a b
		a: COMMAND GETKEYSANDFLAGS PING a b`,
}

func TestStandInsAgreeWithRedis(t *testing.T) {
	agreeWithRedis(t, standInScripts, regexp.MustCompile("^$"))
}

// TestClusterIsRefusedWordForWord goes through the table, with as many arguments as each command takes.
func TestClusterIsRefusedWordForWord(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, c := range server.Lookup("cluster").Subcommands {
		n := max(c.Arity, -c.Arity)
		args := append(strings.Split(c.Name, "|"), strings.Fields(strings.Repeat("x ", n-2))...)
		if got := ask(s, strings.Join(args, " ")+"\r\n"); got != "-ERR This instance has cluster support disabled\r\n" {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// TestPauseOfAll: a pause of everything concerns the client that has begun it, and ends by itself.
func TestPauseOfAll(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		a, b := dial(t, address), dial(t, address)
		start := time.Now()
		a.send("SET k v\r\nCLIENT PAUSE 300 ALL\r\nGET k\r\n")
		a.expect("+OK\r\n+OK\r\n")
		b.send("PING\r\nGET k\r\nINFO clients\r\n")
		b.expect("+PONG\r\n$1\r\nv\r\n")
		if waited := time.Since(start); waited < 290*time.Millisecond {
			t.Errorf("waited for %v", waited)
		}
		a.expect("$1\r\nv\r\n")
		if info := v.Info("clients"); !strings.Contains(info, "blocked_clients:0\r\n") {
			t.Error(info)
		}
	})
}

// TestUnblockEndsNoPause: CLIENT UNBLOCK is for commands that wait, not for those that are postponed. (It ends
// redis-server 7.0.15.)
func TestUnblockEndsNoPause(t *testing.T) {
	_, address := serve(t, nil)
	a, b := dial(t, address), dial(t, address)
	b.send("CLIENT ID\r\n")
	b.expect(":2\r\n")
	a.send("CLIENT PAUSE 100000 WRITE\r\n")
	a.expect("+OK\r\n")
	b.send("DEL k\r\n")
	for flags := ""; !strings.Contains(flags, "b"); {
		a.send("CLIENT LIST ID 2\r\n")
		line, err := a.in.ReadString('\n')
		for err == nil && !strings.Contains(line, "flags=") {
			line, err = a.in.ReadString('\n')
		}
		if err != nil {
			t.Fatal(err)
		}
		_, flags, _ = strings.Cut(line, "flags=")
		flags, _, _ = strings.Cut(flags, " ")
		if _, err := a.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	a.send("CLIENT UNBLOCK 2\r\nCLIENT UNPAUSE\r\n")
	a.expect(":0\r\n+OK\r\n")
	b.expect(":0\r\n")
}

// TestNoEvict: a client that has asked for it is not the one that is closed.
func TestNoEvict(t *testing.T) {
	_, address := serve(t, &server.Options{ClientMemory: 3 << 20})
	spared, other := dial(t, address), dial(t, address)
	spared.send("CLIENT NO-EVICT ON\r\n")
	spared.expect("+OK\r\n")
	large := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", 8<<20)
	other.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + strings.Repeat("x", 500_000))
	spared.send(large + strings.Repeat("x", 6<<20))
	other.expectEnd()
	spared.send(strings.Repeat("x", 2<<20) + "\r\nPING\r\n")
	spared.expect("+OK\r\n+PONG\r\n")
}

// TestShutdownCommand: the connection ends without a reply, and Serve without an error.
func TestShutdownCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for _, option := range []string{"", " NOSAVE", " SAVE NOW FORCE"} {
			address := filepath.Join(t.TempDir(), "s")
			ln, err := net.Listen("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			store := openStore(t)
			go func() { done <- server.Serve(context.Background(), ln, store, &server.Options{Transport: transport}) }()
			conn, err := net.Dial("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			peer := &redisPeer{conn, resp.NewDecoder(conn)}
			if reply, err := peer.do([]string{"SET", "k", "v"}); err != nil || reply.IsError() {
				t.Fatal(reply, err)
			}
			if reply, err := peer.do(strings.Fields("SHUTDOWN" + option)); err == nil {
				t.Errorf("SHUTDOWN%s replies %v", option, reply)
			}
			if err := <-done; err != nil {
				t.Errorf("SHUTDOWN%s: %v", option, err)
			}
		}
	})
	s := newSession(t, openStore(t), nil)
	if got := ask(s, "SHUTDOWN\r\n"); !strings.HasPrefix(got, "-ERR There is no server to shut down") {
		t.Error(got)
	}
}

// TestSaves: what LASTSAVE and INFO report of them.
func TestSaves(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s := v.NewSession()
	changes := func() (n int) {
		t.Helper()
		_, rest, _ := strings.Cut(v.Info("persistence"), "rdb_changes_since_last_save:")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := changes(); n != 0 {
		t.Errorf("%d changes of an empty store", n)
	}
	ask(s, "SET a 1\r\nSETBIT b 7 1\r\n")
	if n := changes(); n != 2 {
		t.Errorf("%d changes after two writes", n)
	}
	for _, save := range []string{"SAVE\r\n", "BGSAVE\r\n", "BGSAVE SCHEDULE\r\n", "MULTI\r\nBGSAVE\r\nSET a 3\r\nEXEC\r\n"} {
		ask(s, "SET a 2\r\n")
		if got := ask(s, save); strings.Contains(got, "-") {
			t.Error(got)
		}
		if n := changes(); n != 0 {
			t.Errorf("%q: %d changes", save, n)
		}
	}
	if got := ask(s, "LASTSAVE\r\n"); !strings.HasPrefix(got, fmt.Sprintf(":%d", time.Now().Unix()/100)) {
		t.Error(got)
	}
	if got := ask(s, "WAITAOF 1 0 0\r\nWAITAOF 0 1 1\r\nWAITAOF 2 0 0\r\nWAITAOF 1 -1 0\r\nWAITAOF 1 0 -1\r\n"); !strings.HasPrefix(got, "*2\r\n:1\r\n:0\r\n") {
		t.Error(got)
	}
}
