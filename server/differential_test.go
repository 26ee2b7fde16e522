package server_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

var (
	seedFlag     = flag.Uint64("seed", 0, "seed of the random tests (0: from the clock)")
	commandsFlag = flag.Int("commands", 6000, "random commands that the differential test compares")
)

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// peer is one of the two servers that are compared.
type peer interface {
	do(args []string) (resp.Reply, error)
}

// redisPeer is a real redis-server.
type redisPeer struct {
	conn    net.Conn
	decoder *resp.Decoder
}

func (p *redisPeer) do(args []string) (resp.Reply, error) {
	if err := p.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return resp.Reply{}, err
	}
	if _, err := p.conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
		return resp.Reply{}, err
	}
	return p.decoder.Read()
}

// startRedis starts a redis-server for this test, on a unix socket, without persistence.
func startRedis(t *testing.T) *redisPeer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: nothing to compare with")
	}
	dir, err := os.MkdirTemp("", "stave-redis") // short: the path of a unix socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	command := exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir, "--loglevel", "warning")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return &redisPeer{conn, resp.NewDecoder(conn)}
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

// stavePeer is a session of ours.
type stavePeer struct{ session *server.Session }

func (p *stavePeer) do(args []string) (resp.Reply, error) {
	p.session.Feed(resp.AppendCommandStrings(nil, args...))
	p.session.Wait(context.Background())
	reply, rest, err := resp.Decode(bytes.Clone(p.session.Output()))
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the reply: %.40q", len(rest), rest)
	}
	p.session.Flushed(len(p.session.Output()))
	return reply, err
}

// pair drives both.
type pair struct {
	t            *testing.T
	dir          string // of the store
	opened       int    // how often it was
	store        *db.Store
	stave, redis peer
	queued       [][]string // since MULTI, on both
	multi        bool
	mortal       []string // keys that got a deadline about to pass, if they are not of the pool
}

// open opens the store with a new session.
func (p *pair) open() {
	p.t.Helper()
	var err error
	p.opened++
	if p.store, err = db.Open(p.dir, &db.Options{ChunkSize: 16 * p.opened}); err != nil { // no string is too short to be cut
		p.t.Fatal(err)
	}
	p.stave = &stavePeer{server.NewSession(p.store, nil)}
}

// afterReopening merges the log, closes the store, opens it again and compares: nothing may have changed.
func (p *pair) afterReopening() string {
	if _, err := p.store.Merge(p.t.Context(), db.MergeOptions{All: true}); err != nil && !errors.Is(err, db.ErrMergeBusy) {
		return err.Error()
	}
	if err := p.store.Close(); err != nil {
		return err.Error()
	}
	p.open()
	return p.sameState()
}

// reset brings both servers into the state of new ones.
func (p *pair) reset() {
	p.queued, p.multi, p.mortal = nil, false, nil
	for _, args := range [][]string{{"reset"}, {"flushall"}} {
		for _, one := range []peer{p.stave, p.redis} {
			if reply, err := one.do(args); err != nil || reply.IsError() {
				p.t.Fatalf("%q: %q, %v", args, reply.Text, err)
			}
		}
	}
}

