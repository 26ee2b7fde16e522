//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTailIntoHead: a reader of stave tail that has seen enough ends it, by SIGPIPE as other programs, and without a
// word.
func TestTailIntoHead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	// More than the pipe holds, and the buffers of both sides.
	if _, stderr, status := run(strings.Repeat("INCR n\n", 10_000), "exec", "--dir", dir, "--sync", "always", "--pipe"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	command := exec.Command(os.Args[0], "tail", dir, "--since", "0")
	command.Env = append(os.Environ(), asProgram+"=1")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	first, readErr := bufio.NewReaderSize(out, 16).ReadString('\n')
	closeErr := out.Close()
	err = command.Wait()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || !exit.Sys().(syscall.WaitStatus).Signaled() || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || stderr.Len() > 0 ||
		!strings.HasPrefix(first, `{"sequence":1,`) || readErr != nil || closeErr != nil {
		t.Errorf("%q, %v, %v; ended with %v: %s", first, readErr, closeErr, err, stderr.String())
	}
}
