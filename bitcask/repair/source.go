package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// segmentSource yields the entries of one segment, damaged or not, in order.
type segmentSource struct {
	v       *salvager
	sg      *segment.Segment
	active  bool                // not sealed: a bad end, past closed, may be a torn tail
	dropped bool                // after a torn tail
	remains bool                // of what an opening has truncated
	closed  int64               // everything before this is known to have been on disk
	hint    *segment.HintReader // nil: walk the frames
	fr      *segment.Frames     // also reads records for the hint
	records []format.Record
	file    *unreadable // nil: there is none

	log   bool    // written by commits, in order of sequence with the others; not by a merge
	open  []*hole // with no good record after them so far
	first uint64  // sequence of the first entry; 0: none so far
	last  uint64  // of all that was ever in it; 0: unknown
}

// endsBefore reports whether the segment is whole up to where next begins; it is if next is empty.
func (src *segmentSource) endsBefore(next *segment.Segment) (bool, error) {
	_, h, _, err := segment.NewFrames(next).NextFrame()
	if bad := (*segment.BadFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	fr := segment.NewFrames(src.sg)
	for {
		if _, err := fr.Next(); err != nil {
			return fr.Records > 0 && fr.MaxSeq+1 == h.Seq, segment.IgnoreEnd(err)
		}
	}
}

// useHint takes the segment's hint if all of it is good.
func (src *segmentSource) useHint() error {
	if !src.sg.Sealed() {
		return nil
	}
	hs, err := segment.OpenHint(src.v.seam.FS, src.v.dir, src.sg)
	if err == nil {
		if err = errors.Join(hs.Check(), hs.Park()); err == nil {
			src.hint = hs
			return nil
		}
		err = errors.Join(err, hs.Close())
	}
	if errors.Is(err, syscall.EIO) { // the frames say the same, but for the names of what is lost
		src.v.opts.Logger.Warn("a hint cannot be read", "file", format.HintName(src.sg.ID), "err", err)
		return nil
	}
	if errors.Is(err, segment.ErrHint) || errors.Is(err, failure.ErrVersion) || failure.IsNotExist(err) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (src *segmentSource) close() error {
	err := src.sg.File.Close()
	if src.hint != nil {
		err = errors.Join(err, src.hint.Close())
	}
	return err
}

func (src *segmentSource) next() ([]format.Entry, error) {
	if src.hint != nil {
		return src.hint.Next()
	}
	return src.walk()
}

// read returns the records of an entry, or why they do not verify.
func (src *segmentSource) read(e *format.Entry) (records []format.Record, reason string, err error) {
	fr := src.fr
	at := fr.Pos
	defer func() { fr.Pos = at }()
	if fr.Pos = int64(e.At); fr.Pos+int64(e.Size) > fr.Reach {
		return nil, "the file ends before", nil
	}
	raw, err := fr.Window(int64(e.Size))
	var bad *segment.BadFrame
	if errors.As(err, &bad) {
		return nil, bad.Reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	records = src.records[:0]
	for pos := 0; pos < len(raw); {
		rec, ok := src.recordAt(raw[pos:], e.At+uint32(pos))
		if !ok {
			return nil, src.reason(int64(e.At), int64(e.Size), "record checksum"), nil
		}
		if pos == 0 && !sameIdentity(&rec.Identity, &e.Identity) || pos > 0 && !rec.Kind.Follows() {
			return nil, "another record than the hint says", nil
		}
		records = append(records, rec)
		pos += rec.Size
	}
	src.records = records
	return records, "", nil
}

func sameIdentity(a, b *format.Identity) bool {
	return a.Namespace == b.Namespace && a.Kind == b.Kind && a.Type == b.Type && string(a.Key) == string(b.Key) && string(a.Elem) == string(b.Elem)
}

// recordAt parses and verifies the record at the start of b, which is at an
// offset of the segment.
func (src *segmentSource) recordAt(b []byte, at uint32) (format.Record, bool) {
	rec, err := format.ParseRecord(b)
	return rec, err == nil && src.sg.Seed.Verifies(b[:rec.Size], at)
}

// walk returns the entries of the next frame of which any can be had.
func (src *segmentSource) walk() ([]format.Entry, error) {
	fr := src.fr
	for {
		entries, err := fr.Next()
		var bad *segment.BadFrame
		if !errors.As(err, &bad) {
			return entries, err
		}
		at := fr.Pos
		if torn, err := src.torn(); torn || err != nil {
			return nil, cmp.Or(err, io.EOF)
		}
		if entries, ok := fr.Corrected(); ok {
			return entries, nil // damage in it is noticed when it is read, and its key is known
		}
		if entries, err = src.within(); err == nil && fr.Pos == at {
			err = src.skip(bad.Reason)
		}
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// torn reports whether the bad place is a torn tail, as at Open: nothing says
// that its bytes were ever on disk, and a crash can have left it. It is left
// out, for it is half a commit. Remains end so, too.
func (src *segmentSource) torn() (bool, error) {
	fr := src.fr
	at := fr.Pos
	if !src.active || at < src.closed || src.file != nil && src.file.anyFrom(at) {
		return false, nil
	}
	why, err := "", error(nil)
	if src.remains {
		var valid bool
		if _, valid, err = fr.Resync(at + 1); valid {
			why = "before commits"
		}
		fr.Pos = at
	} else {
		why, err = fr.NotTorn(src.v.man.NothingLost())
	}
	if err != nil || why != "" {
		return false, segment.IgnoreBad(err)
	}
	src.v.result.Torn += fr.End - at
	return true, nil
}

// within walks the records of a frame, if its header is good, and returns those
// that verify. Their numbers within the frame may be too low by those lost
// before them; their order is right.
func (src *segmentSource) within() ([]format.Entry, error) {
	fr := src.fr
	b, err := fr.Window(format.FrameHeaderSize)
	if err != nil {
		return nil, segment.IgnoreBad(err)
	}
	h, ok := format.ParseFrameHeader(b, src.sg.Seed, uint32(fr.Pos), fr.Reach-fr.Pos)
	if !ok || h.Footer {
		return nil, nil
	}
	raw, err := fr.Window(int64(h.Size))
	if err != nil || len(raw) < int(h.Size) {
		return nil, segment.IgnoreBad(err)
	}
	fr.Entries = fr.Entries[:0]
	at, seq, lost := uint32(fr.Pos), h.Seq, -1
	for pos := h.Records(); pos < len(raw); {
		rec, ok := src.recordAt(raw[pos:], at+uint32(pos))
		if !ok {
			if lost < 0 {
				lost = pos
			}
			pos++
			continue
		}
		if lost >= 0 {
			src.loseWithin(lost, pos)
			lost = -1
		}
		if rec.Unknown {
			return nil, fmt.Errorf("%s: %w", src.sg.Name, &format.UnknownRecord{Kind: rec.Kind, At: at + uint32(pos)})
		}
		if rec.HasSeq {
			seq = h.Seq + rec.SeqDelta
		}
		// What follows a lost record is lost with it.
		if len(fr.Entries) > 0 || !rec.Kind.Follows() {
			if err := fr.Collect(at+uint32(pos), seq, rec); err != nil {
				return nil, err
			}
		}
		seq++
		pos += rec.Size
	}
	if lost >= 0 {
		src.loseWithin(lost, len(raw))
	}
	fr.Pos += int64(h.Size)
	return fr.Entries, nil
}

func (src *segmentSource) loseWithin(from, to int) {
	at, n := src.fr.Pos+int64(from), int64(to-from)
	src.loseBefore(Lost{File: src.sg.Name, Offset: at, Bytes: n, Reason: src.reason(at, n, "record checksum")})
}

// reason is why something does not verify.
func (src *segmentSource) reason(at, n int64, otherwise string) string {
	if src.file == nil {
		return otherwise
	}
	return src.file.reason(at, at+n, otherwise)
}

// skip moves to the next whole frame, or the end.
func (src *segmentSource) skip(reason string) error {
	fr := src.fr
	from := fr.Pos
	if err := fr.Skip(); err != nil {
		return segment.IgnoreBad(err)
	}
	if from < fr.End {
		src.loseBefore(Lost{File: src.sg.Name, Offset: from, Bytes: fr.Pos - from, Reason: src.reason(from, fr.Pos-from, reason)})
	}
	return nil
}
