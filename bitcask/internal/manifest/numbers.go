package manifest

import "github.com/stavedb/stave/bitcask/internal/format"

// maxUnsealed is far more unsealed segments than a store ever has: one that is being sealed, the active one, and the
// next. Edits look through all of them.
const maxUnsealed = 256

// checkNumbers refuses a manifest with numbers that are never given.
func (m *Manifest) checkNumbers() error {
	if m.NextID > format.MaxSegmentID+1 || m.firstOwn() > format.MaxSegmentID+1 || m.MaxSeq > format.MaxSequence || m.ClosedLen > format.MaxSegmentLength || len(m.Tail) > maxUnsealed {
		return errEdit
	}
	return nil
}
