package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// segmentOf finds the open segment of a location.
func (s *Store) segmentOf(loc keydir.Loc) (*segment.Segment, error) {
	sg := s.segments.Load().Find(loc.Segment())
	if sg == nil {
		return nil, fmt.Errorf("%s: %w", format.DataName(loc.Segment()), ErrMissing)
	}
	return sg, nil
}

// addSegment makes an empty segment and lists it in the manifest as the last.
func (s *Store) addSegment() (*segment.Segment, error) {
	s.measureDisk()
	if err := s.reserve.Prepare(0); err != nil {
		return nil, fmt.Errorf("before a new segment: %w", err)
	}
	s.man.mu.Lock()
	defer s.man.mu.Unlock()
	sg, err := segment.Create(s.opts.seam.FS, s.dir, s.man.Store, s.man.NextID, s.opts.mapLength())
	if err != nil {
		return nil, fmt.Errorf("new segment: %w", err)
	}
	if err := s.man.Log(manifest.EditAdd, binary.LittleEndian.AppendUint32(nil, sg.ID)); err != nil {
		err = errors.Join(err, sg.Close())
		if failure.IsRetryable(err) { // else the manifest may list it
			if left := s.opts.seam.FS.Remove(filepath.Join(s.dir, sg.Name)); left != nil {
				return nil, errors.New(errors.Join(err, left).Error()) // its name is taken: there is no other try
			}
		}
		return nil, err
	}
	s.segments.Store(s.segments.Load().With([]*segment.Segment{sg}, nil))
	return sg, nil
}

// Rotate seals the active segment, so that a merge can take it, and returns
// when that is done. It does nothing if the segment is empty.
func (s *Store) Rotate() error {
	if s.opts.ReadOnly {
		return ErrReadOnly
	}
	if err := s.writing.prepare(); err != nil {
		return err
	}
	return failure.NameNoSpace(s.reserve.With(reserve.LeaveFourth, s.log.Rotate))
}

// removeSegments closes and removes segments that are no longer listed. freed gets the length of each that is gone.
func (g *directoryGuard) removeSegments(gone []*segment.Segment, freed func(bytes int64)) error {
	var errs []error
	if err := g.inspect(); refusing(err) {
		for _, sg := range gone { // another process may have the files
			errs = append(errs, sg.Close())
		}
		return errors.Join(append(errs, g.log.Fail(err))...)
	}
	for _, sg := range gone {
		err := errors.Join(sg.Close(), segment.Remove(g.held, g.dir, sg))
		if err == nil {
			freed(sg.Size.Load())
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, g.held.SyncDir(g.dir))...)
}
