package bitcask_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// TestFullDiskOfGarbage: a hundred keys are overwritten until the disk is full, so that next to all of it is garbage.
// Whatever its size, and with the reserve that there is by default, a merge frees it.
func TestFullDiskOfGarbage(t *testing.T) {
	sizes := []int64{0, 1, 2, 3, 5, 8, 64, 130}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, all := range []bool{false, true} {
		for _, pages := range sizes {
			mem := vfs.NewMem()
			mem.SetLimit(2<<20+pages*diskPage, diskPage)
			o := seam.With(&bitcask.Options{SegmentSize: 256 << 10, Sync: bitcask.SyncNone}, seam.Options{FS: mem, NoMapping: true})
			s := open(t, "d", o)
			values := map[string]string{}
			var err error
			for i := 0; err == nil; i++ {
				key, value := fmt.Sprint("key ", i%100), strings.Repeat(string(rune('a'+i%26)), 1000)
				if err = s.Put(key, []byte(value)); err == nil {
					values[key] = value
				}
			}
			if !errors.Is(err, bitcask.ErrNoSpace) {
				t.Fatal(err)
			}
			m, err := merge.New(s, merge.Policy{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := m.Run(t.Context(), merge.RunOptions{All: all, Unlimited: true})
			if err != nil || r.Reclaimed() < 1<<20 {
				t.Errorf("%d pages, all %v: %+v, %v", pages, all, r, err)
			}
			for key, value := range values {
				want(t, s, key, value)
			}
			if err := s.Put("key 1", []byte("again")); err != nil || s.Full() {
				t.Errorf("%d pages, all %v: a put: %v, full %v", pages, all, err, s.Full())
			}
			check(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReserveClasses: what a delete may do when a put fails for want of space, of quota, or at the longest that a file
// may be.
func TestReserveClasses(t *testing.T) {
	for _, cause := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		d := &fullDisk{t: t, name: cause.Error(), mem: vfs.NewMem(), have: map[string]string{}, rand: chance.Rand(t), cause: cause}
		d.o = *seam.With(&bitcask.Options{SegmentSize: 16 << 10, Reserve: 64 << 10}, seam.Options{NoMapping: true})
		d.mem.SetLimitError(256<<10, diskPage, cause)
		d.open()
		d.fill()
		d.free(false)
		d.resumes()
		d.close()
	}
	fault := vfstest.NewFault(vfs.NewMem())
	s := open(t, "d", seam.With(&bitcask.Options{Reserve: 64 << 10}, seam.Options{FS: fault, NoMapping: true}))
	put(t, s, "before", "1")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.EFBIG, Sticky: true})
	for range 3 {
		if err := s.Put("refused", nil); !errors.Is(err, bitcask.ErrNoSpace) || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("at the limit of a file: %v", err)
		}
		if _, err := s.Delete("before"); !errors.Is(err, bitcask.ErrNoSpace) {
			t.Errorf("a delete at the limit of a file: %v", err)
		}
	}
	if st := s.Stats(); st.Reserve != 64<<10 || st.State != bitcask.StateFull {
		t.Errorf("the space of no other file is of use: %+v", st)
	}
	fault.Heal()
	put(t, s, "after", "2")
	want(t, s, "before", "1")
	wantNone(t, s, "refused")
	if st := s.Stats(); st.State != bitcask.StateOK {
		t.Errorf("%+v", st)
	}
}

// TestReserveIsNotForPuts: what a delete was given of the reserve is not there for puts, in this process or the next
// one, before the reserve is whole again.
func TestReserveIsNotForPuts(t *testing.T) {
	d := &fullDisk{t: t, name: "drawn on", mem: vfs.NewMem(), have: map[string]string{}, rand: chance.Rand(t), cause: syscall.ENOSPC}
	d.o = *seam.With(&bitcask.Options{SegmentSize: 16 << 10, Reserve: 64 << 10},
		seam.Options{NoMapping: true, NoHints: true}) // hints would take the space that comes
	d.mem.SetLimit(512<<10, diskPage)
	d.open()
	d.fill()
	for key := range d.have {
		if d.Spare() < 64<<10 {
			break
		}
		d.delete(key)
	}
	for name, d := range map[string]*fullDisk{"the same process": d, "the next one": d.killed()} {
		if d.put() == nil || !d.Full() || d.Spare() == 64<<10 {
			t.Errorf("%s: a put has been given what a delete was; full %v, reserve %d", name, d.Full(), d.Spare())
		}
		d.mem.SetLimit(600<<10, diskPage) // space from outside
		d.resumes()
		if d.Full() || d.Spare() != 64<<10 {
			t.Errorf("%s: with space again: full %v, reserve %d", name, d.Full(), d.Spare())
		}
		d.close()
	}
}

// TestDeletesLeaveHalf: deletes come to an end before the reserve does, and a merge has the rest.
func TestDeletesLeaveHalf(t *testing.T) {
	d := &fullDisk{t: t, name: "deleted", mem: vfs.NewMem(), have: map[string]string{}, rand: chance.Rand(t), cause: syscall.ENOSPC}
	d.o = *seam.With(&bitcask.Options{SegmentSize: 8 << 10, Reserve: 128 << 10}, seam.Options{NoMapping: true})
	d.mem.SetLimit(1<<20, diskPage)
	d.open()
	d.fill()
	keys := slices.Sorted(maps.Keys(d.have))
	refused := false
	for _, key := range keys {
		if _, err := d.Delete(key); errors.Is(err, bitcask.ErrNoSpace) {
			refused = true
			break
		} else if err != nil {
			t.Fatal(err)
		}
		delete(d.have, key)
	}
	if spare := d.Spare(); !refused || spare < 64<<10 || spare >= 128<<10 {
		t.Fatalf("refused %v, with %d of the reserve left", refused, spare)
	}
	d.merge()
	d.resumes()
	d.close()
}

// TestRewriteLetsGoOfTheDeadFirst: one rewrite of segments of which the first hold nothing live gives their space back,
// also where no output can be made; and none where the output comes first.
func TestRewriteLetsGoOfTheDeadFirst(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s := open(t, "d", seam.With(&bitcask.Options{SegmentSize: 2000, Reserve: -1}, seam.Options{FS: fault, NoMapping: true}))
	for i := range 100 {
		put(t, s, fmt.Sprint("k", i%10), strings.Repeat("v", 100))
	}
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	before := len(s.Segments())
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Err: syscall.ENOSPC, Sticky: true})
	if err := rewriteAll(s); !errors.Is(err, bitcask.ErrNoSpace) {
		t.Fatal(err)
	}
	if now := len(s.Segments()); before < 5 || now > 3 {
		t.Errorf("%d segments of %d are left", now, before)
	}
	for i := range 10 {
		want(t, s, fmt.Sprint("k", i), strings.Repeat("v", 100))
	}
}

