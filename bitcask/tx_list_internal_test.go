package bitcask

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// fillList makes a list of elements with the indexes from 0 on.
func fillList(t *testing.T, s *Store, n int64) {
	commitNewer(t, s, func(tx *Tx) {
		coll, err := tx.Collection(0, "list", keydir.List)
		must(t, err)
		for i := range n {
			must(t, tx.PutIndex(0, "list", coll, i, []byte("value")))
		}
	})
}

// deleteRange removes elements of it, and returns how many.
func deleteRange(t *testing.T, s *Store, from, to int64) (n int) {
	commitNewer(t, s, func(tx *Tx) {
		var err error
		n, err = tx.DeleteRange(0, "list", collectionOf(tx, "list"), keydir.ListPlace{Index: from}, keydir.ListPlace{Index: to})
		must(t, err)
	})
	return n
}

// deletePlace removes one of them.
func deletePlace(tx *Tx, at keydir.ListPlace) error {
	return second(tx.DeleteRange(0, "list", collectionOf(tx, "list"), at, at))
}

// indexesOf are the indexes that the list has.
func indexesOf(t *testing.T, s *Store) (list []int64) {
	tx, err := s.Begin(false, "list")
	must(t, err)
	defer tx.End()
	coll := collectionOf(tx, "list")
	for head, tail := coll.Bounds(); head <= tail; head++ {
		if _, ok := coll.LocAt(head); ok {
			list = append(list, head)
		}
	}
	return list
}

// TestRangeFeature: the feature bit is on disk before the first tombstone of a range is. A single element needs none.
func TestRangeFeature(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s, err := Open("d", &Options{seam: seam.Options{FS: fault}})
	must(t, err)
	fillList(t, s, 10)
	if n := deleteRange(t, s, 9, 9); n != 1 || s.man.Features&manifest.FeatureRanges != 0 {
		t.Errorf("%d elements deleted, feature bits %#x", n, s.man.Features)
	}
	checked := false
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) {
		m, err := manifest.Read(mem, "d", vfs.ReadOnly, nil)
		must(t, err)
		checked = m.Features&manifest.FeatureRanges != 0
		must(t, m.Close())
	}})
	if n := deleteRange(t, s, -5, 7); n != 8 || !checked {
		t.Errorf("%d elements deleted; the bit is written before: %v", n, checked)
	}
	if list := indexesOf(t, s); len(list) != 1 || list[0] != 8 {
		t.Errorf("left: %v", list)
	}
	must(t, s.Close())
}

// TestRangeOnFullDisk: where the bit has no room, each element has its own tombstone.
func TestRangeOnFullDisk(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s, err := Open("d", &Options{seam: seam.Options{FS: fault, NoIndex: true}})
	must(t, err)
	fillList(t, s, 10)
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: manifest.FileName + "*", Err: syscall.ENOSPC, Sticky: true})
	if n := deleteRange(t, s, 2, 20); n != 8 || s.man.Features&manifest.FeatureRanges != 0 {
		t.Errorf("%d elements deleted, feature bits %#x", n, s.man.Features)
	}
	fault.Heal()
	must(t, s.Close())
	s, err = Open("d", &Options{seam: seam.Options{FS: fault, NoIndex: true}})
	must(t, err)
	if list := indexesOf(t, s); len(list) != 2 {
		t.Errorf("left: %v", list)
	}
	must(t, s.Close())
}

