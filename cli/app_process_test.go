//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
)

// run runs the program with some input and returns what it printed, and on the
// standard error, and its status.
func run(input string, args ...string) (stdout, stderr string, status int) {
	var out, err bytes.Buffer
	status = cli.Run(append([]string{"stave"}, args...), strings.NewReader(input), &out, &err)
	return out.String(), err.String(), status
}

// want fails the test unless the program's output and status are the expected ones.
func want(t *testing.T, stdout, stderr string, status int, input string, args ...string) {
	t.Helper()
	gotOut, gotErr, gotStatus := run(input, args...)
	if gotOut != stdout || !strings.Contains(gotErr, stderr) || (stderr == "") != (gotErr == "") || gotStatus != status {
		t.Errorf("stave %s\n got %q, %q, status %d\nwant %q, %q, status %d", strings.Join(args, " "), gotOut, gotErr, gotStatus, stdout, stderr, status)
	}
}

// signal sends the test's own process a signal, which a command that runs in it
// has asked for.
func signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

// serve starts "stave serve" and returns its address and a func that stops it
// as an operator would, and checks that it ends well.
func serve(t *testing.T, dir, addr string, flags ...string) (address string, stop func()) {
	t.Helper()
	r, w := io.Pipe()
	var stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- cli.Run(append([]string{"stave", "serve", "--dir", dir, "--addr", addr}, flags...), strings.NewReader(""), w, &stderr)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 5 || words[2] != "ready" {
		t.Fatalf("not ready: %q, %v, status %d, %s", line, err, <-status, stderr.String())
	}
	return strings.TrimSuffix(words[4], ":"), func() {
		t.Helper()
		signal(t, syscall.SIGTERM)
		if got := <-status; got != 0 {
			t.Errorf("serve ended with status %d: %s", got, stderr.String())
		}
	}
}

func TestServeAndTalkToIt(t *testing.T) {
	t.Setenv("STAVE_DIR", "")
	t.Setenv("STAVE_PASSWORD", "")
	for _, listen := range []string{"127.0.0.1:0", filepath.Join(t.TempDir(), "socket")} {
		dir := t.TempDir()
		addr, stop := serve(t, dir, listen)
		want(t, "OK\n", "", 0, "", "exec", "--addr", addr, "SET", "k", "\x00\xff")
		want(t, "\"\\x00\\xff\"\n", "", 0, "", "exec", "--addr", addr, "--no-raw", "GET", "k")
		want(t, "(empty hash)\n", "", 0, "", "exec", "-3", "--addr", addr, "--no-raw", "HGETALL", "nothing")
		want(t, "", "stave: ERR unknown command", 1, "", "exec", "--addr", addr, "NONSENSE")
		want(t, "OK\nOK\nQUEUED\n1\n1\n", "", 0, "SELECT 3\nMULTI\nINCR n\nEXEC\nGET n\n", "shell", "--addr", addr)
		want(t, "1\n", "", 0, "", "exec", "--addr", addr, "-n", "3", "GET", "n")
		want(t, "", "ERR DB index is out of range", 3, "", "exec", "--addr", addr, "-n", "999", "GET", "n")
		want(t, "OK\n", "", 0, "QUIT\nSET never 1\n", "exec", "--addr", addr)
		want(t, "\x00\xff\n", "", 0, "", "exec", "--dir", dir, "GET", "k") // it only reads
		want(t, "", "locked by", 3, "", "exec", "--dir", dir, "SET", "k", "v")
		want(t, "\"OK\"\n", "stdin: ends within MULTI", 1, "MULTI\n", "exec", "--addr", addr, "--json")
		out, _, status := run("", "export", "--dir", dir) // alongside the server
		if status != 0 || !strings.Contains(out, `"key":"k"`) {
			t.Errorf("export beside a server: %q, status %d", out, status)
		}
		stop()
		want(t, "", "connect: ", 3, "", "exec", "--addr", addr, "GET", "k")
		want(t, "1\n", "", 0, "", "exec", "--dir", dir, "-n", "3", "GET", "n")
	}
}

func TestServeListensLocallyOnly(t *testing.T) {
	want(t, "", "stave: ", 2, "", "serve", "--quiet", "--dir", t.TempDir(), "--addr", "0.0.0.0:0")
	want(t, "", "stave: ", 3, "", "serve", "--dir", t.TempDir(), "--addr", "256.0.0.1:1")
}

// TestInterruptedImport interrupts an import that waits for its input.
func TestInterruptedImport(t *testing.T) {
	dir := t.TempDir()
	r, w := io.Pipe()
	var stdout, stderr bytes.Buffer
	status := make(chan int)
	go func() {
		status <- cli.Run([]string{"stave", "import", "--dir", dir, "-"}, r, &stdout, &stderr)
	}()
	for _, line := range []string{"{\"key\":\"a\",\"type\":\"string\",\"value\":\"1\"}\n", "# all above is read by now\n", "\n"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
	}
	signal(t, syscall.SIGINT)
	if got := <-status; got != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("status %d, %q", got, stderr.String())
	}
	w.Close()
	want(t, "1\n", "", 0, "", "exec", "--dir", dir, "GET", "a")
}

// TestScriptOutput: replies are shown before the script waits for more input, whatever its last line is, and an output
// that cannot be written is an error.
func TestScriptOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, script := range []string{"PING\n", "PING\n# end\n", "PING\n\n", "PING"} {
		var stderr bytes.Buffer
		args := []string{"stave", "exec", "--dir", t.TempDir()}
		if status := cli.Run(args, strings.NewReader(script), full, &stderr); status != 1 || !strings.Contains(stderr.String(), "no space") {
			t.Errorf("%q: status %d, %s", script, status, stderr.String())
		}
	}
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- cli.Run([]string{"stave", "exec", "--dir", t.TempDir()}, in, out, io.Discard) }()
	io.WriteString(input, "PING\n# a comment\n")
	shown := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(output).ReadString('\n')
		shown <- line
	}()
	select {
	case line := <-shown:
		if line != "PONG\n" {
			t.Errorf("shown: %q", line)
		}
	case <-time.After(time.Minute):
		t.Error("the reply before a comment is not shown")
	}
	input.Close()
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
}
