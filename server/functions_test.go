package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server"
)

// libraryOf is a library of one function that replies with a text.
func libraryOf(name, function, text string) string {
	return fmt.Sprintf("#!lua name=%s\nredis.register_function('%s', function() return '%s' end)", name, function, text)
}

// TestFunctionsSurvive: libraries are in the store: after a restart they are as they were, and FLUSHALL leaves them.
func TestFunctionsSurvive(t *testing.T) {
	dir := t.TempDir()
	open := func(dir string) (*db.Store, *server.Session) {
		store, err := db.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return store, newSession(t, store, nil)
	}
	closeStore := func(store *db.Store) {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(s *server.Session, want map[string]string) {
		t.Helper()
		for function, text := range want {
			if got := do(s, "FCALL", function, "0"); got != text {
				t.Errorf("%s: %.200q, want %.200q", function, got, text)
			}
		}
	}
	store, s := open(dir)
	long := strings.Repeat("-- padding\n", 20_000) // several records
	for _, source := range []string{libraryOf("a", "fa", "one"), libraryOf("b", "fb", "two"), libraryOf("c", "fc", "three") + "\n" + long, libraryOf("d", "fd", "four")} {
		if got := do(s, "FUNCTION", "LOAD", source); got[0] != '$' {
			t.Fatalf("%q", got)
		}
	}
	do(s, "FUNCTION", "LOAD", "REPLACE", libraryOf("b", "fb2", "two again"))
	do(s, "FUNCTION", "DELETE", "d")
	do(s, "FLUSHALL")
	want := map[string]string{"fa": "$3\r\none\r\n", "fb2": "$9\r\ntwo again\r\n", "fb": "-ERR Function not found\r\n", "fc": "$5\r\nthree\r\n", "fd": "-ERR Function not found\r\n"}
	expect(s, want)
	list := do(s, "FUNCTION", "LIST", "WITHCODE")
	backup := t.TempDir() + "/backup"
	if _, err := store.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	closeStore(store)
	for _, dir := range []string{dir, backup} {
		store, s := open(dir)
		expect(s, want)
		if got := do(s, "FUNCTION", "LIST", "WITHCODE"); got != list {
			t.Errorf("in %s the list is %.300q", dir, got)
		}
		if info := do(s, "INFO", "memory"); !strings.Contains(info, "number_of_functions:3\r\n") || !strings.Contains(info, "number_of_libraries:3\r\n") {
			t.Errorf("INFO: %q", info)
		}
		do(s, "FUNCTION", "FLUSH")
		closeStore(store)
		store, s = open(dir)
		if got := do(s, "FUNCTION", "LIST"); got != "*0\r\n" {
			t.Errorf("after FUNCTION FLUSH: %.200q", got)
		}
		closeStore(store)
	}
}

// TestFunctionsRefusedByStore: a library of the store that cannot be loaded is reported at the start, and can be
// replaced or deleted.
func TestFunctionsRefusedByStore(t *testing.T) {
	store := openStore(t)
	for name, source := range map[string]string{"good": libraryOf("good", "f", "1"), "bad": "#!lua name=bad\nsyntax", "worse": "no library"} {
		if err := store.Update(func(tx *db.Tx) error {
			return serverside.DB.PutLibrary(tx, name, source)
		}); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	v := newServer(t, store, &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, name := range []string{"library=bad", "library=worse"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("the log does not have %s: %s", name, log.String())
		}
	}
	s := v.NewSession()
	if got := do(s, "FCALL", "f", "0"); got != "$1\r\n1\r\n" {
		t.Errorf("the good one: %q", got)
	}
	if got := do(s, "FUNCTION", "LOAD", libraryOf("bad", "g", "2")); !strings.Contains(got, "already exists") {
		t.Errorf("LOAD over a bad one: %q", got)
	}
	do(s, "FUNCTION", "LOAD", "REPLACE", libraryOf("bad", "g", "2"))
	if got := do(s, "FCALL", "G", "0"); got != "$1\r\n2\r\n" {
		t.Errorf("replaced: %q", got)
	}
	if got := do(s, "FUNCTION", "DELETE", "worse"); got != "+OK\r\n" {
		t.Errorf("deleted: %q", got)
	}
	if sources, err := serverside.DB.Libraries(store); err != nil || len(sources) != 2 {
		t.Errorf("%q, %v", sources, err)
	}
	if strings.Count(log.String(), "cannot be loaded") != 2 {
		t.Errorf("reported again: %s", log.String())
	}
}

// TestFunctionsBesideEachOther: of several sessions that load a library of one name one succeeds; callers see each
// library whole, the old one or the new one, and after its LOAD no older one.
func TestFunctionsBesideEachOther(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	var wg sync.WaitGroup
	var loaded atomic.Int64
	for range 4 {
		wg.Go(func() {
			if got := do(v.NewSession(), "FUNCTION", "LOAD", libraryOf("l", "f", "0")); got[0] == '$' {
				loaded.Add(1)
			} else if !strings.Contains(got, "already exists") {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
	if loaded.Load() != 1 {
		t.Fatalf("%d sessions loaded it", loaded.Load())
	}
	var newest atomic.Int64
	done := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			s := v.NewSession()
			for {
				select {
				case <-done:
					return
				default:
				}
				before := newest.Load()
				var n int64
				if _, err := fmt.Sscanf(strings.ReplaceAll(do(s, "FCALL", "f", "0"), "\r\n", " "), "$%d %d", new(int), &n); err != nil || n < before {
					t.Errorf("%d after LOAD of %d, %v", n, before, err)
					return
				}
			}
		})
	}
	s := v.NewSession()
	for i := range 40 {
		do(s, "FUNCTION", "LOAD", "REPLACE", libraryOf("l", "f", fmt.Sprint(i)))
		newest.Store(int64(i))
	}
	close(done)
	wg.Wait()
}

// awaitScript waits until a script or function is known to last, and has written if it is to.
func awaitScript(t *testing.T, v *server.Server, writes bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		lasting, written := v.LastingScripts()
		if lasting > 0 && (written > 0 || !writes) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d scripts last, of which %d have written", lasting, written)
			return
		}
	}
}

// TestFunctionBusy: FUNCTION KILL and STATS see functions, SCRIPT KILL sees scripts.
func TestFunctionBusy(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	s, other := v.NewSession(), v.NewSession()
	do(s, "CONFIG", "SET", "busy-reply-threshold", "30")
	do(s, "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('spin', function(k) redis.call('GET', k[1]) while true do end end)\n"+
		"redis.register_function('write', function(k) redis.call('SET', k[1], 1) local from = os.clock() while os.clock() < from + 3 do end end)")
	running := func(r *server.Session, args ...string) (ended chan string) {
		ended = make(chan string, 1)
		go func() { ended <- do(r, args...) }()
		awaitScript(t, v, args[1] == "write")
		return ended
	}
	ended := running(other, "FCALL", "spin", "1", "k")
	stats := do(s, "FUNCTION", "STATS")
	if !strings.Contains(stats, "$4\r\nname\r\n$4\r\nspin\r\n$7\r\ncommand\r\n*4\r\n$5\r\nFCALL\r\n$4\r\nspin\r\n$1\r\n1\r\n$1\r\nk\r\n$11\r\nduration_ms\r\n:") {
		t.Errorf("FUNCTION STATS: %q", stats)
	}
	for args, want := range map[string]string{"SET k v": "-BUSY Redis is busy running a script. You can only call FUNCTION KILL", "SCRIPT KILL": "-BUSY Redis is busy running a script. You can only call FUNCTION KILL"} {
		if got := do(s, strings.Fields(args)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", args, got)
		}
	}
	if got := do(s, "FUNCTION", "KILL"); got != "+OK\r\n" {
		t.Errorf("FUNCTION KILL: %q", got)
	}
	if got := <-ended; !strings.Contains(got, "Script killed by user") {
		t.Errorf("killed: %q", got)
	}
	ended = running(other, "EVAL", "redis.call('GET', KEYS[1]) while true do end", "1", "k")
	if got := do(s, "FUNCTION", "KILL"); !strings.HasPrefix(got, "-BUSY Redis is busy running a script. You can only call SCRIPT KILL") {
		t.Errorf("FUNCTION KILL of a script: %q", got)
	}
	if got := do(s, "SCRIPT", "KILL"); got != "+OK\r\n" {
		t.Errorf("SCRIPT KILL: %q", got)
	}
	<-ended
	ended = running(other, "FCALL", "write", "1", "k")
	if got := do(s, "FUNCTION", "KILL"); !strings.HasPrefix(got, "-UNKILLABLE ") {
		t.Errorf("FUNCTION KILL of one that has written: %q", got)
	}
	<-ended
	if got := do(s, "FUNCTION", "KILL"); !strings.HasPrefix(got, "-NOTBUSY ") {
		t.Errorf("without any: %q", got)
	}
}
