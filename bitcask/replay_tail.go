package bitcask

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
)

// The end of the log at Open: the unsealed segments, of which at most two hold
// frames (rotate.go).

// judgeTail decides, where reading an unsealed segment has ended at fr.pos,
// between its three states: clean, a torn tail (to be cut off there), or
// damage, which is an error.
//
// A bad frame is a torn tail only if nothing says that its bytes were ever on
// disk (not the manifest of the last close or pause, no later valid frame, no
// later segment), and if a crash can have left it as it is: notTorn.
func (s *Store) judgeTail(fr *frames, bad *badFrame) error {
	sg, end := fr.sg, fr.pos
	at, reason := end, "file ends"
	if bad != nil {
		at, reason = bad.at, bad.reason
	}
	reach := end
	if fr.footer {
		reach -= format.FooterSize // of another copy of this segment, perhaps, which was sealed sooner
	}
	if s.man.ClosedID == sg.id && reach < int64(s.man.ClosedLen) {
		return &CorruptError{File: sg.name, Offset: at, Reason: reason + ", before the end of the last clean close"}
	}
	if sg.damaged && bad != nil {
		return &CorruptError{File: sg.name, Offset: at, Reason: reason + ", in a file whose header is damaged too"}
	}
	sg.end, sg.footed, sg.sure = end, fr.footer, max(fr.synced, fr.from)
	if s.man.ClosedID == sg.id {
		sg.sure = max(sg.sure, int64(s.man.ClosedLen))
	}
	sg.foot = format.Footer{}
	if fr.records > 0 {
		sg.foot = format.Footer{Records: fr.records, MinSeq: fr.minSeq, MaxSeq: fr.maxSeq, Time: fr.foot.Time, Nonce: fr.foot.Nonce}
	}
	whole, err := s.judgeNext(sg, at, reason)
	if err != nil || whole || bad == nil {
		return err // what stands behind a segment that is all there is a torn footer
	}
	why, err := fr.notTorn(s.man.NothingLost())
	if why != "" {
		err = &CorruptError{File: sg.name, Offset: at, Reason: reason + ", " + why}
	} else if bad := (*badFrame)(nil); errors.As(err, &bad) {
		err = &CorruptError{File: sg.name, Offset: bad.at, Reason: bad.reason} // it has become shorter meanwhile
	}
	return err
}

// judgeNext looks at the segments behind sg. They go on where sg ends, so that it is whole, or sg
// is not all there: then nothing of theirs was ever synced, or sg was.
func (s *Store) judgeNext(sg *segment, at int64, reason string) (whole bool, err error) {
	later := s.tail[slices.Index(s.tail, sg)+1:]
	if len(later) == 0 {
		return false, nil
	}
	next := later[0]
	_, h, _, err := newFrames(next).nextFrame()
	if bad := (*badFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return false, nil // nothing that could be judged before next is read itself
	}
	if err != nil {
		return false, err
	}
	if sg.foot.Records > 0 && h.Seq == sg.foot.MaxSeq+1 {
		return true, nil
	}
	for _, next := range later {
		synced, err := s.syncedIn(next)
		if err != nil {
			return false, err
		}
		if synced > format.SegmentHeaderSize || sg.footed {
			return false, &CorruptError{File: sg.name, Offset: at, Reason: reason + ", before " + next.name + ", which was written once this was on disk"}
		}
	}
	if s.man.NothingLost() {
		return false, &CorruptError{File: sg.name, Offset: at, Reason: reason + ", before " + next.name + ", which was written after it"}
	}
	for _, next := range later {
		next.dropped, next.end, next.foot = true, format.SegmentHeaderSize, format.Footer{}
	}
	return false, nil
}

