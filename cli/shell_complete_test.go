package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// newTestSession opens a store of its own for a shell that prints to a buffer.
func newTestSession(t *testing.T, f terminal.Format) (*session, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	tty := terminal.Open(strings.NewReader(""), &out, io.Discard)
	s, err := newSession(t.Context(), tty, storeOptions{dir: filepath.Join(t.TempDir(), "store"), format: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &out
}

// ask runs one line and fails on any error.
func (s *session) ask(t *testing.T, line string) {
	t.Helper()
	if err := s.runLine(context.Background(), io.Discard, []byte(line)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

// values are what completions would insert.
func values(found []candidate) (list []string) {
	for _, c := range found {
		list = append(list, c.value)
	}
	slices.Sort(list)
	return list
}

func TestComplete(t *testing.T) {
	s, _ := newTestSession(t, terminal.Typed)
	for _, line := range []string{"SET user:1 a", "SET user:2 b", `SET "user 3" c`, "SET *star x", "SELECT 1", "SET other 1", "SELECT 0",
		"SADD user:set ada bob", "HSET user:hash name Ada mail a@b", "ZADD user:board 1 ada 2 eve"} {
		s.ask(t, line)
	}
	tests := []struct {
		line string
		want []string
	}{
		// Commands, in the case that was typed.
		{"pfc", []string{"pfcount"}},
		{"PFC", []string{"PFCOUNT"}},
		{"Pfc", []string{"Pfcount"}},
		{"5 pfc", []string{"pfcount"}},
		{"nonsense", nil},
		{"pos", nil}, // POST is there for HTTP requests only
		// Subcommands.
		{"client setn", []string{"setname"}},
		{"CLIENT SETN", []string{"SETNAME"}},
		{"object en", []string{"encoding"}},
		{"client nonsense", nil},
		// Keywords, until they have been typed.
		{"set k v n", []string{"nx"}},
		{"set k v NX k", []string{"keepttl"}},
		{"SET k v NX K", []string{"KEEPTTL"}},
		{"set k v nx n", nil},
		{"zadd k g", []string{"gt"}},
		{"client setinfo lib", []string{"lib-name", "lib-ver"}},
		// Keys, where the command takes one.
		{"get user:", []string{"user:1", "user:2"}},
		{"get user", []string{`"user 3"`, "user:1", "user:2"}},
		{"get *", []string{"*star"}}, // the pattern is quoted
		{"mget user:1 user:", []string{"user:1", "user:2"}},
		{"set user:1 user:", nil},
		{"mset user:1 v user:", []string{"user:1", "user:2", "user:board", "user:hash", "user:set"}},
		{"mset user:1 user:", nil},
		{"sintercard 2 user:set user:", []string{"user:set"}},
		{"hget user:", []string{"user:hash"}},
		{"type user:", []string{"user:1", "user:2", "user:board", "user:hash", "user:set"}},
		{"peek user:s", []string{"user:set"}},
		{"peek user:set u", nil},
		// Fields and members of what is there.
		{"hget user:hash n", []string{"name"}},
		{"hdel user:hash name m", []string{"mail"}},
		{"hset user:hash m", []string{"mail"}},
		{"hset user:hash name m", nil},
		{"hget user:1 n", nil},
		{"srem user:set a", []string{"ada"}},
		{"zscore user:board e", []string{"eve"}},
		{"zadd user:board 1 a", []string{"ada"}},
		{"sintercard 1 user:1 user:", nil},
		{"object encoding user:", []string{"user:1", "user:2", "user:board", "user:hash", "user:set"}},
		{"get other", nil}, // of another namespace
		{`get "user`, nil}, // an open quote
		{"get grü", nil},   // more than the editor's arithmetic handles
		// HELP.
		{"help pfc", []string{"pfcount"}},
		{"help @hy", []string{"@hyperloglog"}},
		{"help client setn", []string{"setname"}},
		{"? PFM", []string{"PFMERGE"}},
		{"help get k", nil},
	}
	for _, test := range tests {
		if got := values(s.complete(test.line)); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.line, got, test.want)
		}
	}
	if all := s.complete(""); len(all) < 200 {
		t.Errorf("an empty line offers %d commands", len(all))
	}
	if all := s.complete("help "); !slices.Contains(values(all), "@hash") || !slices.Contains(values(all), "HGET") {
		t.Errorf("help offers %d words", len(all))
	}
	for _, c := range s.complete("get user:") {
		if c.group != "keys" {
			t.Errorf("%+v", c)
		}
	}
}

// Keys, fields and members are offered in the order of their names, whatever the order of the scan.
func TestCompletionsAreSorted(t *testing.T) {
	s, _ := newTestSession(t, terminal.Typed)
	for i := range 30 {
		s.ask(t, fmt.Sprintf("MSET user:%d a \"user %d\" b", i, i))
		s.ask(t, fmt.Sprintf("HSET hash f%d a", i))
		s.ask(t, fmt.Sprintf("SADD set m%d", i))
		s.ask(t, fmt.Sprintf("ZADD board %d m%d", 1000-i, i))
	}
	for _, line := range []string{"get user", "hget hash ", "srem set ", "zrem board m"} {
		var got []string
		for _, c := range s.complete(line) {
			got = append(got, c.value)
		}
		if len(got) < 30 || !slices.IsSorted(got) {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// Within MULTI a SCAN would be queued, and a store that fails offers nothing.
func TestCompleteAsksNobodyInVain(t *testing.T) {
	s, _ := newTestSession(t, terminal.Typed)
	s.ask(t, "SET user:1 a")
	s.ask(t, "MULTI")
	if got := s.complete("get user:"); got != nil {
		t.Errorf("within MULTI: %+v", got)
	}
	s.ask(t, "DISCARD")
	if got := s.complete("get user:"); len(got) != 1 {
		t.Errorf("after DISCARD: %+v", got)
	}
	s.backend.(*embedded).store.Close()
	if got := s.complete("get user:"); got != nil {
		t.Errorf("closed: %+v", got)
	}
}

// Many keys are not all shown, and a search in vain ends early.
func TestCompleteIsBounded(t *testing.T) {
	s, _ := newTestSession(t, terminal.Typed)
	var b strings.Builder
	b.WriteString("MSET")
	for i := range maxKeyScans*keyScanCount + 5000 {
		fmt.Fprintf(&b, " key%d v", i)
	}
	s.ask(t, b.String())
	for i := range 3000 {
		s.ask(t, fmt.Sprintf("HSET hash f%d a", i))
		s.ask(t, fmt.Sprintf("SADD set m%d", i))
		s.ask(t, fmt.Sprintf("ZADD board 1 m%d", i))
	}
	total := maxKeyScans*keyScanCount + 5003
	for line, more := range map[string]int{"get key": -1, "get ": -1, "del ": total - 64, "hget hash ": 3000 - 64, "hget hash f": -1, "srem set ": 3000 - 64, "zrem board ": 3000 - 64} {
		got := s.complete(line)
		if last := got[len(got)-1]; len(got) != maxKeyCandidates+1 || last.value != "" || last.more != more {
			t.Errorf("%s: %d candidates, the last one %+v", line, len(got), last)
		}
	}
	if got := s.complete("get nothing"); len(got) != 0 {
		t.Errorf("%d candidates", len(got))
	}
}

// What completion inserts is read back as the key it stands for.
func TestQuoteWord(t *testing.T) {
	for _, word := range []string{"plain", "", " ", "two words", `"`, `'`, "a\x00b", "\xff", "grüße", "a\nb", `\`} {
		args, err := terminal.SplitLine([]byte("GET " + quoteWord([]byte(word))))
		if err != nil || len(args) != 2 || string(args[1]) != word {
			t.Errorf("%q is quoted as %s, read as %q, %v", word, quoteWord([]byte(word)), args, err)
		}
	}
}

func TestGlobLiteral(t *testing.T) {
	for s, want := range map[string]string{"a": "a", "*": `\*`, "[a]?": `\[a\]\?`, `\`: `\\`} {
		if got := globLiteral(s); got != want {
			t.Errorf("%s: %s", s, got)
		}
	}
}
