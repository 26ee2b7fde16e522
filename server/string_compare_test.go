package server_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// line is what a script of requests sends, and what must come back. A line "sleep" lets 50 ms of a bubble's time pass.
type line struct{ in, out string }

// expectLines sends the lines to a session over a new store. Words are separated by blanks; "" is an empty word.
func expectLines(t *testing.T, lines []line) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, openStore(t), nil)
		for _, l := range lines {
			if l.in == "sleep" {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			words := strings.Fields(l.in)
			var request strings.Builder
			fmt.Fprintf(&request, "*%d\r\n", len(words))
			for _, word := range words {
				if word == `""` {
					word = ""
				}
				fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
			}
			if got := ask(s, request.String()); got != l.out {
				t.Errorf("%q:\n got %q\nwant %q", l.in, got, l.out)
			}
		}
	})
}

const (
	wrongTypeLine = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	syntaxLine    = "-ERR syntax error\r\n"
	nullLine      = "$-1\r\n"
	okLine        = "+OK\r\n"
)

func bulkLine(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// intsLine is an array of integers.
func intsLine(list ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(list))
	for _, n := range list {
		fmt.Fprintf(&b, ":%d\r\n", n)
	}
	return b.String()
}

func arityLine(name string) string {
	return "-ERR wrong number of arguments for '" + name + "' command\r\n"
}

// IFEQ and its like came with Redis 8.4: a case for each sentence of its documents.
func TestCompareAndSet(t *testing.T) {
	const badDigest = "-ERR digest must be exactly 16 hexadecimal characters\r\n"
	expectLines(t, []line{
		{"RPUSH l a", ":1\r\n"},

		// IFEQ sets the value and the deadline only if the current value is equal; a key that does not exist is not made.
		{"SET k new IFEQ old", nullLine},
		{"EXISTS k", ":0\r\n"},
		{"SET k old", okLine},
		{"SET k new EX 10 IFEQ other", nullLine},
		{"TTL k", ":-1\r\n"},
		{"SET k new ifeq old EX 10", okLine},
		{"GET k", bulkLine("new")},
		{"TTL k", ":10\r\n"},
		{"SET k newer IFEQ new KEEPTTL", okLine},
		{"TTL k", ":10\r\n"},
		{"SET k again IFEQ newer", okLine},
		{"TTL k", ":-1\r\n"},
		{"SET l v IFEQ a", wrongTypeLine},
		{`SET e ""`, okLine},
		{`SET e 1 IFEQ ""`, okLine},

		// IFNE only if it is not equal; a key that does not exist is made.
		{"SET k v IFNE again", nullLine},
		{"SET k v IFNE other", okLine},
		{"GET k", bulkLine("v")},
		{"SET n v IFNE v", okLine},
		{`SET m v IFNE ""`, okLine},
		{"SET l v IFNE a", wrongTypeLine},

		// With GET the old value is the reply, written or not.
		{"SET k w GET IFEQ no", bulkLine("v")},
		{"GET k", bulkLine("v")},
		{"SET k w IFEQ v GET", bulkLine("v")},
		{"SET k x IFNE w GET", bulkLine("w")},
		{"GET k", bulkLine("w")},
		{"SET none x IFEQ v GET", nullLine},
		{"SET none x IFNE v GET", nullLine},
		{"GET none", bulkLine("x")},

		// One condition at a time; the same may stand twice, and the last one counts.
		{"SET k x NX IFEQ w", syntaxLine},
		{"SET k x IFEQ w XX", syntaxLine},
		{"SET k x IFEQ w IFNE v", syntaxLine},
		{"SET k x IFEQ", syntaxLine},
		{"SET k x IFEQ no IFEQ w", okLine},
		{"SET k y EX 0 IFEQ x", "-ERR invalid expire time in 'set' command\r\n"},

		// A digest is XXH3 of 64 bits, in hexadecimal.
		{`SET empty ""`, okLine},
		{"DIGEST empty", bulkLine("2d06800538d394c2")},
		{"SET abc abc", okLine},
		{"DIGEST abc", bulkLine("78af5f94892f3950")},
		{"DIGEST nothing", nullLine},
		{"DIGEST l", wrongTypeLine},
		{"SET abc v IFDEQ 2d06800538d394c2", nullLine},
		{"SET abc v GET IFDEQ 2d06800538d394c2", bulkLine("abc")},
		{"SET abc abc IFDEQ 78AF5F94892F3950", okLine},
		{"SET abc v IFDNE 78af5f94892f3950", nullLine},
		{"SET abc abc IFDNE 2d06800538d394c2", okLine},
		{"SET nothing v IFDEQ 78af5f94892f3950", nullLine},
		{"EXISTS nothing", ":0\r\n"},
		{"SET nothing v IFDNE 78af5f94892f3950", okLine},
		{"SET l v IFDEQ 78af5f94892f3950", wrongTypeLine},
		{"SET l v IFDNE 78af5f94892f3950", wrongTypeLine},
		{"SET abc v IFDEQ 78af5f94892f395", badDigest},
		{"SET abc v IFDNE 78af5f94892f395g", badDigest},
		{"GET abc", bulkLine("abc")},
		{"COMMAND GETKEYSANDFLAGS SET k v IFEQ w", "*1\r\n*2\r\n" + bulkLine("k") + "*3\r\n+RW\r\n+access\r\n+update\r\n"},
		{"COMMAND GETKEYSANDFLAGS SET k v", "*1\r\n*2\r\n" + bulkLine("k") + "*2\r\n+OW\r\n+update\r\n"},
	})
}

