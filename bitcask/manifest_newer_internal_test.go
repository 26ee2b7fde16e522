package bitcask

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Stores of a newer version, which is what testdata/newer-* hold, are refused
// with ErrVersion by everything, and nothing of them changes.

var updateNewer = flag.Bool("update-newer", false, "rewrite the golden stores of newer versions")

// addNewer adds a record of a kind that this build does not know to a
// transaction: the encoder of a newer version.
func (t *Tx) addNewer(k Kind, name, value string) {
	pos := len(t.buf)
	t.buf = append(t.buf, 0, 0, 0, 0, byte(k))
	prefix, key, _ := strings.Cut(name, ":")
	key, elem, _ := strings.Cut(key, ":")
	if k.Extended() {
		t.buf = append(t.buf, 0x21)
	}
	t.buf = append(t.buf, 0, byte(len(key)))
	if k.HasElement() {
		t.buf = append(t.buf, byte(len(elem)))
	}
	t.buf = append(t.buf, byte(len(value)))
	start := len(t.buf)
	t.buf = append(append(t.buf, name...), value...)
	t.recs = append(t.recs, txRecord{
		pos: pos, size: len(t.buf) - pos, name: start, keyLen: len(key) - len(format.TypePrefix[keydir.None]) + len(prefix) + 1, kind: k, sp: new(namespace.Space),
	})
}

// newer is a store of a newer version, and what the error says of it.
type newer struct {
	fill   func(t *testing.T, s *Store)
	change func(t *testing.T, dir string) // after it has been closed
	says   string
}

var newers = map[string]newer{
	"newer-kind": {
		fill: func(t *testing.T, s *Store) {
			commitNewer(t, s, func(tx *Tx) { tx.addNewer(format.KindExtended, "stream:s:1-1", "entry") })
			must(t, s.Put("after", []byte("1")))
		},
		says: "000000001.data: record of kind 14 at offset",
	},
	"newer-kind-sealed": {
		fill: func(t *testing.T, s *Store) {
			commitNewer(t, s, func(tx *Tx) {
				tx.addNewer(format.KindFree, "stream:s:1-1", "entry")
				must(t, tx.PutString(0, "with it", []byte("1")))
			})
			must(t, s.Rotate())
			must(t, s.Put("after", []byte("1")))
		},
		says: "000000001.data: record of kind 15 at offset",
	},
	"newer-edit": {
		change: func(t *testing.T, dir string) {
			changeFile(t, filepath.Join(dir, manifest.FileName), func(b []byte) []byte {
				m := &manifest.Manifest{Store: [16]byte(b[16:])}
				b = m.AppendEdit(b, 0, 200, []byte("what nobody knows"))
				return m.AppendEdit(b, 0, manifest.EditNextID, binary.LittleEndian.AppendUint32(nil, 9))
			})
		},
		says: "MANIFEST at offset 124: edit of type 200",
	},
	"newer-feature": {
		change: func(t *testing.T, dir string) {
			changeFile(t, filepath.Join(dir, manifest.FileName), func(b []byte) []byte {
				b[11] |= 0x80
				return sumHeader(b, manifest.HeaderSize)
			})
		},
		says: "MANIFEST: unknown feature bits 0x8000",
	},
	"newer-segment-flag": {
		change: func(t *testing.T, dir string) {
			changeFile(t, filepath.Join(dir, format.DataName(1)), func(b []byte) []byte {
				b[10] |= 2
				return sumHeader(b, format.SegmentHeaderSize)
			})
		},
		says: "000000001.data: unknown flags 0x2",
	},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func commitNewer(t *testing.T, s *Store, add func(tx *Tx)) {
	t.Helper()
	tx, err := s.BeginAll(true)
	must(t, err)
	add(tx)
	_, err = tx.Commit()
	tx.End()
	must(t, err)
}

// sumHeader makes the checksum of a header of n bytes right again.
func sumHeader(b []byte, n int) []byte {
	binary.LittleEndian.PutUint32(b[n-4:], crc32.ChecksumIEEE(b[:n-4]))
	return b
}

func changeFile(t *testing.T, name string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, change(b), 0o644))
}

type countingReader byte

func (c *countingReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// write makes the store anew in dir.
func (n newer) write(t *testing.T, dir string) {
	must(t, os.RemoveAll(dir))
	random := crand.Reader
	defer func() { crand.Reader = random }()
	crand.Reader = new(countingReader)
	s, err := Open(dir, &Options{Sync: SyncNone, seam: seam.Options{NoIndex: true, NoHints: true}})
	must(t, err)
	must(t, s.Put("before", []byte("1")))
	if n.fill != nil {
		n.fill(t, s)
	}
	must(t, s.Close())
	if n.change != nil {
		n.change(t, dir)
	}
	must(t, os.Remove(filepath.Join(dir, format.LockName)))
}

// contents is what the files of a directory hold, but for LOCK.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == format.LockName {
			return err
		}
		b, err := os.ReadFile(name)
		files[name] = string(b)
		return err
	}))
	return files
}

