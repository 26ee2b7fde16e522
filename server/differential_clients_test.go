package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// Several clients at once: who waits is served the same, and what a client watches has changed for it or has not.

// party is a client of both servers.
type party struct {
	stave   *stavePeer
	redis   *redisPeer
	waiting []string   // the command that waits on both; nil for none
	multi   bool       // between MULTI and EXEC
	queued  [][]string // since MULTI
}

// parties are the clients of two servers. The first of them never waits.
type parties struct {
	t        *testing.T
	server   *server.Server
	redis    *redisServer
	control  *redisPeer
	list     []*party
	compared int
}

// turn is what one client sends in one piece.
type turn struct {
	client   int
	commands [][]string
}

func (p *parties) join() *party {
	return &party{stave: &stavePeer{p.server.NewSession()}, redis: p.redis.dial()}
}

// leave ends the connections of a client that waits, and gives it others.
func (p *parties) leave(i int) {
	p.list[i].stave.session.Close()
	_ = p.list[i].redis.conn.Close()
	p.list[i] = p.join()
}

// waits is how many clients wait.
func (p *parties) waits() (n int) {
	for _, one := range p.list {
		if one.waiting != nil {
			n++
		}
	}
	return n
}

// redisWaits returns once as many clients of Redis wait as those of ours.
func (p *parties) redisWaits() string {
	want := fmt.Sprintf("\r\nblocked_clients:%d\r\n", p.waits())
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Microsecond) {
		info, err := p.control.do([]string{"info", "clients"})
		if err != nil {
			p.t.Fatal(err)
		}
		if strings.Contains(string(info.Text), want) {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("%d clients of stave wait, of redis others:%s", p.waits(), info.Text)
		}
	}
}

// play runs turns on both servers, from an empty state, and returns the first difference and after how many turns.
func (p *parties) play(turns []turn) (difference string, at int) {
	for i := range p.list {
		p.leave(i)
	}
	if d := p.redisWaits(); d != "" {
		p.t.Fatal(d)
	}
	if d := p.take(turn{0, [][]string{{"flushall"}}}); d != "" {
		return d, 0
	}
	for i, one := range turns {
		who := p.list[one.client]
		if who.waiting != nil || who.multi && slices.ContainsFunc(one.commands, expiresSoon) {
			continue // it can say nothing; the time may be over before the transaction is
		}
		if d := p.take(one); d != "" {
			return fmt.Sprintf("client %d, %.500q: %s", one.client, one.commands, d), i + 1
		}
	}
	return p.sameState(), len(turns)
}

// take runs one turn.
func (p *parties) take(one turn) string {
	who := p.list[one.client]
	if err := who.redis.send(one.commands); err != nil {
		p.t.Fatal(err)
	}
	if err := who.stave.send(one.commands); err != nil {
		return err.Error()
	}
	soon := slices.ContainsFunc(one.commands, expiresSoon)
	p.compared += len(one.commands)
	if who.stave.session.Blocked() {
		who.waiting = one.commands[0] // those that wait come alone
		return p.redisWaits()
	}
	ours, err := who.stave.receive(len(one.commands))
	if err != nil {
		return err.Error()
	}
	theirs, err := who.redis.receive(len(one.commands))
	if err != nil {
		return fmt.Sprintf("redis: %v, stave %s", err, show(resp.Reply{Kind: resp.Array, Items: ours}))
	}
	if soon {
		time.Sleep(3 * time.Millisecond)
	}
	for i, args := range one.commands {
		if d := who.compare(args, ours[i], theirs[i]); d != "" {
			return d
		}
	}
	if d := p.served(); d != "" || p.waits() == 0 {
		return d
	}
	return p.redisWaits()
}

// served compares what clients were given that have waited.
func (p *parties) served() string {
	for i, one := range p.list {
		if one.waiting == nil {
			continue
		}
		one.stave.session.Resume()
		if one.stave.session.Blocked() {
			continue
		}
		ours, err := one.stave.receive(1)
		if err != nil {
			return err.Error()
		}
		args := one.waiting
		one.waiting = nil
		if err := one.redis.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			p.t.Fatal(err)
		}
		theirs, err := one.redis.decoder.Read()
		if err != nil {
			return fmt.Sprintf("client %d waits in %q: stave %s, redis %v", i, args, show(ours[0]), err)
		}
		if d := diff(comparedName(args), ours[0], theirs); d != "" {
			return fmt.Sprintf("client %d waited in %q: %s", i, args, d)
		}
	}
	return ""
}

