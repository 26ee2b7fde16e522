package bitcask

import "fmt"

// The end of the active segment at Open: clean, torn, or damaged.

// judgeTail decides, where reading the active segment has ended at fr.pos,
// between its three states: clean, a torn tail (to be cut off there), or
// damage, which is an error.
//
// A bad frame is a torn tail only if nothing says that its bytes were ever on
// disk: not the manifest of the last clean close, and no later valid frame.
func (s *Store) judgeTail(fr *frames, bad *badFrame) error {
	sg, end := fr.sg, fr.pos
	if s.man.closedID == sg.id && end < int64(s.man.closedLen) {
		reason := "file ends before the end of the last clean close"
		if bad != nil {
			reason = bad.reason + ", before the end of the last clean close"
		}
		return &CorruptError{sg.name, end, reason}
	}
	if bad != nil {
		synced, err := fr.resync(end + 1)
		if err != nil {
			return err
		}
		if synced > end {
			return &CorruptError{sg.name, bad.at, bad.reason + ", before data written once this was on disk"}
		}
	}
	s.tailEnd = end
	sg.sealed = fr.footer
	s.log.foot = footer{records: fr.records, minSeq: fr.minSeq, maxSeq: fr.maxSeq}
	if fr.records == 0 {
		s.log.foot = footer{}
	}
	sg.foot = s.log.foot
	return nil
}

// cutTail cuts off a torn tail, durably, before anything can be appended
// behind it or read from it.
func (s *Store) cutTail() error {
	sg := s.log.active
	if sg == nil {
		return nil
	}
	size, end := sg.size.Load(), s.tailEnd
	s.recovery.TornBytes = size - end
	sg.size.Store(end)
	if s.opts.ReadOnly {
		return nil
	}
	if end < size {
		s.opts.Logger.Warn("torn tail cut off", "file", sg.name, "offset", end, "bytes", size-end)
		if err := sg.file.Truncate(end); err != nil {
			return fmt.Errorf("%s: cutting off torn tail: %w", sg.name, err)
		}
	}
	// What recovery serves must not be lost by a power cut after it: a killed
	// process leaves written but unsynced bytes in the page cache.
	if err := sg.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", sg.name, err)
	}
	return nil
}
