//go:build linux

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/golden"
)

// TestScreens runs testdata/screens/*.txt, conversations with the shell on a terminal, and compares what can be seen. A
// file reads:
//
//	# a comment
//	SET greeting hi             a command that is run before
//
//	$ 80x24 shell --quiet       begins, on a terminal of 80 columns and 24 lines
//	> get gr<Tab><C-c>          is typed, key by key; the other names of keys are those of typedKeys
//	line 1, column 19           the screen after it, and where the cursor is
//	|store[0]> get greeting
//	[0]                         the program has ended, with this status
//
// The store is one whose hashes have the same order each time. -update writes the screens; review the diff.
func TestScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/screens/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no screens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, file, runScreens(t, file, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")), *update)
		})
	}
}

// typedKeys are the keys that have names.
var typedKeys = strings.NewReplacer("<Enter>", "\r", "<Tab>", "\t", "<Backspace>", "\x7f",
	"<C-a>", "\x01", "<C-c>", "\x03", "<C-d>", "\x04", "<C-k>", "\x0b", "<C-p>", "\x10", "<C-r>", "\x12")

// runScreens runs a file, and returns it with what could be seen.
func runScreens(t *testing.T, file string, lines []string) []byte {
	var got, before bytes.Buffer
	var c *conversation
	store := filepath.Join(t.TempDir(), "store")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		where := fmt.Sprintf("%s:%d", file, i)
		start, isStart := strings.CutPrefix(line, "$ ")
		switch {
		case line == "" || line[0] == '#':
		case isStart && c == nil:
			storeOfFixedOrder(t, store, before.String())
			var columns, rows uint16
			size, args, _ := strings.Cut(start, " ")
			if _, err := fmt.Sscanf(size, "%dx%d", &columns, &rows); err != nil {
				t.Fatalf("%s: %s: %v", where, line, err)
			}
			c = converseOn(t, rows, columns, nil, []string{"STAVE_HISTFILE="}, append(strings.Fields(args), "--dir", store)...)
		case c == nil:
			before.WriteString(line + "\n")
		case strings.HasPrefix(line, "> "):
			c.keys(typedKeys.Replace(line[2:]))
		case strings.HasPrefix(line, "line "):
			first := i - 1
			for i < len(lines) && strings.HasPrefix(lines[i], "|") {
				i++
			}
			line = c.waitFor(where, strings.Join(lines[first:i], "\n"))
		case line[0] == '[':
			line = fmt.Sprintf("[%d]", c.status())
		default:
			t.Fatalf("%s: neither a comment nor a step: %s", where, line)
		}
		got.WriteString(line + "\n")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if unknown := c.show.Unknown(); len(unknown) > 0 {
		t.Errorf("%s: internal/test/screen does not know %q", file, unknown)
	}
	return got.Bytes()
}

// storeOfFixedOrder makes a store and runs commands in it. The order of its hashes, sets and keys follows from its
// seed, which is that of a store of an earlier version.
func storeOfFixedOrder(t *testing.T, dir, commands string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("../db/test/testdata/golden-v1/store")); err != nil {
		t.Fatal(err)
	}
	before := exec.Command(os.Args[0], "exec", "--dir", dir)
	before.Env = append(os.Environ(), asProgram+"=1")
	before.Stdin = strings.NewReader("FLUSHALL\n" + commands)
	if out, err := before.CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
}

// waitFor waits until the screen is the wanted one, and returns it. With -update it is the one that has been there for
// half a second.
func (s *conversation) waitFor(where, want string) string {
	s.t.Helper()
	got, since := "", time.Now()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		now := s.seenNow()
		if now == want {
			return now
		}
		if now != got {
			got, since = now, time.Now()
		} else if *update && time.Since(since) > time.Second/2 {
			return got
		}
	}
	s.t.Fatalf("%s: the screen is\n%s\nand should be\n%s", where, got, want)
	return ""
}

// seenNow is the screen as it stands in the files.
func (s *conversation) seenNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, column := s.show.Cursor()
	text := regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSuffix(s.show.String(), "\n"), "|")
	return fmt.Sprintf("line %d, column %d\n%s", row, column, text)
}
