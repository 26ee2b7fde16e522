package repair_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// written makes a store of segments that a merge has written, and of the log after them, and returns the sequence
// numbers of its keys.
func written(t *testing.T, mem *vfs.Mem) map[string]uint64 {
	t.Helper()
	must(t, mem.MkdirAll("d"))
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: mem, NoHints: true}))
	must(t, err)
	keys := map[string]uint64{}
	put := func(n int) {
		for range n {
			key := fmt.Sprintf("key %04d", len(keys))
			must(t, s.Put(key, []byte(strings.Repeat("v", 100))))
			keys[key] = s.Sequence()
		}
	}
	put(150)
	for n := 0; n < 150; n += 4 {
		key := fmt.Sprintf("key %04d", n)
		must(t, s.Put(key, []byte("again")))
		keys[key] = s.Sequence()
	}
	m, err := merge.New(s, merge.Policy{}, nil)
	must(t, err)
	_, err = m.Run(t.Context(), merge.RunOptions{All: true, Unlimited: true})
	must(t, err)
	put(150)
	must(t, s.Close())
	return keys
}

// What a hole may have made stale was written before the record after it, wherever in its segment the hole is: no
// record that is older than the lost ones is left out, and none that is newer is suspected.
func TestBeforeAHole(t *testing.T) {
	whole := vfs.NewMem()
	keys := written(t, whole)
	names, err := whole.List("d")
	must(t, err)
	segments := 0
	for _, name := range names {
		if _, suffix, ok := format.ParseName(name); !ok || suffix != format.DataSuffix {
			continue
		}
		segments++
		f, err := whole.Open(filepath.Join("d", name), vfs.ReadOnly)
		must(t, err)
		size, err := f.Size()
		must(t, errors.Join(err, f.Close()))
		if size < 1000 {
			continue
		}
		holes := map[string]func(*vfs.Mem){"missing": func(mem *vfs.Mem) { must(t, mem.Remove(filepath.Join("d", name))) }}
		for where, at := range map[string]int64{"beginning": format.SegmentHeaderSize, "middle": size / 2, "end": size - 200, "header": 0} {
			holes[where] = func(mem *vfs.Mem) {
				f, err := mem.Open(filepath.Join("d", name), vfs.ReadWrite)
				must(t, err)
				_, err = f.WriteAt(make([]byte, 100), at)
				must(t, errors.Join(err, f.Close()))
			}
		}
		for where, damage := range holes {
			for _, manifest := range []bool{true, false} {
				mem := whole.Clone()
				damage(mem)
				if !manifest {
					must(t, mem.Remove("d/MANIFEST"))
				}
				lookAtBefore(t, fmt.Sprintf("%s of %s, manifest %v", where, name, manifest), mem, keys, manifest && where != "missing")
			}
		}
	}
	if segments < 5 {
		t.Errorf("%d segments", segments)
	}
}

func lookAtBefore(t *testing.T, what string, mem *vfs.Mem, keys map[string]uint64, tight bool) {
	t.Helper()
	result, err := repair.Salvage(t.Context(), "d", "new", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	must(t, err)
	s, err := bitcask.Open("new", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	var lost, before uint64
	there := map[string]bool{}
	for key, seq := range keys {
		if _, err := s.Get(key); err == nil {
			there[key] = true
		} else if !errors.Is(err, bitcask.ErrNotFound) {
			t.Fatal(err)
		} else {
			lost = max(lost, seq)
		}
	}
	for _, l := range result.Lost {
		before = max(before, l.Before)
	}
	if lost > 0 && len(result.Lost) == 0 && !result.NoManifest {
		t.Errorf("%s: not told", what)
	}
	if len(result.Lost) == 0 {
		return
	}
	for key, seq := range keys {
		if there[key] && seq < lost && seq >= before || tight && seq > lost && seq < before {
			t.Errorf("%s: lost up to %d, before %d; %s is of %d: %v", what, lost, before, key, seq, result.Lost)
			break
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
