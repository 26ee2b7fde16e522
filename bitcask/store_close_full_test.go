package bitcask_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// A full disk keeps a segment from being sealed: a part of its footer is written, and truncated. A power cut after a
// clean close does not bring that part back, which no crash can have left in a store that was closed.
func TestPowerCutAfterCloseOnAFullDisk(t *testing.T) {
	for _, records := range []int{1, 6, 7, 8, 9, 10} { // so that the footer reaches from one sector to the next, too
		rec := vfstest.NewRecorder(vfs.NewMem())
		fault := vfstest.NewFault(rec)
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 1 << 20}, seam.Options{FS: fault, NoIndex: true, NoHints: true}))
		x := &tornEnd{T: t}
		x.must(err)
		for i := range records {
			x.must(s.Put(fmt.Sprint("key", i), []byte("a value of forty bytes and not one more.")))
		}
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "000000001.data", Sticky: true, Partial: 40, Err: syscall.ENOSPC})
		if err := s.Rotate(); err == nil {
			t.Fatal("sealed")
		}
		x.must(s.Close())
		disk := crash.NewDisk("d", nil)
		for i, e := range rec.Events() {
			disk.Apply(i, e)
		}
		for choice := range crash.Choices(disk.Units(), disk.Units(), 20, rand.New(rand.NewPCG(1, 2))) {
			mem, err := disk.Cut(crash.Weak, choice).Mem("d")
			x.must(err)
			s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
			if err != nil {
				t.Fatalf("%d records, choice %v of %d: %v", records, choice, disk.Units(), err)
			}
			if n := s.Len(0); n != records {
				t.Errorf("%d records, choice %v of %d: %d keys", records, choice, disk.Units(), n)
			}
			x.must(s.Close())
		}
	}
}

// An edit of the manifest that a full disk has let through in full, though it says otherwise, is truncated, and the
// segment that it adds is removed. A power cut does not bring the edit back without the segment.
func TestPowerCutAfterAnEditWasCutOff(t *testing.T) {
	rec := vfstest.NewRecorder(vfs.NewMem())
	fault := vfstest.NewFault(rec)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: fault, NoHints: true}))
	x := &tornEnd{T: t}
	x.must(err)
	x.must(s.Put("key", []byte("text")))
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "MANIFEST*", Sticky: true, Partial: 100, Err: syscall.ENOSPC})
	if err := s.Rotate(); err == nil {
		t.Fatal("another segment was made")
	}
	x.must(s.SaveIndex()) // syncs the directory
	disk := crash.NewDisk("d", nil)
	for i, e := range rec.Events() {
		disk.Apply(i, e)
	}
	for choice := range crash.Choices(disk.Units(), disk.Units(), 20, rand.New(rand.NewPCG(1, 2))) {
		mem, err := disk.Cut(crash.Weak, choice).Mem("d")
		x.must(err)
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
		if err != nil {
			t.Fatalf("choice %v of %d: %v", choice, disk.Units(), err)
		}
		x.must(s.Close())
	}
	fault.Heal()
	x.must(s.Close())
}
