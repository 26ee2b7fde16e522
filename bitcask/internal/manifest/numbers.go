package manifest

import "github.com/stavedb/stave/bitcask/internal/format"

// checkNumbers refuses a manifest with numbers that are never given.
func (m *Manifest) checkNumbers() error {
	if m.NextID > format.MaxSegmentID+1 || m.firstOwn() > format.MaxSegmentID+1 || m.MaxSeq > format.MaxSequence {
		return errEdit
	}
	return nil
}
