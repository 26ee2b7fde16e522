package cli

import (
	"embed"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"
)

// The help of each command is help/NAME.txt: what it does in one line, the forms of the command line, and after a blank
// line the rest. It is a template, so that several can include the same paragraph.

//go:embed help
var helpFiles embed.FS

var helpTemplates = template.Must(template.ParseFS(helpFiles, "help/*.txt"))

// helpText is the text of a file, with a value at the place of {{.}}. The files are part of the program, so one that is
// missing or wrong is a bug; testdata/help.txt has all of them printed.
func helpText(name string, value any) string {
	var text strings.Builder
	if err := helpTemplates.ExecuteTemplate(&text, name+".txt", value); err != nil {
		panic("BUG: cli: " + err.Error())
	}
	return text.String()
}

// describe gives a command its help: the first paragraph of its file is the line in the list of commands, the second
// the forms of the command line, and all the rest the description. A file with fewer is a bug, and panics in every
// test.
func describe(c *cli.Command) {
	parts := strings.SplitN(strings.TrimRight(helpText(c.Name, nil), "\n"), "\n\n", 3)
	c.Usage, c.UsageText, c.Description = parts[0], parts[1], parts[2]
}
