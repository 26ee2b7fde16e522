package bitcask

import (
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/replay"
)

// replayLog applies what the log has after ix.
func (s *opener) replayLog(ix *indexfile.Contents) error {
	for _, sg := range s.segments.Load().All() {
		if sg.Sealed() {
			s.log.Reach(sg.Footer.MaxSeq + 1) // not from the entries: records that follow others have numbers too
		}
	}
	env := replay.Environment{
		FS: s.opts.seam.FS, Dir: s.dir, NoHints: s.opts.seam.NoHints, ReadOnly: s.opts.ReadOnly, Logger: s.opts.Logger,
		Manifest: s.man.Manifest, Tail: s.tail, Present: s.present, After: ix, Only: s.only, Index: s.replayIndex(),
		System: s.replaySystem, Tolerate: s.tolerance(), Passed: s.passed,
	}
	r, err := env.Run()
	s.hintless = append(s.hintless, r.Hintless...)
	s.stale = append(s.stale, r.Stale...)
	s.recovery.Scanned = r.Scanned
	s.recovery.Replayed += r.Replayed
	for _, sg := range s.tail {
		s.log.Reach(sg.Footer.MaxSeq + 1)
		if err == nil && sg.FramesEnd < int64(ix.SegmentOf(sg.ID).Length) {
			err = indexfile.ErrUnfit // it contains entries that the disk has lost although they were synced
		}
	}
	if err == nil && ix.End.Opening != 0 && !s.reached(ix.End) {
		err = indexfile.ErrUnfit
	}
	return err
}

// replayIndex is the index, with its segments as they are listed now, as a replay uses it.
func (s *opener) replayIndex() *replay.Index {
	ix := &replay.Index{
		Spaces: &s.spaces, Segments: s.segments.Load(), Manifest: s.man.Manifest, LoadAll: s.lazy.loadRest, Later: s.dead.addTogether,
		Deadline: func(space uint32, key string, ms int64, seq uint64) {
			s.replayed(DeadlineEvent{Space: space, Key: key, Deadline: ms, Sequence: seq})
		},
		Dropped: func(sp *namespace.Space, seq uint64) {
			s.dead.addSpace(sp)
			s.replayed(DeadlineEvent{Space: sp.ID, Dropped: true, Sequence: seq})
		},
	}
	if s.lazy != nil {
		ix.Load = s.lazy.load
	}
	return ix
}

// passed notes that a replay has dealt with so many bytes, and says why it is to end.
func (s *opener) passed(bytes int64) error {
	err := s.interrupted()
	if err == nil {
		s.opts.seam.Progress(bytes)
	}
	return err
}

// truncateTail truncates torn tails.
func (s *opener) truncateTail() error {
	torn, err := replay.Truncate(s.tail)
	if torn > 0 { // not of a store that is served by now
		s.recovery.TornBytes += torn
	}
	return err
}

// reachesMerges makes sure, once the log has been read, that it reaches as far as it did when segments were merged.
func (s *opener) reachesMerges() error {
	if s.man.Through < s.log.Next() {
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
