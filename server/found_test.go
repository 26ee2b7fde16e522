package server_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// What random comparison with a real server has found, in the words of that server.
func TestFoundByComparison(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{"ZADD z 1 a 2 b | ZRANGE z 0 -1 LIMIT 7 -1", ":2 *2 $1 a $1 b"},
		{"ZADD z 1 a 2 b | ZREVRANGE z 0 0 LIMIT 7 -1", ":2 *1 $1 b"},
		{"ZRANGE z 0 -1 LIMIT 0 -2", "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"},
		{"BITFIELD b OVERFLOW SAT SET i8 0 -9223372036854775808 GET i8 0 SET i8 0 -9223372036854775600 GET i8 0", "*4 :0 :127 :127 :-128"},
		{"BITFIELD b OVERFLOW SAT SET i64 0 -9223372036854775808 GET i64 0", "*2 :0 :-9223372036854775808"},
		{"MULTI | LMPOP 0 k LEFT | EXEC", "+OK +QUEUED *1 -ERR numkeys should be greater than 0"},
		{"SET k v | WATCH k | SWAPDB 0 0 | MULTI | EXEC", "+OK +OK +OK +OK *0"},
		{"MULTI | ZUNIONSTORE d 0 a | EXEC", "+OK +QUEUED *1 -ERR at least 1 input key is needed for 'zunionstore' command"},
	} {
		s := newSession(t, openStore(t), nil)
		got := ask(s, strings.ReplaceAll(tt.in, " | ", "\r\n")+"\r\n")
		if got = strings.ReplaceAll(strings.TrimSuffix(got, "\r\n"), "\r\n", " "); got != tt.out {
			t.Errorf("%s: %q, want %q", tt.in, got, tt.out)
		}
	}
}

// TestTinyTimeout: a timeout nearer to 0 than any double is not 0, which would wait for ever.
func TestTinyTimeout(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := s.DoContext(ctx, [][]byte{[]byte("BLPOP"), []byte("k"), []byte("1e-400")})
	if string(got) != "*-1\r\n" || ctx.Err() != nil {
		t.Errorf("%q, %v", got, ctx.Err())
	}
}
