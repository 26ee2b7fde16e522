package server_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stavedb/stave/server"
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

// TestWhatAllScriptsWriteHasALimit: the limit is for all scripts that run, whatever their keys. One that writes little
// is none of those that take too much, and what a script has written counts no longer when it has ended.
func TestWhatAllScriptsWriteHasALimit(t *testing.T) {
	written := make(chan struct{}, 1)
	_, address := serve(t, &server.Options{Logger: slog.New(signal{slog.DiscardHandler, "it has written", written})})
	first, second := dial(t, address), dial(t, address)
	second.send("CONFIG SET maxmemory 1\r\nCONFIG SET maxmemory-policy noeviction\r\n")
	second.expect("+OK\r\n+OK\r\n")
	const fills = "#!lua flags=allow-oom\nlocal v = string.rep('v', 1000000) for i = 1, 150 do redis.call('SET', KEYS[1], v) end "
	for range 2 {
		second.send(wireText("EVAL", fills+"return 1", "1", "second"))
		second.expect(":1\r\n")
	}
	first.send(wireText("EVAL", fills+"redis.log(redis.LOG_WARNING, 'it has written') while true do end", "1", "first"))
	<-written
	second.send(wireText("EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], 1)", "1", "second"))
	second.expect("+OK\r\n")
	second.send(wireText("EVAL", fills+"return 1", "1", "second"))
	if line := second.line(); !strings.HasPrefix(line, "-ERR not enough memory script: ") {
		t.Errorf("two scripts: %s", line)
	}
}
