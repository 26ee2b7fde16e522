package server_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestMemoryUsage: the number grows with the value, whatever it is, and says what the value takes on disk and in the
// index.
func TestMemoryUsage(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	do := func(args ...string) {
		t.Helper()
		if reply, err := (&stavePeer{s}).do(args); err != nil || reply.IsError() {
			t.Fatalf("%.40q: %s, %v", args, show(reply), err)
		}
	}
	usage := func(rest string) int {
		t.Helper()
		reply := ask(s, "MEMORY USAGE k"+rest+"\r\n")
		n, err := strconv.Atoi(strings.Trim(reply, ":\r\n"))
		if err != nil {
			t.Fatalf("MEMORY USAGE k%s: %q", rest, reply)
		}
		return n
	}
	for _, length := range []int{10, 1000, 60_000, 500_000} {
		do("SET", "k", strings.Repeat("x", length))
		if n := usage(""); n < length || n > length*7/6+100 { // sizes are known within an eighth
			t.Errorf("a string of %d bytes takes %d", length, n)
		}
	}
	short := usage("")
	do("EXPIRE", "k", "1000")
	if n := usage(""); n <= short || n > short+100 {
		t.Errorf("%d bytes, and %d with a deadline", short, n)
	}
	for cmd, least := range map[string]int{"HSET": 100, "RPUSH": 100, "ZADD": 100, "SADD": 100} {
		do("DEL", "k")
		last := 0
		for _, n := range []int{1, 30, 500} {
			args := []string{cmd, "k"}
			for i := range n {
				element := strings.Repeat("x", 95) + strconv.Itoa(10_000+i)
				switch cmd {
				case "HSET":
					args = append(args, strconv.Itoa(i), element)
				case "ZADD":
					args = append(args, strconv.Itoa(i), element)
				default:
					args = append(args, element)
				}
			}
			do(args...)
			all, some := usage(" SAMPLES 0"), usage("")
			if all < least*n || all > 8*least*n || all <= last || some < all*3/4 || some > all*5/4 {
				t.Errorf("%s of %d elements takes %d bytes, by samples %d; before %d", cmd, n, all, some, last)
			}
			last = all
		}
	}
	for in, want := range map[string]string{
		"MEMORY USAGE none":                "$-1\r\n",
		"MEMORY USAGE k SAMPLES":           "-ERR syntax error\r\n",
		"MEMORY USAGE k SAMPLES -1":        "-ERR syntax error\r\n",
		"MEMORY USAGE k SAMPLES x":         "-ERR value is not an integer or out of range\r\n",
		"MEMORY USAGE k SAMPLES 1 NOPE":    "-ERR syntax error\r\n",
		"MEMORY USAGE k SAMPLES 1 samples": "-ERR syntax error\r\n",
	} {
		if got := ask(s, in+"\r\n"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := ask(s, "MEMORY STATS\r\n"); !strings.Contains(got, "keys.count\r\n:1\r\n") || !strings.Contains(got, "dataset.bytes") {
		t.Errorf("MEMORY STATS: %q", got)
	}
	for _, step := range []struct{ command, want string }{
		{"PING", "The index of 1 key takes"}, {"SET other v", "The index of 2 keys takes"}, {"FLUSHDB", "The store holds no keys."},
	} {
		ask(s, step.command+"\r\n")
		if got := ask(s, "MEMORY DOCTOR\r\n"); !strings.Contains(got, step.want) {
			t.Errorf("MEMORY DOCTOR after %s: %q, want %s", step.command, got, step.want)
		}
	}
}
