package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestDirectoryPowerCut: whatever a power cut leaves of a directory, an object is there whole or not at all, one that was
// put is there, and the next Put works.
func TestDirectoryPowerCut(t *testing.T) {
	rng := chance.Rand(t)
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("disk"))
	rec := vfstest.NewRecorder(mem)
	d, err := openDirectory(rec, "disk/archive")
	must(t, err)
	var objects []id
	holds := func(o id) []byte { return bytes.Repeat([]byte{byte(o.first)}, 700*int(o.first)) }
	for i := range uint64(4) {
		o := someLog
		o.generation, o.first, o.last = 1+uint32(i/2), i+1, i+1
		objects = append(objects, o)
		must(t, d.Put(t.Context(), o.name(), newEncoder(o, bytes.NewReader(holds(o)))))
		rec.Mark("put")
	}
	disk, put := crash.NewDisk("disk", nil), 0
	states := 0
	for i, e := range rec.Events() {
		if e.Op == vfstest.OpMark {
			put++
		}
		fresh := disk.Apply(i, e)
		for choice := range crash.Choices(disk.Units(), fresh, 20, rng) {
			mem, err := disk.Cut(crash.Weak, choice).Mem("disk")
			must(t, err)
			states++
			after, err := openDirectory(mem, "disk/archive")
			must(t, err)
			list, err := after.List(t.Context(), "")
			must(t, err)
			for n, o := range objects {
				listed := slices.ContainsFunc(list, func(object Object) bool { return object.Name == o.name() })
				r, err := after.Get(t.Context(), o.name())
				switch {
				case errors.Is(err, fs.ErrNotExist):
					if n < put || listed {
						t.Fatalf("event %d, %v, choice %v: object %d of %d is gone", i, e, choice, n, put)
					}
					continue
				case err != nil:
					t.Fatal(err)
				}
				got, err := io.ReadAll(newDecoder(o, r))
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, holds(o)) || !listed {
					t.Fatalf("event %d, %v, choice %v: object %d: %d bytes, listed %v: %v", i, e, choice, n, len(got), listed, err)
				}
			}
			o := objects[1]
			must(t, after.Put(t.Context(), o.name(), newEncoder(o, bytes.NewReader(holds(o)))))
			names, err := mem.List("disk/archive/" + generationName(o.generation, o.store))
			must(t, err)
			if slices.ContainsFunc(names, func(name string) bool { return name[len(name)-4:] == tempSuffix }) {
				t.Fatalf("event %d, %v, choice %v: left: %q", i, e, choice, names)
			}
		}
	}
	if states < 100 {
		t.Errorf("only %d states", states)
	}
}

// TestDirectory: what is not an object is not listed, a prefix leaves others out, and an emptied generation goes.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDirectory(dir + "/archive")
	must(t, err)
	if list, err := d.List(t.Context(), ""); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	other := someLog
	other.generation++
	for _, o := range []id{someLog, other} {
		must(t, d.Put(t.Context(), o.name(), bytes.NewReader([]byte("anything"))))
	}
	if err := d.Put(t.Context(), someLog.name(), errReader{}); !errors.Is(err, errDead) {
		t.Errorf("a reader that fails: %v", err)
	}
	for prefix, want := range map[string]int{"": 2, someLog.name(): 1, generationName(3, someLog.store) + "/": 1, "g0": 2, "x": 0, someLog.name() + "x": 0} {
		list, err := d.List(t.Context(), prefix)
		must(t, err)
		if len(list) != want || want > 0 && list[0] != (Object{someLog.name(), 8}) {
			t.Errorf("%q: %v", prefix, list)
		}
	}
	for range 2 {
		must(t, d.Delete(t.Context(), someLog.name()))
	}
	if names, err := vfs.OS().List(dir + "/archive"); len(names) != 1 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	must(t, d.Put(t.Context(), someLog.name(), bytes.NewReader(nil)))
	if _, err := OpenDirectory(dir + "/not/there"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errDead }
