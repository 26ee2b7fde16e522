package server_test

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// kept is how many bytes are live on the heap that nothing counts: neither a session, nor the table of tracked keys, nor
// the cache of scripts, nor the index of the store.
func kept(v *server.Server, sessions ...*server.Session) int {
	runtime.GC()
	runtime.GC() // pools release what they have in two steps
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	n := int(sample[0].Value.Uint64()) - v.CountedBesideSessions()
	for _, s := range sessions {
		n -= s.Held()
	}
	return n
}

// staysWithin says whether a difference of what is kept is within bounds, now or in some seconds: the hint of a segment that has just
// been sealed is written beside, with buffers that are as long as the texts.
func staysWithin(n func() int, least, most int) (last int, ok bool) {
	for range 200 {
		if last = n(); least <= last && last <= most {
			return last, true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return last, false
}

// send sends requests and takes the replies.
func send(s *server.Session, requests ...[]string) {
	for _, args := range requests {
		s.Feed(resp.AppendCommandStrings(nil, args...))
		for len(s.Output()) > 0 {
			s.Flushed(len(s.Output()))
		}
	}
}

// keptServer is a server that keeps what it can: each command is a slow one, and a user is refused some.
func keptServer(t *testing.T) *server.Server {
	v := newServer(t, openStore(t), &server.Options{})
	setup := v.NewSession()
	defer setup.Close()
	send(setup, []string{"CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1"},
		[]string{"ACL", "SETUSER", "limited", "on", "nopass", "+@all", "-get", "-acl", "~app:*", "&app:*"})
	for range 128 { // as many entries as SLOWLOG has
		send(setup, slices.Repeat([]string{strings.Repeat("x", 300)}, 40), append([]string{"DEL"}, slices.Repeat([]string{strings.Repeat("x", 300)}, 40)...))
	}
	return v
}

// TestNoTextIsKeptUncounted: a text of 1 MiB at each place of each command, by a user who may do everything and by one
// who may not. What is kept of it counts as the session's memory, or is less than half of it, and so after the client has left.
func TestNoTextIsKeptUncounted(t *testing.T) {
	v := keptServer(t)
	text := strings.Repeat("x", 1<<20)
	var commands []*command.Command
	for _, cmd := range server.Commands {
		commands = append(append(commands, cmd), cmd.Subcommands...)
	}
	first, empty := kept(v), v.NewSession()
	defer empty.Close()
	for _, cmd := range commands {
		send(empty, []string{"FLUSHALL"}) // commands that wait do so for keys that are not there
		base := kept(v)                   // again: what the server keeps of the commands before becomes less, and would hide some of this one
		name := strings.Split(cmd.Name, "|")
		if slices.Contains([]string{"shutdown", "backup", "acl|setuser"}, cmd.Name) {
			continue // the operator's; a user has a name of whatever length
		}
		all, limited := v.NewSession(), v.NewSession()
		send(limited, []string{"AUTH", "limited", ""})
		for _, s := range []*server.Session{all, limited} {
			for place := range max(3, min(6, cmd.Arity, -cmd.Arity)) {
				args := slices.Clone(name)
				for i := len(args); i < max(cmd.Arity, -cmd.Arity, place+len(name)+1); i++ {
					args = append(args, []string{"app:1", "1"}[i%2])
				}
				args[len(name)+place] = text
				send(s, args)
			}
		}
		if n, ok := staysWithin(func() int { return kept(v, all, limited) - base }, math.MinInt, len(text)/2); !ok {
			t.Errorf("%s: %d bytes are kept that nothing counts", cmd.Name, n)
		}
		all.Close()
		limited.Close()
		if n, ok := staysWithin(func() int { return kept(v) - base }, math.MinInt, len(text)/2); !ok {
			t.Errorf("%s: %d bytes are kept after the client has left", cmd.Name, n)
		}
	}
	if n, ok := staysWithin(func() int { return kept(v) - first }, math.MinInt, len(text)/2); !ok {
		t.Errorf("%d bytes are kept after all clients have left", n)
	}
}

// TestWaysToKeepMuch: what clients can make the server keep with several commands, or with many arguments.
func TestWaysToKeepMuch(t *testing.T) {
	const long = 4 << 20
	text := strings.Repeat("x", long)
	many := func(args ...string) []string { return append(args, make([]string, long/16)...) }
	distinct := func(format string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return list
	}
	ways := map[string][][]string{
		"names":               {{"CLIENT", "SETNAME", text}, {"CLIENT", "SETINFO", "lib-name", text}, {"CLIENT", "SETINFO", "lib-ver", text}, {"HELLO", "3", "SETNAME", text}},
		"refused keys":        {{"AUTH", "limited", ""}, {"SET", "1" + text, "x"}, {"SET", "2" + text, "x"}, {"MULTI"}, {"SET", "3" + text, "x"}, {"DISCARD"}},
		"refused users":       {{"AUTH", "1" + text, "x"}, {"AUTH", "2" + text, "x"}},
		"refused in a script": {{"AUTH", "limited", ""}, {"EVAL", "redis.call('SET', ARGV[1], '')", "0", text}, {"EVAL", "redis.pcall('SET', ARGV[1], '')", "0", "y" + text}},
		"codes of errors":     {{"EVAL", "error({err=string.rep('A', 4000000)})", "0"}, {"EVAL", "error({err='B '..ARGV[1]})", "0", text}, {"EVAL", "error({err=ARGV[1]})", "0", text}},
		"unknown commands":    {{text}, {"CLIENT", text}, {"MULTI"}, {text}},
		"a queue":             {{"MULTI"}, {"SET", "a", text}, {"PUBLISH", "a", text}},
		"watched keys":        {{"WATCH", "a"}, slices.Concat([]string{"WATCH"}, slices.Repeat([]string{"a"}, 1000), []string{text})},
		"many subscriptions":  {append([]string{"SUBSCRIBE"}, distinct("c%d", 100_000)...), {"UNSUBSCRIBE"}},
		"many watched keys":   {append([]string{"WATCH"}, distinct("k%d", 100_000)...), {"UNWATCH"}},
		"subscriptions":       {{"SUBSCRIBE", text}, {"PSUBSCRIBE", text}, {"SSUBSCRIBE", text}},
		"prefixes":            {{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", text}},
		"tracked keys":        {{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON"}, {"GET", text}, {"MGET", "1" + text, "2" + text}},
		"mail":                {{"SUBSCRIBE", "a"}, {"PUBLISH", "a", text}},
		"BLPOP":               {slices.Concat([]string{"BLPOP"}, distinct("key%d", 50_000), []string{"0"})},
		"BZPOPMIN":            {slices.Concat([]string{"BZPOPMIN"}, distinct("%060000d", 60), []string{"0"})},
		"BLMOVE":              {{"BLMOVE", "1", text[:60_000], "LEFT", "LEFT", "0"}},
		"BLMPOP":              {slices.Concat([]string{"BLMPOP", "0", "50000"}, distinct("key%d", 50_000), []string{"LEFT"})},
		"BZMPOP":              {slices.Concat([]string{"BZMPOP", "0", "50000"}, distinct("key%d", 50_000), []string{"MIN"})},
		"XREAD":               {slices.Concat([]string{"XREAD", "BLOCK", "0", "STREAMS"}, distinct("key%d", 50_000), slices.Repeat([]string{"$"}, 50_000))},
		"XREADGROUP": {{"XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM"},
			slices.Concat([]string{"XREADGROUP", "GROUP", "g", strings.Repeat("c", 1000), "BLOCK", "0", "STREAMS"}, slices.Repeat([]string{"stream"}, 50_000), slices.Repeat([]string{">"}, 50_000))},
		"an argument":       {{"SET", "a", text}, {"GET", "a"}, {"ECHO", text}, {"MSET", "a", text, "b", text}},
		"many arguments":    {many("MGET"), many("DEL"), many("SADD", "a"), many("EVAL", "return 1", "1000"), many("PING")},
		"many in a batch":   {many("EXISTS"), {"GET", "a"}},
		"scripts":           {{"EVAL", "return '" + text[:1<<20] + "'", "0"}, {"SCRIPT", "LOAD", "return 1 --" + text}},
		"a part of one":     nil, // see below
		"slow commands":     {{"SET", "a", text, "EX", text}, many("DEL")},
		"an inline command": {{"PING"}},
	}
	v := keptServer(t)
	for _, name := range budget.Some(t, slices.Sorted(maps.Keys(ways)), len(ways)/3) {
		requests := ways[name]
		s := v.NewSession()
		before, held := kept(v), v.CountedBesideSessions()
		send(s, requests...)
		switch name {
		case "a part of one":
			s.Feed([]byte("*3\r\n$3\r\nSET\r\n$4194304\r\n" + text))
		case "an inline command":
			s.Feed([]byte(strings.Repeat("PING\r\n", long/6)))
			s.Flushed(len(s.Output()))
		}
		counted := s.Held() + v.CountedBesideSessions() - held
		n, ok := staysWithin(func() int { return kept(v, s) - before }, -256<<10-counted*2/3, 256<<10+counted/2)
		switch {
		case !ok && n > 0:
			t.Errorf("%s: %d bytes are kept that nothing counts, and %d that count", name, n, counted)
		case !ok:
			t.Errorf("%s: %d bytes count, and %d of them are not there", name, counted, -n)
		}
		t.Logf("%s: %d bytes count, and %d more are there", name, counted, n)
		s.Close()
		if n, ok := staysWithin(func() int { return kept(v) - before }, math.MinInt, 256<<10); !ok {
			t.Errorf("%s: %d bytes are kept after the client has left", name, n)
		}
	}
}

// TestQuietClientsHoldLittle: of large commands that have ended a client holds nothing some seconds later, whether it says
// something or not; one that waits in a command holds that, and is disconnected for it.
func TestQuietClientsHoldLittle(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		below := func(what string, most int) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				held := fieldOf(t, v.Info("clients"), "client_memory")
				if held < most {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: clients hold %d bytes", what, held)
				}
			}
		}
		for _, size := range []int{200 << 10, 1<<20 + 100_000, 4 << 20} {
			c := dial(t, address)
			c.sendArray("SET", "k", strings.Repeat("x", size))
			c.expect("+OK\r\n")
		}
		below("quiet", 3*24<<10)
		c := dial(t, address)
		c.send("CONFIG SET maxmemory-clients 4mb\r\n")
		c.expect("+OK\r\n")
		waiting := dial(t, address)
		args := []string{"BLPOP"}
		for i := range 50_000 {
			args = append(args, fmt.Sprint("key", i))
		}
		waiting.sendArray(append(args, "0")...)
		waiting.expectEnd()
		below("after one that waited", 1<<20)
	})
}
