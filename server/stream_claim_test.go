package server_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/server"
)

// claimed is an entry as XREADGROUP CLAIM replies with it.
func claimed(id string, idle, deliveries int) string {
	return fmt.Sprintf("*4\r\n%s*2\r\n%s%s:%d\r\n:%d\r\n", bulkLine(id), bulkLine("f"), bulkLine("v"), idle, deliveries)
}

// claims is the reply of one stream.
func claims(key string, entries ...string) string {
	return fmt.Sprintf("*1\r\n*2\r\n%s*%d\r\n%s", bulkLine(key), len(entries), strings.Join(entries, ""))
}

// pendingFor is a row of XPENDING.
func pendingFor(id, consumer string, idle, deliveries int) string {
	return fmt.Sprintf("*4\r\n%s%s:%d\r\n:%d\r\n", bulkLine(id), bulkLine(consumer), idle, deliveries)
}

// XREADGROUP CLAIM came with Redis 8.4: a case for each sentence of its documents. A sleep is 50 ms.
func TestReadGroupClaim(t *testing.T) {
	entry := func(id string) string {
		return fmt.Sprintf("*2\r\n%s*2\r\n%s%s", bulkLine(id), bulkLine("f"), bulkLine("v"))
	}
	add := func(key string, ms int) line {
		return line{fmt.Sprintf("XADD %s %d-0 f v", key, ms), bulkLine(fmt.Sprintf("%d-0", ms))}
	}
	read := func(consumer, id string) line {
		return line{"XREADGROUP GROUP g " + consumer + " COUNT 1 STREAMS s >", "*1\r\n*2\r\n" + bulkLine("s") + "*1\r\n" + entry(id)}
	}
	start := []line{add("s", 1), add("s", 2), add("s", 3), add("s", 4), {"XGROUP CREATE s g 0", okLine}}
	sleep, none := line{in: "sleep"}, "*-1\r\n"
	for name, lines := range map[string][]line{
		"pending first, then new": {read("a", "1-0"), sleep, read("a", "2-0"), sleep,
			// Only what has been pending for so long is claimed, and then comes what is new, which has no delivery before.
			{"XREADGROUP GROUP g b CLAIM 60 STREAMS s >", claims("s", claimed("1-0", 100, 1), claimed("3-0", 0, 0), claimed("4-0", 0, 0))},
			{"XPENDING s g - + 9", "*4\r\n" + pendingFor("1-0", "b", 0, 2) + pendingFor("2-0", "a", 50, 1) + pendingFor("3-0", "b", 0, 1) + pendingFor("4-0", "b", 0, 1)},
			{"XREADGROUP GROUP g b CLAIM 60 STREAMS s >", none},
			{"XREADGROUP GROUP g b CLAIM 50 STREAMS s >", claims("s", claimed("2-0", 50, 1))},
			sleep,
			{"XACK s g 3-0 4-0", ":2\r\n"},
			// A consumer claims its own entries, too, and each time counts.
			{"XREADGROUP GROUP g b CLAIM 0 STREAMS s >", claims("s", claimed("1-0", 50, 2), claimed("2-0", 50, 2))},
		},
		"the longest first, COUNT in all": {read("a", "1-0"), read("a", "2-0"), sleep, {"XCLAIM s g a 0 1-0 JUSTID", "*1\r\n" + bulkLine("1-0")}, read("a", "3-0"), sleep,
			{"XREADGROUP GROUP g b CLAIM 10 COUNT 2 STREAMS s >", claims("s", claimed("2-0", 100, 1), claimed("1-0", 50, 1))},
			{"XREADGROUP GROUP g b CLAIM 10 COUNT 2 STREAMS s >", claims("s", claimed("3-0", 50, 1), claimed("4-0", 0, 0))},
		},
		"an id other than >": {read("a", "1-0"), sleep,
			{"XREADGROUP GROUP g b CLAIM 0 STREAMS s 0", "*1\r\n*2\r\n" + bulkLine("s") + "*0\r\n"},
			{"XREADGROUP GROUP g a CLAIM 0 STREAMS s 0", "*1\r\n*2\r\n" + bulkLine("s") + "*1\r\n" + entry("1-0")},
		},
		"NOACK is about new entries": {read("a", "1-0"), sleep,
			{"XREADGROUP GROUP g b COUNT 2 CLAIM 1 NOACK STREAMS s >", claims("s", claimed("1-0", 50, 1), claimed("2-0", 0, 0))},
			{"XPENDING s g - + 9", "*1\r\n" + pendingFor("1-0", "b", 0, 2)},
		},
		"an entry that is gone is pending no more": {read("a", "1-0"), read("a", "2-0"), sleep, {"XDEL s 1-0", ":1\r\n"},
			{"XREADGROUP GROUP g b COUNT 1 CLAIM 50 STREAMS s >", claims("s", claimed("2-0", 50, 1))},
			{"XPENDING s g - + 9", "*1\r\n" + pendingFor("2-0", "b", 0, 2)},
		},
		"several streams": {read("a", "1-0"), add("t", 1), add("u", 1), {"XGROUP CREATE t g 0", okLine}, {"XGROUP CREATE u g $", okLine}, sleep,
			{"XREADGROUP GROUP g b COUNT 1 CLAIM 50 STREAMS s u t > > >", "*2\r\n" +
				"*2\r\n" + bulkLine("s") + "*1\r\n" + claimed("1-0", 50, 1) + "*2\r\n" + bulkLine("t") + "*1\r\n" + claimed("1-0", 0, 0)},
			{"XINFO CONSUMERS u g", "*1\r\n*8\r\n" + bulkLine("name") + bulkLine("b") + bulkLine("pending") + ":0\r\n" + bulkLine("idle") + ":0\r\n" + bulkLine("inactive") + ":-1\r\n"},
		},
		"in transactions and scripts": {read("a", "1-0"), sleep, {"MULTI", okLine}, {"XREADGROUP GROUP g b BLOCK 0 COUNT 1 CLAIM 50 STREAMS s >", "+QUEUED\r\n"},
			{"XREADGROUP GROUP g c BLOCK 0 COUNT 1 CLAIM 50 NOACK STREAMS s >", "+QUEUED\r\n"}, {"EXEC", "*2\r\n" + claims("s", claimed("1-0", 50, 1)) + claims("s", claimed("2-0", 0, 0))},
			sleep, {"EVAL return{redis.call('XREADGROUP','GROUP','g','d','COUNT','1','CLAIM','50','STREAMS','s','>')} 1 s", "*1\r\n" + claims("s", claimed("1-0", 50, 2))},
		},
		"errors": {{"SET string v", okLine},
			{"XREADGROUP GROUP g b CLAIM x STREAMS s >", "-ERR min-idle-time is not an integer\r\n"},
			{"XREADGROUP GROUP g b CLAIM -1 STREAMS s >", "-ERR min-idle-time must be a positive integer\r\n"},
			{"XREADGROUP GROUP g b CLAIM STREAMS s >", "-ERR min-idle-time is not an integer\r\n"},
			{"XREAD CLAIM 1 STREAMS s 0", "-ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.\r\n"},
			{"XREADGROUP GROUP h b CLAIM 1 STREAMS s >", "-NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option\r\n"},
			{"XREADGROUP GROUP g b CLAIM 1 STREAMS s string > >", wrongTypeLine},
			{"XINFO CONSUMERS s g", "*0\r\n"},
		},
	} {
		t.Run(name, func(t *testing.T) { expectLines(t, append(start[:len(start):len(start)], lines...)) })
	}
}

