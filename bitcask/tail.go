package bitcask

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// The end of the log at Open: the unsealed segments, of which at most two hold
// frames (rotate.go).

// judgeTail decides, where reading an unsealed segment has ended at fr.pos,
// between its three states: clean, a torn tail (to be cut off there), or
// damage, which is an error.
//
// A bad frame is a torn tail only if nothing says that its bytes were ever on
// disk: not the manifest of the last clean close, no later valid frame, and no
// later segment.
func (s *Store) judgeTail(fr *frames, bad *badFrame) error {
	sg, end := fr.sg, fr.pos
	at, reason := end, "file ends"
	if bad != nil {
		at, reason = bad.at, bad.reason
	}
	reach := end
	if fr.footer {
		reach -= footerSize // of another copy of this segment, perhaps, which was sealed sooner
	}
	if s.man.closedID == sg.id && reach < int64(s.man.closedLen) {
		return &CorruptError{sg.name, at, reason + ", before the end of the last clean close"}
	}
	if sg.damaged && bad != nil {
		return &CorruptError{sg.name, at, reason + ", in a file whose header is damaged too"}
	}
	sg.end, sg.footed, sg.sure = end, fr.footer, max(fr.synced, fr.from)
	if s.man.closedID == sg.id {
		sg.sure = max(sg.sure, int64(s.man.closedLen))
	}
	sg.foot = footer{}
	if fr.records > 0 {
		sg.foot = footer{records: fr.records, minSeq: fr.minSeq, maxSeq: fr.maxSeq}
	}
	if bad != nil {
		synced, err := fr.resync(end + 1)
		if err != nil {
			return err
		}
		if synced > end {
			return &CorruptError{sg.name, at, reason + ", before data written once this was on disk"}
		}
	}
	return s.judgeNext(sg, at, reason)
}

// judgeNext looks at the segments behind sg. They go on where sg ends, or sg
// is not all there: then nothing of theirs was ever synced, or sg was.
func (s *Store) judgeNext(sg *segment, at int64, reason string) error {
	later := s.tail[slices.Index(s.tail, sg)+1:]
	if len(later) == 0 {
		return nil
	}
	next := later[0]
	_, h, _, err := newFrames(next).nextFrame()
	if bad := (*badFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return nil // nothing that could be judged before next is read itself
	}
	if err != nil {
		return err
	}
	if sg.foot.records > 0 && h.seq == sg.foot.maxSeq+1 {
		return nil
	}
	for _, next := range later {
		synced, err := s.syncedIn(next)
		if err != nil {
			return err
		}
		if synced > segmentHeaderSize || sg.footed {
			return &CorruptError{sg.name, at, reason + ", before " + next.name + ", which was written once this was on disk"}
		}
	}
	for _, next := range later {
		next.dropped, next.end, next.foot = true, segmentHeaderSize, footer{}
	}
	return nil
}

// syncedIn is the highest offset of a segment that is known to have been on
// disk.
func (s *Store) syncedIn(sg *segment) (int64, error) {
	if s.man.closedID == sg.id {
		return int64(s.man.closedLen), nil
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
			later, err := fr.resync(fr.pos + 1)
			return max(fr.synced, later), err
		case err != nil:
			return 0, err
		}
	}
}

// cutTail cuts off torn tails, durably, before anything can be appended behind
// them or read from them. The newest goes first: what is dropped from it must
// be gone before an older segment grows to where it went on.
func (s *Store) cutTail() error {
	for _, sg := range slices.Backward(s.tail) {
		size, end := sg.size.Load(), sg.end
		s.recovery.TornBytes += size - end
		sg.size.Store(end)
		if s.opts.ReadOnly || size == segmentHeaderSize {
			continue
		}
		if end < size {
			s.opts.Logger.Warn("torn tail cut off", "file", sg.name, "offset", end, "bytes", size-end)
			if err := sg.file.Truncate(end); err != nil {
				return fmt.Errorf("%s: cutting off torn tail: %w", sg.name, err)
			}
		}
		// What recovery serves must not be lost by a power cut after it: a killed
		// process leaves written but unsynced bytes in the page cache.
		if err := writeAgain(sg.file, sg.sure, end); err != nil {
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
		if sg.foot.records > 0 {
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
		sg.end = segmentHeaderSize
		s.tail, i = append(s.tail, sg), len(s.tail)
	}
	sg := s.tail[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, sg.foot, sg.end, sg.end)
	l.rotation.ready = slices.Clone(s.tail[i+1:])
	l.syncing.seq = l.writeSeq
	if s.man.closedID == sg.id && int64(s.man.closedLen) == sg.end {
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
	}
	if err := s.man.log(editSeal, sealBody(sg.info(), 0)); err != nil {
		return err
	}
	sg.setSealed()
	s.hintless = append(s.hintless, sg.id)
	return nil
}
