package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// TestExamplesOfHelp: the examples of HELP print what they say, and each command that works on data has one. -update writes what they print.
func TestExamplesOfHelp(t *testing.T) {
	var got []string
	examples() // not within a bubble
	for block := range strings.SplitSeq(strings.TrimSuffix(examplesText, "\n"), "\n\n") {
		synctest.Test(t, func(t *testing.T) { got = append(got, runExample(t, block)) })
	}
	text := strings.Join(got, "\n\n") + "\n"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("examples.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if unordered(text) != unordered(examplesText) {
		t.Errorf("examples.txt (rewrite with -update) prints\n%s", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "(error)") {
			t.Errorf("examples.txt: %s", line)
		}
	}
	without := []command.Group{command.GroupServer, command.GroupConnection, command.GroupCluster}
	for _, c := range server.Commands {
		missing := len(examples()[title(c)]) == 0
		for _, g := range without {
			missing = missing && c.Group != g
		}
		if missing {
			t.Errorf("examples.txt has no example of %s", title(c))
		}
	}
}

// noOrder are the commands whose replies have an order that differs from store to store.
var noOrder = regexp.MustCompile(`^> (KEYS|SCAN|SMEMBERS|SINTER|SUNION|HGETALL|HKEYS|HVALS) `)

// unordered returns the lines of the examples with those of replies in no order sorted, and without their numbers.
func unordered(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !noOrder.MatchString(line) {
			continue
		}
		reply := lines[i+1:]
		if end := slices.IndexFunc(reply, func(l string) bool { return l == "" || l[0] == '>' }); end >= 0 {
			reply = reply[:end]
		}
		for j := range reply {
			reply[j] = strings.TrimLeft(reply[j], "0123456789) ")
		}
		slices.Sort(reply)
	}
	return strings.Join(lines, "\n")
}

// runExample runs the commands of a block in an empty store, and returns the block with what they print.
func runExample(t *testing.T, block string) string {
	store, err := db.Open("d", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ses, err := server.NewSession(store, sessionOptions("d"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(block, "\n")
	out := bytes.NewBufferString(lines[0])
	s := &session{Streams: terminal.Open(nil, nil, nil), printer: terminal.Printer{Format: terminal.Typed}, backend: &embedded{store: store, session: ses}}
	for _, line := range lines[1:] {
		text, isCommand := strings.CutPrefix(line, "> ")
		if !isCommand {
			continue
		}
		args, err := terminal.SplitLine([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out.WriteString("\n" + line + "\n")
		if err := s.runCommand(t.Context(), out, args); err != nil {
			fmt.Fprintf(out, "(error) %v", err)
		}
		out.Truncate(len(bytes.TrimRight(out.Bytes(), "\n")))
	}
	return out.String()
}