// run sends one command to both and returns how their replies differ, "" if they do not.
func (p *pair) run(args []string) string {
	name := strings.ToLower(args[0])
	if !p.multi {
		switch name {
		case "spop":
			return p.spop(args)
		case "srandmember":
			return p.srandmember(args)
		case "zrandmember":
			return p.zrandmember(args)
		case "hrandfield":
			return p.hrandfield(args)
		case "pfcount":
			return p.pfcount(args)
		case "randomkey":
			return p.randomkey(args)
		case "dump":
			return p.dump(args)
		case "sort", "sort_ro":
			return p.sort(name, args)
		case "scan", "sscan", "hscan", "zscan":
			return p.scan(name, args)
		}
	} else if name == "spop" || strings.HasSuffix(name, "randmember") || name == "hrandfield" || name == "pfcount" || name == "randomkey" || name == "dump" || strings.HasPrefix(name, "sort") || strings.HasSuffix(name, "scan") {
		return "" // chance cannot be taken back within a transaction
	}
	if waitsLong(name, args) || unlike70(name, args) || timeToLive(args) > 0 && !expiresSoon(args) {
		return ""
	}
	if isLex(name, args) {
		source := args[1]
		if name == "zrangestore" && len(args) > 2 {
			source = args[2]
		}
		if p.multi || !p.equalScores(source) {
			return "" // without equal scores a range of names has no meaning
		}
	}
	if name == "dbsize" {
		if d := p.reap(); d != "" {
			return d
		}
	}
	ours, err := p.stave.do(args)
	if err != nil {
		return fmt.Sprintf("stave: %v", err)
	}
	theirs, err := p.redis.do(args)
	if err != nil {
		p.t.Fatalf("%q: redis: %v", args, err) // nothing more will come from this connection
	}
	if expiresSoon(args) {
		p.mortal = append(p.mortal, args[1])
		time.Sleep(3 * time.Millisecond)
	}
	queued := p.track(name, args, theirs)
	if name == "exec" && theirs.Kind == resp.Array && !theirs.Null {
		if slices.ContainsFunc(queued, expiresSoon) {
			time.Sleep(3 * time.Millisecond)
		}
		return diffExec(queued, ours, theirs)
	}
	return diff(name, ours, theirs)
}

// track keeps what both servers have queued, and returns what was queued before an EXEC.
func (p *pair) track(name string, args []string, reply resp.Reply) (queued [][]string) {
	queued = p.queued
	switch {
	case name == "multi" && !reply.IsError():
		p.multi = true
	case name == "exec" || name == "discard" || name == "reset":
		if !reply.IsError() || strings.HasPrefix(string(reply.Text), "EXECABORT") {
			p.multi, p.queued = false, nil
		}
	case p.multi && string(reply.Text) == "QUEUED":
		p.queued = append(p.queued, args)
	}
	return queued
}

// unlike70 says that Redis changed the command after 7.0, which may be what we are compared with.
func unlike70(name string, args []string) bool {
	switch name {
	case "command":
		return len(args) == 1 || strings.EqualFold(args[1], "docs") // describes what each server has
	case "zrank", "zrevrank":
		return len(args) == 4 // WITHSCORE since 7.2
	case "lrem":
		return len(args) == 4 && args[2] == "-9223372036854775808" // refused since 7.2: it has no positive counterpart
	case "lpos":
		return slices.Contains(args, "-9223372036854775808") // the same
	}
	return false
}

// isLex says whether the command selects members of a sorted set by name.
func isLex(name string, args []string) bool {
	return len(args) > 1 && (strings.Contains(name, "lex") || slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "bylex") }))
}

func (p *pair) equalScores(key string) bool {
	reply, err := p.redis.do([]string{"zrange", key, "0", "-1", "withscores"})
	if err != nil || reply.IsError() {
		return err == nil
	}
	scores := map[string]bool{}
	for i, item := range reply.Items {
		switch {
		case len(item.Items) == 2:
			scores[item.Items[1].String()] = true
		case i%2 == 1:
			scores[item.String()] = true
		}
	}
	return len(scores) <= 1
}

// reap makes both servers forget expired keys, which DBSIZE counts until then: a write that finds a key expired drops it. The
// write itself does nothing.
func (p *pair) reap() string {
	if p.multi {
		return ""
	}
	for _, key := range append(p.mortal, keyPool...) {
		args := []string{"hdel", key, "\x01 no such field"}
		if d := p.run(args); d != "" {
			return fmt.Sprintf("%q: %s", args, d)
		}
	}
	return ""
}

// deadlineWords are the words that come with a time to live.
var deadlineWords = []string{"px", "pexpire", "psetex", "ex", "expire", "setex"}

