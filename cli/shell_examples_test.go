package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

// TestExamplesOfHelp: the examples of HELP print what they say, and each command that works on data has one. -update
// writes what they print.
func TestExamplesOfHelp(t *testing.T) {
	var got []string
	examples() // not within a bubble
	empty := vfs.NewMem()
	synctest.Test(t, func(t *testing.T) { emptyStore(t, empty) })
	for block := range strings.SplitSeq(strings.TrimSuffix(examplesText, "\n"), "\n\n") {
		synctest.Test(t, func(t *testing.T) { got = append(got, runExample(t, empty.Clone(), block)) })
	}
	text := strings.Join(got, "\n\n") + "\n"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("examples.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != examplesText {
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

// emptyStore makes an empty store that has the seed of one of an earlier version: sets, hashes and keys have the same
// order each time.
func emptyStore(t *testing.T, fs *vfs.Mem) {
	const golden = "../db/test/testdata/golden-v1/store"
	files, err := os.ReadDir(golden)
	if err == nil {
		err = fs.MkdirAll("d")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		data, err := os.ReadFile(filepath.Join(golden, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f, err := fs.Open(filepath.Join("d", entry.Name()), vfs.Create)
		if err == nil {
			_, err = f.WriteAt(data, 0)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	store := openExample(t, fs)
	if err := errors.Join(store.FlushAll(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

func openExample(t *testing.T, fs *vfs.Mem) *db.Store {
	store, err := db.Open("d", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: fs}))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// runExample runs the commands of a block in an empty store, and returns the block with what they print.
func runExample(t *testing.T, fs *vfs.Mem, block string) string {
	store := openExample(t, fs)
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
