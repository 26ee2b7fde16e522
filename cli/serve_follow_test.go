//go:build unix

package cli_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/internal/resp"
)

// A program is stave as a process of its own, serving.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
}

// startProgram starts stave serve as a process, and waits until it is ready.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], append([]string{"serve"}, args...)...)}
	p.cmd.Env = append(os.Environ(), "STAVE_TEST_AS_PROGRAM=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 5 || words[2] != "ready" {
		t.Fatalf("not ready: %q, %v", line, err)
	}
	p.addr = strings.TrimSuffix(words[4], ":")
	return p
}

// kill ends the process at once, if it runs.
func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()         // which says that it was killed
	}
}

// does runs a command on the server and returns its output.
func (p *program) does(args ...string) string {
	p.t.Helper()
	stdout, stderr, status := run("", append([]string{"exec", "--addr", p.addr}, args...)...)
	if status != 0 {
		p.t.Fatalf("%v: status %d, %s", args, status, stderr)
	}
	return stdout
}

// shows waits until a command has an output.
func (p *program) shows(want string, args ...string) {
	p.t.Helper()
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		got, stderr, _ := run("", append([]string{"exec", "--addr", p.addr}, args...)...)
		if got == want {
			return
		}
		if time.Since(begin) > time.Minute {
			p.t.Fatalf("%v gives %q, %s, want %q\n%s", args, got, stderr, want, p.does("INFO", "storage"))
		}
	}
}

// files are the sums of all files of a directory.
func files(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	sums := map[string][32]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums[entry.Name()] = sha256.Sum256(b)
	}
	return sums
}

// TestServeFollow: a server that follows shows what another process writes, through the death of either, and changes
// nothing in the directory.
func TestServeFollow(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(sockets, name) }
	w := startProgram(t, dir, "--addr", at("w"))
	w.does("SET", "k", "1")
	f := startProgram(t, "--follow", dir, "--addr", at("f"))
	f.shows("1\n", "GET", "k")
	w.does("SET", "k", "2")
	f.shows("2\n", "GET", "k")
	w.does("-n", "3", "HSET", "h", "field", "value")
	f.shows("value\n", "-n", "3", "HGET", "h", "field")
	for _, args := range [][]string{{"SET", "k", "3"}, {"DEL", "k"}, {"XGROUP", "CREATE", "x", "g", "$", "MKSTREAM"}, {"FLUSHALL"}, {"BLPOP", "l", "0"}} {
		want(t, "", "READONLY", 1, "", append([]string{"exec", "--addr", f.addr}, args...)...)
	}
	reader, err := net.Dial("unix", f.addr) // commands of the program do not run alongside each other in one process
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := io.WriteString(reader, "XREAD BLOCK 20000 STREAMS x $\r\n"); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); !strings.Contains(f.does("INFO", "clients"), "blocked_clients:1"); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("nobody waits")
		}
	}
	w.does("XADD", "x", "1-1", "field", "value")
	if got, err := resp.NewDecoder(reader).Read(); err != nil || len(got.Items) != 1 || !strings.Contains(string(got.Items[0].Items[1].Items[0].Items[0].Text), "1-1") {
		t.Errorf("XREAD BLOCK gives %v, %v", got, err)
	}
	w.does("XGROUP", "CREATE", "x", "g", "0")
	w.does("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")
	f.shows("1\n1-1\n1-1\nc\n1\n", "XPENDING", "x", "g")
	w.does("XACK", "x", "g", "1-1")
	f.shows(w.does("XPENDING", "x", "g"), "XPENDING", "x", "g")

	w.kill()
	f.shows("2\n", "GET", "k")
	left := files(t, dir)
	f.shows("value\n", "-n", "3", "HGET", "h", "field")
	f.kill()
	if now := files(t, dir); !maps.Equal(left, now) {
		t.Errorf("the directory is not as the writer has left it: %d files, %d now", len(left), len(now))
	}
	w = startProgram(t, dir, "--addr", at("w2"))
	f = startProgram(t, "--follow", "--dir", dir, "--addr", at("f2"))
	w.does("SET", "k", "4")
	f.shows("4\n", "GET", "k")
	w.kill()
	w = startProgram(t, dir, "--addr", at("w3"))
	w.does("SET", "k", "5")
	f.shows("5\n", "GET", "k")
	info := f.does("INFO", "storage")
	if !strings.Contains(info, "storage_following:1") || !strings.Contains(info, "storage_follow_error:\r\n") {
		t.Errorf("INFO: %s", info)
	}
	sequence := func(p *program) string {
		_, rest, _ := strings.Cut(p.does("INFO", "storage"), "storage_sequence:")
		return strings.Fields(rest)[0]
	}
	if got, want := sequence(f), sequence(w); got != want {
		t.Errorf("INFO: at %s, the writer at %s", got, want)
	}
	want(t, "5\n", "", 0, "GET k\n", "shell", dir, "--read-only", "--follow")
	want(t, "", "READONLY", 1, "SET k v\n", "shell", dir, "--read-only")
	want(t, "", "--read-only", 2, "", "shell", dir, "--follow")
	want(t, "", "--read-only", 2, "", "shell", "--addr", f.addr, "--read-only")
	want(t, "", "--follow", 2, "", "serve", dir, "--follow", "--sync", "always")
	want(t, "", "no store", 3, "", "serve", t.TempDir(), "--follow")
}

