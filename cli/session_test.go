package cli

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/test/fakeserver"
)

// The prompt follows a server by its replies.
func TestTrack(t *testing.T) {
	queued := "+QUEUED\r\n"
	s := fakeserver.New(t, func(command string) string {
		switch command {
		case "SELECT 99", "DISCARD alone", "INCR text":
			return "-ERR no\r\n"
		case "EXEC aborted":
			return "-EXECABORT no\r\n"
		case "EXEC watched":
			return "*-1\r\n"
		case "EXEC":
			return "*0\r\n"
		case "SELECT 4":
			return queued
		}
		return "+OK\r\n"
	})
	steps := []struct{ line, prompt string }{
		{"SELECT 3", "s[3]> "},
		{"SELECT 99", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"DISCARD", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"EXEC watched", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"EXEC aborted", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"EXEC", "s[4]> "},
		{"INCR text", "s[4]> "},
		{"MULTI", "s[4](TX)> "},
		{"RESET", "s[0]> "},
	}
	r := &remote.Conn{Addr: s.Addr().String()}
	defer r.Close()
	c := &session{Streams: terminal.Open(nil, nil, nil), backend: r, name: "s"}
	for _, step := range steps {
		err := c.runLine(t.Context(), &strings.Builder{}, []byte(step.line))
		if c.prompt() != step.prompt || r.DB != c.db {
			t.Errorf("after %s (%v): %s, db %d of the connection", step.line, err, c.prompt(), r.DB)
		}
	}
	if err := c.runLine(t.Context(), &strings.Builder{}, []byte("QUIT")); err != nil || !c.closed {
		t.Errorf("QUIT: %v", err)
	}
}