func (one *party) compare(args []string, ours, theirs resp.Reply) string {
	name := strings.ToLower(args[0])
	queued := one.queued
	switch {
	case string(theirs.Text) == "QUEUED":
		one.queued = append(one.queued, args)
	case name == "exec" || name == "discard" || name == "multi" && !theirs.IsError():
		one.queued, one.multi = nil, name == "multi"
	}
	if name == "exec" && theirs.Kind == resp.Array && !theirs.Null {
		return diffExec(queued, ours, theirs)
	}
	return diff(comparedName(args), ours, theirs)
}

// sameState compares what the servers hold.
func (p *parties) sameState() string {
	first := p.list[0]
	for _, args := range [][]string{{"discard"}, {"reset"}} {
		for _, one := range []peer{first.stave, first.redis} {
			if _, err := one.do(args); err != nil {
				return err.Error()
			}
		}
	}
	both := &pair{t: p.t, stave: first.stave, redis: first.redis}
	for _, database := range []string{"0", "1"} {
		if _, _, err := both.both([][]string{{"select", database}}); err != nil {
			return err.Error()
		}
		if d := both.sameKeys(sharedKeys); d != "" {
			return "in the end: " + d
		}
	}
	return ""
}

var sharedKeys = []string{"k", "l", "m", "s:x"}

// turn makes the next random turn.
func (g *generator) turn(clients int) turn {
	one := turn{client: g.r.IntN(clients)}
	if one.client > 0 && g.chance(3) {
		one.commands = [][]string{g.waiting()}
		return one
	}
	if g.chance(60) {
		one.commands = [][]string{{"pexpire", g.sharedKey(), "1"}} // alone: the next command must find it passed
		return one
	}
	n := 1
	if g.chance(6) {
		n += g.r.IntN(4)
	}
	for range n {
		one.commands = append(one.commands, g.shared()...)
	}
	return one
}

func (g *generator) sharedKey() string { return pick(g, sharedKeys...) }

// waiting is a command that waits if there is nothing.
func (g *generator) waiting() []string {
	keys := g.several(1, 3, g.sharedKey)
	end := func() string { return pick(g, "left", "right") }
	count := g.maybe(2, "count", strconv.Itoa(1+g.r.IntN(3)))
	switch g.r.IntN(7) {
	case 0:
		return join("blmove", g.sharedKey(), g.sharedKey(), end(), end(), "0")
	case 1:
		return join("brpoplpush", g.sharedKey(), g.sharedKey(), "0")
	case 2:
		return join("blmpop", "0", strconv.Itoa(len(keys)), keys, end(), count)
	case 3:
		return join("bzmpop", "0", strconv.Itoa(len(keys)), keys, pick(g, "min", "max"), count)
	case 4:
		return join(pick(g, "bzpopmin", "bzpopmax"), keys, "0")
	}
	return join(pick(g, "blpop", "brpop"), keys, "0")
}

// shared are commands on the keys that all clients use, mostly one. A command stores to a key that does not exist:
// Redis serves no waiter when a key is overwritten.
func (g *generator) shared() [][]string {
	key, other := g.sharedKey(), g.sharedKey()
	number := strconv.Itoa(g.r.IntN(5))
	switch g.r.IntN(34) {
	case 0:
		return [][]string{{"del", other}, {"sort", key, "by", "nosort", "store", other}}
	case 1:
		return [][]string{{"del", key}, {pick(g, "zunionstore", "zinterstore"), key, "2", other, g.sharedKey()}}
	case 2:
		return [][]string{{"del", key}, {"zrangestore", key, other, "0", number}}
	case 3:
		return [][]string{{"multi"}, g.waiting(), g.sharedOne(), {"exec"}}
	}
	return [][]string{g.sharedOne()}
}

func (g *generator) sharedOne() []string {
	key, other := g.sharedKey(), g.sharedKey()
	end := func() string { return pick(g, "left", "right") }
	letter := func() string { return string(rune('a' + g.r.IntN(5))) }
	number := func() string { return strconv.Itoa(g.r.IntN(5)) }
	switch g.r.IntN(29) {
	case 0, 1, 2, 3, 4, 5:
		return join(pick(g, "lpush", "rpush", "rpush", "lpushx"), key, g.several(1, 3, letter))
	case 6, 7, 8:
		return []string{"zadd", key, number(), letter(), number(), letter()}
	case 9:
		return join("lmove", key, other, end(), end())
	case 10:
		return []string{pick(g, "lpop", "rpop", "zpopmin", "zpopmax"), key, number()}
	case 11:
		return []string{pick(g, "rename", "renamenx"), key, other}
	case 12:
		return []string{"copy", key, other, "replace"}
	case 13:
		return pick(g, []string{"move", key, "1"}, []string{"copy", key, other, "db", "1"})
	case 14:
		return []string{"set", key, letter()}
	case 15, 16:
		return join(pick(g, "del", "unlink"), g.several(1, 2, g.sharedKey))
	case 17:
		return pick(g, []string{"flushdb"}, []string{"flushall"}, []string{"select", "1"}, []string{"select", "0"}, []string{"select", "0"})
	case 18:
		return pick(g, []string{"pexpire", key, "-1"}, []string{"expire", key, "1000"}, []string{"persist", key})
	case 19, 20, 21:
		return []string{"multi"}
	case 22, 23, 24:
		return []string{"exec"}
	case 25:
		return []string{pick(g, "discard", "unwatch")}
	case 26, 27:
		return join("watch", g.several(1, 2, g.sharedKey))
	case 28:
		return []string{"sadd", key, letter()}
	}
	return []string{pick(g, "llen", "zcard", "type", "exists", "scard"), key}
}

