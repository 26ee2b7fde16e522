package server_test

import (
	"strings"
	"testing"
)

// TestWhatAScriptWritesHasALimit: what the store keeps for a transaction until its end has a limit, maxmemory or what a script may take for itself, also where a
// script writes one key for ever, or many of a transaction write a little.
func TestWhatAScriptWritesHasALimit(t *testing.T) {
	const loop = "for i = 1, tonumber(ARGV[1]) do redis.call('INCR', KEYS[1]) end return 1"
	store := openStore(t)
	s := newSession(t, store, nil)
	if got := ask(s, "CONFIG SET maxmemory 32mb\r\n"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	if got := eval(s, loop, "1", "k", "20000"); got != ":1\r\n" {
		t.Errorf("20,000 writes: %q", got)
	}
	tooMuch := func(got string) bool { return strings.Contains(got, "-ERR not enough memory script: ") }
	if got := eval(s, loop, "1", "k", "1000000000"); !tooMuch(got) {
		t.Errorf("a billion writes: %q", got)
	}
	if got := eval(s, "pcall(function() "+loop+" end) return 1", "1", "k", "1000000000"); !tooMuch(got) {
		t.Errorf("a billion writes, caught: %q", got)
	}
	ask(s, "MULTI\r\n")
	for range 10 {
		eval(s, loop, "1", "k", "150000")
	}
	if got := ask(s, "EXEC\r\n"); !strings.HasPrefix(got, "*10\r\n:1\r\n") || !tooMuch(got) {
		t.Errorf("ten of a transaction: %q", got)
	}
	ask(s, "CONFIG SET maxmemory 0\r\n")
	if got := eval(s, loop, "1", "k", "200000"); got != ":1\r\n" {
		t.Errorf("without maxmemory: %q", got)
	}
}
