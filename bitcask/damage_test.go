package bitcask_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestReadDamaged damages the log of a store that has neither hints nor an INDEX, and reads the rest.
func TestReadDamaged(t *testing.T) {
	files := damagedStore(t)
	const segment = "000000001.data"
	flip := func(text string, bits ...int) func(map[string][]byte) {
		return func(files map[string][]byte) {
			at := bytes.Index(files[segment], []byte(text))
			for _, bit := range bits {
				files[segment][at+bit/8] ^= 1 << (bit % 8)
			}
		}
	}
	lastFlip := func(text string, bit int) func(map[string][]byte) {
		return func(files map[string][]byte) {
			files[segment][bytes.LastIndex(files[segment], []byte(text))+bit/8] ^= 1 << (bit % 8)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(files map[string][]byte)
		bad    string // the one key that gives an error; none: the store cannot be read
	}{
		{"a bit of a value", flip("value of a", 3), "a"},
		{"a bit of a name", lastFlip("string:a", 7*8), "a"},
		{"a bit of a length", lastFlip("string:a", -8), "a"},
		{"two bits of a value", flip("value of a", 3, 60), ""},
		{"a bit of a batch", flip("in a batch, too", 0), "c"},
		{"a bit of a tombstone", lastFlip("string:gone", 8*8), "nobody"},
		{"a bit of the name of a long value", flip("string:long", 60), "long"},
		{"a bit of a long value", flip("long text", 8*1000), ""},
		{"a bit of a frame", lastFlip("string:a", -8*20), "nobody"},
		{"a byte of the middle", func(files map[string][]byte) { files[segment][100]++; files[segment][101]++ }, ""},
		{"no file", func(files map[string][]byte) { delete(files, segment) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := map[string][]byte{}
			for name, b := range files {
				state[name] = bytes.Clone(b)
			}
			c.damage(state)
			fs := restore(t, state)
			if s, err := bitcask.Open("d", damageOptions(fs)); !isDamage(err) {
				t.Fatalf("open: %v %v", s, err)
			}
			o := damageOptions(fs)
			o.ReadDamaged = true
			s, err := bitcask.Open("d", o)
			if c.bad == "" {
				if !isDamage(err) {
					t.Fatalf("open for what is left: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			readDamaged(t, s, c.bad)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if leaks := fs.Leaks(); len(leaks) > 0 {
				t.Errorf("left open: %q", leaks)
			}
		})
	}
}

// TestSalvageNamesWhatOneBitTook salvages a log without hints: whose the damaged record was is known all the same.
func TestSalvageNamesWhatOneBitTook(t *testing.T) {
	files := damagedStore(t)
	const segment = "000000001.data"
	files[segment][bytes.Index(files[segment], []byte("value of a"))] ^= 1
	fs := restore(t, files)
	result, err := repair.Salvage(context.Background(), "d", "new", seam.With(&bitcask.Options{}, seam.Options{FS: fs}))
	if err != nil {
		t.Fatal(err)
	}
	if lost := result.Lost; len(lost) != 1 || lost[0].Key != "a" || !lost[0].Named || !lost[0].Stale {
		t.Errorf("lost: %v", lost)
	}
	s, err := bitcask.Open("new", seam.With(&bitcask.Options{}, seam.Options{FS: fs}))
	if err != nil {
		t.Fatal(err)
	}
	want(t, s, "a", "older")
	want(t, s, "c", "in a batch, too")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func damageOptions(fs *vfs.Mem) *bitcask.Options {
	return seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fs, NoIndex: true, NoHints: true})
}

func isDamage(err error) bool {
	var c *bitcask.CorruptError
	return errors.As(err, &c) || errors.Is(err, bitcask.ErrMissing)
}

// readDamaged reads everything: one key may give an error.
func readDamaged(t *testing.T, s *bitcask.Store, bad string) {
	t.Helper()
	for key, value := range map[string]string{
		"a": "value of a", "b": "in a batch", "c": "in a batch, too", "long": strings.Repeat("long text", 2000), "last": "the last",
	} {
		got, err := s.Get(key)
		if key == bad && !isDamage(err) || key != bad && (err != nil || string(got) != value) {
			t.Errorf("%s: %.40q, %v", key, got, err)
		}
	}
	if got, err := s.Get("gone"); !errors.Is(err, bitcask.ErrNotFound) {
		t.Errorf("what was deleted is %q, %v", got, err)
	}
	if err := s.Put("new", nil); !errors.Is(err, bitcask.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	if damage := s.Recovery().Damage; len(damage) != 1 {
		t.Errorf("damage: %v", damage)
	}
}

// damagedStore is the files of a store that was not closed.
func damagedStore(t *testing.T) map[string][]byte {
	t.Helper()
	fs := restore(t, nil)
	s, err := bitcask.Open("d", damageOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "older")
	put(t, s, "gone", "deleted")
	put(t, s, "a", "value of a")
	b := s.NewBatch()
	b.Put("b", []byte("in a batch"))
	b.Put("c", []byte("in a batch, too"))
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete("gone"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "long", strings.Repeat("long text", 2000))
	put(t, s, "last", "the last")
	files := snapshot(t, fs, "d")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return files
}

// TestReadDamagedBesideAMerge has segments go, and their hints not yet, while a store is opened with ReadDamaged: that
// is no damage.
func TestReadDamagedBesideAMerge(t *testing.T) {
	for _, hints := range []bool{false, true} {
		mem := restore(t, nil)
		o := seam.With(&bitcask.Options{SegmentSize: 400}, seam.Options{FS: mem, NoIndex: true, NoHints: !hints})
		s, err := bitcask.Open("d", o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			put(t, s, fmt.Sprint("k", i), fmt.Sprintf("value %d", i))
		}
		mergeAll(t, s)
		put(t, s, "k2", "the newest")
		merged := false
		fault := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpList}, Do: func(vfstest.Event) {
			if merged {
				return
			}
			merged = true
			before := snapshot(t, mem, "d")
			if _, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{}); err != nil {
				t.Fatal(err)
			}
			for name := range snapshot(t, mem, "d") {
				delete(before, name)
			}
			for name, b := range before {
				if strings.HasSuffix(name, ".hint") {
					write(t, mem, "d/"+name, b)
				}
			}
		}})
		r, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadDamaged: true}, seam.Options{FS: fault, NoIndex: true, NoHints: !hints}))
		if err != nil {
			t.Fatalf("hints %v: %v", hints, err)
		}
		want(t, r, "k2", "the newest")
		if damage := r.Recovery().Damage; len(damage) > 0 || !merged {
			t.Errorf("hints %v: damage: %v", hints, damage)
		}
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func write(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Open(name, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
