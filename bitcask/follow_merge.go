package bitcask

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Merges of the writer. What it replaces stays open, so nothing has to happen at once. When a round has met the end of
// the log, and the manifest was read before it began, the index is that of the writer after the merge, or later: every
// record of the replaced segments that it leads to is in an output. So the index is led there, record by record, and
// the replaced ones are closed, which releases their space on the disk.
//
// A merge lists each of its outputs as soon as it is whole, and takes out what has been copied whole: an output may
// have records of a segment that goes later. It may also have the copy of a record that was overwritten during the
// merge. Then the index leads to a segment whose numbers are all higher: only sealed segments are merged, and in these
// the record was the newest. Or it leads to the output of a later merge, whose id is higher.

// adoptMerged leads the index to the outputs of merges, and closes what they have replaced.
func (f *follower) adoptMerged() error {
	s := f.s
	if err := f.closeUnpinned(); err != nil {
		return err
	}
	gone := f.goneSegments()
	if len(gone) == 0 && len(f.adopt) == 0 || !s.maintenanceMu.TryLock() { // a check reads them: later
		return nil
	}
	defer s.maintenanceMu.Unlock()
	slices.SortFunc(f.adopt, func(a, b *segment.Segment) int { return int(a.ID) - int(b.ID) })
	var outs []*segment.Segment
	for _, sg := range f.adopt {
		if _, listed := f.r.Manifest.Sealed[sg.ID]; listed {
			outs = append(outs, sg)
		} else { // merged again: all that counts is in another output
			f.r.Forget(sg)
			if err := sg.Close(); err != nil {
				return err
			}
		}
		f.r.Waiting = slices.DeleteFunc(f.r.Waiting, func(w *segment.Segment) bool { return w == sg })
	}
	f.adopt = nil
	f.list(outs, nil)
	for _, sg := range outs {
		if err := f.leadTo(sg); err != nil {
			return err
		}
	}
	f.flushCounts()
	s.DrainDropped()
	return f.closeGone(gone)
}

// goneSegments are those that the manifest does not list any more, by id.
func (f *follower) goneSegments() map[uint32]*segment.Segment {
	gone := map[uint32]*segment.Segment{}
	for _, sg := range f.s.segments.Load().All() {
		_, sealed := f.r.Manifest.Sealed[sg.ID]
		if !sealed && !slices.Contains(f.r.Manifest.Tail, sg.ID) && (f.r.Frames == nil || sg != f.r.Frames.Segment) && !slices.Contains(f.r.Waiting, sg) {
			gone[sg.ID] = sg
		}
	}
	return gone
}

// leadTo leads the index to the records of an output, as far as it leads to their originals.
func (f *follower) leadTo(sg *segment.Segment) (err error) {
	s := f.s
	read := func(int) error {
		if s.work.stopping() {
			return ErrClosed
		}
		return nil
	}
	in := &mergeinput.Input{Env: s.inputEnvironment(), Segment: sg, Read: read}
	defer func() { err = errors.Join(err, in.Close()) }()
	for {
		err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: reading what a merge has copied: %w", sg.Name, err)
		}
		h := s.man.Seed.Hash(format.Text(in.Entry.Key))
		stripe := keydir.StripeOf(h)
		if err := s.lockWhole(stripe, true); err != nil {
			return err
		}
		f.leadOne(sg, &in.Entry, h)
		s.unlockWhole(stripe, true)
	}
}

// leadOne leads the index to one record. Its key is locked.
func (f *follower) leadOne(sg *segment.Segment, e *format.Entry, h uint64) {
	s, loc := f.s, keydir.MakeLoc(sg.ID, e.At, e.Size)
	isOriginal := func(old keydir.Loc) bool {
		from := s.segments.Load().Find(old.Segment())
		return old != 0 && from != nil && from.ID < sg.ID && from.Footer.MinSeq <= e.Seq && e.Seq <= from.Footer.MaxSeq
	}
	var old keydir.Loc
	done := false
	switch row := e.Row(); row.Home {
	case format.HomeNamespaces:
		s.spaces.Mu.Lock()
		defer s.spaces.Mu.Unlock()
		if old = s.spaces.Record; isOriginal(old) {
			s.spaces.Record, done = loc, true
		}
	case format.HomeSystem:
		r, _ := s.system.Get(string(e.Key))
		if old = r.Loc; r.Seq == e.Seq && isOriginal(old) {
			done = s.system.Move(string(e.Key), old, loc)
		}
	default:
		sp := s.spaces.ByRecord(e.Namespace)
		if sp == nil {
			return
		}
		if row.Home == format.HomeSlot {
			slot, _ := f.a.SlotOf(sp, h, e.Type, e.Key)
			old = slot.Loc
		} else {
			old = locate.Find(sp.Dir, h, &e.Identity)
		}
		done = isOriginal(old) && locate.Move(sp.Dir, h, &e.Identity, old, loc)
	}
	if done {
		addLive(sg, loc)
		s.dead.add(old)
	}
}

// closeGone closes segments that the index does not lead to. One that it may lead to after all is a reason to read the
// store again.
func (f *follower) closeGone(gone map[uint32]*segment.Segment) error {
	s := f.s
	var list []*segment.Segment
	// A merge takes these with it when they hide nothing any more.
	for _, loc := range s.system.ForgetDeleted(func(loc keydir.Loc) bool { return gone[loc.Segment()] != nil }) {
		s.dead.add(loc)
	}
	for _, sg := range gone {
		if sg.LiveBytes.Load() > 0 {
			return fmt.Errorf("%s: records that no merge has copied: %w", sg.Name, followlog.ErrGap)
		}
		list = append(list, sg)
	}
	if len(list) == 0 {
		return nil
	}
	for i := range s.stripes { // then no reader follows a location to them
		if err := s.lockWhole(i, true); err != nil {
			return err
		}
		s.unlockWhole(i, true)
	}
	f.list(nil, list) // unlisted before they are unmapped: read_lockfree.go
	for _, sg := range list {
		f.r.Forget(sg)
	}
	f.unlisted = append(f.unlisted, list...)
	return f.closeUnpinned()
}

// closeUnpinned closes segments that are not listed any more, but for those that a backup reads: it was begun before
// they were unlisted.
func (f *follower) closeUnpinned() error {
	if len(f.unlisted) == 0 {
		return nil
	}
	free, held := f.s.pins.Unneeded(f.unlisted)
	f.unlisted = held
	var errs []error
	for _, sg := range free {
		errs = append(errs, sg.Close())
	}
	return errors.Join(errs...)
}
