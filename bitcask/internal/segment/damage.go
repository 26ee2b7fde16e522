package segment

import (
	"errors"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// Corrected reads the frame at pos as it was before one of its bits was flipped, if there is a bit that makes all of it
// verify, and continues after it.
func (fr *Frames) Corrected() ([]format.Entry, bool) {
	raw, h, ok := fr.correctBit()
	if !ok {
		return nil, false
	}
	if h.Footer { // that a crash kept from being listed
		fr.HasFooter = true
		fr.Pos += int64(h.Size)
		return nil, true
	}
	entries, _, ok, err := fr.take(raw, &h)
	return entries, ok && err == nil
}

// correctBit returns the frame at pos as it was before one of its bits was flipped, if there is a bit that makes all of
// it verify.
func (fr *Frames) correctBit() (raw []byte, h format.FrameHeader, ok bool) {
	b, err := fr.Window(format.FrameHeaderSize)
	if err != nil || len(b) < format.FrameHeaderSize {
		return nil, h, false
	}
	head := slices.Clone(b)
	parse := func() (ok bool) {
		h, ok = format.ParseFrameHeader(head, fr.Segment.Seed, uint32(fr.Pos), fr.Reach-fr.Pos)
		return ok
	}
	whole := parse()
	if !whole && !format.AnyBit(head, parse) {
		return nil, h, false
	}
	if raw, err = fr.Window(int64(h.Size)); err != nil || len(raw) < int(h.Size) {
		return nil, h, false
	}
	raw = slices.Clone(raw)
	copy(raw, head)
	switch {
	case h.Footer:
		ok = fr.correctFooter(raw, &h)
	case whole:
		ok = fr.correctRecord(raw, &h)
	default:
		_, ok, err = format.EachRecord(raw, &h, fr.Segment.Seed, uint32(fr.Pos), nil)
		ok = ok && err == nil
	}
	return raw, h, ok
}

// correctFooter makes the body of a footer verify, if it takes one bit at most.
func (fr *Frames) correctFooter(raw []byte, h *format.FrameHeader) bool {
	body := raw[format.FrameHeaderSize:]
	verify := func() bool { return h.Sum == fr.Segment.Seed.Sum(uint32(fr.Pos)+format.FrameHeaderSize, body) }
	return verify() || format.AnyBit(body, verify)
}

// correctRecord flips a bit of the first record of a frame that does not verify, so that the frame does.
func (fr *Frames) correctRecord(raw []byte, h *format.FrameHeader) bool {
	at := uint32(fr.Pos)
	verify := func() (bad uint32, ok bool) {
		bad, ok, err := format.EachRecord(raw, h, fr.Segment.Seed, at, nil)
		return bad, ok && err == nil
	}
	bad, _ := verify()
	rest := raw[bad-at:]
	if bad == at {
		return false // the records verify, their checksums do not
	}
	n := min(format.RecordHeaderMax, len(rest))
	if head, err := format.ParseHeader(rest); err == nil && head.Total() <= format.CorrectLimit {
		n = min(max(n, head.Total()), len(rest))
	}
	return format.AnyBit(rest[:n], func() bool {
		rec, err := format.ParseRecord(rest)
		if err != nil || !fr.Segment.Seed.Verifies(rest[:rec.Size], bad) {
			return false
		}
		_, ok := verify()
		return ok
	})
}

// MissingFile takes the place of a segment's file that is not there.
type MissingFile struct{}

func (MissingFile) Sync() error { return errMissingFile }

func (MissingFile) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (MissingFile) Close() error { return nil }

func (MissingFile) Size() (int64, error) { return 0, nil }

func (MissingFile) Truncate(int64) error { return errMissingFile }

func (MissingFile) WriteAt([]byte, int64) (int, error) { return 0, errMissingFile }

var errMissingFile = errors.New("BUG: write to a file that is missing")
