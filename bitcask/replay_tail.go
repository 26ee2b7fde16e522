package bitcask

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// The end of the log at Open: the unsealed segments, of which at most two hold
// frames (log_rotate.go).

// judgeTail decides, where reading an unsealed segment has ended at fr.Pos, between its three
// states: clean, a torn tail (to be truncated there), or damage, which is an error (I7).
//
// A bad frame is a torn tail only if nothing proves that its bytes were ever on disk (not the
// manifest of the last close or pause, no later valid frame, no later segment), and if a crash can
// have left it as it is: NotTorn.
func (s *Store) judgeTail(fr *segment.Frames, bad *segment.BadFrame) error {
	sg, end := fr.Segment, fr.Pos
	at, reason := end, "file ends"
	if bad != nil {
		at, reason = bad.At, bad.Reason
	}
	reach := end
	if fr.HasFooter {
		reach -= format.FooterSize // of another copy of this segment, perhaps, which was sealed sooner
	}
	if s.man.ClosedID == sg.ID && reach < int64(s.man.ClosedLen) {
		return &CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before the end of the last clean close"}
	}
	if sg.Damaged && bad != nil {
		return &CorruptError{File: sg.Name, Offset: at, Reason: reason + ", in a file whose header is damaged too"}
	}
	sg.FramesEnd, sg.HasFooter, sg.DurableTo = end, fr.HasFooter, max(fr.Synced, fr.From)
	if s.man.ClosedID == sg.ID {
		sg.DurableTo = max(sg.DurableTo, int64(s.man.ClosedLen))
	}
	sg.Footer = format.Footer{}
	if fr.Records > 0 {
		sg.Footer = format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq, Time: fr.Foot.Time, Nonce: fr.Foot.Nonce}
	}
	whole, err := s.judgeNext(sg, at, reason)
	if err != nil || whole || bad == nil {
		return err // after a segment that is otherwise complete stands a torn footer
	}
	why, err := fr.NotTorn(s.man.NothingLost())
	if why != "" {
		err = &CorruptError{File: sg.Name, Offset: at, Reason: reason + ", " + why}
	} else if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
		err = &CorruptError{File: sg.Name, Offset: bad.At, Reason: bad.Reason} // it has become shorter in the meantime
	}
	return err
}

// judgeNext examines the segments after sg. Either they continue where sg ends, so that it is
// whole, or sg is incomplete: then nothing of theirs was ever synced, or sg was.
func (s *Store) judgeNext(sg *segment.Segment, at int64, reason string) (whole bool, err error) {
	later := s.tail[slices.Index(s.tail, sg)+1:]
	if len(later) == 0 {
		return false, nil
	}
	next := later[0]
	_, h, _, err := segment.NewFrames(next).NextFrame()
	if bad := (*segment.BadFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return false, nil // nothing that could be judged before next is read itself
	}
	if err != nil {
		return false, err
	}
	if sg.Footer.Records > 0 && h.Seq == sg.Footer.MaxSeq+1 {
		return true, nil
	}
	for _, next := range later {
		synced, err := s.syncedIn(next)
		if err != nil {
			return false, err
		}
		if synced > format.SegmentHeaderSize || sg.HasFooter {
			return false, &CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before " + next.Name + ", which was written once this was on disk"}
		}
	}
	if s.man.NothingLost() {
		return false, &CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before " + next.Name + ", which was written after it"}
	}
	for _, next := range later {
		next.Dropped, next.FramesEnd, next.Footer = true, format.SegmentHeaderSize, format.Footer{}
	}
	return false, nil
}

// syncedIn is the highest offset of a segment that is known to have been on
// disk.
func (s *Store) syncedIn(sg *segment.Segment) (int64, error) {
	if s.man.ClosedID == sg.ID {
		return int64(s.man.ClosedLen), nil
	}
	return segment.NewFrames(sg).LastSynced()
}

// cutTail truncates torn tails, durably, before anything can be appended after them or read from
// them. The newest goes first: what is dropped from it must be gone before an older segment grows
// to where it began.
func (s *Store) cutTail() error {
	for _, sg := range slices.Backward(s.tail) {
		size, end := sg.Size.Load(), sg.FramesEnd
		s.recovery.TornBytes += size - end
		sg.Size.Store(end)
		if size == format.SegmentHeaderSize {
			continue
		}
		if end < size {
			if err := sg.File.Truncate(end); err != nil {
				return fmt.Errorf("%s: truncating a torn tail: %w", sg.Name, err)
			}
		}
		// What recovery serves must not be lost by a power cut after it: a killed
		// process leaves written but unsynced bytes in the page cache.
		if err := files.WriteAgain(sg.File, sg.DurableTo, end); err != nil {
			return fmt.Errorf("%s: %w", sg.Name, err)
		}
		if err := sg.File.Sync(); err != nil {
			return fmt.Errorf("%s: sync: %w", sg.Name, err)
		}
	}
	return nil
}

// showActive sets the active segment of a store that is open for reading.
func (s *Store) showActive() {
	if len(s.tail) > 0 {
		sg := s.tail[s.newest()]
		s.log.active, s.log.foot = sg, sg.Footer
	}
}

// newest is the index in tail of the last segment that holds frames; 0 if none
// does.
func (s *Store) newest() int {
	for i, sg := range slices.Backward(s.tail) {
		if sg.Footer.Records > 0 {
			return i
		}
	}
	return 0
}

// startActive makes the store ready for appends. Whatever stands before the
// newest segment with frames is sealed, what stands after it is ready for use.
func (s *Store) startActive() error {
	l := &s.log
	i := s.newest()
	if i < len(s.tail) && s.tail[i].HasFooter {
		i++ // sealed, but the crash came before the manifest knew
	}
	for _, sg := range s.tail[:min(i, len(s.tail))] {
		if err := s.sealAtOpen(sg); err != nil {
			return err
		}
	}
	if i >= len(s.tail) {
		sg, err := s.addSegment()
		if err != nil {
			return err
		}
		sg.FramesEnd = format.SegmentHeaderSize
		s.tail, i = append(s.tail, sg), len(s.tail)
	}
	sg := s.tail[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, sg.Footer, sg.FramesEnd, sg.FramesEnd)
	l.rotation.ready = slices.Clone(s.tail[i+1:])
	l.syncing.seq = l.writeSeq
	if s.man.ClosedID == sg.ID && int64(s.man.ClosedLen) == sg.FramesEnd {
		l.closeLen = sg.FramesEnd
	}
	return nil
}

// sealAtOpen seals a segment that a crash kept from being sealed. All of it is
// on disk.
func (s *Store) sealAtOpen(sg *segment.Segment) error {
	if !sg.HasFooter {
		if err := sg.AppendFooter(sg.Footer); err != nil {
			return err
		}
		sg.HasFooter = true // on a full disk all this is tried again
	}
	if err := s.man.Log(manifest.EditSeal, manifest.SealBody(sg.Info(), 0)); err != nil {
		return err
	}
	sg.MarkSealed()
	s.hintless = append(s.hintless, sg.ID)
	return nil
}

// reachesMerges makes sure, once the log has been read, that it reaches as far
// as it did when segments were merged.
func (s *Store) reachesMerges() error {
	if s.man.Through < s.log.nextSeq {
		return nil
	}
	last := format.DataName(s.man.NextID - 1)
	at := int64(format.SegmentHeaderSize)
	for _, sg := range slices.Backward(s.tail) {
		if last, at = sg.Name, sg.FramesEnd; sg.Footer.Records > 0 {
			break
		}
	}
	return &CorruptError{File: last, Offset: at, Reason: "the log ends before what a merge has built on"}
}
