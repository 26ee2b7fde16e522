package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// Completion for shells, and the manual page, both made from the list of commands. The scripts for bash, zsh and
// PowerShell are static: they know the commands and options of the program that wrote them and run nothing while a
// person types. (Those that come with urfave/cli evaluate the line typed so far.) contrib has all of them; a test
// compares.

// completionShells are the shells in the order of the help.
var completionShells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand describes stave completion.
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

// manCommand describes stave man.
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

// markdown is a text of the help, in which what is set in is an example, as Markdown.
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

// manPage is the manual page of section 1.
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

// A completedCommand is what the scripts know of a command.
type completedCommand struct {
	name, usage string
	options     []string
}

// completedCommands are the commands that are shown, and help.
func completedCommands(app *cli.App) []completedCommand {
	var list []completedCommand
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		item := completedCommand{name: c.Name, usage: c.Usage}
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				if len(name) > 1 {
					item.options = append(item.options, "--"+name)
				}
			}
		}
		if !slices.Contains(item.options, "--help") {
			item.options = append(item.options, "--help")
		}
		list = append(list, item)
	}
	return list
}

// completionScript is the script for a shell.
func completionScript(app *cli.App, shell string) (string, error) {
	list := completedCommands(app)
	switch shell {
	case "bash":
		return bashCompletion(list), nil
	case "zsh":
		return zshCompletion(list), nil
	case "powershell":
		return powershellCompletion(list), nil
	}
	return flat(app).ToFishCompletion()
}

func bashCompletion(list []completedCommand) string {
	var names []string
	var cases strings.Builder
	for _, c := range list {
		names = append(names, c.name)
		fmt.Fprintf(&cases, "\t%s) words='%s' ;;\n", c.name, strings.Join(c.options, " "))
	}
	return `# bash completion for stave
_stave() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=''
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
		COMPREPLY=($(compgen -W '` + strings.Join(names, " ") + ` help' -- "$cur"))
		return
	fi
	[[ $cur == -* ]] || return
	case ${COMP_WORDS[1]} in
` + cases.String() + `	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _stave stave
`
}

func zshCompletion(list []completedCommand) string {
	var names, cases strings.Builder
	for _, c := range list {
		fmt.Fprintf(&names, "\t\t'%s:%s'\n", c.name, strings.ReplaceAll(c.usage, "'", `'\''`))
		fmt.Fprintf(&cases, "\t%s) compadd -- %s ;;\n", c.name, strings.Join(c.options, " "))
	}
	return `#compdef stave
_stave() {
	local -a commands
	commands=(
` + names.String() + `		'help:Shows the commands, or help for one'
	)
	if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
		_describe command commands
		return
	fi
	if [[ $words[CURRENT] != -* ]]; then
		_files
		return
	fi
	case $words[2] in
` + cases.String() + `	esac
}
compdef _stave stave
`
}

func powershellCompletion(list []completedCommand) string {
	var table strings.Builder
	for _, c := range list {
		fmt.Fprintf(&table, "\t\t'%s' = '%s'\n", c.name, strings.Join(c.options, " "))
	}
	return `# PowerShell completion for stave
Register-ArgumentCompleter -Native -CommandName stave -ScriptBlock {
	param($wordToComplete, $commandAst, $cursorPosition)
	$commands = [ordered]@{
` + table.String() + `		'help' = ''
	}
	$typed = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
	$choices = if ($typed.Count -le 1 -or ($typed.Count -eq 2 -and $wordToComplete) -or $typed[1] -eq 'help') {
		$commands.Keys
	} elseif ($wordToComplete.StartsWith('-')) {
		"$($commands[$typed[1]])".Split(' ')
	}
	$choices | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {
		[System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
	}
}
`
}
