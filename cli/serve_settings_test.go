//go:build unix

package cli_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The settings of a server come from a file, and a flag holds against it; SIGHUP and a change of the file reload it.
func TestServeSettings(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	t.Setenv("STAVE_SLOWLOG_MAX_LEN", "33")
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "stave.conf"), filepath.Join(dir, "s")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("port 0\nunixsocket " + filepath.Join(dir, "other") + "\nunixsocketperm 750\ntimeout 11\nslowlog-max-len 22\nmaxclients 12\nlogfile " + filepath.Join(dir, "log") + "\n")
	addr, stop := serve(t, filepath.Join(dir, "data"), socket, "--config", file)
	get := func(name string) string {
		out, _, _ := run("", "exec", "--addr", addr, "CONFIG", "GET", name)
		return strings.ReplaceAll(strings.TrimSpace(out), "\n", " ")
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info, err)
	}
	transport := "goroutines"
	if runtime.GOOS == "linux" {
		transport = "event-loop"
	}
	for name, want := range map[string]string{"timeout": "timeout 11", "slowlog-max-len": "slowlog-max-len 33", "maxclients": "maxclients 12", "transport": "transport " + transport} {
		if got := get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	write("timeout 44\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); get("timeout") != "timeout 44"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("SIGHUP does not reload")
		}
	}
	stop()
	if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || !strings.Contains(string(log), "setting changed") {
		t.Errorf("%s, %v", log, err)
	}
}

// What is wrong is told before anything is opened.
func TestServeRefusesSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stave.conf")
	if err := os.WriteFile(file, []byte("port 0\nmaxclient 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	want(t, "", "stave.conf:2: unknown directive \"maxclient\": did you mean \"maxclients\"?", 2, "", "serve", "--dir", data, "--config", file)
	want(t, "", "gone.conf: no such file", 2, "", "serve", "--dir", data, "--config", filepath.Join(dir, "gone.conf"))
	want(t, "", "--addr must be HOST, HOST:PORT, or a path that starts with /, not \"a:b:c\"", 2, "", "serve", "--dir", data, "--addr", "a:b:c")
	t.Setenv("STAVE_TIMEOUTS", "1")
	want(t, "", "$STAVE_TIMEOUTS: unknown directive", 2, "", "serve", "--dir", data)
	t.Setenv("STAVE_TIMEOUTS", "")
	t.Setenv("STAVE_PORT", "0")
	want(t, "", "there is nothing to listen on", 2, "", "serve", "--dir", data)
	if _, err := os.Stat(data); err == nil {
		t.Error("a store was made")
	}
}

// --http answers its own machine; another address is refused.
func TestServeHTTP(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := probe.Addr().String() // free a moment ago
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	_, stop := serve(t, t.TempDir(), filepath.Join(t.TempDir(), "s"), "--http", web)
	reply, err := http.Get("http://" + web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != 200 || !strings.Contains(string(text), "redis_up 1\n") {
		t.Errorf("%d, %v", reply.StatusCode, err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	stop()
	want(t, "", "http: nonsense: ", 2, "", "serve", "--quiet", "--dir", t.TempDir(), "--addr", filepath.Join(t.TempDir(), "s"), "--http", "nonsense")
	want(t, "", "refusing to serve /metrics", 2, "", "serve", "--quiet", "--dir", t.TempDir(), "--addr", filepath.Join(t.TempDir(), "s"), "--http", "0.0.0.0:0")
}
