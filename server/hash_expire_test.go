package server_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Deadlines of fields came with Redis 7.4, and HGETEX and HSETEX with 8.0: these replies are written down and not
// compared. Time is that of a synctest bubble, which stands still unless a line sleeps.
func TestHashDeadlines(t *testing.T) {
	const (
		wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
		noInt     = "-ERR value is not an integer or out of range\r\n"
		negative  = "-ERR invalid expire time, must be >= 0\r\n"
		noFields  = "-ERR Mandatory argument FIELDS is missing or not at the right position\r\n"
		mismatch  = "-ERR The `numfields` parameter must match the number of arguments\r\n"
		positive  = "-ERR Number of fields must be a positive integer\r\n"
		least     = "-ERR Parameter `numFields` should be greater than 0\r\n"
	)
	arity := func(name string) string { return "-ERR wrong number of arguments for '" + name + "' command\r\n" }
	tooLate := func(name string) string { return "-ERR invalid expire time in '" + name + "' command\r\n" }
	bulks := func(list ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(list))
		for _, s := range list {
			if s == "nil" {
				b.WriteString("$-1\r\n")
				continue
			}
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(s), s)
		}
		return b.String()
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, openStore(t), nil)
		now := time.Now().UnixMilli()
		ms := func(offset int64) string { return fmt.Sprint(now + offset) }
		for _, tt := range []struct{ in, out string }{
			{"HSET h a 1 b 2 c 3 d 4", ":4\r\n"},
			{"SET s v", "+OK\r\n"},

			// Results: -2 no such field, 0 condition not met, 1 set, 2 deleted.
			{"HPEXPIRE h 1500 FIELDS 3 a b x", intsLine(1, 1, -2)},
			{"HPEXPIRE none 1500 FIELDS 2 a b", intsLine(-2, -2)},
			{"HTTL h FIELDS 4 a b c x", intsLine(2, 2, -1, -2)}, // rounded up
			{"HPTTL h FIELDS 2 a c", intsLine(1500, -1)},
			{"HPTTL none FIELDS 2 a c", intsLine(-2, -2)},
			{"HPEXPIRETIME h FIELDS 1 a", fmt.Sprintf("*1\r\n:%d\r\n", now+1500)},
			{"HEXPIRETIME h FIELDS 1 a", fmt.Sprintf("*1\r\n:%d\r\n", now/1000+2)},
			{"HEXPIRE h 100 nx FIELDS 2 a c", intsLine(0, 1)},
			{"HEXPIRE h 50 XX FIELDS 2 d c", intsLine(0, 1)},
			{"HEXPIRE h 40 GT FIELDS 3 c a d", intsLine(0, 1, 0)},
			{"HEXPIRE h 30 LT FIELDS 3 c b d", intsLine(1, 0, 1)},
			{"HTTL h FIELDS 4 a b c d", intsLine(40, 2, 30, 30)},
			{"HEXPIRE h 35 XX GT FIELDS 1 a", intsLine(0)}, // as Valkey has it
			{"HEXPIRE h 25 LT XX FIELDS 1 d", intsLine(1)},
			{"HPERSIST h FIELDS 3 d x d", intsLine(1, -2, -1)},
			{"HEXPIRE h 25 XX LT FIELDS 1 d", intsLine(0)},
			{"HPERSIST none FIELDS 1 d", intsLine(-2)},
			{"HEXPIRE h 7 FIELDS 2 d d", intsLine(1, 1)},
			{"HPEXPIREAT h " + ms(900) + " FIELDS 1 d", intsLine(1)},
			{"HPTTL h FIELDS 1 d", intsLine(900)},
			{"HEXPIREAT h 1 FIELDS 2 d d", intsLine(2, -2)},
			{"HGET h d", "$-1\r\n"},

			// What keeps and what clears a deadline.
			{"HINCRBY h a 1", ":2\r\n"},
			{"HINCRBYFLOAT h a 1", "$1\r\n3\r\n"},
			{"HSETNX h a 1", ":0\r\n"},
			{"HTTL h FIELDS 1 a", intsLine(40)},
			{"HSET h a 1", ":0\r\n"},
			{"HMSET h b 1", "+OK\r\n"},
			{"HTTL h FIELDS 2 a b", intsLine(-1, -1)},
			{"HDEL h c", ":1\r\n"},
			{"HSET h c 3", ":1\r\n"},
			{"HTTL h FIELDS 1 c", intsLine(-1)},

			// Refusals, in Redis's order: the type before the words, the number before the condition.
			{"HEXPIRE s x FIELDS 0 a", wrongType},
			{"HTTL s x 0 a", wrongType},
			{"HPERSIST s x 0 a", wrongType},
			{"HGETEX s x 0 a", wrongType},
			{"HEXPIRE h x NX FIELDS 0 a", noInt},
			{"HEXPIRE h -1 FIELDS 1 a", negative},
			{"HEXPIRE h 70368744178 FIELDS 1 a", tooLate("hexpire")},
			{"HPEXPIRE h 70368744177663 FIELDS 1 a", tooLate("hpexpire")},
			{"HPEXPIREAT h 70368744177664 FIELDS 1 a", tooLate("hpexpireat")},
			{"HPEXPIREAT h 70368744177663 FIELDS 1 a", intsLine(1)},
			{"HEXPIREAT h 9223372036854775807 FIELDS 1 a", tooLate("hexpireat")},
			{"HEXPIRE h 1 NX XX FIELDS 1 a", noFields},
			{"HEXPIRE h 1 GT NX FIELDS 1 a", noFields},
			{"HEXPIRE h 1 XX XX FIELDS 1 a", noFields},
			{"HEXPIRE h 1 LT GT FIELDS 1 a", noFields},
			{"HEXPIRE h 1 FIELD 1 a", noFields},
			{"HEXPIRE h 1 FIELDS 0 a", least},
			{"HEXPIRE h 1 FIELDS x a", least},
			{"HEXPIRE h 1 FIELDS 2 a", mismatch},
			{"HEXPIRE h 1 NX FIELDS 1", mismatch},
			{"HEXPIRE h 1 FIELDS 1", arity("hexpire")},
			{"HTTL h FIELDS 1", arity("httl")},
			{"HTTL h FIELDX 1 a", noFields},
			{"HTTL h FIELDS 0 a", positive},
			{"HTTL h FIELDS 2 a", mismatch},
			{"HPERSIST h FIELDS x a", positive},
			{"HPERSIST h FIELDS 1 a b", mismatch},

			// HGETEX.
			{"HGETEX h FIELDS 2 b x", bulks("1", "nil")},
			{"HGETEX h EX 10 FIELDS 3 b x c", bulks("1", "nil", "3")},
			{"HPTTL h FIELDS 2 b c", intsLine(10_000, 10_000)},
			{"HGETEX h FIELDS 1 b", bulks("1")},
			{"HGETEX h persist FIELDS 1 b", bulks("1")},
			{"HGETEX h PXAT " + ms(5) + " FIELDS 1 c", bulks("3")},
			{"HPTTL h FIELDS 2 b c", intsLine(-1, 5)},
			{"HGETEX h EXAT 0 FIELDS 2 c c", bulks("3", "nil")},
			{"HGETEX none PX 1 FIELDS 1 b", bulks("nil")},
			{"HGETEX h EX x FIELDS 1 b", noInt},
			{"HGETEX h PX -1 FIELDS 1 b", negative},
			{"HGETEX h EX 70368744178 FIELDS 1 b", tooLate("hgetex")},
			{"HGETEX h PXAT 1 1", noFields},
			{"HGETEX h PXAT 1 FIELDS", arity("hgetex")},
			{"HGETEX h PERSIST 1 FIELDS 1 b", noFields},
			{"HGETEX h FIELDS 0 b", positive},
			{"HGETEX h FIELDS 2 b", mismatch},

			// HSETEX.
			{"HSETEX h FNX EX 10 FIELDS 2 b x c x", ":0\r\n"},
			{"HSETEX h FXX EX 10 FIELDS 2 b x c x", ":0\r\n"},
			{"HSETEX none FXX FIELDS 1 b x", ":0\r\n"},
			{"EXISTS none", ":0\r\n"},
			{"HSETEX h EX 10 FNX FIELDS 2 c 5 d 6", ":1\r\n"},
			{"HSETEX h FIELDS 1 c 7 KEEPTTL FXX", ":1\r\n"},
			{"HMGET h c d", bulks("7", "6")},
			{"HPTTL h FIELDS 2 c d", intsLine(10_000, 10_000)},
			{"HSETEX h FIELDS 1 c 8", ":1\r\n"},
			{"HPTTL h FIELDS 2 c d", intsLine(-1, 10_000)},
			{"HSETEX h PXAT 0 FIELDS 1 d 8", ":1\r\n"},
			{"HEXISTS h d", ":0\r\n"},
			{"HSETEX gone PXAT 1 FIELDS 1 d 8", ":1\r\n"},
			{"EXISTS gone", ":0\r\n"},
			{"HSETEX s FIELDS 1 d 8", wrongType},
			{"HSETEX s FIELDS 0 d 8", "-ERR invalid number of fields\r\n"},
			{"HSETEX h FIELDS 2 d 8", arity("hsetex")},
			{"HSETEX h FIELDS 1 d 8 what", "-ERR unknown argument: what\r\n"},
			{"HSETEX h YY FIELDS 1 d 8", "-ERR unknown argument: YY\r\n"},
			{"HSETEX h NX FIELDS 1 d 8", ":0\r\n"}, // NX and XX are about the key
			{"HEXISTS h d", ":0\r\n"},
			{"HSETEX none XX EX 10 FIELDS 1 d 8", ":0\r\n"},
			{"EXISTS none", ":0\r\n"},
			{"HSETEX none nx EX 10 FIELDS 1 d 8", ":1\r\n"},
			{"HSETEX none FIELDS 1 d 9 XX FXX KEEPTTL", ":1\r\n"},
			{"HPTTL none FIELDS 1 d", intsLine(10_000)},
			{"HSETEX none XX FNX FIELDS 1 d 1", ":0\r\n"},
			{"DEL none", ":1\r\n"},
			{"HSETEX s NX FIELDS 1 d 8", wrongType},
			{"HSETEX h NX XX FIELDS 1 d 8", "-ERR Only one of NX or XX arguments can be specified\r\n"},
			{"HSETEX h FNX FXX FIELDS 1 d 8", "-ERR Only one of FXX or FNX arguments can be specified\r\n"},
			{"HSETEX h EX 1 KEEPTTL FIELDS 1 d 8", "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified\r\n"},
			{"HSETEX h EX FIELDS 1 d 8", noInt},
			{"HSETEX h EXAT -1 FIELDS 1 d 8", negative},
			{"HSETEX h PXAT 70368744177664 FIELDS 1 d 8", tooLate("hsetex")},
			{"HSETEX h FIELDS 1 d 8 PX", "-ERR missing expire time\r\n"},

			// Time passes: expired fields are gone for every command.
			{"DEL h", ":1\r\n"},
			{"HSET h a 1 b 2 c 3", ":3\r\n"},
			{"HPEXPIRE h 50 FIELDS 2 a b", intsLine(1, 1)},
			{"OBJECT ENCODING h", "$10\r\nlistpackex\r\n"},
			{"sleep", ""},
			{"HLEN h", ":1\r\n"},
			{"HKEYS h", bulks("c")},
			{"HVALS h", bulks("3")},
			{"HGETALL h", bulks("c", "3")},
			{"HMGET h a b c", bulks("nil", "nil", "3")},
			{"HSCAN h 0", "*2\r\n$1\r\n0\r\n" + bulks("c", "3")},
			{"HRANDFIELD h 5", bulks("c")},
			{"HRANDFIELD h -2", bulks("c", "c")},
			{"HSTRLEN h a", ":0\r\n"},
			{"HEXISTS h a", ":0\r\n"},
			{"HDEL h a", ":0\r\n"},
			{"HPERSIST h FIELDS 1 a", intsLine(-2)},
			{"HEXPIRE h 1 FIELDS 1 a", intsLine(-2)},
			{"HSETNX h a 5", ":1\r\n"},
			{"HINCRBY h b 1", ":1\r\n"},
			{"HTTL h FIELDS 2 a b", intsLine(-1, -1)},
			{"HPEXPIRE h 50 FIELDS 3 a b c", intsLine(1, 1, 1)},
			{"sleep", ""},
			{"EXISTS h", ":0\r\n"},
			{"TYPE h", "+none\r\n"},
			{"KEYS h", "*0\r\n"},
			{"SADD h m", ":1\r\n"},
		} {
			if tt.in == "sleep" {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			if got := ask(s, tt.in+"\r\n"); got != tt.out {
				t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
			}
		}
	})
}