// timeToLive returns the argument of a command with a relative deadline that is small: what would pass at some moment of the
// test. It is 0 for all others.
func timeToLive(args []string) int {
	if !slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(deadlineWords, strings.ToLower(arg)) }) {
		return 0
	}
	for _, arg := range args[1:] {
		if n, err := strconv.Atoi(arg); err == nil && n > 0 && n < 1000 {
			return n
		}
	}
	return 0
}

// expiresSoon says whether the command sets a deadline that is about to pass: the next command must see it passed.
func expiresSoon(args []string) bool {
	return timeToLive(args) == 1 && slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(deadlineWords[:3], strings.ToLower(arg)) })
}

func diffExec(queued [][]string, ours, theirs resp.Reply) string {
	if ours.Kind != theirs.Kind || ours.Null != theirs.Null || len(ours.Items) != len(theirs.Items) || len(ours.Items) != len(queued) {
		return fmt.Sprintf("exec of %d commands: stave %.500s, redis %.500s", len(queued), show(ours), show(theirs))
	}
	for i, args := range queued {
		if d := diff(strings.ToLower(args[0]), ours.Items[i], theirs.Items[i]); d != "" {
			return fmt.Sprintf("in exec, %q: %s", args, d)
		}
	}
	return ""
}

// show prints a reply on one line.
func show(r resp.Reply) string {
	switch {
	case r.Null:
		return string(r.Kind) + "null"
	case r.Items != nil:
		var parts []string
		for _, item := range r.Items {
			parts = append(parts, show(item))
		}
		return string(r.Kind) + "[" + strings.Join(parts, " ") + "]"
	}
	return string(r.Kind) + strconv.Quote(r.String())
}

// anyOrder are the commands whose replies have no order.
var anyOrder = []string{"smembers", "sunion", "sinter", "sdiff", "keys", "hkeys", "hvals"}

// doubles are the commands whose replies hold doubles. Redis 7.0 prints them with 17 digits, later ones as Stave does, with
// as few as needed.
var doubles = []string{"zscore", "zmscore", "zadd", "zincrby", "zrange", "zrevrange", "zrangebyscore", "zrevrangebyscore", "zpopmin", "zpopmax", "zscan",
	"zunion", "zinter", "zdiff", "zmpop", "bzpopmin", "bzpopmax", "bzmpop"}

// diff compares two replies to one command.
func diff(name string, ours, theirs resp.Reply) string {
	switch {
	case name == "hello" && ours.Kind == theirs.Kind && !ours.IsError():
		return "" // versions and numbers differ, of course
	case refusedSince72(name, ours, theirs):
		return ""
	case slices.Contains(anyOrder, name):
		sortItems(ours.Items)
		sortItems(theirs.Items)
	case name == "hgetall":
		ours.Items, theirs.Items = sortPairs(ours.Items), sortPairs(theirs.Items)
	}
	tolerance := int64(0)
	switch name {
	case "ttl", "expiretime":
		tolerance = 1
	case "pttl", "pexpiretime":
		tolerance = 1500
	}
	if same(ours, theirs, tolerance, slices.Contains(doubles, name)) {
		return ""
	}
	return fmt.Sprintf("stave %.500s, redis %.500s", show(ours), show(theirs))
}

func same(a, b resp.Reply, tolerance int64, doubles bool) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if !same(a.Items[i], b.Items[i], tolerance, doubles) {
			return false
		}
	}
	switch {
	case a.Kind == resp.Integer:
		difference := a.Int - b.Int
		return a.Int == b.Int || a.Int > 0 && b.Int > 0 && max(difference, -difference) <= tolerance
	case a.Kind == resp.Double:
		return a.Float == b.Float
	case bytes.Equal(a.Text, b.Text):
		return true
	case doubles && a.Kind == resp.BulkString:
		x, err1 := strconv.ParseFloat(string(a.Text), 64)
		y, err2 := strconv.ParseFloat(string(b.Text), 64)
		return err1 == nil && err2 == nil && x == y // -0 is kept as 0
	}
	return false
}