// notTorn says why what stands at pos, where no frame verifies, cannot be the rest of a write that a crash cut short; it
// says nothing if it can. kept says that no byte of what was written can be missing: the process was killed, but the
// machine went on. Then the write is there up to some byte: of its last frame the header is cut, or says how much is missing.
func (fr *frames) notTorn(kept bool) (why string, err error) {
	end := fr.pos
	defer func() { fr.pos = end }()
	synced, valid, err := fr.resync(end + 1)
	switch {
	case err != nil:
		return "", err
	case synced > end:
		return "before data written once this was on disk", nil
	case kept && valid:
		return "before commits that were written after it", nil
	}
	fr.pos = end
	raw, h, ok := fr.correctBit()
	if ok && h.Footer {
		return "", nil // no record is in a footer
	}
	left := fr.end - end
	is, err := fr.window(max(format.FrameHeaderSize, int64(len(raw))))
	switch {
	case err != nil:
		return "", err
	case ok && (kept || !files.LostSector(is, raw, end)):
		return "for one flipped bit", nil
	case !kept || left < format.FrameHeaderSize:
		return "", nil
	}
	if h, ok := format.ParseFrameHeader(is, fr.sg.seal, uint32(end), math.MaxInt64); ok && int64(h.Size) > left {
		return "", nil
	}
	return "of a write that was not cut short", nil
}

// syncedIn is the highest offset of a segment that is known to have been on
// disk.
func (s *Store) syncedIn(sg *segment) (int64, error) {
	if s.man.ClosedID == sg.id {
		return int64(s.man.ClosedLen), nil
	}
	return newFrames(sg).lastSynced()
}

// lastSynced is the highest "synced through" of all frames from here on, those
// behind a bad place included.
func (fr *frames) lastSynced() (int64, error) {
	for {
		_, err := fr.next()
		bad := (*badFrame)(nil)
		switch {
		case err == io.EOF:
			return fr.synced, nil
		case errors.As(err, &bad):
			later, _, err := fr.resync(fr.pos + 1)
			return max(fr.synced, later), err
		case err != nil:
			return 0, err
		}
	}
}

// cutTail truncates torn tails, durably, before anything can be appended behind
// them or read from them. The newest goes first: what is dropped from it must
// be gone before an older segment grows to where it went on.
func (s *Store) cutTail() error {
	for _, sg := range slices.Backward(s.tail) {
		size, end := sg.size.Load(), sg.end
		s.recovery.TornBytes += size - end
		sg.size.Store(end)
		if size == format.SegmentHeaderSize {
			continue
		}
		if end < size {
			if err := sg.file.Truncate(end); err != nil {
				return fmt.Errorf("%s: truncating a torn tail: %w", sg.name, err)
			}
		}
		// What recovery serves must not be lost by a power cut after it: a killed
		// process leaves written but unsynced bytes in the page cache.
		if err := files.WriteAgain(sg.file, sg.sure, end); err != nil {
			return fmt.Errorf("%s: %w", sg.name, err)
		}
		if err := sg.file.Sync(); err != nil {
			return fmt.Errorf("%s: sync: %w", sg.name, err)
		}
	}
	return nil
}

// showActive tells a store that is open for reading which segment is the
// active one.
func (s *Store) showActive() {
	if len(s.tail) > 0 {
		sg := s.tail[s.newest()]
		s.log.active, s.log.foot = sg, sg.foot
	}
}

// newest is the index in tail of the last segment that holds frames; 0 if none
// does.
func (s *Store) newest() int {
	for i, sg := range slices.Backward(s.tail) {
		if sg.foot.Records > 0 {
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
	if i < len(s.tail) && s.tail[i].footed {
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
		sg.end = format.SegmentHeaderSize
		s.tail, i = append(s.tail, sg), len(s.tail)
	}
	sg := s.tail[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, sg.foot, sg.end, sg.end)
	l.rotation.ready = slices.Clone(s.tail[i+1:])
	l.syncing.seq = l.writeSeq
	if s.man.ClosedID == sg.id && int64(s.man.ClosedLen) == sg.end {
		l.closeLen = sg.end
	}
	return nil
}

// sealAtOpen seals a segment that a crash kept from being sealed. All of it is
// on disk.
func (s *Store) sealAtOpen(sg *segment) error {
	if !sg.footed {
		if err := sg.appendFooter(sg.foot); err != nil {
			return err
		}
		sg.footed = true // on a full disk all this is tried again
	}
	if err := s.man.Log(manifest.EditSeal, manifest.SealBody(sg.info(), 0)); err != nil {
		return err
	}
	sg.setSealed()
	s.hintless = append(s.hintless, sg.id)
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
		if last, at = sg.name, sg.end; sg.foot.Records > 0 {
			break
		}
	}
	return &CorruptError{File: last, Offset: at, Reason: "the log ends before what a merge has built on"}
}
