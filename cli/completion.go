package cli

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// Completion for shells, and the manual page, both made from the list of commands. The scripts for bash, zsh and
// PowerShell are static: they know the commands and options of the program that wrote them and run nothing while a
// person types. (Those that come with urfave/cli evaluate the line typed so far.) contrib has all of them; a test
// compares.

// completionShells are the shells in the order of the help. All but fish have a file of their own in completion.
var completionShells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand describes stave completion. The script goes to the standard output; where a shell looks for it is
// up to the person, and in the help.
func completionCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "completion",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || !slices.Contains(completionShells, c.Args().First()) {
				return usagef("completion takes one of %s", strings.Join(completionShells, ", "))
			}
			text, err := completionScript(c.App, c.Args().First())
			if err == nil {
				_, err = fmt.Fprint(t.Out, text)
			}
			return failed(exitCommand, err)
		},
	}
}

// manCommand describes stave man. The page goes to the standard output, for a package to install it.
func manCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "man",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("man takes no argument")
			}
			page, err := manPage(c.App)
			if err == nil {
				_, err = fmt.Fprint(t.Out, page)
			}
			return failed(exitCommand, err)
		},
	}
}

// flat returns a copy of app whose commands have no sub-commands. The package's help command, which all apps of a
// process share, is changed when it runs: it becomes a sub-command of its own, so that whatever walks down from it
// never ends, and has an option more.
func flat(app *cli.App) *cli.App {
	copied := *app
	copied.Commands = slices.Clone(app.Commands)
	for i, c := range copied.Commands {
		one := *c
		one.Subcommands = nil
		if one.HasName("help") {
			one.Flags = nil
		}
		copied.Commands[i] = &one
	}
	return &copied
}

// markdown is a text of the help, in which what is set in is an example, as Markdown: an example becomes a block of
// code by one blank more, and elsewhere the characters that Markdown would take for its own are escaped.
func markdown(help string) string {
	var b strings.Builder
	for line := range strings.Lines(help) {
		if strings.HasPrefix(line, "   ") {
			b.WriteString(" " + line)
			continue
		}
		b.WriteString(markdownEscapes.Replace(line))
	}
	return strings.TrimRight(b.String(), "\n")
}

var markdownEscapes = strings.NewReplacer(`*`, `\*`, `_`, `\_`, `<`, `\<`, "`", "\\`", `[`, `\[`)

// manPage is the manual page of section 1. It is made by the library from Markdown, so the texts of the help are
// escaped first. Zero-width spaces that the library puts in are removed.
func manPage(app *cli.App) (string, error) {
	app = flat(app)
	for _, c := range app.Commands {
		// The library's page has the usage and the options alone, and all lines of a text but the first are set in.
		c.Usage += ".\n\n" + markdown("   "+strings.ReplaceAll(c.UsageText, "\n", "\n   ")+"\n\n"+c.Description)
		c.UsageText = ""
	}
	page, err := app.ToManWithSection(1)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(page, "\u200b", ""), nil
}

//go:embed completion
var completionFiles embed.FS

var completionTemplates = template.Must(template.ParseFS(completionFiles, "completion/*.txt"))

// A completedCommand is what the scripts know of a command.
type completedCommand struct {
	Name    string
	Quoted  string // the usage, within single quotes
	Options string // with blanks between them
}

// completedCommands are the commands that are shown, and help. Options of one letter are left out: who knows them types
// them.
func completedCommands(app *cli.App) []completedCommand {
	var list []completedCommand
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		// Hidden options are completed as well: they are there to say what to use instead.
		var options []string
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				if len(name) > 1 {
					options = append(options, "--"+name)
				}
			}
		}
		if !slices.Contains(options, "--help") {
			options = append(options, "--help")
		}
		list = append(list, completedCommand{c.Name, strings.ReplaceAll(c.Usage, "'", `'\''`), strings.Join(options, " ")})
	}
	return list
}

// completionScript is the script for a shell: completion/SHELL.txt with the commands, but for fish, for which the
// library makes one.
func completionScript(app *cli.App, shell string) (string, error) {
	if shell == "fish" {
		return flat(app).ToFishCompletion()
	}
	var script strings.Builder
	err := completionTemplates.ExecuteTemplate(&script, shell+".txt", completedCommands(app))
	return script.String(), err
}
