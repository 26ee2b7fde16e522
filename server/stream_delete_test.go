package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// KEEPREF, DELREF and ACKED came with Redis 8.2: a case for each sentence of its documents.
func TestDeletionsMindGroups(t *testing.T) {
	// pending is a range of XPENDING: ids that are pending for the consumer c, each delivered once.
	pending := func(ids ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(ids))
		for _, id := range ids {
			fmt.Fprintf(&b, "*4\r\n%s%s:0\r\n:1\r\n", bulkLine(id), bulkLine("c"))
		}
		return b.String()
	}
	ids := func(list ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(list))
		for _, id := range list {
			fmt.Fprintf(&b, "*2\r\n%s*2\r\n%s%s", bulkLine(id), bulkLine("f"), bulkLine("v"))
		}
		return b.String()
	}
	stream := func(key string, n int) (lines []line) {
		for i := 1; i <= n; i++ {
			lines = append(lines, line{fmt.Sprintf("XADD %s %d-0 f v", key, i), bulkLine(fmt.Sprintf("%d-0", i))})
		}
		return lines
	}
	group := func(key, name string, count int, reply string) []line {
		return []line{
			{"XGROUP CREATE " + key + " " + name + " 0", okLine},
			{fmt.Sprintf("XREADGROUP GROUP %s c COUNT %d STREAMS %s >", name, count, key), "*1\r\n*2\r\n" + bulkLine(key) + reply},
		}
	}
	for name, lines := range map[string][]line{
		"XDELEX": append(append(append(stream("s", 5), group("s", "g", 4, ids("1-0", "2-0", "3-0", "4-0"))...), group("s", "h", 2, ids("1-0", "2-0"))...), []line{
			{"XDELEX s IDS 2 1-0 9-0", intsLine(1, -1)}, // KEEPREF is what it does without a word
			{"XDELEX s IDS 1 1-0", intsLine(-1)},
			{"XPENDING s h - + 9", pending("1-0", "2-0")},
			{"XDELEX s DELREF IDS 2 1-0 2-0", intsLine(-1, 1)}, // references of an entry that is gone go, too
			{"XPENDING s g - + 9", pending("3-0", "4-0")},
			{"XPENDING s h - + 9", "*0\r\n"},
			{"XDELEX s ACKED IDS 3 3-0 4-0 5-0", intsLine(2, 2, 2)},
			{"XACK s g 3-0", ":1\r\n"},
			{"XDELEX s ACKED IDS 1 3-0", intsLine(2)}, // h has not read it
			{"XREADGROUP GROUP h c COUNT 1 NOACK STREAMS s >", "*1\r\n*2\r\n" + bulkLine("s") + ids("3-0")},
			{"XDELEX s acked IDS 1 3-0", intsLine(1)},
			{"XDELEX s keepref IDS 1 4-0", intsLine(1)},
			{"XPENDING s g - + 9", pending("4-0")},
			{"XRANGE s - +", ids("5-0")},
			{"XGROUP DESTROY s g", ":1\r\n"},
			{"XGROUP DESTROY s h", ":1\r\n"},
			{"XDELEX s ACKED IDS 1 5-0", intsLine(1)}, // without a group nobody needs it
			{"XDELEX none ACKED IDS 2 1-0 2-0", intsLine(-1, -1)},
			{"EXISTS none", ":0\r\n"},
			{"SET string v", okLine},
			{"XDELEX string IDS 1 1-0", wrongTypeLine},
			{"XDELEX s IDS 0 1-0", "-ERR Number of IDs must be a positive integer\r\n"},
			{"XDELEX s IDS x 1-0", "-ERR Number of IDs must be a positive integer\r\n"},
			{"XDELEX s IDS 2 1-0", "-ERR The `numids` parameter must match the number of arguments\r\n"},
			{"XDELEX s IDS 1 1-0 2-0", "-ERR The `numids` parameter must match the number of arguments\r\n"},
			{"XDELEX s ACKED DELREF IDS 1 1-0", syntaxLine},
			{"XDELEX s ALL IDS 1 1-0", syntaxLine},
			{"XDELEX s DELREF 1 1-0", syntaxLine},
			{"XDELEX s IDS 1 x", "-ERR Invalid stream ID specified as stream command argument\r\n"},
			{"XDELEX s IDS 1", arityLine("xdelex")},
		}...),
		"XACKDEL": append(append(append(stream("s", 5), group("s", "g", 4, ids("1-0", "2-0", "3-0", "4-0"))...), group("s", "h", 3, ids("1-0", "2-0", "3-0"))...), []line{
			{"XACKDEL s g IDS 3 1-0 5-0 1-0", intsLine(1, -1, -1)},
			{"XPENDING s g - + 9", pending("2-0", "3-0", "4-0")},
			{"XPENDING s h - + 9", pending("1-0", "2-0", "3-0")},
			{"XACKDEL s h IDS 1 1-0", intsLine(1)}, // acknowledged; it was gone
			{"XACKDEL s g ACKED IDS 2 2-0 4-0", intsLine(2, 2)},
			{"XPENDING s g - + 9", pending("3-0")},
			{"XACKDEL s h ACKED IDS 1 2-0", intsLine(1)},
			{"XACKDEL s g DELREF IDS 1 3-0", intsLine(1)},
			{"XPENDING s h - + 9", "*0\r\n"},
			{"XRANGE s - +", ids("4-0", "5-0")},
			{"XACKDEL s none IDS 1 4-0", intsLine(-1)},
			{"XACKDEL none g DELREF IDS 1 4-0", intsLine(-1)},
			{"SET string v", okLine},
			{"XACKDEL string g IDS 1 1-0", wrongTypeLine},
			{"XACKDEL s g IDS 2 1-0", "-ERR The `numids` parameter must match the number of arguments\r\n"},
			{"XACKDEL s g DELREF ACKED IDS 1 1-0", syntaxLine},
			{"XACKDEL s g IDS 1", arityLine("xackdel")},
		}...),
		"XTRIM": append(append(stream("s", 6), group("s", "g", 4, ids("1-0", "2-0", "3-0", "4-0"))...), []line{
			{"XTRIM s MAXLEN 5", ":1\r\n"},
			{"XTRIM s MAXLEN 4 KEEPREF", ":1\r\n"},
			{"XPENDING s g - + 9", pending("1-0", "2-0", "3-0", "4-0")},
			{"XTRIM s MAXLEN 3 DELREF", ":1\r\n"},
			{"XPENDING s g - + 9", pending("1-0", "2-0", "4-0")},
			{"XTRIM s MAXLEN 0 ACKED", ":0\r\n"},
			{"XADD s 7-0 f v", bulkLine("7-0")},
			{"XREADGROUP GROUP g d STREAMS s >", "*1\r\n*2\r\n" + bulkLine("s") + ids("5-0", "6-0", "7-0")},
			{"XACK s g 5-0 7-0", ":2\r\n"},
			{"XTRIM s MAXLEN = 2 ACKED", ":2\r\n"}, // later entries go in place of those that stay
			{"XRANGE s - +", ids("4-0", "6-0")},
			{"XADD s 8-0 f v", bulkLine("8-0")},
			{"XTRIM s MINID 9 ACKED", ":0\r\n"},
			{"XACK s g 4-0", ":1\r\n"},
			{"XTRIM s MINID 9 ACKED", ":1\r\n"},
			{"XRANGE s - +", ids("6-0", "8-0")},
			{"XGROUP DESTROY s g", ":1\r\n"},
			{"XTRIM s ACKED MINID 9", ":2\r\n"},
			{"XTRIM s MAXLEN 1 ACKED DELREF", syntaxLine},
			{"XTRIM s ACKED", "-ERR wrong number of arguments for 'xtrim' command\r\n"},
			{"XTRIM s ACKED ACKED", "-ERR syntax error, XTRIM must be called with either MAXLEN or MINID trimming strategies\r\n"},
		}...),
		"XADD": append(append(stream("s", 3), group("s", "g", 2, ids("1-0", "2-0"))...), []line{
			{"XADD s ACKED MAXLEN 2 4-0 f v", bulkLine("4-0")},
			{"XLEN s", ":4\r\n"},
			{"XACK s g 2-0", ":1\r\n"},
			{"XADD s ACKED MAXLEN 2 5-0 f v", bulkLine("5-0")},
			{"XRANGE s - +", ids("1-0", "3-0", "4-0", "5-0")},
			{"XADD s MAXLEN 2 DELREF 6-0 f v", bulkLine("6-0")},
			{"XRANGE s - +", ids("5-0", "6-0")},
			{"XPENDING s g - + 9", "*0\r\n"},
			{"XADD s KEEPREF 7-0 f v", bulkLine("7-0")},
			{"XADD s KEEPREF ACKED 8-0 f v", syntaxLine},
		}...),
	} {
		t.Run(name, func(t *testing.T) { expectLines(t, lines) })
	}
}
