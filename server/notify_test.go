package server_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/structures"
)

// teller is a server whose notifications are read.
type teller interface {
	// events returns the events published so far.
	events() ([]string, error)
}

const endOfEvents = "\x00end"

// redisTeller listens on a connection of its own, and publishes a known last message on another one.
type redisTeller struct {
	*redisPeer
	publisher redisPeer
	listener  *resp.Decoder
}

func (p *redisTeller) events() (events []string, err error) {
	if _, err := p.publisher.do([]string{"publish", endOfEvents, ""}); err != nil {
		return nil, err
	}
	for {
		reply, err := p.listener.Read()
		if err != nil {
			return nil, err
		}
		if reply.Items[0].Text[0] != 'p' || string(reply.Items[0].Text) != "pmessage" {
			continue
		}
		if string(reply.Items[2].Text) == endOfEvents {
			return events, nil
		}
		events = append(events, fmt.Sprintf("%s %s", reply.Items[2].Text, reply.Items[3].Text))
	}
}

// staveTeller listens with a second session.
type staveTeller struct {
	stavePeer
	listener *server.Session
	told     map[string]int // how often each event has been published
}

func (p *staveTeller) events() (events []string, err error) {
	p.listener.Feed(nil)
	for out := bytes.Clone(p.listener.Output()); len(out) > 0; {
		var reply resp.Reply
		if reply, out, err = resp.Decode(out); err != nil {
			return nil, err
		}
		if string(reply.Items[0].Text) == "pmessage" {
			events = append(events, fmt.Sprintf("%s %s", reply.Items[2].Text, reply.Items[3].Text))
		}
	}
	p.listener.Flushed(len(p.listener.Output()))
	return events, nil
}

