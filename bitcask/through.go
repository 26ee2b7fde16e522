package bitcask

import (
	"encoding/binary"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// How far the log must reach. A merge drops what newer records have made dead,
// and these may stand in a segment that is not sealed, whose length the manifest
// does not know. They are on disk before the merge is published, so no crash
// takes them away. A copy of a live directory may: its unsealed segment as of
// one moment, manifest and outputs of merges as of a later one. Its keys would
// be of neither. So a merge says through which sequence number the unsealed
// segments were on disk.

// mergeBody is the body of the edit that publishes a merge.
func mergeBody(through uint64, out []uint32, in []format.SealedInfo) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, through), swapBody(out, in)...)
}

// applyMerge applies it.
func (m *manifest) applyMerge(body []byte) error {
	if through := binary.LittleEndian.Uint64(body); through > m.sealedSeq {
		m.through = max(m.through, through)
	}
	return m.applySwap(body[8:])
}

// sealedThrough notes that what was written up to a sequence number is in
// segments that the manifest binds.
func (m *manifest) sealedThrough(seq uint64) {
	if m.sealedSeq = max(m.sealedSeq, seq); m.through <= m.sealedSeq {
		m.through = 0
	}
}

// onDisk is the highest sequence number in the unsealed segments that is on
// disk, once the log has been synced; 0 if they hold none.
func (l *commitLog) onDisk() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.foot.Records == 0 && l.rotation.sealing == nil {
		return 0
	}
	return l.syncing.seq - 1
}

// reachesMerges makes sure, once the log has been read, that it reaches as far
// as it did when segments were merged.
func (s *Store) reachesMerges() error {
	if s.man.through < s.log.nextSeq {
		return nil
	}
	last := format.DataName(s.man.nextID - 1)
	at := int64(format.SegmentHeaderSize)
	for _, sg := range slices.Backward(s.tail) {
		if last, at = sg.name, sg.end; sg.foot.Records > 0 {
			break
		}
	}
	return &CorruptError{File: last, Offset: at, Reason: "the log ends before what a merge has built on"}
}
