package cli

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// What the interactive shell does around commands: it asks before those that remove everything, sends replies to other
// programs, and shows a key at a glance.

// destroys says what a command would do that nobody wants by mistake; "" for most. It judges by the name alone: the
// effect on an empty store is asked about too. DEL with many keys is not among these; what a person has typed out is
// meant.
func destroys(args [][]byte) string {
	word := func(i int) string {
		if i < len(args) {
			return strings.ToLower(string(args[i]))
		}
		return ""
	}
	switch word(0) {
	case "flushall":
		return "FLUSHALL removes all keys of all databases"
	case "flushdb":
		return "FLUSHDB removes all keys of this database"
	case "shutdown":
		return "SHUTDOWN ends the server"
	}
	switch word(0) + " " + word(1) {
	case "function flush":
		return "FUNCTION FLUSH removes all libraries"
	case "script flush":
		return "SCRIPT FLUSH removes all cached scripts"
	case "acl deluser":
		return "ACL DELUSER removes users and ends their connections"
	case "acl load":
		return "ACL LOAD replaces all users, and ends the connections of those that change"
	}
	return ""
}

// confirmed asks whether a command that destroys much is meant. Only a person at a terminal is asked: a script that
// waits for an answer would wait for good. Within MULTI nothing happens yet, and EXEC is not asked about. Anything but
// yes is no, the end of the input included. What it does is no part of the prompt, which must be narrower than the
// screen.
func (s *session) confirmed(args [][]byte) bool {
	what := destroys(args)
	if what == "" || s.editor == nil || s.inMulti {
		return true
	}
	fmt.Fprintf(s.Out, "%s.\n", what)
	s.question = "Go on? [y/N] "
	answer, err := s.editor.readLine()
	s.question = ""
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes")
}

// systemCommand is a command line for the system's shell. It is killed when ctx ends.
func systemCommand(ctx context.Context, line string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		return exec.CommandContext(ctx, "cmd", "/C", line)
	}
	return exec.CommandContext(ctx, "/bin/sh", "-c", line)
}

// pipeInto makes the system's shell read what is printed, in the form for programs, until the function that it returns
// is called. That waits for the program, which may end before it has read everything. A program that cannot be started
// is reported here, and the command is run all the same, with its replies dropped: it may be meant for its effect.
func (s *session) pipeInto(ctx context.Context, command string) (end func()) {
	// The program's output is not collected: it has the screen, or is a pager of its own.
	program := systemCommand(ctx, command)
	program.Stdout, program.Stderr = s.Out, s.Err
	to, err := program.StdinPipe()
	if err == nil {
		err = program.Start()
	}
	// The session prints to s.Out, so that is what is exchanged, and put back at the end.
	out, format := s.Out, s.printer.Format
	if err != nil {
		fmt.Fprintf(s.Out, "Error: %v\n", err)
		s.Out = io.Discard
		return func() { s.Out = out }
	}
	s.Out = to
	if format == terminal.Typed {
		s.printer.Format = terminal.Raw
	}
	return func() {
		s.Out, s.printer.Format = out, format
		_ = to.Close() // a program that has ended has closed it
		if err := program.Wait(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.Out, "(%s: %v)\n", command, err)
		}
	}
}

// peeks reports whether a line is PEEK key, which no server knows. With other arguments it is sent, for the server's
// error.
func peeks(args [][]byte) (key string, ok bool) {
	if len(args) != 2 || !strings.EqualFold(string(args[0]), "peek") {
		return "", false
	}
	return string(args[1]), true
}

// peekElements is how many elements of a collection, and peekBytes how many bytes of a string, PEEK shows.
const (
	peekElements = 10
	peekBytes    = 200
)

