package cli_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
)

// TestBackupToStandardOutput: the archive is all that is on standard output, and extracted it is the store.
func TestBackupToStandardOutput(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, err bytes.Buffer
		if status := cli.Run(append([]string{"stave"}, args...), strings.NewReader(""), &out, &err); status != 0 {
			t.Fatalf("%q: status %d, %s", args, status, err.String())
		}
		return out.String(), err.String()
	}
	run("exec", "--dir", dir, "SET", "greeting", "hi")
	archive, said := run("backup", "--dir", dir, "-")
	if !strings.HasPrefix(said, "backed up") {
		t.Errorf("on standard error: %q", said)
	}
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(strings.NewReader(archive)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, h.Name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := run("exec", "--dir", copied, "GET", "greeting"); !strings.Contains(got, "hi") {
		t.Errorf("the copy says %q", got)
	}
}
