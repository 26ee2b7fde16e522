package bitcask

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/history"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Each counter of the format comes to its end with ErrFull, before anything has changed, and never
// wraps: the store still does all that needs no number, and opens again with its content.
func TestNumbersAtTheirEnd(t *testing.T) {
	put := func(s *Store) error { return s.Put("key", []byte("value")) }
	flush := func(s *Store) error {
		t, err := s.BeginAll(true)
		if err != nil {
			return err
		}
		defer t.End()
		dropped, _, err := t.Flush(1)
		if err == nil && len(dropped) != 1 {
			err = fmt.Errorf("dropped %d", dropped)
		}
		return err
	}
	merge := func(s *Store) error {
		var ids []uint32
		for _, info := range s.Segments() {
			if info.Sealed {
				ids = append(ids, info.ID)
			}
		}
		_, err := s.Rewrite(context.Background(), ids, RewriteOptions{})
		return err
	}
	for _, x := range []struct {
		name string
		next uint32         // segment id to begin with
		set  func(s *Store) // two steps before the end
		do   func(s *Store) error
	}{
		{"segment ids", format.MaxSegmentID - 3, nil, func(s *Store) error { return errors.Join(put(s), s.Rotate()) }},
		{"segment ids of merges", format.MaxSegmentID - 3, nil, merge},
		{"spaces", 1, func(s *Store) { s.spaces.Fresh = format.MaxSpace - 1 }, func(s *Store) error {
			tx, err := s.Begin(true, "key")
			if err != nil {
				return err
			}
			if err = tx.PutString(1, "key", nil); err == nil {
				_, err = tx.Commit()
			}
			tx.End()
			return errors.Join(err, flush(s))
		}},
		{"sequence numbers", 1, func(s *Store) { s.log.Reach(format.MaxSequence - 1) }, put},
		{"terms", 1, func(s *Store) {
			e := history.First(s.man.Store)
			e.Term = math.MaxUint64 - 2
			if err := s.putEpoch(e, reserve.LeaveHalf); err != nil {
				t.Fatal(err)
			}
		}, func(s *Store) error { _, err := s.BeginHistory(); return err }},
	} {
		t.Run(x.name, func(t *testing.T) {
			fs := vfs.NewMem()
			must(t, fs.MkdirAll("d"))
			m, err := manifest.Create(fs, "d", [16]byte{1}, keydir.Seed{})
			must(t, err)
			must(t, errors.Join(m.Log(manifest.EditNextID, binary.LittleEndian.AppendUint32(nil, x.next)), m.Close()))
			s, err := Open("d", &Options{SegmentSize: 4 << 10, seam: seam.Options{FS: fs}})
			must(t, err)
			must(t, s.Put("before", []byte("value")))
			must(t, s.Rotate())
			if x.set != nil {
				x.set(s)
			}
			for range 2 {
				must(t, x.do(s))
			}
			for range 3 {
				if err := x.do(s); !errors.Is(err, ErrFull) {
					t.Errorf("beyond the end: %v", err)
				}
			}
			must(t, s.Err())
			want := map[string]string{}
			for _, key := range []string{"before", "key"} {
				v, err := s.Get(key)
				if err == nil {
					want[key] = string(v)
				} else if !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
			must(t, s.Close())
			for _, readOnly := range []bool{true, false} {
				s, err := Open("d", &Options{SegmentSize: 4 << 10, ReadOnly: readOnly, seam: seam.Options{FS: fs}})
				if !readOnly && errors.Is(err, ErrFull) {
					continue // not one segment can be begun
				}
				must(t, err)
				_, err = s.Check(context.Background(), func(f Finding) { t.Error(f) })
				must(t, err)
				for key, value := range want {
					if v, err := s.Get(key); err != nil || string(v) != value {
						t.Errorf("%s: %q, %v", key, v, err)
					}
				}
				must(t, s.Close())
			}
		})
	}
}

// Numbers in files that are never given are refused and lead to no panic.
func TestNumbersBeyondTheEnd(t *testing.T) {
	u32 := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	si := func(id uint32, seq uint64) format.SealedInfo {
		return format.SealedInfo{ID: id, Length: 100, MinSeq: 1, MaxSeq: seq, Records: 1}
	}
	for name, edit := range map[string]struct {
		typ  byte
		body []byte
	}{
		"add":          {manifest.EditAdd, u32(format.MaxSegmentID + 1)},
		"add, wrapped": {manifest.EditAdd, u32(math.MaxUint32)},
		"seal":         {manifest.EditSeal, manifest.SealBody(si(format.MaxSegmentID+1, 1), 0)},
		"seal, next":   {manifest.EditSeal, manifest.SealBody(si(1, 1), format.MaxSegmentID+1)},
		"swap":         {manifest.EditSwap, manifest.SwapBody(nil, []format.SealedInfo{si(math.MaxUint32, 1)})},
		"next id":      {manifest.EditNextID, u32(format.MaxSegmentID + 2)},
		"inherited":    {manifest.EditInherited, manifest.Origin{Below: format.MaxSegmentID + 2, Through: 1}.Encode()},
		"sequence":     {manifest.EditSwap, manifest.SwapBody(nil, []format.SealedInfo{si(1, math.MaxUint64)})},
		"close":        {manifest.EditClose, manifest.CloseBody(1, 40, math.MaxUint64)},
	} {
		fs := vfs.NewMem()
		must(t, fs.MkdirAll("d"))
		m, err := manifest.Create(fs, "d", [16]byte{1}, keydir.Seed{})
		must(t, err)
		b := m.AppendEdit(nil, m.Size, edit.typ, edit.body)
		_, err = m.File.WriteAt(b, m.Size)
		must(t, errors.Join(err, m.Close()))
		if _, err := Open("d", &Options{seam: seam.Options{FS: fs}}); !failure.IsDamage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Merges that fail use up no segment ids.
func TestFailedMergesUseUpNoIDs(t *testing.T) {
	fs := vfstest.NewFault(vfs.NewMem())
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	must(t, s.Put("key", []byte("value")))
	must(t, s.Rotate())
	next := s.man.NextID
	for i, rule := range []vfstest.Rule{
		{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data"},
		{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data"},
		{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Skip: 1},
		{Ops: []vfstest.Op{vfstest.OpSyncDir}},
	} {
		for range 5 {
			rule.Err, rule.Sticky = syscall.ENOSPC, true
			fs.Inject(rule)
			if _, err := s.Rewrite(context.Background(), []uint32{1}, RewriteOptions{}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("rule %d: %v", i, err)
			}
			fs.Heal()
		}
	}
	if s.man.NextID != next+1 {
		t.Errorf("%d ids are used up", s.man.NextID-next)
	}
	_, err = s.Rewrite(context.Background(), []uint32{1}, RewriteOptions{})
	must(t, err)
	if v, err := s.Get("key"); err != nil || string(v) != "value" || s.man.NextID != next+1 {
		t.Errorf("%q, %v", v, err)
	}
	must(t, s.Close())
}

// A copy says where it parted from its original, and one that an older version
// made is read still.
func TestInherited(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	var want []Inheritance
	for i := range 3 {
		must(t, s.Put(fmt.Sprint("key", i), nil))
		_, err := s.Backup(ctx, fmt.Sprint("copy", i))
		must(t, err)
		want = append(want, Inheritance{s.StoreID(), s.Sequence()})
		must(t, s.Close())
		s, err = Open(fmt.Sprint("copy", i), &Options{seam: seam.Options{FS: fs}})
		must(t, err)
		if got := s.Inherited(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("copy %d: %v, want %v", i, got, want)
		}
	}
	if s.man.Features&manifest.FeatureThrough == 0 {
		t.Error("without its feature bit")
	}
	must(t, s.Close())
	m := &manifest.Manifest{}
	must(t, m.Apply(manifest.EditInherited, append(make([]byte, 16), 5, 0, 0, 0)))
	if in := m.Origins[0]; in.Below != 5 || in.Through != 0 || len(in.Encode()) != manifest.InheritedSize {
		t.Errorf("%+v", in)
	}
}