// TestDifferentialClients compares Stave with a real redis-server while several clients push, wait, watch and commit.
func TestDifferentialClients(t *testing.T) {
	redis := startRedisServer(t)
	p := &parties{t: t, server: newServer(t, openStore(t), nil), redis: redis, control: redis.dial()}
	for range 4 {
		p.list = append(p.list, p.join())
	}
	seed := chance.Seed(t)
	limit := *commandsFlag / 10
	if testing.Short() {
		limit = min(limit, 1000)
	}
	share := longTests.Start(t, 1, "seed", "differential.commands", "differential.for")
	limit = share.Cases(limit)
	part := share.Part(t, 1000)
	defer part.End()
	found := 0
	for start, round := time.Now(), 0; found < maxDifferences; round++ {
		if *forFlag > 0 && time.Since(start) > *forFlag || *forFlag == 0 && !part.More(p.compared, limit) {
			break
		}
		g := &generator{r: rand.New(rand.NewPCG(seed, uint64(round)))}
		var turns []turn
		for i := range p.list {
			if g.chance(2) {
				turns = append(turns, turn{i, [][]string{{"hello", "3"}}})
			}
		}
		for range 200 {
			turns = append(turns, g.turn(len(p.list)))
		}
		if d, at := p.play(turns); d != "" {
			found++
			compared := p.compared
			turns, d = shrink(turns[:at], d, p.play)
			for _, one := range turns {
				t.Logf("%d: %q", one.client, one.commands)
			}
			t.Errorf("round %d: %s", round, d)
			p.compared = compared
		}
	}
	t.Logf("%d commands, %d differences, seed %d, of %d clients", p.compared, found, seed, len(p.list))
}

// TestWaitersFoundByComparison: what the comparison above has found, against a real redis-server.
func TestWaitersFoundByComparison(t *testing.T) {
	redis := startRedisServer(t)
	p := &parties{t: t, server: newServer(t, openStore(t), nil), redis: redis, control: redis.dial()}
	for range 4 {
		p.list = append(p.list, p.join())
	}
	for _, tt := range []struct {
		what  string
		turns []string // a client and its command
	}{
		{"one who cannot be served is before those of keys that were filled later", []string{
			"0 set m b", "3 brpoplpush k m 0", "1 bzmpop 0 2 l l min", "0 multi", "0 rpush k b b d", "2 blmpop 0 2 k l right count 1", "0 lpush l c", "0 exec",
		}},
		{"all who wait for a key are before those of keys that serving them fills", []string{
			"3 blmove l s:x left right 0", "2 blmove l k right right 0", "1 blmove s:x l right right 0", "0 rpush l d d a",
		}},
		{"the same, and those of two keys are served in the order in which these were filled", []string{
			"3 blmove l s:x left right 0", "2 blmove l k right right 0", "1 blmpop 0 2 k s:x left", "0 rpush l d d a",
		}},
		{"a key that has something already is not filled again", []string{
			"3 bzmpop 0 3 s:x k l min count 3", "1 brpop s:x 0", "0 rpush k a", "0 multi", "0 rpush k b", "0 del k", "0 zadd l 4 c", "0 zadd k 2 b", "0 exec",
		}},
		{"a key that is filled twice before it is offered keeps its place", []string{
			"3 blpop k 0", "2 blmove l k left right 0", "1 blmpop 0 2 k x left", "0 multi", "0 rpush k a", "0 rpush l b", "0 del k", "0 rpush k a",
			"0 rpush x c", "0 exec",
		}},
	} {
		var turns []turn
		for _, text := range tt.turns {
			words := strings.Fields(text)
			client, err := strconv.Atoi(words[0])
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn{client, [][]string{words[1:]}})
		}
		if d, _ := p.play(turns); d != "" {
			t.Errorf("%s: %s", tt.what, d)
		}
	}
}
