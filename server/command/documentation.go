package command

import (
	"embed"
	"strings"
)

// documentation says what commands take, what they do and what that costs, in a file for each group. An entry is
//
//	the name and the arguments, in the notation of usage lines: see Arguments
//	the summary, one sentence
//	since: the first version that has it: of Redis, of Valkey for what only Valkey has, or of Stave for its own commands
//	complexity: in the notation of Redis's documentation, with what n is
//	tips: hints for proxies and for clients that spread a command over several servers, as COMMAND INFO lists them
//
// with a blank line after it. The tips, which most commands do not have, say how the requests are spread, how the replies
// are put together, and whether the same request gives the same reply twice. The words are those of Redis's documentation.
//
//go:embed docs
var documentation embed.FS

// entries are the entries of all files, by the names of the commands.
var entries = readEntries()

func readEntries() map[string]string {
	all := make(map[string]string)
	files, err := documentation.ReadDir("docs")
	if err != nil {
		panic("BUG: command: no documentation: " + err.Error())
	}
	for _, file := range files {
		text, err := documentation.ReadFile("docs/" + file.Name())
		if err != nil {
			panic("BUG: command: the documentation cannot be read: " + err.Error())
		}
		for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			all[entry[:strings.IndexAny(entry, " \n")]] = entry
		}
	}
	return all
}

// document sets the fields of a command that its entry describes. A command without an entry keeps its own.
func (c *Command) document() {
	entry, ok := entries[c.Name]
	if !ok {
		return
	}
	lines := strings.Split(entry, "\n")
	_, c.Syntax, _ = strings.Cut(lines[0], " ")
	c.Summary = lines[1]
	for _, line := range lines[2:] {
		switch label, text, _ := strings.Cut(line, ": "); label {
		case "since":
			c.Since = text
		case "complexity":
			c.Complexity = text
		case "tips":
			c.Tips = strings.Fields(text)
		}
	}
}
