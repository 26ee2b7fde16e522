package cli_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
)

// Every tool refuses a store of a newer version, and says so.
func TestNewerVersions(t *testing.T) {
	goldens, err := filepath.Glob("../bitcask/testdata/newer-*")
	if err != nil || len(goldens) == 0 {
		t.Fatal(goldens, err)
	}
	for _, golden := range goldens {
		for _, command := range []string{
			"check DIR", "check DIR --json", "stats DIR", "stats DIR --watch --count 1", "inspect DIR", "repair DIR --out NEW", "backup --dir DIR NEW", "backup --dir DIR -",
			"restore DIR NEW", "restore ARCHIVE NEW", "merge DIR", "merge DIR --dry-run", "exec --dir DIR DBSIZE", "exec --dir DIR SET k v", "exec --dir DIR --scan",
			"exec --dir DIR --pipe", "shell DIR", "shell DIR --read-only", "export --dir DIR", "import --dir DIR -", "tail DIR --since 0", "serve --dir DIR --addr 127.0.0.1:0",
			"serve --dir DIR --addr 127.0.0.1:0 --follow", "serve --dir DIR --addr 127.0.0.1:0 --read-damaged",
		} {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(dir, "archive.tar")
			if err := os.WriteFile(archive, tarOf(t, golden), 0o600); err != nil {
				t.Fatal(err)
			}
			line := strings.NewReplacer("DIR", filepath.Join(dir, "store"), "NEW", filepath.Join(dir, "new"), "ARCHIVE", archive).Replace(command)
			var out, errs bytes.Buffer
			status := cli.Run(append([]string{"stave"}, strings.Fields(line)...), strings.NewReader(`{"key":"k","type":"string","value":"v"}`), &out, &errs)
			if status != 3 || !strings.Contains(errs.String(), "format version not supported") || strings.Contains(errs.String(), "corrupt") || strings.Contains(errs.String(), "stave repair") {
				t.Errorf("%s: stave %s: status %d\n%s%s", filepath.Base(golden), command, status, out.String(), errs.String())
			}
			if left, err := filepath.Glob(filepath.Join(dir, "new*")); err != nil || len(left) > 0 {
				t.Errorf("%s: stave %s: left %v, %v", filepath.Base(golden), command, left, err)
			}
		}
	}
}

// dump shows what it knows of them, says the same at the end of the file that is concerned, and takes nothing for
// damage.
func TestDumpOfNewerVersions(t *testing.T) {
	files, err := filepath.Glob("../bitcask/testdata/newer-*/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	file := filepath.Join(t.TempDir(), "TTL")
	head := append([]byte("STAVETTL\xff\x00\x00\x00"), make([]byte, 64)...) // of 80 bytes, with their checksum
	if err := os.WriteFile(file, binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(head)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, file := range append(files, file) {
		for _, flags := range [][]string{nil, {"--json"}} {
			var out, errs bytes.Buffer
			status := cli.Run(append([]string{"stave", "dump", file}, flags...), nil, &out, &errs)
			newer := strings.Contains(out.String(), "NEWER")
			said := strings.Contains(errs.String(), "a newer version of Stave wrote it") && strings.Contains(errs.String(), "format version not supported")
			if newer != said || newer && status != 3 || !newer && status != 0 || strings.Contains(out.String(), "DAMAGE") {
				t.Errorf("dump %s %v: status %d\n%s%s", file, flags, status, out.String(), errs.String())
			}
			if newer {
				refused[filepath.Dir(file)] = true
			}
		}
	}
	if goldens, _ := filepath.Glob("../bitcask/testdata/newer-*"); len(refused) != len(goldens)+1 {
		t.Errorf("refused in %v", refused)
	}
}

// tarOf is an archive of the files of a directory.
func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