// peekCommands are what PEEK sends for a type, the key at the place of "". Each takes about as long as what it shows is
// long, whatever the key holds. The reports of exec use the units and the lengths.
var peekCommands = map[string]struct {
	unit          string
	length, begin []string
}{
	"string": {"byte", []string{"STRLEN", ""}, []string{"GETRANGE", "", "0", strconv.Itoa(peekBytes - 1)}},
	"hash":   {"field", []string{"HLEN", ""}, []string{"HSCAN", "", "0", "COUNT", strconv.Itoa(peekElements)}},
	"list":   {"element", []string{"LLEN", ""}, []string{"LRANGE", "", "0", strconv.Itoa(peekElements - 1)}},
	"set":    {"member", []string{"SCARD", ""}, []string{"SSCAN", "", "0", "COUNT", strconv.Itoa(peekElements)}},
	"zset":   {"member", []string{"ZCARD", ""}, []string{"ZRANGE", "", "0", strconv.Itoa(peekElements - 1), "WITHSCORES"}},
	"stream": {"element", []string{"XLEN", ""}, []string{"XREVRANGE", "", "+", "-", "COUNT", strconv.Itoa(peekElements)}},
}

// peek shows what a key is: its type, encoding, length and time to live on one line, and then its beginning. It reads
// no more than it shows, but for small hashes and sets, which a server gives whole. A type that it does not know, such
// as one of a module, is named and not looked into. The form is that of replies.
func (s *session) peek(ctx context.Context, key string) {
	if s.inMulti {
		fmt.Fprintln(s.Out, "PEEK cannot look within MULTI")
		return
	}
	// ask puts the key at the place of "", which no other argument here is. The first error is shown and ends it.
	ask := func(args ...string) (resp.Reply, bool) {
		for i := range args {
			if i > 0 && args[i] == "" {
				args[i] = key
			}
		}
		r, err := s.query(ctx, args...)
		if err != nil {
			fmt.Fprintf(s.Out, "Error: %v\n", err)
		}
		return r, err == nil
	}
	typ, ok := ask("TYPE", key)
	if !ok {
		return
	}
	how, known := peekCommands[typ.String()]
	if !known {
		if typ.String() == "none" {
			fmt.Fprintln(s.Out, "(no such key)")
		} else {
			fmt.Fprintf(s.Out, "%s\n", typ)
		}
		return
	}
	// Each command is of its own moment: a key that changes in between shows figures that do not agree, and no worse.
	// The arguments are copied, because ask writes the key into them.
	var length, begin, ttl, encoding resp.Reply
	for _, q := range []struct {
		args  []string
		reply *resp.Reply
	}{{append([]string(nil), how.length...), &length}, {[]string{"PTTL", key}, &ttl}, {[]string{"OBJECT", "ENCODING", key}, &encoding}, {append([]string(nil), how.begin...), &begin}} {
		if *q.reply, ok = ask(q.args...); !ok {
			return
		}
	}
	// PTTL is negative for a key without a deadline, and for one that has gone.
	fmt.Fprintf(s.Out, "%s (%s), %s", typ, encoding, humanize.Plural(length.Int, how.unit))
	if ttl.Int >= 0 {
		fmt.Fprintf(s.Out, ", expires in %s", humanize.Duration(time.Duration(ttl.Int)*time.Millisecond))
	}
	fmt.Fprintln(s.Out)
	s.showBeginning(typ.String(), how.unit, length.Int, begin)
}

// showBeginning shows what PEEK has read of a key that has so many elements, or bytes, and how many more there are.
func (s *session) showBeginning(typ, unit string, length int64, begin resp.Reply) {
	shown, pairs := begin, 1
	if len(begin.Items) == 2 && (typ == "hash" || typ == "set") {
		shown = begin.Items[1] // after the cursor
	}
	if typ == "hash" || typ == "zset" {
		pairs = 2
	}
	if most := pairs * peekElements; len(shown.Items) > most {
		shown.Items = shown.Items[:most] // SCAN gives all of what is small
	}
	var listed [][]byte
	if pairs == 2 {
		listed = [][]byte{[]byte("HGETALL")} // whose reply has the same form
	}
	s.Out.Write(s.render(listed, shown))
	// What is not shown is counted in elements, of a string in bytes.
	left := length - int64(len(shown.Items)/pairs)
	if typ == "string" {
		left = length - int64(len(shown.Text))
	}
	if left > 0 {
		fmt.Fprintf(s.Out, "... and %s more\n", humanize.Plural(left, unit))
	}
}