// TestShellFollow: a shell that follows shows what was written since it was opened.
func TestShellFollow(t *testing.T) {
	dir := t.TempDir()
	addr, stop := serve(t, dir, filepath.Join(t.TempDir(), "s"))
	defer stop()
	want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "SET", "k", "before")
	in, input := io.Pipe()
	output, out := io.Pipe()
	status := make(chan int, 1)
	go func() {
		var stderr strings.Builder
		status <- cli.Run([]string{"stave", "shell", dir, "--read-only", "--follow"}, in, out, &stderr)
		out.Close()
	}()
	lines := bufio.NewScanner(output)
	get := func() string {
		if _, err := io.WriteString(input, "GET k\nPING\n"); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		got := lines.Text()
		lines.Scan()
		return got
	}
	if got := get(); got != "before" {
		t.Errorf("k is %q", got)
	}
	want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "SET", "k", "after")
	for begin := time.Now(); get() != "after"; time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not follow")
		}
	}
	input.Close()
	if got := <-status; got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestStatsWatch: the figures are those of now, again and again.
func TestStatsWatch(t *testing.T) {
	dir := t.TempDir()
	addr, stop := serve(t, dir, filepath.Join(t.TempDir(), "s"))
	defer stop()
	want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "SET", "k0", "v")
	output, out := io.Pipe()
	status := make(chan int, 1)
	go func() {
		var stderr strings.Builder
		status <- cli.Run([]string{"stave", "stats", dir, "--watch", "--json", "--every", "50ms", "--count", "200"}, nil, out, &stderr)
		out.Close()
	}()
	keys := 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var st struct{ Keys int }
		if err := json.Unmarshal(lines.Bytes(), &st); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if st.Keys < keys {
			t.Errorf("%d keys after %d", st.Keys, keys)
		}
		if keys = st.Keys; keys == 1 {
			want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "SET", "k1", "v")
		}
		if keys == 2 {
			break
		}
	}
	if keys != 2 {
		t.Errorf("%d keys are shown, want 2", keys)
	}
	output.Close() // what is written then fails
	if got := <-status; got != 1 {
		t.Errorf("status %d", got)
	}
	stdout, stderr, got := run("", "stats", dir, "--watch", "--every", "50ms", "--count", "2")
	if n := strings.Count(stdout, " on disk"); got != 0 || n != 2 {
		t.Errorf("status %d, %d pictures: %s%s", got, n, stdout, stderr)
	}
	want(t, "", "--watch", 2, "", "stats", dir, "--count", "2")
}
