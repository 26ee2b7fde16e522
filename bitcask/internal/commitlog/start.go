package commitlog

import (
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Show sets the active segment of a store that is open for reading, out of its unsealed segments in log order.
func (l *Log) Show(tail []*segment.Segment) {
	l.shown = true
	if len(tail) > 0 {
		l.active = tail[newest(tail)]
		l.foot = l.active.Footer
	}
}

// Follow is Show for a store that goes on reading: the log ends with active, and next is the number of the record to
// come.
func (l *Log) Follow(active *segment.Segment, foot format.Footer, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != nil && l.active != active {
		l.active.Footer = l.foot
	}
	l.shown = true
	l.active, l.foot, l.nextSeq, l.writeSeq = active, foot, next, next
}

// End is the segment that the log ends with, and what its footer would say.
func (l *Log) End() (active *segment.Segment, foot format.Footer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active, l.foot
}

// FollowFooter notes what the footer of a segment says, all of which has been read.
func (l *Log) FollowFooter(sg *segment.Segment, foot format.Footer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sg.Footer = foot; sg == l.active {
		l.foot = foot
	}
}

// FollowSeal is FollowFooter for a segment that the manifest calls sealed, and of that length.
func (l *Log) FollowSeal(sg *segment.Segment, foot format.Footer, length int64) {
	l.FollowFooter(sg, foot)
	l.mu.Lock()
	defer l.mu.Unlock()
	sg.Size.Store(length)
	sg.MarkSealed()
}

// newest is the index of the last segment that holds frames; 0 if none does.
func newest(tail []*segment.Segment) int {
	for i, sg := range slices.Backward(tail) {
		if sg.Footer.Records > 0 {
			return i
		}
	}
	return 0
}

// Start makes the log ready for commits. tail is the unsealed segments in log order, read, with their torn tails
// truncated and all that is left of them on disk. Those before the newest one with frames are sealed, those after it
// are ready for use. The manifest calls the length closed of the segment with id closedID a clean end. sealed is the
// ids of those that were sealed, of a Start that has failed too: after one that a full disk has stopped it may be
// called again.
func (l *Log) Start(tail []*segment.Segment, closedID uint32, closed int64) (sealed []uint32, err error) {
	i := newest(tail)
	if i < len(tail) && tail[i].HasFooter {
		i++ // sealed, but the crash came before the manifest knew
	}
	for _, sg := range tail[:min(i, len(tail))] {
		if err := l.sealAtOpen(sg); err != nil {
			return sealed, err
		}
		sealed = append(sealed, sg.ID)
	}
	if i >= len(tail) {
		sg, err := l.env.AddSegment()
		if err != nil {
			return sealed, err
		}
		sg.FramesEnd = format.SegmentHeaderSize
		tail, i = []*segment.Segment{sg}, 0
	}
	sg := tail[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startLocked(sg, sg.Footer, sg.FramesEnd, sg.FramesEnd)
	l.rotation.ready = slices.Clone(tail[i+1:])
	l.syncing.seq = l.writeSeq
	if closedID == sg.ID && closed == sg.FramesEnd {
		l.closeLen = sg.FramesEnd
	}
	return sealed, nil
}

// sealAtOpen seals a segment that a crash kept from being sealed. All of it is
// on disk.
func (l *Log) sealAtOpen(sg *segment.Segment) error {
	if !sg.HasFooter {
		if err := sg.AppendFooter(sg.Footer); err != nil {
			return err
		}
		sg.HasFooter = true // on a full disk all this is tried again
	}
	if err := l.env.LogEdit(manifest.EditSeal, manifest.SealBody(sg.Info(), 0)); err != nil {
		return err
	}
	sg.MarkSealed()
	return nil
}

// Close notes in the manifest how far the active segment reaches, so that damage to it can be told from a torn tail,
// and that the store is closed. The log has been synced, and takes no more commits.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := endAppends(l.active); failure.IsRetryable(err) {
		l.env.Logger.Warn("reserved zeros stay at the end of the log until the next open", "err", err)
	} else if err != nil {
		return l.failLocked(err)
	}
	if sl := l.rotation.sealing; sl != nil { // for lack of space: a part of its footer may have been truncated
		if err := sl.sg.File.Sync(); err != nil {
			return l.failLocked(fmt.Errorf("%s: sync: %w", sl.sg.Name, err))
		}
	}
	body := make([]byte, manifest.BootSize) // one edit: of two in one write a power cut could leave the second
	if end := l.active.Size.Load(); end != l.closeLen && end != format.SegmentHeaderSize {
		body = append(body, l.markLocked(end)...)
	}
	err := l.env.LogEdit(manifest.EditBoot, body)
	if failure.NoSpace(err) && failure.IsRetryable(err) { // all of it is on disk; only damage is harder to tell from a torn tail
		l.env.Logger.Warn("clean close not noted", "err", err)
		return nil
	}
	return err
}
