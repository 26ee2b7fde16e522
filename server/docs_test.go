package server_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

var updateFlag = flag.Bool("update", false, "write docs/COMMANDS.md from the command table")

// TestLaterThanRedisVersion: docs/COMMANDS.md lists the commands that came after the version which the server reports.
func TestLaterThanRedisVersion(t *testing.T) {
	text, err := os.ReadFile("../docs/COMMANDS.md")
	if err != nil {
		t.Fatal(err)
	}
	var later, valkey []string
	for _, c := range server.Commands {
		name := fmt.Sprintf("`%s` %s", strings.ToUpper(c.Name), c.Since)
		switch {
		case c.IsOwn():
		case slices.Contains([]string{"commandlog", "delifeq"}, c.Name):
			valkey = append(valkey, name)
		case slices.Compare(versionOf(t, c.Since), versionOf(t, server.RedisVersion)) > 0:
			later = append(later, name)
		}
	}
	slices.Sort(later)
	want := fmt.Sprintf("Commands that are later than that: %s; and of Valkey: `CLIENT CAPA` %s, %s.\n", strings.Join(later, ", "), server.Lookup("client|capa").Since, strings.Join(valkey, ", "))
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/COMMANDS.md has no line\n%s", want)
	}
	if !strings.Contains(string(text), "say "+server.RedisVersion+".") {
		t.Errorf("docs/COMMANDS.md does not say %s", server.RedisVersion)
	}
}

// versionOf are the three numbers of a version.
func versionOf(t *testing.T, text string) []int {
	t.Helper()
	var v [3]int
	if n, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
		t.Fatalf("version %q: %v", text, err)
	}
	return v[:]
}

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
