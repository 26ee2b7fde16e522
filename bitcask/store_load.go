package bitcask

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// Loading replays every segment, from its hint where there is a good one and from its data otherwise, in order of
// sequence number: the segments are merged like sorted files, so the last write wins without sequence numbers in the
// keydir, and the order in which merges left the segments does not matter.

// load builds the keydir: from the INDEX and what the log has after it, or from all of the log.
func (s *opener) load() error {
	if err := s.loadLog(); err != nil {
		return err
	}
	return s.reachesMerges()
}

func (s *opener) loadLog() error {
	ix, err := s.loadIndex()
	if err != nil && !failure.IsNotExist(err) {
		s.refuseIndex(err)
	}
	if ix != nil && s.opts.seam.NoIndex {
		s.startReplay(0)
		if err := s.replayLog(new(indexfile.Contents)); err != nil {
			return err
		}
		if !s.reached(ix.End) { // not used, but it must not fit later
			s.refuseIndex(indexfile.ErrUnfit)
		}
		return nil
	}
	if ix != nil && !s.startReplay(ix.UpTo) {
		err := s.lazy.loadRest()
		if err == nil {
			err = s.reportDeadlines(max(ix.UpTo, 1))
		}
		if err != nil {
			s.refuseIndex(err)
			s.unload()
			ix = nil
		}
	}
	if ix == nil {
		s.startReplay(0)
		return s.replayLog(new(indexfile.Contents))
	}
	if err = s.replayLog(ix); err == nil {
		err = s.loadTimed()
	}
	if errors.Is(err, indexfile.ErrUnfit) {
		s.refuseIndex(err)
		s.unload()
		s.startReplay(0)
		return s.replayLog(new(indexfile.Contents))
	}
	s.recovery.Indexed = true
	s.index.note(ix)
	return err
}

func (s *opener) refuseIndex(err error) {
	if s.cutAt > 0 {
		return // it is the writer's, and may be of another moment
	}
	s.opts.Logger.Warn("index not used", "file", IndexFile, "err", err)
	s.stale = append(s.stale, IndexFile)
}

// removeStale removes the files that describe another log than this one, before anything is written: they could fit
// once it has grown. It does so after all that can refuse the store.
func (s *opener) removeStale() error {
	if s.opts.ReadOnly || len(s.stale) == 0 {
		return nil
	}
	slices.Sort(s.stale)
	for _, name := range slices.Compact(s.stale) { // the log may have been read twice
		if err := s.opts.seam.FS.Remove(filepath.Join(s.dir, name)); err != nil && !failure.IsNotExist(err) {
			return err
		}
		s.recovery.Stale = append(s.recovery.Stale, name)
	}
	return s.opts.seam.FS.SyncDir(s.dir)
}

// startReplay tells Options.Loading after which sequence deadline changes will be replayed, and
// reports whether it has the earlier ones.
func (s *opener) startReplay(after uint64) (known bool) {
	s.replayed = func(DeadlineEvent) {}
	if s.opts.Loading == nil {
		return true
	}
	replayed, known := s.opts.Loading(s.man.Store, after)
	if replayed == nil { // no receiver after all
		return true
	}
	s.replayed = replayed
	return known || after == 0
}

// reportDeadlines reports all existing deadlines, from their records.
func (s *opener) reportDeadlines(seq uint64) error {
	for _, sp := range s.spaces.Now.Load().ByID {
		var locs []keydir.Loc
		for stripe := range keydir.Stripes {
			sp.Dir.Scan(stripe, 0, func(_ uint64, slot keydir.Slot) bool {
				if slot.Type == keydir.Deadline {
					locs = append(locs, slot.Loc)
				}
				return true
			})
		}
		slices.Sort(locs) // in their order on disk
		for _, loc := range locs {
			if err := s.reportDeadline(sp, loc, seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *opener) reportDeadline(sp *namespace.Space, loc keydir.Loc, seq uint64) error {
	sg, err := s.segmentOf(loc)
	if err != nil {
		return err
	}
	ms, perr := int64(0), error(nil)
	err = sg.Identify(loc, func(rec format.Record) {
		if ms, perr = strconv.ParseInt(format.Text(rec.Value), 10, 64); !rec.Row().Expiry || rec.Row().Removes || rec.Namespace != sp.ID {
			perr = indexfile.ErrUnfit
		}
		if perr == nil {
			s.replayed(DeadlineEvent{Space: sp.ID, Key: format.Text(rec.Key), Deadline: ms, Sequence: seq})
		}
	})
	return errors.Join(err, perr)
}
