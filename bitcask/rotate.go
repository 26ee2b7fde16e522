package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Rotation: the active segment is sealed and another one takes its place.

// makeRoomLocked rotates until a frame of n bytes fits the active segment.
func (l *commitLog) makeRoomLocked(n int64) error {
	for {
		if l.failed != nil {
			return l.failed
		}
		limit := l.store.opts.SegmentSize
		if l.offset+n+footerSize <= limit || l.offset == segmentHeaderSize {
			return nil
		}
		if l.writing || l.syncing.going || l.queue != nil {
			l.waitLocked()
			continue
		}
		if err := l.rotateLocked(); err != nil {
			return l.failLocked(err)
		}
	}
}

// waitLocked waits until a write or a sync has ended.
func (l *commitLog) waitLocked() {
	l.waiting++
	l.changed.Wait()
	l.waiting--
}

// rotateLocked seals the active segment and starts the next. No write or sync
// is going on. What a crash leaves:
//
//	after the footer:     an active segment with a footer; Open seals it
//	after the new file:   also a file without frames that no manifest names; Open removes it
//	after the manifest:   the new state
func (l *commitLog) rotateLocked() error {
	s, old := l.store, l.active
	if err := old.writeFooter(l.foot); err != nil {
		return err
	}
	l.syncing.seq, l.syncing.count = max(l.syncing.seq, l.writeSeq), l.syncing.count+2
	s.manifestMu.Lock()
	defer s.manifestMu.Unlock()
	sg, err := createSegment(s.opts.FS, s.dir, s.man.store, s.man.nextID, false, s.mapLength())
	if err != nil {
		return fmt.Errorf("new segment: %w", err)
	}
	if err := s.man.log(editSeal, rotateBody(old.info(), sg.id)); err != nil {
		return errors.Join(err, sg.close())
	}
	s.segments.Store(s.segments.Load().with([]*segment{sg}, nil))
	l.startLocked(sg, footer{}, segmentHeaderSize, segmentHeaderSize)
	s.wakeHinter()
	return nil
}

// startLocked makes sg the active segment.
func (l *commitLog) startLocked(sg *segment, ft footer, size, synced int64) {
	l.active, l.foot, l.offset, l.synced = sg, ft, size, synced
	l.closeLen = 0
}

// Rotate seals the active segment, so that a merge can take it. It does
// nothing if the segment is empty.
func (s *Store) Rotate() error {
	if s.opts.ReadOnly {
		return ErrReadOnly
	}
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing || l.syncing.going || l.queue != nil {
		l.waitLocked()
	}
	if l.failed != nil {
		return l.failed
	}
	if l.offset == segmentHeaderSize {
		return nil
	}
	if err := l.rotateLocked(); err != nil {
		return l.failLocked(err)
	}
	return nil
}

// startActive makes the store ready for appends.
func (s *Store) startActive() error {
	l := &s.log
	if sg := l.active; sg != nil && !sg.sealed {
		end := sg.size.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.startLocked(sg, l.foot, end, end)
		l.syncing.seq = l.writeSeq
		if s.man.closedID == sg.id && int64(s.man.closedLen) == end {
			l.closeLen = end
		}
		return nil
	} else if sg != nil {
		// Sealed, but the crash came before the manifest knew.
		return s.addActive(editSeal, func(id uint32) []byte { return rotateBody(sg.info(), id) })
	}
	return s.addActive(editAdd, func(id uint32) []byte { return binary.LittleEndian.AppendUint32(nil, id) })
}

func (s *Store) addActive(edit byte, body func(id uint32) []byte) error {
	sg, err := createSegment(s.opts.FS, s.dir, s.man.store, s.man.nextID, false, s.mapLength())
	if err != nil {
		return err
	}
	if err := s.man.log(edit, body(sg.id)); err != nil {
		return errors.Join(err, sg.close())
	}
	s.segments.Store(s.segments.Load().with([]*segment{sg}, nil))
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, footer{}, segmentHeaderSize, segmentHeaderSize)
	l.syncing.seq = l.writeSeq
	return nil
}
