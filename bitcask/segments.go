package bitcask

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/format"
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