func sortItems(items []resp.Reply) {
	slices.SortFunc(items, func(a, b resp.Reply) int { return bytes.Compare(a.Text, b.Text) })
}

// sortPairs sorts name, value, name, value ... by name.
func sortPairs(items []resp.Reply) []resp.Reply {
	pairs := slices.Collect(slices.Chunk(items, 2))
	slices.SortFunc(pairs, func(a, b []resp.Reply) int { return bytes.Compare(a[0].Text, b[0].Text) })
	return slices.Concat(pairs...)
}

// texts are the members of an aggregate, or the one of a bulk string.
func texts(r resp.Reply) []string {
	if r.Null {
		return nil
	}
	if r.Kind == resp.BulkString {
		return []string{string(r.Text)}
	}
	var list []string
	for _, item := range r.Items {
		list = append(list, string(item.Text))
	}
	return list
}

// spop lets Stave choose and makes Redis remove the same members, which proves that they were there and different.
func (p *pair) spop(args []string) string {
	ours, err := p.stave.do(args)
	if err != nil {
		return err.Error()
	}
	taken := texts(ours)
	if ours.IsError() || len(taken) == 0 {
		theirs, err := p.redis.do(args)
		if err != nil {
			return err.Error()
		}
		return diff("spop", ours, theirs)
	}
	size, err := p.redis.do([]string{"scard", args[1]})
	if err != nil {
		return err.Error()
	}
	removed, err := p.redis.do(append([]string{"srem", args[1]}, taken...))
	if err != nil {
		return err.Error()
	}
	want := int64(1)
	if len(args) == 3 {
		if want, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return fmt.Sprintf("stave took %q, the count is bad", taken)
		}
	}
	if removed.Int != int64(len(taken)) || int64(len(taken)) != min(want, size.Int) {
		return fmt.Sprintf("stave popped %q, of which the set had %d; size %d", taken, removed.Int, size.Int)
	}
	return ""
}

// srandmember compares errors and sizes, and looks each member up.
func (p *pair) srandmember(args []string) string {
	ours, err := p.stave.do(args)
	if err != nil {
		return err.Error()
	}
	theirs, err := p.redis.do(args)
	if err != nil {
		return err.Error()
	}
	chosen := texts(ours)
	if ours.IsError() || len(chosen) == 0 || len(chosen) != len(texts(theirs)) || ours.Kind != theirs.Kind {
		return diff("srandmember", ours, theirs)
	}
	for _, member := range chosen {
		if is, err := p.redis.do([]string{"sismember", args[1], member}); err != nil || is.Int != 1 {
			return fmt.Sprintf("stave chose %q: %s, %v", member, show(is), err)
		}
	}
	if slices.Sort(chosen); len(args) == 3 && !strings.HasPrefix(args[2], "-") && len(slices.Compact(chosen)) != len(chosen) {
		return fmt.Sprintf("stave chose a member twice: %q", chosen)
	}
	return ""
}

// scan follows the cursor on both servers and compares what they found altogether. Redis may repeat itself.
func (p *pair) scan(name string, args []string) string {
	if at := cursorOf(name); len(args) > at {
		if n, err := strconv.ParseInt(args[at], 10, 64); err == nil && n != 0 {
			return "" // a cursor that no server gave has no meaning
		}
	}
	ours, err := scanAll(p.stave, name, args)
	if err != nil {
		return err.Error()
	}
	theirs, err := scanAll(p.redis, name, args)
	if err != nil {
		return err.Error()
	}
	return diff(name, ours, theirs)
}

// cursorOf is where the cursor stands among the arguments of a scan.
func cursorOf(name string) int {
	if name == "scan" {
		return 1
	}
	return 2
}