// TestPlacesFeature: the feature bit is on disk before the first hole is, and before the first element with a sub-index.
// Where it has no room nothing changes. What is removed at an end needs none.
func TestPlacesFeature(t *testing.T) {
	for name, change := range map[string]func(tx *Tx, coll keydir.Collection) error{
		"a hole": func(tx *Tx, coll keydir.Collection) error {
			return deletePlace(tx, keydir.ListPlace{Index: 4})
		},
		"a range": func(tx *Tx, coll keydir.Collection) error {
			return second(tx.DeleteRange(0, "list", coll, keydir.ListPlace{Index: 4}, keydir.ListPlace{Index: 5}))
		},
		"inserted": func(tx *Tx, coll keydir.Collection) error {
			return tx.PutPlace(0, "list", coll, keydir.ListPlace{Index: 4, Sub: 1}, []byte("v"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			fault := vfstest.NewFault(mem)
			s, err := Open("d", &Options{seam: seam.Options{FS: fault}})
			must(t, err)
			fillList(t, s, 10)
			deleteRange(t, s, 0, 0)
			deleteRange(t, s, 8, 9)
			if s.man.Features&manifest.FeaturePlaces != 0 {
				t.Error("the ends need the bit")
			}
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: manifest.FileName + "*", Err: syscall.ENOSPC, Sticky: true})
			tx, err := s.Begin(true, "list")
			must(t, err)
			err = change(tx, collectionOf(tx, "list"))
			must(t, second(tx.Commit()))
			tx.End()
			if list := indexesOf(t, s); !errors.Is(err, ErrNoSpace) || len(list) != 7 {
				t.Errorf("where the bit has no room: %v, left: %v", err, list)
			}
			fault.Heal()
			checked := false
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) {
				m, err := manifest.Read(mem, "d", vfs.ReadOnly, nil)
				must(t, err)
				checked = m.Features&manifest.FeaturePlaces != 0
				must(t, m.Close())
			}})
			commitNewer(t, s, func(tx *Tx) { must(t, change(tx, collectionOf(tx, "list"))) })
			if !checked {
				t.Error("the bit is not written before")
			}
			must(t, s.Close())
		})
	}
}

// TestHolesThatNobodyAnnounced: Check finds them, and FixCounts has the manifest announce them.
func TestHolesThatNobodyAnnounced(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	fillList(t, s, 10)
	commitNewer(t, s, func(tx *Tx) {
		s.man.noted.Store(uint32(manifest.FeaturePlaces)) // as if it were there
		must(t, deletePlace(tx, keydir.ListPlace{Index: 4}))
		s.man.noted.Store(0)
	})
	check := func() (list []Finding) {
		_, err := s.Check(t.Context(), func(f Finding) { list = append(list, f) })
		must(t, err)
		return list
	}
	if list := check(); len(list) != 1 || list[0].Rule != "I5" || list[0].Key != "list" {
		t.Errorf("Check finds %v", list)
	}
	fixed, err := s.FixCounts(t.Context())
	must(t, err)
	if list := check(); len(list) != 0 || !s.man.announces(manifest.FeaturePlaces) {
		t.Errorf("after %d corrections Check finds %v", fixed, list)
	}
	if list := indexesOf(t, s); len(list) != 9 {
		t.Errorf("left: %v", list)
	}
	must(t, s.Close())
}

// TestHolesOfALiveWriter: a store that is opened for reading while its writer announces holes, and makes the first one, knows that they are
// announced, however it meets them: a check finds nothing, and a backup announces them.
func TestHolesOfALiveWriter(t *testing.T) {
	mem := vfs.NewMem()
	w, err := Open("d", &Options{seam: seam.Options{FS: mem}})
	must(t, err)
	fillList(t, w, 10)
	fault := vfstest.NewFault(mem)
	hole := int64(1)
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpOpen}, Path: "*.data", Do: func(vfstest.Event) { // the manifest has been read
		deleteRange(t, w, hole, hole)
		hole++
	}})
	s, err := Open("d", &Options{ReadOnly: true, seam: seam.Options{FS: fault}})
	must(t, err)
	if list := indexesOf(t, s); hole != 2 || len(list) != 9 {
		t.Fatalf("%d holes were made; the reader has %v", hole-1, list)
	}
	must(t, second(s.Check(t.Context(), func(f Finding) { t.Errorf("Check finds %v", f) })))
	must(t, second(s.Backup(t.Context(), "copy")))
	copied, err := Open("copy", &Options{ReadOnly: true, seam: seam.Options{FS: fault}})
	must(t, err)
	must(t, second(copied.Check(t.Context(), func(f Finding) { t.Errorf("Check of the backup finds %v", f) })))
	must(t, copied.Close())
	must(t, s.Close())
	must(t, w.Close())
}

