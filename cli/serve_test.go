//go:build unix

package cli_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
)

// A damaged store can be served for reading: the damaged key is an error, all others are there.
func TestServeReadDamaged(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, status := run("SET key0 value\nSET key99 value\n", "exec", "--dir", dir); status != 0 {
		t.Fatal(stderr)
	}
	rewrite(t, filepath.Join(dir, "000000001.data"), func(b []byte) []byte {
		at := bytes.LastIndex(b, []byte("value"))
		b[at] ^= 1
		return b
	})
	var stdout, stderr bytes.Buffer
	if status := cli.Run([]string{"stave", "serve", "--dir", dir, "--addr", "127.0.0.1:0"}, nil, &stdout, &stderr); status != 3 || !strings.Contains(stderr.String(), "000000001.data") {
		t.Fatalf("without the option: status %d, %s%s", status, stdout.String(), stderr.String())
	}
	addr, stop := serve(t, dir, filepath.Join(t.TempDir(), "s"), "--read-damaged")
	defer stop()
	want(t, "value\n", "", 0, "", "exec", "--addr", addr, "GET", "key0")
	want(t, "", "000000001.data", 1, "", "exec", "--addr", addr, "GET", "key99")
	want(t, "", "open for reading only", 1, "", "exec", "--addr", addr, "SET", "key0", "x")
	want(t, "2\n", "", 0, "", "exec", "--addr", addr, "DBSIZE")
}

// A socket without a listener is replaced; one that has a listener, and a file that is no socket, stay.
func TestServeOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no stale socket: %v", err)
	}
	addr, stop := serve(t, t.TempDir(), path)
	want(t, "PONG\n", "", 0, "", "exec", "--addr", addr, "PING")
	want(t, "", "another server listens there", 3, "", "serve", "--dir", t.TempDir(), "--addr", path)
	want(t, "PONG\n", "", 0, "", "exec", "--addr", addr, "PING")
	stop()

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "", "listen unix "+file, 3, "", "serve", "--dir", t.TempDir(), "--addr", file)
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
}

// A supervisor such as systemd is told when clients can connect, and that the server is ending.
func TestServeTellsSupervisor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	told := func() string {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)
	addr, stop := serve(t, t.TempDir(), filepath.Join(t.TempDir(), "s"))
	if got := told(); got != "READY=1" {
		t.Error(got)
	}
	want(t, "PONG\n", "", 0, "", "exec", "--addr", addr, "PING")
	stop()
	if got := told(); got != "STOPPING=1" {
		t.Error(got)
	}
}

// --quiet prints nothing when the server is ready; the standard output stays empty.
func TestServeQuietly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var stdout, stderr bytes.Buffer
	status := make(chan int)
	go func() {
		status <- cli.Run([]string{"stave", "serve", "-q", "--dir", t.TempDir(), "--addr", path}, nil, &stdout, &stderr)
	}()
	for {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			break
		}
	}
	want(t, "PONG\n", "", 0, "", "exec", "--addr", path, "PING")
	signal(t, syscall.SIGINT)
	if got := <-status; got != 0 || stdout.Len() > 0 || strings.Contains(stderr.String(), "level=INFO") {
		t.Errorf("status %d, %q, %q", got, stdout.String(), stderr.String())
	}
}

// Wrong options are found before a store is made.
func TestServeUsage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, test := range []struct {
		args   string
		stderr string
		status int
	}{
		{"serve now --dir " + dir, "both name the store", 2},
		{"serve now then", "serve takes one directory", 2},
		{"serve --sync sometimes --dir " + dir, "--sync must be always, interval or none", 2},
		{"serve --transport threads --dir " + dir, "--transport must be goroutines, or event-loop on Linux, not", 2},
		{"serve --loops many --dir " + dir, "--loops is io-threads: argument couldn't be parsed into an integer, not", 2},
		{"serve --nonsense --dir " + dir, "unknown option --nonsense", 2},
		{"serve --dir", "--dir needs a value", 2},
		{"serve --read-damaged --dir " + dir, "open " + dir, 3},
	} {
		want(t, "", "stave: ", test.status, "", strings.Fields(test.args)...)
		if _, stderr, _ := run("", strings.Fields(test.args)...); !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: %s", test.args, stderr)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: made a store: %v", test.args, err)
		}
	}
}

// A store in use is named with the process that has it, by every command that would write to it.
func TestStoreInUse(t *testing.T) {
	dir := t.TempDir()
	_, stop := serve(t, dir, filepath.Join(t.TempDir(), "s"))
	defer stop()
	for _, command := range []string{"exec --dir DIR PING", "shell --dir DIR", "merge DIR", "import --dir DIR -", "serve --dir DIR --addr 127.0.0.1:0"} {
		args := strings.Fields(strings.ReplaceAll(command, "DIR", dir))
		want(t, "", "stave: open "+dir+": locked by ", 3, "", args...)
	}
	for _, command := range []string{"check DIR", "stats DIR", "export --dir DIR", "merge DIR --dry-run", "backup --dir DIR NEW"} {
		args := strings.Fields(strings.NewReplacer("DIR", dir, "NEW", filepath.Join(t.TempDir(), "new")).Replace(command))
		if _, stderr, status := run("", args...); status != 0 {
			t.Errorf("%s beside a server: status %d, %s", command, status, stderr)
		}
	}
}
