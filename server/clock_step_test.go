package server_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// settingDeadlines are all commands that take a deadline, in each of their forms: {s} and {ms} are how long until it, in seconds and
// milliseconds, {ats} and {atms} the moment.
var settingDeadlines = []string{
	"SET k v EX {s}", "SET k v PX {ms}", "SET k v EXAT {ats}", "SET k v PXAT {atms}", "SETEX k {s} v", "PSETEX k {ms} v",
	"GETEX k EX {s}", "GETEX k PX {ms}", "GETEX k EXAT {ats}", "GETEX k PXAT {atms}",
	"MSETEX 1 k v EX {s}", "MSETEX 1 k v PX {ms}", "MSETEX 1 k v EXAT {ats}", "MSETEX 1 k v PXAT {atms}",
	"INCREX k EX {s}", "INCREX k PX {ms}", "INCREX k EXAT {ats}", "INCREX k PXAT {atms}",
	"EXPIRE k {s}", "PEXPIRE k {ms}", "EXPIREAT k {ats}", "PEXPIREAT k {atms}",
	"RESTORE k {ms} {dump} REPLACE", "RESTORE k {atms} {dump} REPLACE ABSTTL",
	"HEXPIRE h {s} FIELDS 1 f", "HPEXPIRE h {ms} FIELDS 1 f", "HEXPIREAT h {ats} FIELDS 1 f", "HPEXPIREAT h {atms} FIELDS 1 f",
	"HGETEX h EX {s} FIELDS 1 f", "HGETEX h PX {ms} FIELDS 1 f", "HGETEX h EXAT {ats} FIELDS 1 f", "HGETEX h PXAT {atms} FIELDS 1 f",
	"HSETEX h EX {s} FIELDS 1 f v", "HSETEX h PX {ms} FIELDS 1 f v", "HSETEX h EXAT {ats} FIELDS 1 f v", "HSETEX h PXAT {atms} FIELDS 1 f v",
}

// TestDeadlinesAreAllStepped: every command of the table whose syntax speaks of a time is in that list, or waits.
func TestDeadlinesAreAllStepped(t *testing.T) {
	forms := map[string]int{"xclaim": 1} // TestClockSteppedForStreams
	for _, name := range []string{"failover", "xread", "xreadgroup"} {
		forms[name] = 1 // how long they wait, or have waited
	}
	for _, line := range settingDeadlines {
		name, _, _ := strings.Cut(line, " ")
		forms[strings.ToLower(name)]++
	}
	for _, c := range all() {
		options := 0
		for _, word := range strings.FieldsFunc(c.Syntax, func(r rune) bool { return strings.ContainsRune(" []|", r) }) {
			if strings.Contains(word, "seconds") || word == "ttl" {
				options++
			}
		}
		if options > forms[c.Name] {
			t.Errorf("%s %s: %d of %d forms are stepped", c.Name, c.Syntax, forms[c.Name], options)
		}
	}
}

// stepped is a session on a store whose clock is stepped.
type stepped struct {
	*testing.T
	ahead   atomic.Int64
	mem     *vfs.Mem
	store   *db.Store
	session *server.Session
}

func (c *stepped) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *stepped) open() {
	var err error
	o := seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: c.mem, Clock: c.now})
	if c.store, err = db.Open("d", o); err != nil {
		c.Fatal(err)
	}
	c.session = newSession(c, c.store, nil)
}

func (c *stepped) close() {
	if err := c.store.Close(); err != nil {
		c.Error(err)
	}
}

// want sends a line and compares the beginning of the reply.
func (c *stepped) want(in, out string) {
	c.Helper()
	if got := ask(c.session, requestOf(strings.Fields(in)...)); !strings.HasPrefix(got, out) {
		c.Errorf("%s: %q, want %q", in, got, out)
	}
}

// TestClockSteppedForCommands is TestClockStepped of db for all commands that take a deadline, by themselves, in a
// MULTI and in a script.
func TestClockSteppedForCommands(t *testing.T) {
	rng := chance.Rand(t)
	for _, line := range settingDeadlines {
		for _, way := range []string{"alone", "MULTI", "EVAL"} {
			gap := time.Duration(10+rng.IntN(12*3600)) * time.Second
			killed := rng.IntN(2) == 0
			t.Run(fmt.Sprint(line, "/", way, "/", gap, "/killed=", killed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { (&stepped{T: t, mem: vfs.NewMem()}).command(line, way, gap, killed) })
			})
		}
	}
}