// TestReadGroupClaimInRESP3: the reply is a map of streams there.
func TestReadGroupClaimInRESP3(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ask(s, "HELLO 3\r\nXADD s 1-0 f v\r\nXGROUP CREATE s g 0\r\n")
	want := "%1\r\n" + bulkLine("s") + "*1\r\n" + claimed("1-0", 0, 0)
	if got := ask(s, "XREADGROUP GROUP g a CLAIM 9 STREAMS s >\r\n"); got != want {
		t.Errorf("got %q, not %q", got, want)
	}
}

// TestReadGroupClaimWaits: a wait with CLAIM ends when an entry has been pending for so long, or with what is new.
func TestReadGroupClaimWaits(t *testing.T) {
	const wait = "XREADGROUP GROUP g b BLOCK 5000 CLAIM 1000 STREAMS other s > >\r\n"
	for name, row := range map[string]struct {
		before string // what happens first
		during string // 300 ms after the beginning of the wait
		want   string
		after  time.Duration
	}{
		"an entry was pending":         {"XREADGROUP GROUP g a STREAMS s >", "PING", claims("s", claimed("1-0", 1000, 1)), time.Second},
		"it is delivered again":        {"XREADGROUP GROUP g a STREAMS s >", "XCLAIM s g c 0 1-0", claims("s", claimed("1-0", 1000, 2)), 1300 * time.Millisecond},
		"it is acknowledged":           {"XREADGROUP GROUP g a STREAMS s >", "XACK s g 1-0", "*-1\r\n", 5 * time.Second},
		"it is deleted":                {"XREADGROUP GROUP g a STREAMS s >", "XDEL s 1-0", "*-1\r\n", 5 * time.Second},
		"a new one":                    {"XREADGROUP GROUP g a STREAMS s >", "XADD s 2-0 f v", claims("s", claimed("2-0", 0, 0)), 300 * time.Millisecond},
		"one that is delivered then":   {"XREADGROUP GROUP g a NOACK STREAMS s >", "XCLAIM s g a 0 1-0 FORCE JUSTID", claims("s", claimed("1-0", 1000, 1)), 1300 * time.Millisecond},
		"the group is gone":            {"XREADGROUP GROUP g a STREAMS s >", "XGROUP DESTROY s g", "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n", 300 * time.Millisecond},
		"the key is gone":              {"XREADGROUP GROUP g a STREAMS s >", "DEL s", "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n", 300 * time.Millisecond},
		"pending long enough already":  {"XREADGROUP GROUP g a NOACK STREAMS s >\r\nXCLAIM s g a 0 1-0 FORCE JUSTID IDLE 4000", "PING", claims("s", claimed("1-0", 4000, 1)), 0},
		"one whose time is put back":   {"XREADGROUP GROUP g a STREAMS s >", "XCLAIM s g a 0 1-0 JUSTID IDLE 4000", claims("s", claimed("1-0", 4700, 1)), time.Second},
		"with what is new, all of it":  {"XREADGROUP GROUP g a NOACK STREAMS s >\r\nXCLAIM s g a 0 1-0 FORCE JUSTID IDLE 900\r\nXADD other 1-0 f v", "PING", claims("other", claimed("1-0", 0, 0)), 0},
		"none was ever pending":        {"XREADGROUP GROUP g a NOACK STREAMS s >", "PING", "*-1\r\n", 5 * time.Second},
		"the waiter's own earlier one": {"XREADGROUP GROUP g b STREAMS s >", "PING", claims("s", claimed("1-0", 1000, 1)), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newServer(t, openStore(t), nil)
				s, other := v.NewSession(), v.NewSession()
				ask(other, "XADD s 1-0 f v\r\nXGROUP CREATE s g 0\r\nXGROUP CREATE other g 0 MKSTREAM\r\n"+row.before+"\r\n")
				began := time.Now()
				got, done := ask(s, wait), make(chan bool)
				go func() {
					defer close(done)
					time.Sleep(300 * time.Millisecond)
					ask(other, row.during+"\r\n")
				}()
				if s.Blocked() {
					s.Wait(context.Background())
					got = ask(s, "")
				}
				if after := time.Since(began); got != row.want || after != row.after {
					t.Errorf("after %s %q, not after %s %q", after, got, row.after, row.want)
				}
				<-done
			})
		})
	}
}

