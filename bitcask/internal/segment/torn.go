package segment

import (
	"errors"
	"io"
	"math"

	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// NotTorn says why the bytes at pos, where no frame verifies, cannot be the rest of a write that a crash cut short; "" if
// they can. kept means that no written byte can be missing: the process was killed, but the machine kept running. Then the write
// is there up to some byte: the header of its last frame is truncated, or says how much is missing.
func (fr *Frames) NotTorn(kept bool) (why string, err error) {
	end := fr.Pos
	defer func() { fr.Pos = end }()
	synced, valid, err := fr.Resync(end + 1)
	switch {
	case err != nil:
		return "", err
	case synced > end:
		return "before data written once this was on disk", nil
	case kept && valid:
		return "before commits that were written after it", nil
	}
	fr.Pos = end
	raw, h, ok := fr.correctBit()
	if ok && h.Footer {
		return "", nil // no record is in a footer
	}
	left := fr.End - end
	is, err := fr.Window(max(format.FrameHeaderSize, int64(len(raw))))
	switch {
	case err != nil:
		return "", err
	case ok && (kept || !files.LostSector(is, raw, end)):
		return "for one flipped bit", nil
	case !kept || left < format.FrameHeaderSize:
		return "", nil
	}
	if h, ok := format.ParseFrameHeader(is, fr.Segment.Seed, uint32(end), math.MaxInt64); ok && int64(h.Size) > left {
		return "", nil
	}
	return "of a write that was not cut short", nil
}

// LastSynced is the highest "synced through" of all frames from here on, those after a bad place
// included.
func (fr *Frames) LastSynced() (int64, error) {
	for {
		_, err := fr.Next()
		bad := (*BadFrame)(nil)
		switch {
		case err == io.EOF:
			return fr.Synced, nil
		case errors.As(err, &bad):
			later, _, err := fr.Resync(fr.Pos + 1)
			return max(fr.Synced, later), err
		case err != nil:
			return 0, err
		}
	}
}

// Sequences is bounds of the sequences in all frames but footers from here on, those after bad places included.
func (fr *Frames) Sequences() (lowest, highest uint64, err error) {
	for lowest = math.MaxUint64; fr.End-fr.Pos >= format.FrameHeaderSize; fr.Pos++ {
		b, err := fr.Window(format.FrameHeaderSize)
		if err != nil {
			return lowest, highest, IgnoreBad(err)
		}
		if h, ok := format.ParseFrameHeader(b, fr.Segment.Seed, uint32(fr.Pos), fr.End-fr.Pos); ok && !h.Footer {
			last := h.Seq + uint64(h.Size)/minRecordSize
			if last < h.Seq {
				last = math.MaxUint64
			}
			lowest, highest = min(lowest, h.Seq), max(highest, last)
		}
	}
	return lowest, highest, nil
}

// minRecordSize is less than the shortest record takes, in bytes.
const minRecordSize = 8
