package cli

import (
	_ "embed"
	"strings"
	"sync"
)

// The examples of HELP are sessions with an empty store, each for one or more commands: "# GET SET", then "> " before
// what is typed, and what is printed. A test runs them.

//go:embed examples.txt
var examplesText string

// examples returns the lines of the example of each command, by its name in capitals. Several commands may have one
// example. The file is taken apart at the first HELP, for most runs of the program need none of it.
var examples = sync.OnceValue(func() map[string][]string {
	byName := map[string][]string{}
	for block := range strings.SplitSeq(strings.TrimSuffix(examplesText, "\n"), "\n\n") {
		names, session, _ := strings.Cut(block, "\n")
		for _, name := range strings.Fields(names)[1:] {
			byName[name] = strings.Split(session, "\n")
		}
	}
	return byName
})
