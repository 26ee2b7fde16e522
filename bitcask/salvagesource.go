package bitcask

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// salvageSource yields the entries of one segment, damaged or not, in order.
type salvageSource struct {
	v       *salvager
	sg      *segment
	active  bool    // not sealed: a bad end, past closed, may be a torn tail
	dropped bool    // behind a torn tail
	remains bool    // of what an opening has truncated
	closed  int64   // everything before this is known to have been on disk
	hint    *hints  // nil: walk the frames
	fr      *frames // also reads records for the hint
	records []format.Record
}

// endsBefore reports whether the segment is whole up to where next goes on; it
// is if next has nothing.
func (src *salvageSource) endsBefore(next *segment) (bool, error) {
	_, h, _, err := newFrames(next).nextFrame()
	if bad := (*badFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	fr := newFrames(src.sg)
	for {
		if _, err := fr.next(); err != nil {
			return fr.records > 0 && fr.maxSeq+1 == h.Seq, ignoreEnd(err)
		}
	}
}

// useHint takes the segment's hint if all of it is good.
func (src *salvageSource) useHint() error {
	if !src.sg.sealed() {
		return nil
	}
	hs, err := openHint(src.v.opts.FS, src.v.dir, src.sg)
	if err == nil {
		if err = hs.check(); err == nil {
			src.hint = hs
			return nil
		}
		err = errors.Join(err, hs.close())
	}
	if errors.Is(err, errHint) || errors.Is(err, ErrVersion) || failure.IsNotExist(err) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (src *salvageSource) close() error {
	err := src.sg.file.Close()
	if src.hint != nil {
		err = errors.Join(err, src.hint.close())
	}
	return err
}

func (src *salvageSource) next() ([]format.Entry, error) {
	if src.hint != nil {
		return src.hint.next()
	}
	return src.walk()
}

// read returns the records of an entry, or why they are not what was written.
func (src *salvageSource) read(e *format.Entry) (records []format.Record, reason string, err error) {
	fr := src.fr
	at := fr.pos
	defer func() { fr.pos = at }()
	if fr.pos = int64(e.At); fr.pos+int64(e.Size) > fr.end {
		return nil, "the file ends before", nil
	}
	raw, err := fr.window(int64(e.Size))
	var bad *badFrame
	if errors.As(err, &bad) {
		return nil, bad.reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	records = src.records[:0]
	for pos := 0; pos < len(raw); {
		rec, ok := src.recordAt(raw[pos:], e.At+uint32(pos))
		if !ok {
			return nil, "record checksum", nil
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

func sameIdentity(a, b *Identity) bool {
	return a.Namespace == b.Namespace && a.Kind == b.Kind && a.Type == b.Type && string(a.Key) == string(b.Key) && string(a.Elem) == string(b.Elem)
}

// recordAt parses and verifies the record at the start of b, which is at an
// offset of the segment.
func (src *salvageSource) recordAt(b []byte, at uint32) (format.Record, bool) {
	rec, err := format.ParseRecord(b)
	ok := err == nil && binary.LittleEndian.Uint32(b) == src.sg.seal.Sum(at, b[format.RecordCRCSize:rec.Size])
	return rec, ok
}

// walk returns the entries of the next frame of which any can be had.
func (src *salvageSource) walk() ([]format.Entry, error) {
	fr := src.fr
	for {
		entries, err := fr.next()
		var bad *badFrame
		if !errors.As(err, &bad) {
			return entries, err
		}
		at := fr.pos
		if torn, err := src.torn(); torn || err != nil {
			return nil, cmp.Or(err, io.EOF)
		}
		if entries, ok := fr.corrected(); ok {
			return entries, nil // what is damaged in it is seen when it is read, and its key is known
		}
		if entries, err = src.within(); err == nil && fr.pos == at {
			err = src.skip(bad.reason)
		}
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// torn reports whether the bad place is a torn tail, as at Open: nothing says
// that its bytes were ever on disk, and a crash can have left it. It is left
// out, for it is half a commit. Remains end so, too.
func (src *salvageSource) torn() (bool, error) {
	fr := src.fr
	at := fr.pos
	if !src.active || at < src.closed {
		return false, nil
	}
	why, err := "", error(nil)
	if src.remains {
		var valid bool
		if _, valid, err = fr.resync(at + 1); valid {
			why = "before commits"
		}
		fr.pos = at
	} else {
		why, err = fr.notTorn(src.v.man.NothingLost())
	}
	if err != nil || why != "" {
		return false, ignoreBad(err)
	}
	src.v.result.Torn += fr.end - at
	return true, nil
}

// within walks the records of a frame, if its header is good, and returns those
// that verify. Their numbers within the frame may be too low by those lost
// before them; their order is right.
func (src *salvageSource) within() ([]format.Entry, error) {
	fr := src.fr
	b, err := fr.window(format.FrameHeaderSize)
	if err != nil {
		return nil, ignoreBad(err)
	}
	h, ok := format.ParseFrameHeader(b, src.sg.seal, uint32(fr.pos), fr.end-fr.pos)
	if !ok || h.Footer {
		return nil, nil
	}
	raw, err := fr.window(int64(h.Size))
	if err != nil || len(raw) < int(h.Size) {
		return nil, ignoreBad(err)
	}
	fr.entries = fr.entries[:0]
	at, seq, lost := uint32(fr.pos), h.Seq, -1
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
			return nil, fmt.Errorf("%s: %w", src.sg.name, &format.UnknownRecord{Kind: rec.Kind, At: at + uint32(pos)})
		}
		if rec.HasSeq {
			seq = h.Seq + rec.SeqDelta
		}
		// What follows a lost record is lost with it.
		if len(fr.entries) > 0 || !rec.Kind.Follows() {
			if err := fr.collect(at+uint32(pos), seq, &rec); err != nil {
				return nil, err
			}
		}
		seq++
		pos += rec.Size
	}
	if lost >= 0 {
		src.loseWithin(lost, len(raw))
	}
	fr.pos += int64(h.Size)
	return fr.entries, nil
}

func (src *salvageSource) loseWithin(from, to int) {
	src.v.lose(Lost{File: src.sg.name, Offset: src.fr.pos + int64(from), Bytes: int64(to - from), Reason: "record checksum"})
}

// skip goes on to the next whole frame, or the end.
func (src *salvageSource) skip(reason string) error {
	fr := src.fr
	from := fr.pos
	if err := fr.skip(); err != nil {
		return ignoreBad(err)
	}
	if from < fr.end {
		src.v.lose(Lost{File: src.sg.name, Offset: from, Bytes: fr.pos - from, Reason: reason})
	}
	return nil
}
