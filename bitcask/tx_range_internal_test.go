package bitcask

import (
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
		n, err = tx.DeleteRange(0, "list", collectionOf(tx, "list"), from, to)
		must(t, err)
	})
	return n
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

// TestRangeNames: which names of tombstones are those of ranges.
func TestRangeNames(t *testing.T) {
	for _, r := range [][2]int64{{-1, 0}, {-1 << 63, 1<<63 - 1}, {5, 9}} {
		name := format.RangeName(r[0], r[1])
		if from, to, ok := format.ParseRange([]byte(name)); !ok || from != r[0] || to != r[1] {
			t.Errorf("%q: %d to %d, %v", name, from, to, ok)
		}
	}
	if from, to, ok := format.ParseRange([]byte(format.IndexName(-7))); !ok || from != -7 || to != -7 {
		t.Errorf("an index: %d to %d, %v", from, to, ok)
	}
	one := format.IndexName(3)
	for _, bad := range []string{"", "-", one + "-", one + "-" + one, format.RangeName(1, 0), one + ":" + format.IndexName(4), format.RangeName(1, 2) + "0"} {
		if _, _, ok := format.ParseRange([]byte(bad)); ok {
			t.Errorf("%q is a range", bad)
		}
	}
}
