package server_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stavedb/stave/server/command"
)

var updateFlag = flag.Bool("update", false, "write docs/COMMANDS.md from the command table")

// TestDocumentation keeps the second half of docs/COMMANDS.md equal to the command table.
func TestDocumentation(t *testing.T) {
	const path, heading = "../docs/COMMANDS.md", "## The command table\n"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(have), heading)
	intro, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	if !found {
		t.Fatalf("%s has no %q", path, heading)
	}
	var want strings.Builder
	want.WriteString(head + heading + "\n" + strings.TrimRight(intro, "\n") + "\n")
	for _, group := range []command.Group{
		command.GroupString, command.GroupBitmap, command.GroupHash, command.GroupList, command.GroupSet, command.GroupSortedSet, command.GroupStream, command.GroupGeo, command.GroupHyperLogLog, command.GroupGeneric,
		command.GroupTransactions, command.GroupScripting, command.GroupPubSub, command.GroupConnection, command.GroupCluster, command.GroupServer,
	} {
		fmt.Fprintf(&want, "\n### %s\n\n| command | arity | cost | what it does |\n|---|---|---|---|\n", group)
		for _, c := range all() {
			if c.Group != group || len(c.Subcommands) > 0 && c.Name != "command" {
				continue
			}
			usage := strings.TrimSpace(strings.ToUpper(strings.ReplaceAll(c.Name, "|", " ")) + " " + c.Syntax)
			own := ""
			if c.IsOwn() {
				own = "(own) "
			}
			fmt.Fprintf(&want, "| `%s` | %d | %s | %s%s |\n", strings.ReplaceAll(usage, "|", "\\|"), c.Arity, c.Complexity, own, c.Summary)
		}
	}
	if *updateFlag {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want.String() != string(have) {
		t.Errorf("%s is not what the command table says; run go test ./server -run Documentation -update", path)
	}
}
