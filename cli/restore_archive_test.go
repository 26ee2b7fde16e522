package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/leak"
)

// archiveOf is an archive of a small store.
func archiveOf(t *testing.T) []byte {
	t.Helper()
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.String("key").Put([]byte("value")); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := store.BackupTo(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// restoreFrom restores an archive in an empty directory. It fails the test if there is a new store after an error, or
// anything else after the restore.
func restoreFrom(t *testing.T, archive []byte, place string) error {
	t.Helper()
	out := filepath.Join(place, "new")
	err := restoreOf(t.Context(), "-", archive, out)
	entries, listErr := os.ReadDir(place)
	if listErr != nil {
		t.Fatal(listErr)
	}
	if err == nil && len(entries) == 1 && entries[0].Name() == "new" {
		store, err := db.Open(out, &db.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if value, err := store.String("key").Get(); string(value) != "value" || err != nil || store.Len() != 1 {
			t.Fatalf("restored: %q, %v, %d keys", value, err, store.Len())
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	} else if err == nil || len(entries) > 0 {
		t.Fatalf("%v, and there is %v", err, entries)
	}
	return err
}

// TestRestoreOfADamagedArchive: an archive with a changed byte, or cut off, gives the store that was saved, or an error
// and nothing.
func TestRestoreOfADamagedArchive(t *testing.T) {
	archive, place := archiveOf(t), t.TempDir()
	if err := restoreFrom(t, archive, place); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := 0; i < len(archive); i += 23 {
		archive[i] ^= 0x10
		if restoreFrom(t, archive, place) != nil {
			refused++
		}
		archive[i] ^= 0x10
	}
	for n := 0; n < len(archive)-1024; n += 61 { // the rest is the end mark
		if restoreFrom(t, archive[:n], place) != nil {
			refused++
		}
	}
	t.Logf("%d bytes, %d refused", len(archive), refused)
	if refused < 50 {
		t.Error("that is too few")
	}
}

// TestRestoreOfHostileArchives: nothing is written beside the new directory, nor what an archive only claims to have.
func TestRestoreOfHostileArchives(t *testing.T) {
	place := t.TempDir()
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeReg, Name: "../outside"},
		{Typeflag: tar.TypeReg, Name: "/outside"},
		{Typeflag: tar.TypeReg, Name: "a/b"},
		{Typeflag: tar.TypeReg, Name: ".."},
		{Typeflag: tar.TypeSymlink, Name: "000000001.data", Linkname: "/etc/passwd"},
		{Typeflag: tar.TypeLink, Name: "MANIFEST", Linkname: "/etc/passwd"},
		{Typeflag: tar.TypeFifo, Name: "MANIFEST"},
		{Typeflag: tar.TypeDir, Name: "directory"},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(h), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := restoreFrom(t, b.Bytes(), place); err == nil || !strings.Contains(err.Error(), "is no file of a backup") {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}

// An interruptedAt is interrupted when it has been looked at so many times.
type interruptedAt struct {
	context.Context
	cancel context.CancelFunc
	looks  atomic.Int64
}

func (c *interruptedAt) Err() error {
	if c.looks.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// TestInterruptedRestore: at whatever moment a restore is interrupted, it closes what it has opened and leaves nothing.
func TestInterruptedRestore(t *testing.T) {
	archive, interrupted := archiveOf(t), 0
	backup := filepath.Join(t.TempDir(), "backup")
	if err := restoreOf(t.Context(), "-", archive, backup); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"-", backup} {
		for looks := int64(0); ; looks += 1 + looks/16 {
			base, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx, place := &interruptedAt{Context: base, cancel: cancel}, t.TempDir()
			ctx.looks.Store(looks)
			err := restoreOf(ctx, from, archive, filepath.Join(place, "new"))
			if open, listErr := leak.OpenFiles(""); listErr != nil || len(open) > 0 {
				t.Fatalf("%s interrupted at look %d, %v: still open: %q, %v", from, looks, err, open, listErr)
			}
			if base.Err() == nil {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			entries, listErr := os.ReadDir(place)
			if err != nil && (!errors.Is(err, context.Canceled) || listErr != nil || len(entries) > 0) {
				t.Fatalf("%s interrupted at look %d: %v, left %v, %v", from, looks, err, entries, listErr)
			}
			interrupted++
		}
	}
	t.Logf("interrupted %d times", interrupted)
	if interrupted < 20 {
		t.Error("that is too few")
	}
}

// restoreOf restores the backup in a directory, or the archive.
func restoreOf(ctx context.Context, from string, archive []byte, out string) error {
	streams := terminal.Open(bytes.NewReader(archive), io.Discard, io.Discard)
	r := &restore{t: streams, from: from, out: out, bar: streams.Progress(true, "", 0)}
	if from == "-" {
		return r.archive(ctx)
	}
	return r.directory(ctx)
}