func TestNewerVersions(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(newers)) {
		t.Run(name, func(t *testing.T) {
			n, golden := newers[name], filepath.Join("testdata", name)
			if *updateNewer {
				n.write(t, golden)
			}
			ctx := context.Background()
			open := func(o Options) func(dir string) error {
				return func(dir string) error {
					s, err := Open(dir, &o)
					if err != nil {
						return err
					}
					return errors.Join(errors.New("it has been opened"), s.Close())
				}
			}
			for what, do := range map[string]func(dir string) error{
				"Open":        open(Options{}),
				"NoIndex":     open(Options{seam: seam.Options{NoIndex: true, NoHints: true}}),
				"ReadOnly":    open(Options{ReadOnly: true}),
				"ReadDamaged": open(Options{ReadOnly: true, ReadDamaged: true}),
				"Salvage": func(dir string) error {
					_, err := salvage(ctx, dir, filepath.Join(t.TempDir(), "out"), nil)
					return err
				},
			} {
				dir := t.TempDir()
				must(t, os.CopyFS(dir, os.DirFS(golden)))
				before := contents(t, dir)
				err := do(dir)
				if !errors.Is(err, ErrVersion) || failure.IsDamage(err) || !strings.Contains(err.Error(), n.says) {
					t.Errorf("%s: %v; want ErrVersion and %q", what, err, n.says)
				}
				if after := contents(t, dir); !maps.Equal(before, after) {
					t.Errorf("%s has changed the store", what)
				}
			}
		})
	}
}

// A bit flipped in what a newer version has written is damage, wherever it is.
func TestNewerDamaged(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true, NoHints: true}})
	must(t, err)
	commitNewer(t, s, func(tx *Tx) { tx.addNewer(format.KindExtended, "stream:s:1-1", "entry") })
	must(t, s.Rotate())
	must(t, s.Close())
	f, err := fs.Open(filepath.Join("d", format.DataName(1)), vfs.ReadWrite)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	for at := int64(format.SegmentHeaderSize); at < size; at++ {
		var b [1]byte
		_, err := f.ReadAt(b[:], at)
		must(t, err)
		flipped := []byte{b[0] ^ 1}
		_, err = f.WriteAt(flipped, at)
		must(t, err)
		if s, err := Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true, NoHints: true}}); err == nil {
			t.Errorf("byte %d: opened", at)
			must(t, s.Close())
		} else if !failure.IsDamage(err) {
			t.Errorf("byte %d: %v", at, err)
		}
		_, err = f.WriteAt(b[:], at)
		must(t, err)
	}
	must(t, f.Close())
}

// A store that is open when such a record gets into it neither copies nor
// drops it.
func TestNewerIsNotMerged(t *testing.T) {
	for _, noHints := range []bool{false, true} {
		s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem(), NoHints: noHints}})
		must(t, err)
		must(t, s.Put("key", bytes.Repeat([]byte("x"), 100)))
		commitNewer(t, s, func(tx *Tx) { tx.addNewer(format.KindFree, "stream:s:1-1", "entry") })
		if _, err := s.Backup(context.Background(), "copy"); !errors.Is(err, ErrVersion) {
			t.Errorf("backup: %v", err)
		}
		must(t, s.Rotate())
		if _, err := s.Rewrite(context.Background(), []uint32{1}, RewriteOptions{}); !errors.Is(err, ErrVersion) {
			t.Errorf("merge: %v", err)
		}
		if _, err := s.Check(context.Background(), func(f Finding) { t.Error(f) }); !errors.Is(err, ErrVersion) {
			t.Errorf("check: %v", err)
		}
		if s.segments.Load().Find(1) == nil {
			t.Error("the segment is gone")
		}
		must(t, s.Close())
	}
}

// A hint with an entry of a newer version is not used and not removed.
func TestNewerHint(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true, NoHints: true}})
	must(t, err)
	must(t, s.Put("key", []byte("value")))
	must(t, s.Rotate())
	sg := s.segments.Load().Find(1)
	for _, part := range []string{"entry", "flags"} {
		w, err := segment.NewHintWriter(fs, "d", sg)
		must(t, err)
		e := format.Entry{Identity: Identity{Kind: KindString, Type: keydir.String, Key: []byte("key")}, Seq: 1, At: 40, Size: 30}
		must(t, w.Add(&e))
		if part == "entry" {
			w.Block[8] = byte(format.KindFree)
		}
		must(t, w.Finish())
		if part == "flags" {
			f, err := fs.Open(filepath.Join("d", format.HintName(1)), vfs.ReadWrite)
			must(t, err)
			_, err = f.WriteAt(sg.HintHeader(segment.HintPlain|4).Encode(), 0)
			must(t, errors.Join(err, f.Close()))
		}
		r, err := Open("d", &Options{ReadOnly: true, seam: seam.Options{FS: fs}})
		must(t, err)
		if v, err := r.Get("key"); err != nil || string(v) != "value" {
			t.Errorf("%s: %q, %v", part, v, err)
		}
		_, err = r.Check(context.Background(), func(f Finding) { t.Errorf("%s: %v", part, f) })
		must(t, errors.Join(err, r.Close()))
		hs, err := segment.OpenHint(fs, "d", sg)
		if part == "entry" && err == nil {
			_, err = hs.Next()
			must(t, hs.Close())
		}
		if !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", part, err)
		}
	}
	must(t, s.Close())
}

// Salvage does not leave out such a record where the frame around it is damaged.
func TestNewerInDamagedFrame(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs, NoIndex: true, NoHints: true}})
	must(t, err)
	commitNewer(t, s, func(tx *Tx) {
		tx.addNewer(format.KindExtended, "stream:s:1-1", "entry")
		must(t, tx.PutString(0, "key", []byte("value")))
	})
	must(t, s.Rotate())
	must(t, s.Close())
	f, err := fs.Open(filepath.Join("d", format.DataName(1)), vfs.ReadWrite)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	_, err = f.WriteAt([]byte("V"), size-format.FooterSize-5)
	must(t, errors.Join(err, f.Close()))
	if _, err := salvage(context.Background(), "d", "out", &Options{seam: seam.Options{FS: fs}}); !errors.Is(err, ErrVersion) {
		t.Errorf("salvage: %v", err)
	}
}
