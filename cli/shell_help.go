package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// HELP is answered from the command table of this program, not by the server
// that the shell talks to: the server may be a Redis, whose COMMAND DOCS has
// other words, or an older Stave.

// help answers HELP, HELP command and HELP @group from the command table. ok is
// false when args are something else. It is answered here and not by the
// store, so that it works the same on every server.
func (s *session) help(args [][]byte) (text string, ok bool, err error) {
	if name := string(args[0]); !strings.EqualFold(name, "help") && name != "?" {
		return "", false, nil
	}
	bold := s.printer.Color && s.printer.Format == terminal.Typed
	if len(args) == 1 {
		return helpText("in-shell", strings.Join(groups(), " ")), true, nil
	}
	if group, isGroup := strings.CutPrefix(strings.ToLower(string(args[1])), "@"); isGroup {
		text = groupHelp(group, bold)
		if text == "" {
			return "", true, fmt.Errorf("no group @%.40s: there are %s", group, strings.Join(groups(), " "))
		}
		return text, true, nil
	}
	var words []string
	for _, arg := range args[1:] {
		words = append(words, string(arg))
	}
	name := strings.Join(words, " ")
	c, found := lookupCommand(name)
	if !found {
		return "", true, fmt.Errorf("no command %.40q (HELP lists the groups)", name)
	}
	return commandHelp(c, bold), true, nil
}

// lookupCommand finds a command, or a subcommand by both words. Words are separated by any number
// of blanks, and may be in any case. It is the table of this program: ok says nothing about a server.
func lookupCommand(name string) (*command.Command, bool) {
	c := server.Lookup(strings.Join(strings.Fields(name), "|"))
	return c, c != nil
}

// groups lists the groups that have commands, each with its @, sorted. They are the groups of COMMAND DOCS, which are
// not quite the categories of ACL.
func groups() []string {
	var names []string
	for _, c := range server.Commands {
		if name := "@" + string(c.Group); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// title is a command's name as people write it: CLIENT SETNAME. In the table it is client|setname.
func title(c *command.Command) string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "|", " "))
}

// commandHelp describes one command and names its subcommands. Empty facts have no line. The example is that of the
// container, for a subcommand as well: its session shows several of them.
func commandHelp(c *command.Command, bold bool) string {
	var b strings.Builder
	writeUsage(&b, c, bold)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", name+":", value)
		}
	}
	row("summary", c.Summary)
	row("cost", c.Complexity)
	if c.IsOwn() {
		row("since", "Stave "+c.Since)
	} else {
		row("since", "Redis "+c.Since)
	}
	row("group", string(c.Group))
	container, _, _ := strings.Cut(title(c), " ")
	if lines := examples()[container]; lines != nil {
		b.WriteString("  example:\n")
		for _, line := range lines {
			b.WriteString("    " + line + "\n")
		}
	}
	for _, sub := range c.Subcommands {
		b.WriteByte('\n')
		writeUsage(&b, sub, bold)
		row("summary", sub.Summary)
	}
	return b.String()
}

// groupHelp lists the commands of a group, "" if there are none. Subcommands are left to the help of their container.
func groupHelp(group string, bold bool) string {
	var b strings.Builder
	for _, c := range server.Commands {
		if string(c.Group) != group {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		writeUsage(&b, c, bold)
		fmt.Fprintf(&b, "  summary: %s\n", c.Summary)
	}
	return b.String()
}

// writeUsage writes a command's name and arguments, on one line however long: the terminal wraps it where it is narrow.
func writeUsage(b *strings.Builder, c *command.Command, bold bool) {
	name := terminal.Paint(bold, title(c), "1")
	fmt.Fprintf(b, "  %s\n", strings.TrimSpace(name+" "+c.Syntax))
}
