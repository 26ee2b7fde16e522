package server_test

import (
	"testing"
)

// HGETDEL came with Redis 8.0, so these replies are written down and not compared.
func TestHgetdel(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"HSET h a 1 b 2 c 3\r\n", ":3\r\n"},
		{"HGETDEL h FIELDS 3 a x a\r\n", "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n"},
		{"HGETDEL h fields 2 b c\r\n", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n"},
		{"EXISTS h\r\n", ":0\r\n"},
		{"HGETDEL h FIELDS 1 a\r\n", "*1\r\n$-1\r\n"},
		{"HGETDEL h nope 1 a\r\n", "-ERR Mandatory argument FIELDS is missing or not at the right position\r\n"},
		{"HGETDEL h FIELDS 0 a\r\n", "-ERR Number of fields must be a positive integer\r\n"},
		{"HGETDEL h FIELDS x a\r\n", "-ERR Number of fields must be a positive integer\r\n"},
		{"HGETDEL h FIELDS 2 a\r\n", "-ERR The `numfields` parameter must match the number of arguments\r\n"},
		{"HGETDEL h FIELDS 1\r\n", "-ERR wrong number of arguments for 'hgetdel' command\r\n"},
		{"SET s v\r\n", "+OK\r\n"},
		{"HGETDEL s nope 1 a\r\n", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
}
