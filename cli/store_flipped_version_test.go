package cli_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/budget"
)

// flippedVersions is what a flipped bit in the version of a file does: docs/FORMAT.md, section 12, has the table.
var flippedVersions = []struct {
	file    string
	bytes   int  // of the version, at 8
	derived bool // it is made again from the log; damage anywhere else is an error
}{
	{"000000001.data", 2, false}, {"000000002.data", 2, false}, {"MANIFEST", 2, false}, // a sealed segment, and the active one
	{"000000001.hint", 2, true}, {"INDEX", 2, true}, {"TTL", 4, true},
}

// TestFlippedVersion: a flipped bit in the version of a file is damage, and no newer version. What is made from the log
// is made again; dump says DAMAGE of every file.
func TestFlippedVersion(t *testing.T) {
	golden := versionedStore(t)
	run := func(args ...string) (status int, text string) {
		var out bytes.Buffer
		status = cli.Run(append([]string{"stave"}, args...), strings.NewReader(""), &out, &out)
		return status, out.String()
	}
	for _, f := range flippedVersions {
		for bit := range f.bytes * 8 {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, f.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[8+bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			status, text := run("dump", path)
			if status != 4 || !strings.Contains(text, "DAMAGE") || strings.Contains(text, "NEWER") {
				t.Errorf("dump %s, bit %d: status %d\n%s", f.file, bit, status, text)
			}
			status, text = run("exec", "--dir", dir, "MGET", "k0", "k19")
			want := map[bool]int{false: 3, true: 0}[f.derived]
			if status != want || strings.Contains(text, "not supported") || strings.Contains(text, "corrupt: "+f.file) == f.derived {
				t.Errorf("exec, %s, bit %d: status %d, want %d\n%s", f.file, bit, status, want, text)
			}
			if !f.derived {
				continue
			}
			if status, text = run("exec", "--dir", dir, "EXPIRETIME", "k7"); status != 0 || !strings.Contains(text, "4102444800") {
				t.Errorf("%s, bit %d: the deadline is %s", f.file, bit, text)
			}
		}
	}
}

// TestFlippedVersionInArchive: restore refuses an archive of which a file has a flipped bit in its version, for damage.
func TestFlippedVersionInArchive(t *testing.T) {
	golden := versionedStore(t)
	var whole bytes.Buffer
	if status := cli.Run([]string{"stave", "backup", "--dir", golden, "-"}, strings.NewReader(""), &whole, io.Discard); status != 0 {
		t.Fatal(status)
	}
	files := 0
	for r := tar.NewReader(bytes.NewReader(whole.Bytes())); ; files++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		body, bodyErr := io.ReadAll(r)
		if err != nil || bodyErr != nil {
			t.Fatal(err, bodyErr)
		}
		at := bytes.Index(whole.Bytes(), body)
		for _, bit := range budget.Some(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 4) {
			flipped := bytes.Clone(whole.Bytes())
			flipped[at+8+bit/8] ^= 1 << (bit % 8)
			archive, to := filepath.Join(t.TempDir(), "archive.tar"), filepath.Join(t.TempDir(), "new")
			if err := os.WriteFile(archive, flipped, 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			status := cli.Run([]string{"stave", "restore", archive, to}, strings.NewReader(""), &out, &out)
			if status != 4 || strings.Contains(out.String(), "not supported") || !strings.Contains(out.String(), h.Name) {
				t.Errorf("restore, %s, bit %d: status %d\n%s", h.Name, bit, status, out.String())
			}
		}
	}
	if files < 3 {
		t.Errorf("%d files in the archive", files)
	}
}

// versionedStore is the directory of a closed store that has each file of flippedVersions.
func versionedStore(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "golden")
	for range 2 { // the second opening makes the hints that the first has left
		s, err := db.Open(dir, &db.Options{SegmentSize: 1 << 10, NoMerge: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if err := s.String("k"+string("0123456789"[i%10])).Put([]byte("a value that takes some room in the segment"), db.ExpireAt(time.Unix(4102444800, 0))); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.String("k19").Put([]byte("v")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range flippedVersions {
		if _, err := os.Stat(filepath.Join(dir, f.file)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