// TestReserveMayGo: without the file RESERVE, and with another in its place, a store opens and makes one.
func TestReserveMayGo(t *testing.T) {
	mem := vfs.NewMem()
	o := seam.With(&bitcask.Options{Reserve: 32 << 10}, seam.Options{FS: mem})
	for i, was := range [][]byte{nil, {}, []byte("STAVERSV"), bytes.Repeat([]byte{0xff}, 100), slices.Concat([]byte("STAVERSV"), bytes.Repeat([]byte{0xff}, 40<<10)), make([]byte, 100<<10)} {
		if err := mem.Remove("d/" + bitcask.ReserveName); err != nil && i > 0 {
			t.Fatal(err)
		}
		if was != nil {
			f, err := mem.Open("d/"+bitcask.ReserveName, vfs.Create)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(was, 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, "d", o)
		put(t, s, "k", fmt.Sprint(i))
		if n := s.Spare(); n < 32<<10 || n > 64<<10 || s.Full() || len(s.Recovery().Unknown) > 0 {
			t.Errorf("%d: reserve %d, full %v, %+v", i, n, s.Full(), s.Recovery())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, "d", seam.With(&bitcask.Options{Reserve: -1}, seam.Options{FS: mem}))
	want(t, s, "k", "5")
	if names, err := mem.List("d"); err != nil || slices.Contains(names, bitcask.ReserveName) {
		t.Errorf("nobody wants it any more: %v, %v", names, err)
	}
}

// TestReserveGrowsWithTheLog: a small store has none; one of a megabyte has a quarter of that.
func TestReserveGrowsWithTheLog(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem}))
	put(t, s, "k", strings.Repeat("v", 200<<10))
	time.Sleep(250 * time.Millisecond)
	if n := s.Spare(); n != 0 {
		t.Errorf("a store of 200 KiB has a reserve of %d", n)
	}
	put(t, s, "long", strings.Repeat("v", 900<<10))
	for i := 0; s.Spare() != 256<<10; i++ {
		if i == 6000 {
			t.Fatalf("a store of 1.1 MB has a reserve of %d", s.Spare())
		}
		time.Sleep(10 * time.Millisecond)
	}
	put(t, s, "k", "")
	put(t, s, "long", "")
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := rewriteAll(s); err != nil {
		t.Fatal(err)
	}
	for i := 0; s.Spare() != 0; i++ {
		if i == 6000 {
			t.Fatalf("a store without anything has a reserve of %d", s.Spare())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestRefusedWriteStaysAway: a commit can be in the file, whole, when the write that carries it fails, and others after
// it. It has been answered with an error, so no power cut brings it back.
func TestRefusedWriteStaysAway(t *testing.T) {
	rec := vfstest.NewRecorder(vfs.NewMem())
	fault := vfstest.NewFault(rec)
	s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fault, NoMapping: true, NoHints: true, NoIndex: true}))
	put(t, s, "before", "v")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Err: syscall.ENOSPC, Applied: true})
	if err := s.Put("refused", []byte("v")); !errors.Is(err, bitcask.ErrNoSpace) {
		t.Fatal(err)
	}
	disk := crash.NewDisk("d", nil)
	for i, e := range rec.Events() {
		disk.Apply(i, e)
	}
	for keep := range crash.Choices(disk.Units(), 0, 50, chance.Rand(t)) {
		left, err := disk.Cut(crash.Weak, keep).Mem("d")
		if err != nil {
			t.Fatal(err)
		}
		again := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: left, NoMapping: true}))
		want(t, again, "before", "v")
		wantNone(t, again, "refused")
	}
}
