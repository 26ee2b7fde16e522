package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// TestSplitPipe: a bar is one of the system's shell where it is a word alone, and not within quotes.
func TestSplitPipe(t *testing.T) {
	for line, want := range map[string][2]string{
		"hgetall u | jq .":              {"hgetall u ", "jq ."},
		"get a | grep '|' | wc -l":      {"get a ", "grep '|' | wc -l"},
		`set a " | " `:                  {`set a " | " `, ""},
		`set a ' | ' | cat`:             {`set a ' | ' `, "cat"},
		"set a x|y":                     {"set a x|y", ""},
		"set a |x":                      {"set a |x", ""},
		"get a |":                       {"get a ", ""},
		`set a "x\" | y" | cat`:         {`set a "x\" | y" `, "cat"},
		"| cat":                         {"", "cat"},
		"get\ta\t|\tcat":                {"get\ta\t", "cat"},
		`set a "an open quote | really`: {`set a "an open quote | really`, ""},
	} {
		command, shell := terminal.SplitPipe([]byte(line))
		if string(command) != want[0] || string(shell) != want[1] {
			t.Errorf("%s: %q and %q", line, command, shell)
		}
	}
}

// TestPipe: a program reads replies as programs want them, may end early, and may fail; afterwards the shell prints as
// before.
func TestPipe(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell")
	}
	file := filepath.Join(t.TempDir(), "out")
	got := converse(t, "rpush l b a c\nlrange l 0 -1 | sort -r\nget none | cat > "+file+"\nlrange l 0 -1 | true\n"+
		"lrange l 0 -1 | exit 3\n2 llen l | cat\nset x ' | '\nget x\nget l | cat\n")
	want := `stave ` + version + `. HELP explains, Ctrl-D leaves.
store[0]> (integer) 3
store[0]> c
b
a
store[0]> store[0]> store[0]> (exit 3: exit status 3)
store[0]> 3
3
store[0]> OK
store[0]> " | "
store[0]> WRONGTYPE Operation against a key holding the wrong kind of value
store[0]> 
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestConfirmation: before a command that removes everything the shell asks, and takes only yes for yes.
func TestConfirmation(t *testing.T) {
	got := converse(t, "set a 1\nflushall\nno\ndbsize\nFLUSHDB\n\ndbsize\nflushall async\n Y \ndbsize\nscript flush\nyes\nmulti\nflushall\nexec\nflushall\n")
	for _, want := range []string{
		"FLUSHALL removes all keys of all databases.\nGo on? [y/N] (not done)\nstore[0]> (integer) 1\n",
		"FLUSHDB removes all keys of this database.\nGo on? [y/N] (not done)\nstore[0]> (integer) 1\n",
		"FLUSHALL removes all keys of all databases.\nGo on? [y/N] OK\nstore[0]> (integer) 0\n",
		"SCRIPT FLUSH removes all cached scripts.\nGo on? [y/N] OK\n",
		"store[0](TX)> QUEUED\n",
		"[y/N] \n(not done)\n", // the end of the input
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
	// A script is not asked.
	s, _ := newTestSession(t, terminal.Typed)
	s.ask(t, "FLUSHALL")
}

// TestPeek shows keys of each type, short and long ones, and changes nothing.
func TestPeek(t *testing.T) {
	s, out := newTestSession(t, terminal.Typed)
	s.ask(t, "SET short hello PX 5000000")
	s.ask(t, "SET long "+strings.Repeat("x", 300))
	s.ask(t, "HSET h name Ada")
	s.ask(t, "ZADD z 1.5 ada")
	s.ask(t, "XADD x 1-1 a b")
	for i := range 12 {
		s.ask(t, fmt.Sprintf("RPUSH l e%d", i))
		s.ask(t, fmt.Sprintf("SADD s %d", i))
	}
	sequence := s.backend.(*embedded).store.Stats().Sequence
	for key, want := range map[string]string{
		"short": "string (embstr), 5 bytes, expires in 1h\n\"hello\"\n",
		"long":  "string (raw), 300 bytes\n\"" + strings.Repeat("x", 200) + "\"\n... and 100 bytes more\n",
		"h":     "hash (listpack), 1 field\n1) \"name\"\n2) \"Ada\"\n",
		"z":     "zset (listpack), 1 member\n1) \"ada\"\n2) \"1.5\"\n",
		"x":     "stream (stream), 1 element\n1) 1) \"1-1\"\n   2) 1) \"a\"\n      2) \"b\"\n",
		"none":  "(no such key)\n",
	} {
		out.Reset()
		s.runTyped([]byte("PEEK " + key))
		if got := regexp.MustCompile(`in 1h\d+m\d+s`).ReplaceAllString(out.String(), "in 1h"); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	for key, want := range map[string][2]string{"l": {"list (listpack), 12 elements\n 1) \"e0\"\n", "10) \"e9\"\n... and 2 elements more\n"}, "s": {"set (intset), 12 members\n", "... and 2 members more\n"}} {
		out.Reset()
		s.runTyped([]byte("peek " + key))
		if got := out.String(); !strings.HasPrefix(got, want[0]) || !strings.HasSuffix(got, want[1]) || strings.Count(got, "\n") != 12 {
			t.Errorf("%s: %q", key, got)
		}
	}
	if now := s.backend.(*embedded).store.Stats().Sequence; now != sequence {
		t.Error("PEEK has written")
	}
	failing := &session{Streams: s.Streams, backend: &scripted{err: context.DeadlineExceeded}}
	out.Reset()
	failing.runTyped([]byte("peek l"))
	if !strings.Contains(out.String(), "Error: ") {
		t.Errorf("a server that fails: %q", out.String())
	}
}

// TestPreferences: :set changes what the following commands print.
func TestPreferences(t *testing.T) {
	got := converse(t, "rpush l a b\n:set json\nlrange l 0 -1\n:set raw\nlrange l 0 -1\n:set typed\nllen l\n:set timing\nllen l\n:set notiming\nllen l\n:set nonsense\n")
	for _, want := range []string{`["a","b"]` + "\n", "store[0]> a\nb\n", "(integer) 2\nstore[0]> ", "(integer) 2\n(", ":set knows hints, nohints, timing, notiming, pager, nopager, and as forms of replies typed, raw, json, pretty, jsonl, csv and table\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
	if timed := regexp.MustCompile(`\n\([0-9.]+ (ns|us|ms|s)\)\n`).FindAllString(got, -1); len(timed) != 1 {
		t.Errorf("%d commands are timed:\n%s", len(timed), got)
	}
}