func scanAll(one peer, name string, args []string) (resp.Reply, error) {
	at := cursorOf(name)
	width := 1
	if name == "hscan" || name == "zscan" {
		width = 2
	}
	found := map[string]resp.Reply{}
	args = slices.Clone(args)
	for range 10_000 {
		reply, err := one.do(args)
		if err != nil || reply.IsError() || len(reply.Items) != 2 {
			return reply, err
		}
		items := reply.Items[1].Items
		for i := 0; i < len(items); i += width {
			value := resp.Reply{Kind: resp.BulkString}
			if width == 2 {
				value = items[i+1]
			}
			found[string(items[i].Text)] = value
		}
		next := string(reply.Items[0].Text)
		if next == "0" {
			all := resp.Reply{Kind: resp.Array}
			for _, key := range slices.Sorted(maps.Keys(found)) {
				all.Items = append(all.Items, resp.Reply{Kind: resp.BulkString, Text: []byte(key)}, found[key])
			}
			return all, nil
		}
		args[at] = next
	}
	return resp.Reply{}, fmt.Errorf("%q never ends", args)
}

// sameState compares everything the two servers hold.
func (p *pair) sameState() string {
	if d := p.run([]string{"reset"}); d != "" {
		return d
	}
	for _, database := range []string{"0", "1", "15"} {
		for _, args := range [][]string{{"select", database}, {"dbsize"}, {"keys", "*"}} {
			if d := p.run(args); d != "" {
				return fmt.Sprintf("in the end, %q: %s", args, d)
			}
		}
		keys, err := p.redis.do([]string{"keys", "*"})
		if err != nil {
			return err.Error()
		}
		for _, key := range texts(keys) {
			for _, args := range [][]string{
				{"type", key}, {"pexpiretime", key}, {"get", key}, {"strlen", key}, {"hgetall", key}, {"hlen", key}, {"lrange", key, "0", "-1"},
				{"llen", key}, {"smembers", key}, {"scard", key}, {"zrange", key, "0", "-1", "withscores"}, {"zcard", key},
			} {
				if d := p.run(args); d != "" {
					return fmt.Sprintf("in the end, %q: %s", args, d)
				}
			}
		}
	}
	return ""
}

// replay runs a sequence from a clean state and returns the first difference, and after which command.
func (p *pair) replay(sequence [][]string) (difference string, at int) {
	p.reset()
	for i, args := range sequence {
		if d := p.run(args); d != "" {
			return fmt.Sprintf("%q: %s", args, d), i + 1
		}
	}
	return p.sameState(), len(sequence)
}

// shrink drops commands as long as a difference remains. The difference may become another one: that is a finding as well.
func (p *pair) shrink(sequence [][]string, difference string) ([][]string, string) {
	for size := len(sequence) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(sequence); {
			shorter := slices.Concat(sequence[:from], sequence[from+size:])
			if d, at := p.replay(shorter); d != "" {
				sequence, difference = shorter[:at], d
			} else {
				from += size
			}
		}
	}
	return sequence, difference
}

// roundLength is how many commands run between two comparisons of the whole state.
const roundLength = 500

// TestDifferential compares Stave with a real redis-server on random commands.
func TestDifferential(t *testing.T) {
	redis := startRedis(t)
	p := &pair{t: t, redis: redis, dir: t.TempDir()}
	p.open()
	defer func() {
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (repeat with -seed %d)", seed, seed)
	for round := 0; round*roundLength < *commandsFlag; round++ {
		g := &generator{r: rand.New(rand.NewPCG(seed, uint64(round))), wide: round%3 == 2}
		var sequence [][]string
		if g.chance(2) {
			sequence = append(sequence, []string{"hello", "3"})
		}
		for range roundLength {
			sequence = append(sequence, g.command())
		}
		d, at := p.replay(sequence)
		if d == "" {
			if d = p.afterReopening(); d == "" {
				continue
			}
			t.Fatalf("round %d, after a merge and a new start: %s", round, d)
		}
		sequence, d = p.shrink(sequence[:at], d)
		for _, args := range sequence {
			t.Logf("%q", args)
		}
		t.Fatalf("round %d: %s", round, d)
	}
}
