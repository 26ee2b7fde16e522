package server_test

import (
	"slices"
	"strings"
	"testing"
)

// TestReadWrongType draws ids of XREAD, also those after which nothing comes: a key of another type is an error, whatever
// is read of it, and a stream without later entries is none.
func TestReadWrongType(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	do(s, "SET", "other", "v")
	do(s, "XADD", "stream", "1-1", "f", "v")
	for _, id := range []string{"0", "1-1", "$", "+", "18446744073709551615", "18446744073709551615-18446744073709551614", "18446744073709551615-18446744073709551615"} {
		for _, more := range [][]string{nil, {"COUNT", "1"}, {"BLOCK", "1"}} {
			args := append(append([]string{"XREAD"}, more...), "STREAMS")
			if got := do(s, append(args, "other", id)...); !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%q other %s: %q", args, id, got)
			}
			if got := do(s, append(args, "stream", "other", id, id)...); !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%q stream other %s: %q", args, id, got)
			}
			if id == "0" || id == "+" || slices.Contains(more, "BLOCK") { // there is an entry, or it waits for one
				continue
			}
			if got := do(s, append(args, "stream", id)...); got != "*-1\r\n" {
				t.Errorf("%q stream %s: %q", args, id, got)
			}
		}
	}
}

// TestReadLastEntry: + is the last entry that a stream has, as in Redis 7.4, whatever its last id and the count.
func TestReadLastEntry(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	read := func(args ...string) string {
		return strings.NewReplacer("\r\n", " ").Replace(do(s, append([]string{"XREAD"}, args...)...))
	}
	if got := read("STREAMS", "s", "+"); got != "*-1 " {
		t.Errorf("no stream: %q", got)
	}
	for _, id := range []string{"1-1", "2-0", "3-0"} {
		do(s, "XADD", "s", id, "f", id)
	}
	entry := func(id string) string { return "*1 *2 $1 s *1 *2 $3 " + id + " *2 $1 f $3 " + id + " " }
	if got := read("COUNT", "5", "STREAMS", "s", "+"); got != entry("3-0") {
		t.Errorf("the last of three: %q", got)
	}
	do(s, "XDEL", "s", "3-0")
	if got := read("BLOCK", "1", "STREAMS", "s", "+"); got != entry("2-0") {
		t.Errorf("the last that is there: %q", got)
	}
	do(s, "XTRIM", "s", "MAXLEN", "0")
	if got := read("STREAMS", "s", "+"); got != "*-1 " {
		t.Errorf("a stream without entries: %q", got)
	}
	if got := read("STREAMS", "s", "s", "+", "x"); !strings.HasPrefix(got, "-ERR Invalid stream ID") {
		t.Errorf("a bad id: %q", got)
	}
}
