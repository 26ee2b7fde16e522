//go:build linux

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asProgram is set in the environment of a copy of the tests that is to be the program.
const asProgram = "STAVE_TEST_AS_PROGRAM"

// A screen is the program on a terminal of its own.
type screen struct {
	t       *testing.T
	master  *os.File
	command *exec.Cmd

	mu   sync.Mutex
	text bytes.Buffer // all that has been written to it
	seen int          // how much of it a test has waited for
}

// newScreen starts the program on a pseudo terminal.
func newScreen(t *testing.T, env []string, args ...string) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	defer slave.Close()
	s := &screen{t: t, master: master, command: exec.Command(os.Args[0], args...)}
	s.command.Env = append(os.Environ(), asProgram+"=1", "TERM=xterm", "NO_COLOR=1", "INPUTRC=/dev/null", "HOME="+t.TempDir(), "STAVE_DIR=")
	s.command.Env = append(s.command.Env, env...)
	s.command.Stdin, s.command.Stdout, s.command.Stderr = slave, slave, slave
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go s.read(read)
	t.Cleanup(func() {
		s.command.Process.Kill()
		s.command.Wait()
		master.Close()
		<-read
	})
	return s
}

// read collects what the program writes, and answers when it asks where the cursor is.
func (s *screen) read(done chan struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		for range bytes.Count(buf[:n], []byte("\x1b[6n")) {
			s.master.WriteString("\x1b[1;1R")
		}
		if err != nil {
			return
		}
	}
}

// keys types, as people do: when the screen has come to rest. The editor asks the terminal where the cursor is after each
// key, and takes what comes before the answer for a part of it.
func (s *screen) keys(text string) {
	s.t.Helper()
	for before := -1; ; time.Sleep(50 * time.Millisecond) {
		s.mu.Lock()
		now := s.text.Len()
		s.mu.Unlock()
		if now == before {
			break
		}
		before = now
	}
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for text to appear after the text of the previous call.
func (s *screen) until(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		if at := strings.Index(s.text.String()[s.seen:], text); at >= 0 {
			s.seen += at + len(text)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("%q did not appear after %q", text, s.text.String()[s.seen:])
}

// status waits for the program's end.
func (s *screen) status() int {
	s.t.Helper()
	err := s.command.Wait()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return 0
}

// The shell on a terminal: a prompt, replies with types, a key completed by Tab, a line dropped by Ctrl-C, the history of the
// last shell, and Ctrl-D.
func TestShellOnATerminal(t *testing.T) {
	dir := t.TempDir()
	env := []string{"STAVE_HISTFILE=" + filepath.Join(dir, "history")}
	s := newScreen(t, env, "shell", "--dir", filepath.Join(dir, "store"))
	s.until("HELP explains, Ctrl-D leaves.")
	s.until("store[0]> ")
	s.keys("set user:1 \"two\\nlines\"\r")
	s.until("OK")
	s.until("store[0]> ")
	s.keys("get us")
	s.keys("\t")
	s.until("user:1")
	s.keys("\r")
	s.until("\"two\\nlines\"\r\n")
	s.until("store[0]> ")
	s.keys("del user:1")
	s.keys("\x03") // Ctrl-C
	s.until("store[0]> ")
	s.keys("exists user:1\r")
	s.until("(integer) 1")
	s.until("store[0]> ")
	s.keys("auth secret\r")
	s.until("(error)")
	s.until("store[0]> ")
	s.keys("\x04") // Ctrl-D
	if got := s.status(); got != 0 {
		t.Errorf("status %d", got)
	}
	history, err := os.ReadFile(filepath.Join(dir, "history"))
	if err != nil || !strings.Contains(string(history), `"exists user:1"`) || strings.Contains(string(history), "secret") {
		t.Errorf("history %s, %v", history, err)
	}

	s = newScreen(t, env, "shell", "--quiet", "--dir", filepath.Join(dir, "store"))
	s.until("store[0]> ")
	s.keys("\x1b[A") // arrow up
	s.until("exists user:1")
	s.keys("\r")
	s.until("(integer) 1")
	s.until("store[0]> ")
	s.keys("get \"us")
	s.keys("\t") // an open quote is left alone
	s.keys("er:1\"\r")
	s.until("\"two\\nlines\"\r\n")
	s.until("store[0]> ")
	s.keys("exit\r")
	if got := s.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}
