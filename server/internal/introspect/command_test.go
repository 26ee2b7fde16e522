package introspect_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/introspect"
)

// testTable is a table of three commands, besides COMMAND.
func testTable() *command.Table {
	var table *command.Table
	commands := []*command.Command{
		{Name: "put", Arity: -3, Flags: command.Write, Keys: []command.Keys{{Use: "RW", First: 1, Step: 1}}, Summary: "Puts.", Since: "1.0.0", Syntax: "key value"},
		{Name: "union", Arity: -3, Flags: command.ReadOnly, Keys: []command.Keys{{Use: "RO", First: 1, Counted: true}}, Since: "1.0.0", Syntax: "numkeys key [key ...]"},
		{Name: "ping", Arity: -1, Flags: command.Fast, Since: "1.0.0", Syntax: "[message]"},
		introspect.Command(func() *command.Table { return table }),
	}
	table = command.NewTable(commands)
	return table
}

func TestCommandIsDerivedFromTheTable(t *testing.T) {
	table := testTable()
	ask := func(line string) string {
		args := make([][]byte, 0, 8)
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd, err := table.Resolve(args)
		if err != nil {
			return err.Error()
		}
		var out resp.Writer
		if err := cmd.Run(&command.Call{Command: cmd, Args: args, Out: &out}); err != nil {
			return err.Error()
		}
		return string(out.Bytes())
	}
	for line, want := range map[string]string{
		"command count":                          ":4\r\n",
		"command info none":                      "*1\r\n*-1\r\n",
		"command docs none":                      "*0\r\n",
		"command getkeys put k v":                "*1\r\n$1\r\nk\r\n",
		"command getkeys union 2 a b":            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
		"command getkeysandflags put k v":        "*1\r\n*2\r\n$1\r\nk\r\n*1\r\n+RW\r\n",
		"command getkeys ping":                   "ERR The command has no key arguments",
		"command getkeys none":                   "ERR Invalid command specified",
		"command getkeys put k":                  "ERR Invalid number of arguments specified for command",
		"command getkeys union 9 a":              "ERR Invalid arguments specified for command",
		"command list filterby pattern p*":       "*2\r\n$4\r\nping\r\n$3\r\nput\r\n",
		"command list filterby module m":         "*0\r\n",
		"command list filterby nonsense x":       "ERR syntax error",
		"command list filterby aclcat @nonsense": "*0\r\n",
	} {
		if got := ask(line); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
	reply, _, err := resp.Decode([]byte(ask("command info put")))
	if err != nil || len(reply.Items) != 1 || len(reply.Items[0].Items) != 10 {
		t.Errorf("command info put: %v, %v", reply, err)
	}
	if all, _, err := resp.Decode([]byte(ask("command"))); err != nil || len(all.Items) != 4 {
		t.Errorf("command: %d items, %v", len(all.Items), err)
	}
	if docs := ask("command docs put"); !strings.Contains(docs, "Puts.") || strings.Contains(docs, "union") {
		t.Errorf("command docs put: %q", docs)
	}
}