// TestReadGroupClaimOfAges: the largest times that entries can have been pending for are waited for, too.
func TestReadGroupClaimOfAges(t *testing.T) {
	for _, minIdle := range []int64{math.MaxInt64, math.MaxInt64 / 1_000_000, 1 << 45} {
		synctest.Test(t, func(t *testing.T) {
			v := newServer(t, openStore(t), nil)
			s, other := v.NewSession(), v.NewSession()
			ask(other, "XADD s 1-0 f v\r\nXGROUP CREATE s g 0\r\nXREADGROUP GROUP g a STREAMS s >\r\n")
			began := time.Now()
			got := ask(s, fmt.Sprintf("XREADGROUP GROUP g b BLOCK 7200000 CLAIM %d STREAMS s >\r\n", minIdle))
			if s.Blocked() {
				s.Wait(context.Background())
				got += ask(s, "")
			}
			if waited := time.Since(began); got != "*-1\r\n" || waited != 2*time.Hour {
				t.Errorf("CLAIM %d: %q after %s", minIdle, got, waited)
			}
		})
	}
}

// TestReadGroupClaimIsWoken: the reply of a wait with CLAIM comes though nobody sends anything.
func TestReadGroupClaimIsWoken(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		if got := ask(v.NewSession(), "XADD s 1-0 f v\r\nXGROUP CREATE s g 0\r\nXREADGROUP GROUP g a STREAMS s >\r\n"); !strings.Contains(got, "1-0") {
			t.Fatalf("%q", got)
		}
		c := dial(t, address)
		c.send("XREADGROUP GROUP g b BLOCK 0 CLAIM 30 STREAMS s >\r\n")
		if got := c.line(); got != "*1" {
			t.Errorf("%q", got)
		}
	})
}