// newTellers starts both servers with all notifications on but those of expiry, whose time is undefined.
func newTellers(t *testing.T, classes string) (*staveTeller, *redisTeller) {
	t.Helper()
	redis := startRedis(t)
	dial := func() net.Conn {
		conn, err := net.Dial("unix", redis.conn.RemoteAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn, publisher := dial(), dial()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(resp.AppendCommandStrings(nil, "psubscribe", "__key*", endOfEvents)); err != nil {
		t.Fatal(err)
	}
	v := newServer(t, openStore(t), nil)
	ours := &staveTeller{stavePeer{v.NewSession()}, v.NewSession(), map[string]int{}}
	ours.listener.Feed([]byte("PSUBSCRIBE __key*\r\n"))
	theirs := &redisTeller{redis, redisPeer{publisher, resp.NewDecoder(publisher)}, resp.NewDecoder(conn)}
	for _, p := range []peer{ours, theirs} {
		if reply, err := p.do([]string{"config", "set", "notify-keyspace-events", classes}); err != nil || reply.IsError() {
			t.Fatal(reply, err)
		}
	}
	if _, err := theirs.events(); err != nil { // Redis has taken the subscription
		t.Fatal(err)
	}
	if _, err := ours.events(); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// compare runs a command on both and returns the difference of their events.
func (p *staveTeller) compare(theirs *redisTeller, args []string) (difference string, err error) {
	var told [2][]string
	for i, one := range []interface {
		peer
		teller
	}{p, theirs} {
		if _, err := one.do(args); err != nil {
			return "", err
		}
		if told[i], err = one.events(); err != nil {
			return "", err
		}
	}
	for _, event := range told[0] {
		channel, _, _ := strings.Cut(event, " ")
		p.told[channel]++
	}
	if slices.Equal(told[0], told[1]) {
		return "", nil
	}
	return fmt.Sprintf("stave tells %q, redis %q", told[0], told[1]), nil
}

// notified has every command that changes keys, in every way with events of its own. Redis 7.0 publishes SETBIT and
// BITFIELD also when nothing changes; since 7.2 it does not, and neither do we.
var notified = []string{
	"SET s v", "SET s v EX 100", "SET s v KEEPTTL", "SET s v NX", "SET none v XX", "SET s v GET", "SET s v PX 100000 XX GET",
	"SETNX s v", "SETNX s2 v", "SETEX s 100 v", "PSETEX s 100000 v", "GETSET s w", "GETDEL s", "GETDEL none",
	"SET s v", "GETEX s EX 100", "GETEX s PERSIST", "GETEX s PERSIST", "GETEX s PX 1000000", "GETEX s EXAT 1", "GETEX s",
	"MSET a 1 b 2 a 3", "MSETNX c 1 d 2", "MSETNX c 1 e 2", "APPEND a x", "APPEND new x", "APPEND a", "SETRANGE a 5 x", "SETRANGE a 5 ", "SETRANGE none 0 ",
	"SET n 1", "INCR n", "DECR n", "INCRBY n 5", "DECRBY n 5", "INCRBYFLOAT n 1.5", "INCR a", "SUBSTR a 0 1",
	"SETBIT bits 3 1", "BITFIELD bits SET u8 0 77", "BITFIELD bits GET u8 0", "BITFIELD bits INCRBY u8 0 1", "BITOP AND to bits s2", "BITOP OR to none none2", "BITOP OR to none none2",
	"PFADD p x", "PFADD p x", "PFADD p y", "PFADD p2", "PFMERGE p3 p p2", "PFMERGE p p2", "PFCOUNT p",
	"HSET h f v", "HSET h f v g w", "HSETNX h f x", "HSETNX h i x", "HMSET h f v", "HINCRBY h n 1", "HINCRBYFLOAT h n 1.5", "HINCRBY h f 1", "HDEL h none", "HDEL h f g", "HDEL h i n",
	"RPUSH l a b c d e", "LPUSH l a", "LPUSHX l a", "RPUSHX none a", "RPUSHX l z", "LINSERT l BEFORE b x", "LINSERT l AFTER nope x", "LSET l 0 q", "LSET l 99 q",
	"LPOP l", "RPOP l", "LPOP l 0", "LPOP none", "LREM l 0 nope", "LREM l 0 b", "LTRIM l 0 2", "LTRIM none 0 1", "LMOVE l m LEFT RIGHT", "LMOVE l m RIGHT LEFT", "LMOVE m m LEFT RIGHT",
	"RPOPLPUSH l m", "RPOPLPUSH m m", "LMPOP 2 none m LEFT COUNT 2", "LMPOP 1 m RIGHT COUNT 9", "RPUSH l a", "LTRIM l 5 9", "RPUSH l a", "LREM l 1 a", "RPUSH l x", "LMOVE l l LEFT LEFT",
	"BLPOP l 1", "RPUSH l x", "BLMOVE l m RIGHT LEFT 1", "BRPOPLPUSH m l 1", "BLMPOP 1 1 l LEFT", "BRPOP none 0.01",
	"SADD t a b c", "SADD t a", "SREM t nope", "SREM t a", "SMOVE t u b", "SMOVE t u b", "SMOVE t u c", "SADD t x", "SADD u x", "SMOVE t u x", "SPOP u 9", "SADD u q", "SPOP u", "SPOP u", "SADD u a b", "SPOP u 0",
	"SADD t a b c", "SUNIONSTORE o t u", "SINTERSTORE o t u", "SDIFFSTORE o t u", "SINTERSTORE o t none", "SINTERSTORE o t none", "SET o v", "SDIFFSTORE o none t",
	"ZADD z 1 a 2 b 3 c", "ZADD z 1 a", "ZADD z XX 9 nope", "ZADD z GT CH 5 a", "ZADD z INCR 1 a", "ZADD z NX INCR 1 a", "ZINCRBY z 1 b", "ZINCRBY z 0 b", "ZREM z nope", "ZREM z a",
	"ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g", "ZPOPMIN z", "ZPOPMAX z", "ZPOPMIN z 0", "ZMPOP 1 z MIN", "ZMPOP 1 z MAX COUNT 1", "BZPOPMIN z 1", "BZPOPMAX z 1", "BZMPOP 1 1 z MIN", "ZPOPMIN z 9", "ZADD z 1 a 2 b 3 c",
	"ZREMRANGEBYRANK z 0 0", "ZREMRANGEBYSCORE z 2 2", "ZREMRANGEBYSCORE z 100 200", "ZREMRANGEBYLEX z - +", "ZADD z 1 a 2 b 3 c", "ZREMRANGEBYRANK z 0 -1", "ZADD z 1 a 2 b",
	"ZUNIONSTORE y 2 z t", "ZINTERSTORE y 2 z t", "ZDIFFSTORE y 2 z none", "ZRANGESTORE y z 0 0", "ZRANGESTORE y z 5 9", "ZINTERSTORE y 2 z none", "ZUNIONSTORE new2 1 z",
	"GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", "GEOADD g 13.361389 38.115556 Palermo", "GEOSEARCHSTORE near g FROMLONLAT 15 37 BYRADIUS 200 km",
	"XADD x 1-1 f v", "XADD x 1-1 f v", "XADD x NOMKSTREAM MAXLEN 1 2-1 f v", "XADD none NOMKSTREAM 2-1 f v", "XADD x MAXLEN 9 3-1 f v", "XDEL x 9-9", "XDEL x 3-1", "XDEL none 1-1",
	"XTRIM x MAXLEN 5", "XTRIM x MAXLEN 0", "XTRIM x MAXLEN 0", "XSETID x 9-9", "XSETID x 8-8", "XADD x 8-9 f v", "XRANGE x - +", "COPY x x2", "RENAME x2 x3",
	"XGROUP CREATE x g $", "XGROUP CREATE x g $", "XGROUP CREATE made g 0 MKSTREAM", "XGROUP SETID x g 0", "XGROUP SETID x none 0", "XGROUP CREATECONSUMER x g a",
	"XGROUP CREATECONSUMER x g a", "XREADGROUP GROUP g b STREAMS x >", "XREADGROUP GROUP g a STREAMS x 0", "XCLAIM x g c 0 8-9", "XAUTOCLAIM x g c 0 0", "XACK x g 8-9",
	"XGROUP DELCONSUMER x g a", "XGROUP DELCONSUMER x g a", "XGROUP DESTROY x g", "XGROUP DESTROY x g",
	"GEORADIUS g 15 37 200 km STORE near", "GEORADIUSBYMEMBER g Palermo 200 km STOREDIST near2", "GEOSEARCHSTORE near g FROMLONLAT 0 0 BYRADIUS 1 km", "GEORADIUS g 0 0 1 m STORE near",
	"DEL a none b", "UNLINK c d", "SET a 1", "EXPIRE a 100", "PEXPIRE a 100000 NX", "EXPIREAT a 99999999999", "PEXPIREAT a 99999999999999", "PERSIST a", "PERSIST a", "EXPIRE none 1", "EXPIRE a -1",
	"SET a 1", "RENAME a b", "RENAMENX b a", "SET b 1", "RENAMENX b a", "RENAME b a", "RENAME a a", "COPY a b", "COPY a b", "COPY a b REPLACE", "COPY a b DB 1 REPLACE", "MOVE a 2", "MOVE none 2",
	"RPUSH l 3 1 2", "SORT l STORE sorted", "SORT none STORE sorted", "SORT none STORE sorted", "TOUCH l", "OBJECT ENCODING l",
	"SELECT 5", "SET five 5", "MULTI", "SET a 1", "INCR five", "LPUSH l x", "LPOP l", "LPOP a", "EXEC", "SELECT 0", "SWAPDB 0 5", "FLUSHDB", "FLUSHALL",
}

func TestNotificationsAgreeWithRedis(t *testing.T) {
	for _, classes := range []string{"KEA", "EAn"} {
		ours, theirs := newTellers(t, classes)
		for _, cmd := range notified {
			args := strings.Split(cmd, " ")
			d, err := ours.compare(theirs, args)
			if err != nil {
				t.Fatal(err)
			}
			if d != "" {
				t.Errorf("%s: %q: %s", classes, args, d)
			}
		}
		restoreBoth(t, ours, theirs)
		for e := structures.EventNone + 1; e < structures.EventFlushed; e++ {
			if ours.told["__keyevent@0__:"+e.String()] == 0 && !slices.Contains(elsewhere, e) && (e != structures.EventNew || classes == "EAn") {
				t.Errorf("%s: no command tells %q", classes, e)
			}
		}
	}
}

// elsewhere are the events that this test cannot see.
var elsewhere = []structures.EventKind{
	structures.EventExpired, structures.EventEvicted, structures.EventHExpire, structures.EventHExpired, structures.EventHPersist,
	structures.EventMoveTo,
}

// restoreBoth gives both a payload that each can read.
func restoreBoth(t *testing.T, ours *staveTeller, theirs *redisTeller) {
	t.Helper()
	if _, err := theirs.do([]string{"sadd", "source", "a", "b"}); err != nil {
		t.Fatal(err)
	}
	dump, err := theirs.do([]string{"dump", "source"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.do([]string{"flushall"}); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.events(); err != nil {
		t.Fatal(err)
	}
	for _, options := range []string{"0", "0", "0 REPLACE", "100000 REPLACE", "1 REPLACE ABSTTL", "1 REPLACE ABSTTL"} {
		words := strings.Split(options, " ")
		args := append([]string{"RESTORE", "copy", words[0], string(dump.Text)}, words[1:]...)
		if d, err := ours.compare(theirs, args); err != nil || d != "" {
			t.Errorf("RESTORE %s: %s %v", options, d, err)
		}
	}
}

// TestRandomNotifications compares what random commands tell.
func TestRandomNotifications(t *testing.T) {
	seed := chance.Seed(t)
	ours, theirs := newTellers(t, "Eg$lshz")
	g := &generator{r: rand.New(rand.NewPCG(seed, 0))}
	var sequence [][]string
	multi := false
	n := 3000
	if testing.Short() {
		n = 500
	}
	const enough = 10 // different events
	for i := 0; i < n || len(ours.told) < enough && i < 10*n; i++ {
		args := g.command()
		name := strings.ToLower(args[0])
		switch {
		case slices.Contains(untold, name) || endless(name, args) || unlike70(name, args) || timeToLive(args) > 0 || setsExpired(args) || waitsLong(name, args):
			continue
		case name == "multi":
			multi = true
		case name == "exec", name == "discard", name == "reset":
			multi = false
		case multi && strings.HasPrefix(name, "w"):
			continue
		}
		if isLex(name, args) {
			if multi {
				continue
			}
			if same, err := sameScores(theirs, args); err != nil {
				t.Fatal(err)
			} else if !same {
				continue
			}
		}
		sequence = append(sequence, args)
		if d, err := ours.compare(theirs, args); err != nil || d != "" {
			for _, args := range sequence {
				t.Logf("%q", args)
			}
			t.Fatalf("%s %v (repeat with -seed %d)", d, err, seed)
		}
	}
	t.Logf("%d commands told %d different events", len(sequence), len(ours.told))
	if len(ours.told) < enough {
		t.Error("too few events to have compared anything")
	}
}

// setsExpired says whether the command is a SET with a deadline that has passed. Redis 7.0 keeps such a key until its
// cycle of expiry comes by, and a command that overwrites the key before then tells that it was there.
func setsExpired(args []string) bool {
	at := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "exat") || strings.EqualFold(arg, "pxat") })
	if !strings.EqualFold(args[0], "set") || at < 0 || at+1 == len(args) {
		return false
	}
	deadline, err := strconv.ParseInt(args[at+1], 10, 64)
	if strings.EqualFold(args[at], "exat") {
		return err == nil && deadline <= time.Now().Unix()
	}
	return err == nil && deadline <= time.Now().UnixMilli()
}

// untold are the commands that depend on chance, that change the setting, or that differ since Redis 7.2.
var untold = []string{"spop", "config", "client", "subscribe", "psubscribe", "hello", "quit", "restore", "setbit", "bitfield", "xsetid"}

// TestNotificationsEndWithServe: the store stays open when a server ends, and must not notify it any
// more.
func TestNotificationsEndWithServe(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v := newServer(t, openStore(t), &server.Options{Transport: transport})
		listen := func() (address string, end func()) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- v.Serve(ctx, ln) }()
			return ln.Addr().String(), func() {
				t.Helper()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		told := func(address string) {
			t.Helper()
			listener, writer := dial(t, address), dial(t, address)
			listener.send("SUBSCRIBE __keyevent@0__:set\r\n")
			listener.expect("*3\r\n$9\r\nsubscribe\r\n$18\r\n__keyevent@0__:set\r\n:1\r\n")
			writer.send("SET k v\r\n")
			writer.expect("+OK\r\n")
			listener.expect("*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$1\r\nk\r\n")
		}
		first, endFirst := listen()
		second, endSecond := listen()
		c := dial(t, first)
		c.send("CONFIG SET notify-keyspace-events KEA\r\n")
		c.expect("+OK\r\n")
		endFirst()
		told(second)
		endSecond()
		if v.ListensToStore() {
			t.Error("the server has ended and still listens to the store")
		}
		third, endThird := listen()
		told(third)
		endThird()
		if v.ListensToStore() {
			t.Error("the server has ended for the second time and still listens to the store")
		}
	})
}
