package manifest

import (
	"encoding/binary"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// How far the log must reach. A merge drops records that newer ones have made dead, and the newer
// ones may be in an unsealed segment, whose length the manifest does not have. They are on disk
// before the merge is published, so no crash loses them. A copy of a live directory may: it can
// hold the unsealed segment of one moment and the manifest and merge outputs of a later one. Its
// keys would be of neither. So a merge notes through which sequence number the unsealed segments
// were on disk.

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

// sealedThrough notes that everything up to a sequence number is in segments that the manifest
// binds.
func (m *Manifest) sealedThrough(seq uint64) {
	if m.sealedSeq = max(m.sealedSeq, seq); m.Through <= m.sealedSeq {
		m.Through = 0
	}
}
