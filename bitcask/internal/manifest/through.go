package manifest

import (
	"encoding/binary"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// How far the log must reach. A merge drops what newer records have made dead,
// and these may stand in a segment that is not sealed, whose length the manifest
// does not know. They are on disk before the merge is published, so no crash
// takes them away. A copy of a live directory may: its unsealed segment as of
// one moment, manifest and outputs of merges as of a later one. Its keys would
// be of neither. So a merge says through which sequence number the unsealed
// segments were on disk.

// MergeBody is the body of the edit that publishes a merge.
func MergeBody(through uint64, out []uint32, in []format.SealedInfo) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, through), SwapBody(out, in)...)
}

// applyMerge applies it.
func (m *Manifest) applyMerge(body []byte) error {
	if through := binary.LittleEndian.Uint64(body); through > m.sealedSeq {
		m.Through = max(m.Through, through)
	}
	return m.applySwap(body[8:])
}

// sealedThrough notes that what was written up to a sequence number is in
// segments that the manifest binds.
func (m *Manifest) sealedThrough(seq uint64) {
	if m.sealedSeq = max(m.sealedSeq, seq); m.Through <= m.sealedSeq {
		m.Through = 0
	}
}
