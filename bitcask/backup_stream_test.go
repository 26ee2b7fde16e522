package bitcask_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// extract writes the files of an archive into a directory, and returns their names in order.
func extract(t *testing.T, fsys vfs.FS, archive []byte, dir string) (names []string) {
	t.Helper()
	must(t, fsys.MkdirAll(dir))
	for tr := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := tr.Next()
		if err != nil {
			return names // io.EOF, or the archive breaks off
		}
		names = append(names, h.Name)
		b, _ := io.ReadAll(tr)
		f, err := fsys.Open(filepath.Join(dir, h.Name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt(b, 0)
		must(t, err)
		must(t, f.Close())
	}
}

// writerFunc calls a function with all that is written.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestBackupToPinsWhatAMergeTakesAway overwrites and merges all when the first segment has been written: the archive is
// of the moment before, whatever of it went meanwhile, and afterwards nothing of it is left.
func TestBackupToPinsWhatAMergeTakesAway(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	values := garbage(t, s, backupPuts)
	before := snapshot(t, mem, "a")
	var archive bytes.Buffer
	again := false
	_, err := s.BackupTo(t.Context(), writerFunc(func(p []byte) (int, error) {
		if archive.Write(p); archive.Len() > 2048 && !again {
			again = true
			overwrite(t, s, "while it is made ")
			must(t, errors.Join(s.Rotate(), rewriteAll(s)))
		}
		return len(p), nil
	}))
	must(t, err)
	if !again {
		t.Fatal("nothing came in between")
	}
	names := extract(t, mem, archive.Bytes(), "b")
	if last := names[len(names)-1]; last != "MANIFEST" {
		t.Errorf("the last file is %s: an archive that breaks off would be a store", last)
	}
	readBackup(t, mem, "b", values)
	left := snapshot(t, mem, "a")
	for _, sg := range s.Segments() {
		delete(left, sg.File)
	}
	for name := range left {
		if _, was := before[name]; was && strings.HasSuffix(name, ".data") {
			t.Errorf("%s is still there", name)
		}
	}
	must(t, s.Close())
}

// TestBackupToBreaksOff cuts the archive everywhere: the extracted files are the store or refused.
func TestBackupToBreaksOff(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	values := garbage(t, s, 50)
	var archive bytes.Buffer
	_, err := s.BackupTo(t.Context(), &archive)
	must(t, err)
	must(t, s.Close())
	opened := 0
	for n := 0; n <= archive.Len(); n += 512 {
		m := vfs.NewMem()
		extract(t, m, archive.Bytes()[:n], "b")
		c, err := bitcask.Open("b", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: m}))
		if err != nil {
			continue
		}
		opened++
		for key, want := range values {
			if got, err := c.Get(key); err != nil || string(got) != want {
				t.Fatalf("of %d bytes: %s = %q, %v", n, key, got, err)
			}
		}
		must(t, c.Close())
	}
	if opened == 0 || opened > 4 { // the end of the archive is two blocks of zeros
		t.Errorf("%d of the broken archives opened", opened)
	}
}

func TestBackupToFails(t *testing.T) {
	fault := errors.New("the line is dead")
	newStore := func() *bitcask.Store {
		s := open(t, "a", backupOptions(vfs.NewMem()))
		garbage(t, s, backupPuts)
		return s
	}
	t.Run("writer", func(t *testing.T) {
		s := newStore()
		defer s.Close()
		_, err := s.BackupTo(t.Context(), writerFunc(func([]byte) (int, error) { return 0, fault }))
		if !errors.Is(err, fault) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("context", func(t *testing.T) {
		s := newStore()
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.BackupTo(ctx, writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		s := newStore()
		must(t, s.Close())
		if _, err := s.BackupTo(t.Context(), io.Discard); !errors.Is(err, bitcask.ErrClosed) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("closed by the writer", func(t *testing.T) {
		s := newStore()
		_, err := s.BackupTo(t.Context(), writerFunc(func(p []byte) (int, error) { return len(p), s.Close() }))
		if !errors.Is(err, bitcask.ErrClosed) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		mem := vfs.NewMem()
		s := open(t, "d", backupOptions(mem))
		defer s.Close()
		overwrite(t, s, "before ")
		must(t, s.Rotate())
		waitHints(t, s, mem, true)
		before := mem.Leaks()
		for at, through := 1, false; !through; at++ { // at each write
			func() {
				defer func() { through = recover() == nil }()
				writes := 0
				_, err := s.BackupTo(t.Context(), writerFunc(func(p []byte) (int, error) {
					if writes++; writes == at {
						panic("writer")
					}
					return len(p), nil
				}))
				must(t, err)
			}()
			if after := mem.Leaks(); !slices.Equal(after, before) {
				t.Fatalf("panic at write %d: open are %q, before %q", at, after, before)
			}
		}
		overwrite(t, s, "after ")
		must(t, errors.Join(s.Rotate(), rewriteAll(s)))
		if n := len(bitcask.Pinned(s)); n > 0 {
			t.Errorf("%d segments are held", n)
		}
	})
}

// TestBackupToOfADamagedTail: what does not verify is not sealed.
func TestBackupToOfADamagedTail(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	defer s.Close()
	must(t, s.Put("k", []byte("precious")))
	flip(t, mem, "a/000000001.data", 60)
	_, err := s.BackupTo(t.Context(), io.Discard)
	if bad := (*bitcask.CorruptError)(nil); !errors.As(err, &bad) || bad.File != "000000001.data" {
		t.Errorf("error is %v", err)
	}
}
