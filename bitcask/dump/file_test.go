package dump_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/dump"
)

// newStore makes a store with a sealed segment, its hint, an INDEX and a manifest with a merge.
func newStore(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := bitcask.Open(dir, &bitcask.Options{Reserve: -1})
	must(t, err)
	for i := range 20 {
		must(t, s.Put(fmt.Sprint("key", i), []byte(strings.Repeat("v", i))))
	}
	b := s.NewBatch()
	b.Put("a", []byte("1"))
	b.Put("b", []byte("2"))
	must(t, b.Commit())
	_, err = s.Delete("key3")
	must(t, err)
	must(t, s.Rotate())
	_, err = s.Rewrite(context.Background(), []uint32{1}, bitcask.RewriteOptions{})
	must(t, err)
	must(t, s.Put("later", []byte("x")))
	must(t, s.Close())
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// walk collects what File shows of a file.
func walk(t testing.TB, path string) (items []dump.Item, damaged int) {
	t.Helper()
	must(t, dump.File(context.Background(), path, func(i dump.Item) error {
		if i.What == dump.Damage {
			damaged++
		}
		i.Key, i.Element, i.Value = bytes.Clone(i.Key), bytes.Clone(i.Element), bytes.Clone(i.Value)
		items = append(items, i)
		return nil
	}))
	return items, damaged
}

// A sound store has no damage in any file; the records of the segment and of its hint are the same ones.
func TestSoundFiles(t *testing.T) {
	dir := newStore(t)
	files, err := os.ReadDir(dir)
	must(t, err)
	keys := map[string][]string{}
	kinds := map[string]bool{}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		v, err := dump.VersionOf(path)
		if errors.Is(err, dump.ErrUnknown) { // LOCK
			if err := dump.File(t.Context(), path, nil); !errors.Is(err, dump.ErrUnknown) {
				t.Errorf("%s: %v", f.Name(), err)
			}
			continue
		}
		must(t, err)
		if v.Version != v.Current {
			t.Errorf("%s of a new store has version %d, this program is said to write %d", f.Name(), v.Version, v.Current)
		}
		kinds[v.Kind] = true
		items, damaged := walk(t, path)
		if damaged > 0 || len(items) < 2 {
			t.Errorf("%s: %d damaged of %v", f.Name(), damaged, items)
		}
		for _, i := range items {
			if i.What == "string" {
				keys[f.Name()] = append(keys[f.Name()], fmt.Sprint(i.Offset, i.Bytes, i.Sequence, string(i.Key)))
			}
		}
	}
	for _, kind := range []string{"segment", "hint", "MANIFEST", "INDEX"} {
		if !kinds[kind] {
			t.Errorf("no %s was shown", kind)
		}
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.hint"))
	must(t, err)
	if len(segments) != 1 {
		t.Fatalf("hints %v", segments)
	}
	name := filepath.Base(segments[0])
	data := strings.TrimSuffix(name, ".hint") + ".data"
	if !slices.Equal(keys[name], keys[data]) || len(keys[name]) != 21 {
		t.Errorf("hint %q, segment %q", keys[name], keys[data])
	}
}

// A writer that closes while its segment is shown truncates the zeros that it had reserved. All commits are shown, and
// no damage.
func TestWriterClosesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	s, err := bitcask.Open(dir, nil)
	must(t, err)
	for _, key := range []string{"a", "b", "c"} {
		must(t, s.Put(key, nil))
	}
	commits := 0
	must(t, dump.File(t.Context(), filepath.Join(dir, "000000001.data"), func(i dump.Item) error {
		switch i.What {
		case "header":
			must(t, s.Close())
		case "commit":
			commits++
		case dump.Damage:
			t.Errorf("damage: %v", i)
		}
		return nil
	}))
	if commits != 3 {
		t.Errorf("%d commits", commits)
	}
}

// Whatever bit is flipped, the walk goes on to the end of the file, and says that there is damage.
func TestEveryByteFlipped(t *testing.T) {
	dir := newStore(t)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	flips := 0
	for _, path := range files {
		if _, err := dump.VersionOf(path); err != nil {
			continue
		}
		whole, err := os.ReadFile(path)
		must(t, err)
		sound, _ := walk(t, path)
		for at := 0; at < len(whole); at += 1 + len(whole)/200 {
			broken := bytes.Clone(whole)
			broken[at] ^= 0x10
			must(t, os.WriteFile(path, broken, 0o644))
			var items []dump.Item
			damaged := 0
			err := dump.File(t.Context(), path, func(i dump.Item) error {
				if i.What == dump.Damage {
					damaged++
				}
				items = append(items, i)
				return nil
			})
			zeros := sound[len(sound)-1]
			inZeros := zeros.What == "zeros" && int64(at) >= zeros.Offset
			if err != nil && !(errors.Is(err, dump.ErrUnknown) && at < 8) || err == nil && damaged == 0 && !inZeros {
				t.Errorf("%s at %d: %d damaged, %v", filepath.Base(path), at, damaged, err)
			}
			flips++
		}
		must(t, os.WriteFile(path, whole, 0o644))
	}
	t.Logf("%d bits flipped", flips)
	if flips < 300 {
		t.Errorf("%d bits flipped", flips)
	}
}

// Records after a damaged one are shown, and so are those before it in the same commit.
func TestWalkGoesOn(t *testing.T) {
	dir := newStore(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.data"))
	must(t, err)
	path := files[len(files)-1]
	sound, _ := walk(t, path)
	target := sound[len(sound)/2]
	b, err := os.ReadFile(path)
	must(t, err)
	b[target.Offset+target.Bytes-1] ^= 1
	must(t, os.WriteFile(path, b, 0o644))
	items, damaged := walk(t, path)
	last := items[len(items)-1]
	if damaged != 1 || last.What != sound[len(sound)-1].What || len(items) < len(sound)-1 {
		t.Errorf("%d damaged, %d items of %d, the last one %v", damaged, len(items), len(sound), last)
	}
}

// A visitor's error and the context end the walk.
func TestWalkEnds(t *testing.T) {
	dir := newStore(t)
	path := filepath.Join(dir, "MANIFEST")
	enough := errors.New("enough")
	if err := dump.File(t.Context(), path, func(dump.Item) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if err := dump.File(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzFile shows any bytes under each of the names: it ends, without a panic.
func FuzzFile(f *testing.F) {
	dir := newStore(f)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must(f, err)
	for _, path := range files {
		b, err := os.ReadFile(path)
		must(f, err)
		f.Add(b[:min(len(b), 64<<10)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		for _, name := range []string{"000000001.data", "MANIFEST", "INDEX", "x"} {
			path := filepath.Join(dir, name)
			must(t, os.WriteFile(path, b, 0o644))
			err := dump.File(t.Context(), path, func(i dump.Item) error {
				if i.Offset < 0 || i.Bytes < 0 {
					t.Errorf("%+v", i)
				}
				return nil
			})
			if err != nil && !errors.Is(err, dump.ErrUnknown) {
				t.Error(err)
			}
		}
	})
}
