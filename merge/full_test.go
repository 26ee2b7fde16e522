package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// TestUnreadableSegmentIsLeftOut: a segment that cannot be read is tried more and more seldom, the others are merged,
// and attempts that fail use up no ids. When it can be read again it is merged.
func TestUnreadableSegmentIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfstest.NewFault(vfs.NewMem())
		s := openStore(t, fault)
		const file = "000000004.data"
		for round := range 4 {
			fill(t, s, 100, fmt.Sprint("value ", round))
		}
		rotate(t, s)
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRead}, Path: file, Sticky: true, Err: syscall.EIO})
		m := newMerger(t, s, merge.Policy{SmallBytes: 1, IncludeRatio: 0.01, TriggerRatio: 0.01})
		ticks := func(d time.Duration) {
			for range int(d / time.Second) {
				m.Tick(t.Context())
				time.Sleep(time.Second)
			}
		}
		ticks(10 * time.Minute)
		st := m.Status()
		if st.Failures < 3 || st.Failures > 12 || st.Merges == 0 {
			t.Errorf("after ten minutes: %+v", st)
		}
		names := segmentFiles(s)
		if !slices.Contains(names, file) || slices.Contains(names, "000000001.data") || slices.Contains(names, "000000002.data") {
			t.Errorf("the others are not merged: %v", names)
		}
		if last := names[len(names)-1]; last > "000000012.data" {
			t.Errorf("ids are used up: %v", names)
		}
		var unread *bitcask.SegmentError
		if _, err := m.Run(t.Context(), merge.RunOptions{All: true}); !errors.As(err, &unread) || unread.File != file || !errors.Is(err, syscall.EIO) {
			t.Errorf("by hand: %v", err)
		}
		fault.Heal()
		ticks(2 * time.Hour)
		if names := segmentFiles(s); slices.Contains(names, file) {
			t.Errorf("it is not merged when it can be: %v", names)
		}
		for i := range 100 {
			if got, err := s.Get(fmt.Sprint("key", i)); err != nil || string(got) != "value 3" {
				t.Fatalf("key%d: %q, %v", i, got, err)
			}
		}
	})
}

func segmentFiles(s *bitcask.Store) (names []string) {
	for _, sg := range s.Segments() {
		names = append(names, sg.File)
	}
	slices.Sort(names)
	return names
}

// TestDeadSegmentsNeedNoSpace: on a disk on which no file can be made, a merge of everything, and the first tick,
// release dead segments, and leave the rest as it was.
func TestDeadSegmentsNeedNoSpace(t *testing.T) {
	for _, byHand := range []bool{true, false} {
		for _, survey := range []bool{true, false} { // without hints the data is read
			t.Run(fmt.Sprint("by hand ", byHand, ", hints ", survey), func(t *testing.T) {
				mem := vfs.NewMem()
				fault := vfstest.NewFault(mem)
				s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10, Reserve: -1}, seam.Options{FS: fault, NoHints: !survey}))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Put("oldest", bytes.Repeat([]byte("v"), 3000)); err != nil {
					t.Fatal(err)
				}
				fill(t, s, 300, "value")
				fill(t, s, 300, "value")
				rotate(t, s)
				before := len(s.Segments())
				fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Sticky: true, Err: syscall.ENOSPC})
				for range 2000 { // until the active segment is full
					if err = s.Put("another", bytes.Repeat([]byte("v"), 1000)); err != nil {
						break
					}
				}
				if !errors.Is(err, bitcask.ErrNoSpace) {
					t.Fatal(err)
				}
				m := newMerger(t, s, merge.Policy{SmallBytes: 1})
				if byHand {
					_, err := m.Run(t.Context(), merge.RunOptions{All: true, Unlimited: true})
					if !errors.Is(err, bitcask.ErrNoSpace) {
						t.Errorf("a merge of everything: %v", err)
					}
				} else {
					m.Tick(t.Context())
				}
				if now := len(s.Segments()); now > before/2+3 {
					t.Errorf("%d segments of %d are left", now, before)
				}
				for i := range 300 {
					if got, err := s.Get(fmt.Sprint("key", i)); err != nil || string(got) != "value" {
						t.Fatalf("key%d: %q, %v", i, got, err)
					}
				}
				fault.Heal()
				fill(t, s, 300, "again")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestTicksOnAFullDisk: what does not fit is tried more and more seldom, and at once when there is something else to be
// had.
func TestTicksOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfstest.NewFault(vfs.NewMem())
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10, Reserve: -1}, seam.Options{FS: fault}))
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, 300, "value")
		fill(t, s, 40, "value") // a segment is partly dead
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Sticky: true, Err: syscall.ENOSPC})
		for i := 0; err == nil; i++ {
			err = s.Put(fmt.Sprint("more", i), nil)
		}
		m := newMerger(t, s, merge.Policy{})
		for range 600 {
			m.Tick(t.Context())
			time.Sleep(time.Second)
		}
		if st := m.Status(); st.Failures < 5 || st.Failures > 20 {
			t.Errorf("in ten minutes %+v", st)
		}
		fault.Heal()
		for range 70 {
			m.Tick(t.Context())
			time.Sleep(time.Second)
		}
		if st := m.Status(); st.Merges == 0 {
			t.Errorf("with space again %+v", st)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