// TestPlacesRollback: what a transaction has done to places of a list is rolled back to a savepoint, and then whole.
func TestPlacesRollback(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	at := func(index int64, sub uint64) keydir.ListPlace { return keydir.ListPlace{Index: index, Sub: sub} }
	put := func(tx *Tx, p keydir.ListPlace) {
		must(t, tx.PutPlace(0, "list", collectionOf(tx, "list"), p, []byte("value")))
	}
	content := func(tx *Tx) (text string) {
		collectionOf(tx, "list").EachPlace(func(p keydir.ListPlace, loc keydir.Loc) bool {
			text += fmt.Sprintln(p, loc)
			return true
		})
		return text
	}
	change := func(tx *Tx) {
		put(tx, at(4, 0))
		put(tx, at(4, 7))
		put(tx, at(4, 9))
		put(tx, at(600, 1))
		must(t, deletePlace(tx, at(5, 0)))
		must(t, deletePlace(tx, at(4, 9)))
		must(t, second(tx.DeleteRange(0, "list", collectionOf(tx, "list"), at(2, 0), at(4, 8))))
	}
	fillList(t, s, 700)
	commitNewer(t, s, func(tx *Tx) {
		put(tx, at(3, 5))
		put(tx, at(4, 7))
	})
	tx, err := s.Begin(true, "list")
	must(t, err)
	before := content(tx)
	change(tx)
	middle := content(tx)
	sp := tx.Savepoint()
	put(tx, at(8, 1))
	put(tx, at(600, 1))
	must(t, second(tx.DeleteRange(0, "list", collectionOf(tx, "list"), at(1, 0), at(699, 1<<64-1))))
	must(t, tx.RollbackTo(sp))
	if got := content(tx); got != middle {
		t.Errorf("after the savepoint was rolled back to:\n%s", got)
	}
	tx.End()
	tx, err = s.Begin(false, "list")
	must(t, err)
	if got := content(tx); got != before {
		t.Errorf("after all was rolled back:\n%s", got)
	}
	tx.End()
	must(t, s.Close())
}

// TestRangeNames: which names of tombstones are those of ranges, and what they need.
func TestRangeNames(t *testing.T) {
	at := func(index int64, sub uint64) keydir.ListPlace { return keydir.ListPlace{Index: index, Sub: sub} }
	needs := func(name string) manifest.Features {
		return manifest.FeatureOf(&format.Identity{Kind: KindElementTombstone, Type: keydir.List, Elem: []byte(name)})
	}
	for _, r := range []struct {
		from, to keydir.ListPlace
		needs    manifest.Features
	}{
		{at(-1, 0), at(0, 0), manifest.FeatureRanges},
		{at(-1<<63, 0), at(1<<63-1, 0), manifest.FeatureRanges},
		{at(5, 0), at(5, 1), manifest.FeatureRanges | manifest.FeaturePlaces},
		{at(5, 1<<64-1), at(6, 0), manifest.FeatureRanges | manifest.FeaturePlaces},
		{at(5, 7), at(5, 8), manifest.FeatureRanges | manifest.FeaturePlaces},
	} {
		name := format.RangeName(r.from, r.to)
		if from, to, ok := format.ParseRange([]byte(name)); !ok || from != r.from || to != r.to || needs(name) != r.needs {
			t.Errorf("%q: %v to %v, %v; needs %#x", name, from, to, ok, needs(name))
		}
	}
	for _, p := range []struct {
		at    keydir.ListPlace
		needs manifest.Features
	}{{at(-7, 0), 0}, {at(-7, 1), manifest.FeaturePlaces}} {
		name := format.PlaceName(p.at)
		if from, to, ok := format.ParseRange([]byte(name)); !ok || from != p.at || to != p.at || needs(name) != p.needs {
			t.Errorf("%q: %v to %v, %v; needs %#x", name, from, to, ok, needs(name))
		}
	}
	one := format.IndexName(3)
	for _, bad := range []string{
		"", "-", one + "-", one + "-" + one, format.RangeName(at(1, 0), at(0, 0)), one + ":" + format.IndexName(4),
		format.RangeName(at(1, 0), at(2, 0)) + "0", one + "0000000000000000", one + "0", one + one + "-", one + one + "-" + one + one,
	} {
		if _, _, ok := format.ParseRange([]byte(bad)); ok {
			t.Errorf("%q is a range", bad)
		}
	}
}
