package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reeflective/readline"
	"github.com/reeflective/readline/inputrc"

	"github.com/stavedb/stave/cli/internal/history"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/server"
)

// The line editor is reeflective/readline; here are its set-up and its callbacks. It talks to the
// process's own terminal, whatever streams Run was given, so only shell uses it, and only on a
// terminal.

// A plainEditor reads lines from a terminal that cannot move its cursor. It has no history and no completion, and
// Ctrl-C ends the program, since the terminal's own line discipline makes a signal of it.
type plainEditor struct {
	s     *session
	lines *lines.Reader
}

// readLine shows the prompt and reads a line. At the end of the input it ends
// the prompt's line.
func (e *plainEditor) readLine() (string, error) {
	fmt.Fprint(e.s.Out, e.s.prompt())
	line, err := e.lines.Next()
	if err != nil {
		fmt.Fprintln(e.s.Out)
	}
	return string(line), err
}

// A fullEditor is readline with everything it offers.
type fullEditor struct {
	s     *session
	rl    *readline.Shell
	marks bool // A line that Ctrl-C has dropped ends with ^C.
	row   *int // The library's line of the screen that the prompt is on.
}

// newFullEditor must only be called when standard input and output are terminals: readline sends
// escape sequences to whatever they are. A line with an open quote continues on the next one. The
// history is ours (package history), because the library's would keep passwords.
func newFullEditor(s *session, h *history.List) *fullEditor {
	rl := readline.NewShell()
	e := &fullEditor{s: s, rl: rl}
	rl.Prompt.Primary(func() string { return e.room() + s.prompt() })
	rl.Prompt.Secondary(func() string { return strings.Repeat(".", max(0, len(s.prompt())-2)) + "> " })
	rl.AcceptMultiline = func(line []rune) bool { return !terminal.OpenQuote([]byte(string(line))) }
	bindTab(rl.Config)
	bindLetters(rl.Config)
	library := rl.Keymap.Commands()
	rl.Keymap.Register(map[string]func(){
		"self-insert":   e.insertTyped(library["self-insert"]),
		"quoted-insert": e.quoteTyped(library["quoted-insert"]),
	})
	keepTypedAhead(rl.Config)
	e.marks, rl.Config.Vars["echo-control-characters"] = rl.Config.GetBool("echo-control-characters"), false
	rl.History.Delete()
	rl.History.Add("stave", commandsOnly{h, s})
	rl.Completer = e.complete
	rl.Config.Vars["usage-hint-always"] = true // it is the line that says what the menu leaves out
	rl.Hint.SetProvider(e.hint)
	e.row = promptRow(rl.Display)
	rl.SyntaxHighlighter = e.display
	return e
}

// commandsOnly is the history without the answers to questions: a "y" that is found again and sent is an unknown
// command.
type commandsOnly struct {
	*history.List
	s *session
}

// Write keeps a line.
func (h commandsOnly) Write(line string) (int, error) {
	if h.s.question != "" {
		return h.Len(), nil
	}
	return h.List.Write(line)
}

// bindTab makes Tab show what there is, with the part that all have in common
// inserted, and walk through it when pressed again. readline's own default
// inserts the first candidate unseen. An inputrc that binds Tab wins.
func bindTab(config *inputrc.Config) {
	const tab = "\t"
	for _, keymap := range []string{"emacs", "vi-insert"} {
		if config.Binds[keymap][tab].Action == "complete" {
			config.Binds[keymap][tab] = inputrc.Bind{Action: "menu-complete"}
			config.Vars["menu-complete-display-prefix"] = true
		}
	}
}

// readLine reads a line, which may have several if a quote is left open. Ctrl-D on an empty line is io.EOF, from the
// library.
func (e *fullEditor) readLine() (string, error) {
	e.rl.Line().Set() // room is asked before the library drops the line before
	line, err := e.rl.Readline()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		e.markDropped(line)
		return "", errInterrupted
	case err != nil:
		return "", err
	}
	return line, nil
}

// complete answers Tab. The order is that of the candidates: commands as in the table, keys by name. It may ask the
// store, with bounds that shell_complete.go has.
func (e *fullEditor) complete(line []rune, cursor int) readline.Completions {
	if e.s.question != "" {
		return readline.CompleteRaw(nil)
	}
	var list []readline.Completion
	usage := ""
	for _, c := range e.s.complete(string(line[:cursor])) {
		switch {
		case c.value != "":
			list = append(list, readline.Completion{Value: c.value, Display: c.value, Description: c.note, Tag: c.group})
		case c.more < 0:
			usage = "and more"
		default:
			usage = "and " + humanize.Count(int64(c.more)) + " more"
		}
	}
	return readline.CompleteRaw(list).NoSort().Usage("%s", usage)
}

// hint is shown below the line while it is typed. It is asked after each key, so it looks at the table only, never at
// the store. What is after the cursor does not count.
func (e *fullEditor) hint(line []rune, cursor int) []rune {
	if e.s.noHints || e.s.question != "" {
		return nil
	}
	text := hint(string(line[:min(cursor, len(line))]))
	if text == "" {
		return nil
	}
	if e.s.Color() {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	return []rune(text)
}

// display is the line as it is shown. The library asks for it after it has found out where the prompt is, and before it
// finds out how many lines a menu may have: the prompt is taken to be on the first line, as it will be if the menu needs
// the whole screen.
func (e *fullEditor) display(line []rune) string {
	if e.row != nil {
		*e.row = 1
	}
	if e.s.Color() {
		return highlight(line)
	}
	return string(line)
}

// highlight shows a known command in bold and an unknown one in red. A word is judged when a blank
// follows it, so that typing does not flash red. A count before the command is skipped. The text
// itself must come back unchanged, but for escape sequences: the editor counts its columns.
func highlight(line []rune) string {
	text := string(line)
	start := len(text) - len(strings.TrimLeft(text, " "))
	if word, rest, ok := strings.Cut(text[start:], " "); ok && terminal.IsRepeat(word) {
		start = len(text) - len(strings.TrimLeft(rest, " "))
	}
	end := len(text)
	if i := strings.IndexByte(text[start:], ' '); i >= 0 {
		end = start + i
	}
	word := text[start:end]
	style := "\x1b[1m"
	if server.Lookup(word) == nil && !isLocal(word) {
		if end == len(text) { // still being typed
			return text
		}
		style = "\x1b[31m"
	}
	return text[:start] + style + word + "\x1b[0m" + text[end:]
}
