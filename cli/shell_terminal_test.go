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
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/internal/test/screen"
)

// asProgram is set in the environment of a copy of the tests that is to be the program.
const asProgram = "STAVE_TEST_AS_PROGRAM"

// A conversation is the program on a terminal of its own.
type conversation struct {
	t       *testing.T
	master  *os.File
	command *exec.Cmd

	mu   sync.Mutex
	text bytes.Buffer   // all that has been written to it
	seen int            // how much of it a test has waited for
	show *screen.Screen // what can be seen of it
}

// converse starts the program on a pseudo terminal of 24 lines of 80 columns.
func converse(t *testing.T, env []string, args ...string) *conversation {
	t.Helper()
	return converseOn(t, 24, 80, nil, append([]string{"NO_COLOR=1"}, env...), args...)
}

// converseOn starts it on one of another size, perhaps with a standard output that is none.
func converseOn(t *testing.T, rows, columns uint16, stdout *os.File, env []string, args ...string) *conversation {
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
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	defer slave.Close()
	s := &conversation{t: t, master: master, command: exec.Command(os.Args[0], args...), show: screen.New(int(rows), int(columns), master)}
	s.command.Env = append(os.Environ(), asProgram+"=1", "TERM=xterm", "NO_COLOR=", "INPUTRC=/dev/null", "HOME="+t.TempDir(), "STAVE_DIR=", "STAVE_PAGER=")
	s.command.Env = append(s.command.Env, env...)
	s.command.Stdin, s.command.Stdout, s.command.Stderr = slave, slave, slave
	if stdout != nil {
		s.command.Stdout = stdout
	}
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
func (s *conversation) read(done chan struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		_, answerErr := s.show.Write(buf[:n])
		s.mu.Unlock()
		if err != nil || answerErr != nil {
			return
		}
	}
}

// drawn is what the editor writes at the end when it has drawn its line.
const drawn = "\x1b[?25h"

// keys types, as people do: each key when the editor has drawn its line after the one before. So a test knows what is
// seen between two keys.
func (s *conversation) keys(text string) {
	s.t.Helper()
	for text != "" {
		_, n := utf8.DecodeRuneInString(text)
		if strings.HasPrefix(text, "\x1b[") { // an arrow
			n = 3
		}
		s.until(drawn)
		s.mu.Lock()
		s.seen = s.text.Len()
		s.mu.Unlock()
		if _, err := s.master.WriteString(text[:n]); err != nil {
			s.t.Fatal(err)
		}
		text = text[n:]
	}
}

// until waits for text to appear after the text of the previous call.
func (s *conversation) until(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
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

// status waits for the program's end, and ends it where it has not heard of that.
func (s *conversation) status() int {
	s.t.Helper()
	defer time.AfterFunc(time.Minute, func() { s.command.Process.Kill() }).Stop()
	err := s.command.Wait()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return 0
}

// The shell on a terminal: a prompt, replies with types, a key completed by Tab, a line dropped by Ctrl-C, the history
// of the last shell, and Ctrl-D.
func TestShellOnATerminal(t *testing.T) {
	dir := t.TempDir()
	env := []string{"STAVE_HISTFILE=" + filepath.Join(dir, "history")}
	s := converse(t, env, "shell", "--dir", filepath.Join(dir, "store"))
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
	s.keys("flushdb\r")
	s.until("[y/N] ")
	s.keys("no\r")
	s.until("(not done)")
	s.until("store[0]> ")
	s.keys("exists user:1\r") // the same line again is kept once
	s.until("(integer) 1")
	s.until("store[0]> ")
	s.keys("\x04") // Ctrl-D
	if got := s.status(); got != 0 {
		t.Errorf("status %d", got)
	}
	history, err := os.ReadFile(filepath.Join(dir, "history"))
	if err != nil || !strings.Contains(string(history), `"exists user:1"`) || strings.Contains(string(history), "secret") ||
		!strings.Contains(string(history), `"flushdb"`) || strings.Contains(string(history), `"no"`) {
		t.Errorf("history %s, %v", history, err)
	}

	s = converse(t, env, "shell", "--quiet", "--dir", filepath.Join(dir, "store"))
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

// A reply longer than the screen goes to the pager, one that fits it does not, and a table is as wide as the screen.
func TestPagerOnATerminal(t *testing.T) {
	dir := t.TempDir()
	env := []string{"STAVE_HISTFILE=", "STAVE_PAGER=sed s/^/paged:/"}
	s := converse(t, env, "shell", "--quiet", "--dir", filepath.Join(dir, "store"))
	prompt := func() {
		t.Helper()
		s.until("store[0]> ")
	}
	prompt()
	s.keys("rpush l " + strings.Repeat("e ", 23) + "\r")
	s.until("(integer) 23")
	prompt()
	s.keys("lrange l 0 -1\r") // and a prompt: 24 lines
	s.until("\n23) \"e\"")
	prompt()
	s.keys("rpush l last\r")
	s.until("(integer) 24")
	prompt()
	s.keys("lrange l 0 -1\r")
	s.until("paged: 1) \"e\"")
	s.until("\npaged:24) \"last\"")
	prompt()
	s.keys("help @string\r")
	s.until("paged:  APPEND key value")
	prompt()
	s.keys(":set pager /nowhere/pager\r")
	prompt()
	s.keys("lrange l 0 -1\r")
	s.until("no such pager; :set nopager prints everything)")
	s.until("\n24) \"last\"")
	prompt()
	s.keys(":set nopager\r")
	prompt()
	s.keys("lrange l 0 -1\r")
	s.until(" 1) \"e\"")
	s.until("\n24) \"last\"")
	prompt()
	s.keys("hset h name " + strings.Repeat("0123456789", 9) + "x\r")
	s.until("(integer) 1")
	prompt()
	s.keys(":watch 0.05 incr watched\r")
	s.until("every 50ms: incr watched\r\n(integer) 1\r\n")
	s.until("(integer) 3\r\n")
	if _, err := s.master.WriteString("\x03"); err != nil { // the screen does not come to rest
		t.Fatal(err)
	}
	s.until("\x1b[?1049l") // back from the other screen
	prompt()
	s.keys(":set table\r")
	prompt()
	s.keys("hgetall h\r")
	s.until("key   value\r\nname  " + strings.Repeat("0123456789", 7) + "012…\r\n") // 80 columns
	prompt()
	s.keys("\x04")
	if got := s.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}
