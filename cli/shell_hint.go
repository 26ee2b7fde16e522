package cli

import (
	"strings"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// The hint below the line: the arguments that are still to come. It is derived from the arguments
// of the command table, as completion and COMMAND DOCS are, so a new command has its hint without a
// line here. What has been typed takes arguments off the front; Command.Remaining decides which.

// hint is what may follow on a line: the command's arguments without those that have been typed.
// complete says whether the last word is finished, that is, followed by a blank.
func hint(line string) string {
	words, complete := typedWords(line)
	if len(words) == 0 {
		return ""
	}
	words = afterPrefix(words)
	c := server.Lookup(words[0])
	if c == nil || len(words) == 1 && !complete {
		return ""
	}
	typed := words[1:]
	// A container has its subcommands as the hint until one of them is complete.
	if len(c.Subcommands) > 0 {
		if len(typed) == 0 || len(typed) == 1 && !complete {
			return subcommandHint(c)
		}
		if c = server.Lookup(c.Name + "|" + typed[0]); c == nil {
			return ""
		}
		typed = typed[1:]
	}
	if len(typed) > 0 && !complete {
		typed = typed[:len(typed)-1] // still being typed: keep its name in sight
	}
	return strings.TrimSpace(title(c) + " " + ellipsis(len(typed)) + command.Notation(c.Remaining(typed)))
}

// ellipsis stands for the arguments that have been typed, however many.
func ellipsis(typed int) string {
	if typed == 0 {
		return ""
	}
	return ".. "
}

// subcommandHint lists the subcommands, as one argument of which one must be chosen.
func subcommandHint(c *command.Command) string {
	var names []string
	for _, sub := range c.Subcommands {
		names = append(names, strings.ToUpper(sub.Name[len(c.Name)+1:]))
	}
	return title(c) + " <" + strings.Join(names, " | ") + ">"
}

// typedWords splits an unfinished line. A quote that is still open belongs to a last word that is
// not complete. Both quotes are tried, so the words before an open one are known. A line that cannot
// be split at all has no words.
func typedWords(line string) (words []string, complete bool) {
	complete = line == "" || strings.HasSuffix(line, " ")
	args, err := resp.SplitLine([]byte(line))
	for _, ending := range []string{`"`, `'`} {
		if err != nil {
			complete = false
			args, err = resp.SplitLine([]byte(line + ending))
		}
	}
	for _, arg := range args {
		words = append(words, string(arg))
	}
	return words, complete
}
