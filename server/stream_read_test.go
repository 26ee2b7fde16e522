package server_test

import (
	"strings"
	"testing"
)

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
