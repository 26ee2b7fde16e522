package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/jsonl"
)

// Limits of the shell's history.
const (
	MaxLines = 5000     // lines kept when a shell starts
	maxLine  = 16 << 10 // bytes; longer lines are not worth recalling
)

// A List keeps the lines of the interactive shell, in memory and in a file
// that only its owner can read. Each line of the file is one entry as a JSON
// string, since an entry may hold line breaks. It implements readline's
// History; a file that cannot be written costs the next shell its memory and
// is no reason to disturb this one.
type List struct {
	lines []string
	path  string // "": memory only
}

// Path is where the shell keeps its lines: $STAVE_HISTFILE (empty or
// /dev/null: nowhere), or ~/.stave_history.
func Path() string {
	if path, ok := os.LookupEnv("STAVE_HISTFILE"); ok {
		if path == os.DevNull {
			return ""
		}
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".stave_history")
}

// Load reads the file at path, and shortens it when it has grown well
// past its limit. Lines it cannot read are left out.
func Load(path string) *List {
	h := &List{path: path}
	if path == "" {
		return h
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 8*maxLine)
	for scanner.Scan() {
		var line string
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line != "" {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) > 2*MaxLines {
		h.lines = h.lines[len(h.lines)-MaxLines:]
		h.rewrite()
	}
	return h
}

// rewrite replaces the file by the lines in memory. The old file stays until
// the new one is whole.
func (h *List) rewrite() {
	var out []byte
	for _, line := range h.lines {
		out = appendEntry(out, line)
	}
	temporary := h.path + ".new"
	if os.WriteFile(temporary, out, 0o600) == nil {
		os.Rename(temporary, h.path)
	}
}

// Write adds a line, unless it is blank, repeats the last one, is overlong, or carries a password.
// The line is written at once and not at the end: a shell that is killed keeps its history, and two
// shells do not overwrite each other's.
func (h *List) Write(line string) (int, error) {
	line = strings.TrimSpace(line)
	if line == "" || len(line) > maxLine || isSecret(line) {
		return len(h.lines), nil
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return n, nil
	}
	h.lines = append(h.lines, line)
	if h.path == "" {
		return len(h.lines), nil
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return len(h.lines), nil
	}
	defer f.Close()
	f.Chmod(0o600) // a file made by other means may be open to all
	f.Write(appendEntry(nil, line))
	return len(h.lines), nil
}

// appendEntry appends a line as the file has it.
func appendEntry(dst []byte, line string) []byte {
	return append(jsonl.AppendBytes(dst, strings.ToValidUTF8(line, "?")), '\n')
}

// GetLine returns the i-th line, oldest first.
func (h *List) GetLine(i int) (string, error) {
	if i < 0 || i >= len(h.lines) {
		return "", errors.New("no such line in the history")
	}
	return h.lines[i], nil
}

// Len returns the number of lines.
func (h *List) Len() int { return len(h.lines) }

// Dump returns all lines.
func (h *List) Dump() any { return h.lines }

// isSecret reports whether a line may carry a password. Lines that do not parse are judged by their
// words: a quote left open must not leak one. It errs on the side of forgetting: after those
// commands any word that contains one of the parts counts.
func isSecret(line string) bool {
	var words []string
	args, err := resp.SplitLine([]byte(line))
	for _, arg := range args {
		words = append(words, strings.ToLower(string(arg)))
	}
	if err != nil {
		words = strings.Fields(strings.ToLower(line))
	}
	if len(words) > 1 && terminal.IsRepeat(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	later := func(parts ...string) bool {
		for _, word := range words[1:] {
			for _, part := range parts {
				if strings.Contains(word, part) {
					return true
				}
			}
		}
		return false
	}
	switch words[0] {
	case "auth":
		return true
	case "hello", "migrate":
		return later("auth")
	case "acl":
		return later("setuser")
	case "config":
		return later("set") && later("pass", "auth", "secret")
	}
	return false
}
