package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// The encodings are Redis 7.4's for a value that was just made.
func TestObject(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	many := func(cmd string, n int, one string) string {
		var text strings.Builder
		text.WriteString(cmd)
		for i := range n {
			text.WriteString(" " + strings.ReplaceAll(one, "#", fmt.Sprint(i)))
		}
		return text.String()
	}
	long := strings.Repeat("x", 65)
	for _, tt := range []struct{ make, want string }{
		{"SET k 9223372036854775807", "int"}, {"SET k 01", "embstr"}, {"SET k " + long[:44], "embstr"}, {"SET k " + long[:45], "raw"},
		{"RPUSH k a", "listpack"}, {many("RPUSH k", 2000, "elem#"), "quicklist"},
		{many("SADD k", 512, "#"), "intset"}, {many("SADD k", 513, "#"), "hashtable"}, {"SADD k 1 a", "listpack"}, {"SADD k " + long, "hashtable"},
		{many("SADD k", 129, "m#"), "hashtable"}, {many("HSET k", 512, "f# v"), "listpack"}, {many("HSET k", 513, "f# v"), "hashtable"},
		{"HSET k f " + long, "hashtable"}, {many("ZADD k", 128, "# m#"), "listpack"}, {many("ZADD k", 129, "# m#"), "skiplist"},
		{"ZADD k 1 " + long, "skiplist"},
	} {
		ask(s, "DEL k\r\n")
		if reply, err := (&stavePeer{s}).do(strings.Fields(tt.make)); err != nil || reply.IsError() {
			t.Fatalf("%.40s: %s, %v", tt.make, show(reply), err)
		}
		if got := ask(s, "OBJECT ENCODING k\r\n"); got != fmt.Sprintf("$%d\r\n%s\r\n", len(tt.want), tt.want) {
			t.Errorf("%.40s: %q, want %s", tt.make, got, tt.want)
		}
	}
	for in, want := range map[string]string{
		"OBJECT REFCOUNT k":    ":1\r\n",
		"OBJECT IDLETIME k":    ":0\r\n",
		"OBJECT ENCODING none": "$-1\r\n",
		"OBJECT REFCOUNT none": "$-1\r\n",
		"OBJECT FREQ none":     "$-1\r\n",
		"OBJECT IDLETIME none": "$-1\r\n",
		"OBJECT":               "-ERR wrong number of arguments for 'object' command\r\n",
		"OBJECT nope k":        "-ERR unknown subcommand 'nope'. Try OBJECT HELP.\r\n",
	} {
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := ask(s, "OBJECT FREQ k\r\n"); !strings.HasPrefix(got, "-ERR An LFU maxmemory policy is not selected") {
		t.Errorf("OBJECT FREQ: %q", got)
	}
	if got := ask(s, "OBJECT HELP\r\n"); !strings.HasPrefix(got, "*11\r\n+OBJECT <subcommand>") {
		t.Errorf("OBJECT HELP: %q", got)
	}
}

// TestEncodingSaysTheOrder: integers that are not in order of their values, since something else was among them when
// they came, are no intset.
func TestEncodingSaysTheOrder(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	many := "SADD many"
	for i := range 1000 {
		many += fmt.Sprint(" ", i)
	}
	for _, step := range [][2]string{
		{"SADD k x 3 1", ":3\r\n"}, {"SREM k x", ":1\r\n"}, {"SMEMBERS k", "*2\r\n$1\r\n3\r\n$1\r\n1\r\n"}, {"OBJECT ENCODING k", "$8\r\nlistpack\r\n"},
		{"SADD k 2", ":1\r\n"}, {"SMEMBERS k", "*3\r\n$1\r\n3\r\n$1\r\n1\r\n$1\r\n2\r\n"},
		{"SREM k 3", ":1\r\n"}, {"OBJECT ENCODING k", "$6\r\nintset\r\n"},
		{"CONFIG SET set-max-intset-entries 2000", "+OK\r\n"},
		{many, ":1000\r\n"}, {"OBJECT ENCODING many", "$6\r\nintset\r\n"},
	} {
		if got := ask(s, step[0]+"\r\n"); got != step[1] {
			t.Fatalf("%s: %q, want %q", step[0], got, step[1])
		}
	}
}

// TestOrderDoesNotFollowTheLimits: up to 512 fields are in order of insertion and more are not, whatever the limits are
// by which OBJECT ENCODING names the encoding.
func TestOrderDoesNotFollowTheLimits(t *testing.T) {
	for _, c := range []struct {
		fields, limit int
		encoding      string
		ordered       bool
	}{{50, 10, "hashtable", true}, {600, 2000, "listpack", false}} {
		s := newSession(t, openStore(t), nil)
		ask(s, fmt.Sprintf("CONFIG SET hash-max-listpack-entries %d\r\n", c.limit))
		fill, want := "HSET k", fmt.Sprintf("*%d\r\n", c.fields)
		for i := range c.fields {
			field := fmt.Sprintf("f%03d", c.fields-i)
			fill += " " + field + " v"
			want += "$4\r\n" + field + "\r\n"
		}
		ask(s, fill+"\r\n")
		if got := ask(s, "OBJECT ENCODING k\r\n"); got != fmt.Sprintf("$%d\r\n%s\r\n", len(c.encoding), c.encoding) {
			t.Errorf("%d fields with a limit of %d: %q", c.fields, c.limit, got)
		}
		if got := ask(s, "HKEYS k\r\n"); (got == want) != c.ordered {
			t.Errorf("%d fields with a limit of %d: in order of insertion: %v", c.fields, c.limit, got == want)
		}
	}
}
