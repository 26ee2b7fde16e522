package bitcask

import (
	"errors"

	"github.com/stavedb/stave/bitcask/internal/segment"
)

// removeSegments closes and removes segments that are no longer listed. freed gets the length of each that is gone.
func (s *Store) removeSegments(gone []*segment.Segment, freed func(bytes int64)) error {
	var errs []error
	if err := s.inspectDirectory(); refusing(err) {
		for _, sg := range gone { // another process may have the files
			errs = append(errs, sg.Close())
		}
		return errors.Join(append(errs, s.log.Fail(err))...)
	}
	for _, sg := range gone {
		err := errors.Join(sg.Close(), s.removeSegment(sg))
		if err == nil {
			freed(sg.Size.Load())
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.opts.seam.FS.SyncDir(s.dir))
	return errors.Join(errs...)
}

// removeSegment unlinks a segment and its hint.
func (s *Store) removeSegment(sg *segment.Segment) error {
	return segment.Remove(s.opts.seam.FS, s.dir, sg)
}