// DELEX is Redis 8.4's, DELIFEQ Valkey 9's.
func TestCompareAndDelete(t *testing.T) {
	const noString = "-ERR Key should be of string type if conditions are specified\r\n"
	expectLines(t, []line{
		{"RPUSH l a", ":1\r\n"},
		{"SET k v", okLine},
		{"DELEX k IFEQ w", ":0\r\n"},
		{"DELEX k IFNE v", ":0\r\n"},
		{"DELEX k IFDEQ 2d06800538d394c2", ":0\r\n"},
		{"GET k", bulkLine("v")},
		{"DELEX k ifeq v", ":1\r\n"},
		{"EXISTS k", ":0\r\n"},
		{"DELEX k IFEQ v", ":0\r\n"},
		{"DELEX k IFNE v", ":0\r\n"},
		{"DELEX k IFDNE 2d06800538d394c2", ":0\r\n"},
		{"DELEX k", ":0\r\n"},
		{"SET k v", okLine},
		{"DELEX k IFNE w", ":1\r\n"},
		{"SET k abc", okLine},
		{"DELEX k IFDNE 78af5f94892f3950", ":0\r\n"},
		{"DELEX k IFDEQ 78af5f94892f3950", ":1\r\n"},
		{"SET k abc", okLine},
		{"DELEX k IFDNE 2d06800538d394c2", ":1\r\n"},

		// With a condition the key must be a string; without one it may be of any type.
		{"DELEX l IFEQ a", noString},
		{"DELEX l IFDNE 2d06800538d394c2", noString},
		{"DELEX l", ":1\r\n"},
		{"EXISTS l", ":0\r\n"},
		{"DELEX k IFEQ", arityLine("delex")},
		{"DELEX k IFEQ a b", arityLine("delex")},
		{"DELEX k IFXX a", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n"},
		{"DELEX k IFDEQ a", "-ERR digest must be exactly 16 hexadecimal characters\r\n"},

		{"SET k v PX 20", okLine},
		{"sleep", ""},
		{"DELEX k IFEQ v", ":0\r\n"},
		{"SET k v", okLine},
		{"DELIFEQ k w", ":0\r\n"},
		{"DELIFEQ k v", ":1\r\n"},
		{"DELIFEQ k v", ":0\r\n"},
		{"RPUSH l a", ":1\r\n"},
		{"DELIFEQ l a", wrongTypeLine},
		{"COMMAND GETKEYSANDFLAGS DELEX k", "*1\r\n*2\r\n" + bulkLine("k") + "*2\r\n+RM\r\n+delete\r\n"},
		{"COMMAND GETKEYSANDFLAGS DELEX k IFEQ v", "*1\r\n*2\r\n" + bulkLine("k") + "*3\r\n+RW\r\n+access\r\n+delete\r\n"},
	})
}

// MSETEX came with Redis 8.4.
func TestSetManyWithDeadline(t *testing.T) {
	expectLines(t, []line{
		{"MSETEX 2 a 1 b 2", ":1\r\n"},
		{"MGET a b", "*2\r\n" + bulkLine("1") + bulkLine("2")},
		{"MSETEX 2 a 3 b 4 EX 10", ":1\r\n"},
		{"TTL a", ":10\r\n"},
		{"TTL b", ":10\r\n"},
		{"MSETEX 1 a 5 KEEPTTL", ":1\r\n"},
		{"TTL a", ":10\r\n"},
		{"MSETEX 1 a 5", ":1\r\n"},
		{"TTL a", ":-1\r\n"},

		// NX sets if none of the keys exists, XX if all of them do: all or nothing.
		{"MSETEX 2 c 1 a 6 NX PX 1500", ":0\r\n"},
		{"EXISTS c", ":0\r\n"},
		{"MSETEX 2 c 1 a 6 XX", ":0\r\n"},
		{"EXISTS c", ":0\r\n"},
		{"GET a", bulkLine("5")},
		{"MSETEX 2 c 1 d 2 px 1500 nx", ":1\r\n"},
		{"PTTL d", ":1500\r\n"},
		{"MSETEX 2 c 3 d 4 XX", ":1\r\n"},
		{"MGET c d", "*2\r\n" + bulkLine("3") + bulkLine("4")},
		{"MSETEX 2 c 1 c 2", ":1\r\n"},
		{"GET c", bulkLine("2")},
		{"RPUSH l a", ":1\r\n"},
		{"MSETEX 1 l v XX", ":1\r\n"},
		{"TYPE l", "+string\r\n"},
		{"MSETEX 1 past v PXAT 1", ":1\r\n"},
		{"EXISTS past", ":0\r\n"},

		{"MSETEX 1 a", arityLine("msetex")},
		{"MSETEX 0 a 1", "-ERR invalid numkeys value\r\n"},
		{"MSETEX -1 a 1", "-ERR invalid numkeys value\r\n"},
		{"MSETEX a 1 ex 10", "-ERR invalid numkeys value\r\n"},
		{"MSETEX 9223372036854775807 a 1", "-ERR wrong number of key-value pairs\r\n"},
		{"MSETEX 2 a 1 b", "-ERR wrong number of key-value pairs\r\n"},
		{"MSETEX 1 a 1 b", syntaxLine},
		{"MSETEX 1 a 1 NX XX", syntaxLine},
		{"MSETEX 1 a 1 EX 1 PX 1", syntaxLine},
		{"MSETEX 1 a 1 EX 1 KEEPTTL", syntaxLine},
		{"MSETEX 1 a 1 EX", syntaxLine},
		{"MSETEX 1 a 1 GET", syntaxLine},
		{"MSETEX 1 a 1 IFEQ 5", syntaxLine},
		{"MSETEX 1 a 1 EX 0", "-ERR invalid expire time in 'msetex' command\r\n"},
		{"MSETEX 1 a 1 EX x", "-ERR value is not an integer or out of range\r\n"},
		{"GET a", bulkLine("5")},
		{"COMMAND GETKEYS MSETEX 2 a 1 b 2 EX 10", "*2\r\n" + bulkLine("a") + bulkLine("b")},
		{"COMMAND GETKEYS MSETEX 3 a 1 b 2", "-ERR Invalid arguments specified for command\r\n"},
	})
}
