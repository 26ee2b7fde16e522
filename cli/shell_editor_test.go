package cli

import (
	"strings"
	"testing"

	"github.com/reeflective/readline/inputrc"

	"github.com/stavedb/stave/cli/internal/terminal"
)

func TestHighlight(t *testing.T) {
	const bold, red, off = "\x1b[1m", "\x1b[31m", "\x1b[0m"
	for line, want := range map[string]string{
		"":               bold + off,
		"get":            bold + "get" + off,
		"get key":        bold + "get" + off + " key",
		"  GET key":      "  " + bold + "GET" + off + " key",
		"5 incr n":       "5 " + bold + "incr" + off + " n",
		"nonsen":         "nonsen", // still being typed
		"nonsense x":     red + "nonsense" + off + " x",
		"help":           bold + "help" + off,
		"? x":            bold + "?" + off + " x",
		":set nohints":   bold + ":set" + off + " nohints",
		"EXIT ":          bold + "EXIT" + off + " ",
		"5 nonsense now": "5 " + red + "nonsense" + off + " now",
	} {
		if line == "" {
			continue // the editor does not ask
		}
		if got := highlight([]rune(line)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", line, got, want)
		}
	}
}

// Tab shows what there is instead of inserting the first of it, unless the user has bound it to something else.
func TestBindTab(t *testing.T) {
	config := inputrc.NewDefaultConfig()
	for _, keymap := range []string{"emacs", "vi-insert"} {
		if config.Binds[keymap] == nil {
			config.Binds[keymap] = map[string]inputrc.Bind{}
		}
	}
	config.Binds["emacs"]["\t"] = inputrc.Bind{Action: "complete"}
	config.Binds["vi-insert"]["\t"] = inputrc.Bind{Action: "tab-insert"}
	bindTab(config)
	if got := config.Binds["emacs"]["\t"].Action; got != "menu-complete" {
		t.Errorf("emacs: %s", got)
	}
	if got := config.Binds["vi-insert"]["\t"].Action; got != "tab-insert" {
		t.Errorf("vi: %s", got)
	}
}

// The hint below the line can be turned off, and is dimmed where there are colours.
func TestHintBelowTheLine(t *testing.T) {
	s, out := newTestSession(t, terminal.Typed)
	e := &fullEditor{s: s}
	line := []rune("get ")
	if got := string(e.hint(line, 4)); got != "GET key" {
		t.Errorf("hint %q", got)
	}
	if got := e.hint(line, 99); string(got) != "GET key" {
		t.Errorf("beyond the end: %q", string(got))
	}
	if got := e.hint([]rune("get"), 3); got != nil {
		t.Errorf("of nothing: %q", string(got))
	}
	s.runTyped([]byte(":set nohints"))
	if got := e.hint(line, 4); got != nil {
		t.Errorf("turned off: %q", string(got))
	}
	s.runTyped([]byte(":set hints"))
	s.OutTTY = true
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if got := string(e.hint(line, 4)); got != "\x1b[2mGET key\x1b[0m" {
		t.Errorf("in colour: %q", got)
	}
	s.runTyped([]byte(":set nonsense"))
	if !strings.Contains(out.String(), ":set knows hints, nohints, ") {
		t.Errorf("%q", out.String())
	}
}
