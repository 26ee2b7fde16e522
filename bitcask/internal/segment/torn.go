package segment

import (
	"errors"
	"io"
	"math"
	"math/bits"

	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// NotTorn says why the bytes at pos, where no frame verifies, cannot be the rest of a write that a crash cut short; ""
// if they can. kept means that no written byte can be missing: the process was killed, but the machine kept running.
// Then the write is there up to some byte, and after it is the end of the file or zeros: the header of its last frame
// is truncated, or says how much is missing.
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
	case ok && fr.endsWithin(is, raw):
		return "", nil
	case ok && (kept || !files.LostSector(is, raw, end)):
		return "for one flipped bit", nil
	case !kept || left < format.FrameHeaderSize:
		return "", nil
	}
	h, ok = format.ParseFrameHeader(is, fr.Segment.Seed, uint32(end), math.MaxInt64)
	if size := int64(h.Size); ok && size > left && end+size != fr.Reach { // a whole frame may end with zeros
		return "", nil
	}
	if one, err := fr.oneBit(end); one || err != nil {
		return "", err
	}
	return "of a write that was not cut short", nil
}

// oneBit reports whether all that stands from an offset on is one bit, in zeros that were reserved, perhaps in the last
// of them: no part of a commit.
func (fr *Frames) oneBit(at int64) (bool, error) {
	if fr.End == fr.Reach && fr.Reach%ReserveUnit != 0 || fr.End-at > maxZeros {
		return false, nil
	}
	fr.Pos = at
	b, err := fr.Window(fr.End - at)
	return err == nil && files.OnlyZeros(b[:len(b)-1]) && bits.OnesCount8(b[len(b)-1]) == 1, err
}

// endsWithin reports whether a copy into reserved zeros that stopped within the frame at Pos explains the difference
// between what is there and what was to be: it begins where nothing but zeros follows, and the file goes on after the
// frame.
func (fr *Frames) endsWithin(is, was []byte) bool {
	i := 0
	for i < len(is) && is[i] == was[i] {
		i++
	}
	return fr.Pos+int64(len(was)) < fr.Reach && fr.Pos+int64(i) >= fr.End
}

// FindContent finds where an unsealed segment ends without the zeros at its end, but not before closed, which is known
// to have been on disk. A writer reserves zeros after the last frame (append.go), and leaves them there when it is
// killed. Other zeros are no reserve: more than it ever reserves, in a file of a length that it never gives one, or all
// that follows a damaged header.
//
// Alongside a writer this is what had been written: commits are copied in order, so all frames that begin before are
// whole, but perhaps the last one.
func (sg *Segment) FindContent(closed int64) error {
	size := sg.Size.Load()
	sg.Content = size
	if size%ReserveUnit != 0 || size == 0 {
		return nil
	}
	end, err := files.TrimZeros(sg.File, size, maxZeros)
	if err == nil && size-end <= maxZeros && (!sg.Damaged || end > format.SegmentHeaderSize) {
		sg.Content = max(end, min(closed, size), format.SegmentHeaderSize)
	}
	return err
}

// MaxReserve is the highest number of zeros in bytes that a writer reserves after the last frame, and the length of the
// longest commit that it copies into them.
const MaxReserve = 64 << 10

// ReserveUnit is what a file with reserved zeros is a multiple of in length, in bytes. By that a file whose end has
// been zeroed differs from it mostly, if its writer reserves nothing.
const ReserveUnit = 512

// maxZeros is the highest number of zeros at the end of a file that a writer leaves: those that it has reserved, and
// the end of a commit of zeros.
const maxZeros = 2 * MaxReserve

// TornBytes is how much stands after the valid frames of an unsealed segment, during Open. Zeros at the end do not
// count.
func (sg *Segment) TornBytes() int64 {
	end := sg.Size.Load()
	if sg.Content > 0 {
		end = sg.Content
	}
	return max(end-sg.FramesEnd, 0)
}

// EndAtFrames makes the end of the valid frames of an unsealed segment that of the segment.
func (sg *Segment) EndAtFrames() {
	sg.Size.Store(sg.FramesEnd)
	sg.Content = 0
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