func (c *stepped) command(line, way string, gap time.Duration, killed bool) {
	c.open()
	c.want(fmt.Sprintf("SET gone v PX %d", gap.Milliseconds()/4), "+OK")
	c.want("HSET hash gone v stays v", ":2")
	c.want(fmt.Sprintf("HPEXPIRE hash %d FIELDS 1 gone", gap.Milliseconds()/4), "*1\r\n:1\r\n")
	c.want("MSET k 1 other v", "+OK")
	c.want("HSET h f v g v", ":2")
	gone := func() {
		c.want("GET gone", "$-1")
		c.want("HLEN hash", ":1")
	}
	dump := strings.TrimSuffix(ask(c.session, requestOf("DUMP", "other")), "\r\n")
	_, dump, _ = strings.Cut(dump, "\r\n")
	c.ahead.Store(int64(gap / 3))
	gone()
	c.ahead.Store(0)
	const left = 2 * time.Second // less than the gap
	at := time.Now().Add(left)
	args := strings.Fields(strings.NewReplacer("{s}", "2", "{ms}", "2000", "{ats}", fmt.Sprint(at.Unix()), "{atms}", fmt.Sprint(at.UnixMilli())).Replace(line))
	if i := slices.Index(args, "{dump}"); i >= 0 {
		args[i] = dump
	}
	switch way {
	case "alone":
		ask(c.session, requestOf(args...))
	case "MULTI":
		c.want("MULTI", "+OK")
		ask(c.session, requestOf(args...))
		c.want("EXEC", "*1")
	case "EVAL":
		ask(c.session, requestOf(append([]string{"EVAL", "return redis.call(unpack(ARGV))", "1", args[1]}, args...)...))
	}
	field := strings.HasPrefix(args[0], "H")
	check := func(left time.Duration) {
		c.Helper()
		if field {
			c.want("HPTTL h FIELDS 1 f", fmt.Sprintf("*1\r\n:%d\r\n", left.Milliseconds()))
			c.want("HPEXPIRETIME h FIELDS 1 f", fmt.Sprintf("*1\r\n:%d\r\n", at.UnixMilli()))
			c.want("HEXISTS h f", ":1")
			return
		}
		c.want("PTTL k", fmt.Sprintf(":%d\r\n", left.Milliseconds()))
		c.want("PEXPIRETIME k", fmt.Sprintf(":%d\r\n", at.UnixMilli()))
		c.want("EXISTS k", ":1")
	}
	check(left)
	gone()
	if killed {
		clone := c.mem.Clone()
		c.close()
		c.mem = clone
		c.open()
		check(left)
		gone()
	}
	time.Sleep(left - time.Millisecond)
	check(time.Millisecond)
	time.Sleep(time.Millisecond)
	if field {
		c.want("HEXISTS h f", ":0")
	} else {
		c.want("EXISTS k", ":0")
	}
	c.want("EXISTS k h other", map[bool]string{true: ":3", false: ":2"}[field])
	gone()
	c.close()
}

// TestClockSteppedForStreams: ids go on after the last one; consumers and pending entries that a clock ahead has noted have been
// idle for no time, until the clock gets there or they are active again.
func TestClockSteppedForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stepped{T: t, mem: vfs.NewMem()}
		c.open()
		start := time.Now().UnixMilli()
		c.want("XGROUP CREATE s g $ MKSTREAM", "+OK")
		c.ahead.Store(int64(time.Hour))
		c.want("XADD s * f 1", bulkText(fmt.Sprintf("%d-0", start+3600_000)))
		c.want("XREADGROUP GROUP g worker STREAMS s >", "*1")
		c.want("XREADGROUP GROUP g poller STREAMS s >", "*-1")
		c.ahead.Store(0)
		c.want("XADD s * f 2", bulkText(fmt.Sprintf("%d-1", start+3600_000)))
		id := fmt.Sprintf("%d-0", start+3600_000)
		pending := func(consumer string, idle, deliveries int) {
			c.Helper()
			c.want("XPENDING s g - + 10", fmt.Sprintf("*1\r\n*4\r\n%s%s:%d\r\n:%d\r\n", bulkText(id), bulkText(consumer), idle, deliveries))
		}
		time.Sleep(time.Second)
		pending("worker", 0, 1)
		c.want("XAUTOCLAIM s g other 1 0 JUSTID", "*3\r\n$3\r\n0-0\r\n*0")
		c.want("XCLAIM s g other 0 "+id, "*1")
		time.Sleep(time.Second)
		pending("other", 1000, 2)
		c.want("XCLAIM s g worker 1000 "+id, "*1")
		c.want("XCLAIM s g worker 0 "+id+" IDLE 5000", "*1")
		pending("worker", 5000, 4)
		c.want(fmt.Sprintf("XCLAIM s g worker 0 %s TIME %d", id, start), "*1")
		pending("worker", 2000, 5)
		c.want("XREADGROUP GROUP g worker STREAMS s >", "*1")
		c.want("XREADGROUP GROUP g poller STREAMS s >", "*-1")
		time.Sleep(time.Second)
		if got := ask(c.session, requestOf("XINFO", "CONSUMERS", "s", "g")); strings.Count(got, "idle\r\n:1000\r\n") != 2 || !strings.Contains(got, "idle\r\n:2000\r\n") {
			t.Errorf("the consumers are %q, want two idle for a second, and one for two", got)
		}
		c.close()
	})
}

func bulkText(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
