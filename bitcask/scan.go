package bitcask

import (
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// frames reads the frames of a segment in order.
type frames struct {
	sg      *segment
	from    int64 // where it began, if what stands before is on disk
	pos     int64
	end     int64 // no frame reaches past it
	buf     []byte
	bufAt   int64
	entries []format.Entry
	records uint64 // seen so far, followers included
	minSeq  uint64
	maxSeq  uint64
	synced  int64 // highest "synced through" seen
	footer  bool  // the last frame was the footer
	foot    format.Footer
}

const scanWindow = 1 << 20

func newFrames(sg *segment) *frames {
	return &frames{sg: sg, pos: format.SegmentHeaderSize, end: sg.size.Load(), minSeq: 1<<64 - 1}
}

// newFramesAfter reads on where a segment was read up to before.
func newFramesAfter(sg *segment, before indexSegment) *frames {
	fr := newFrames(sg)
	fr.pos = int64(before.length)
	fr.from = fr.pos
	if before.foot.Records > 0 {
		fr.records, fr.minSeq, fr.maxSeq = before.foot.Records, before.foot.MinSeq, before.foot.MaxSeq
	}
	return fr
}

// badFrame says that no whole valid frame stands at an offset.
type badFrame struct {
	at     int64
	reason string
}

func (e *badFrame) Error() string { return fmt.Sprintf("%s at offset %d", e.reason, e.at) }

// next returns the entries of the next frame, io.EOF at the end or behind the
// footer, *badFrame where nothing valid stands, or a read error.
func (fr *frames) next() ([]format.Entry, error) {
	_, _, entries, err := fr.nextFrame()
	return entries, err
}

// nextFrame is next with the raw frame and its header.
func (fr *frames) nextFrame() (raw []byte, h format.FrameHeader, entries []format.Entry, err error) {
	if fr.pos == fr.end {
		return nil, h, nil, io.EOF
	}
	if fr.footer {
		return nil, h, nil, &badFrame{fr.pos, "bytes after the footer"}
	}
	at := uint32(fr.pos)
	b, err := fr.window(format.FrameHeaderSize)
	if err != nil {
		return nil, h, nil, err
	}
	h, ok := format.ParseFrameHeader(b, fr.sg.seal, at, fr.end-fr.pos)
	if !ok {
		return nil, h, nil, &badFrame{fr.pos, "frame header"}
	}
	if raw, err = fr.window(int64(h.Size)); err != nil {
		return nil, h, nil, err
	}
	if h.Footer {
		if h.Size != format.FooterSize || h.Sum != fr.sg.seal.Sum(at+format.FrameHeaderSize, raw[format.FrameHeaderSize:]) {
			return nil, h, nil, &badFrame{fr.pos, "footer checksum"}
		}
		fr.footer, fr.foot = true, format.ParseFooter(raw[format.FrameHeaderSize:])
		fr.pos += int64(h.Size)
		return raw, h, nil, nil
	}
	entries, bad, ok, err := fr.take(raw, &h)
	if err != nil {
		return nil, h, nil, err
	}
	if !ok {
		return nil, h, nil, &badFrame{int64(bad), "record checksum"}
	}
	return raw, h, entries, nil
}

// take goes on behind the frame at pos, whose header has verified, with its entries. If a record does not verify it
// reports where.
func (fr *frames) take(raw []byte, h *format.FrameHeader) (entries []format.Entry, bad uint32, ok bool, err error) {
	fr.entries = fr.entries[:0]
	records, maxSeq := fr.records, fr.maxSeq
	bad, ok, err = format.EachRecord(raw, h, fr.sg.seal, uint32(fr.pos), fr.collect)
	if errors.Is(err, ErrVersion) {
		err = fmt.Errorf("%s: %w", fr.sg.name, err)
	}
	if err != nil {
		return nil, 0, false, err
	}
	if !ok {
		fr.records, fr.maxSeq = records, maxSeq // the records before the bad one do not count
		return nil, bad, false, nil
	}
	for i := range fr.entries {
		fr.minSeq, fr.maxSeq = min(fr.minSeq, fr.entries[i].Seq), max(fr.maxSeq, fr.entries[i].Seq)
	}
	fr.synced = max(fr.synced, int64(h.Synced))
	fr.pos += int64(h.Size)
	return fr.entries, 0, true, nil
}

var errFollower = errors.New("a record that follows another stands alone")

// collect turns a record into an entry, or adds a follower to the last one.
func (fr *frames) collect(at uint32, seq uint64, rec *format.Record) error {
	fr.records++
	fr.maxSeq = max(fr.maxSeq, seq)
	if rec.Kind.Follows() {
		if len(fr.entries) == 0 {
			return errFollower
		}
		fr.entries[len(fr.entries)-1].Size += uint32(rec.Size)
		return nil
	}
	e := format.Entry{Identity: rec.Identity, Seq: seq, At: at, Size: uint32(rec.Size)}
	if format.Inlined(rec.Kind, rec.Type) {
		e.Inline = rec.Value
	}
	fr.entries = append(fr.entries, e)
	return nil
}

// window returns n bytes at pos (fewer only at the end), reading ahead.
func (fr *frames) window(n int64) ([]byte, error) {
	n = min(n, fr.end-fr.pos)
	from := fr.pos - fr.bufAt
	if from >= 0 && from+n <= int64(len(fr.buf)) {
		return fr.buf[from : from+n], nil
	}
	want := min(max(n, scanWindow), fr.end-fr.pos)
	if int64(cap(fr.buf)) < want {
		fr.buf = make([]byte, want)
	}
	fr.buf = fr.buf[:want]
	fr.bufAt = fr.pos
	if got, err := fr.sg.file.ReadAt(fr.buf, fr.pos); err != nil {
		fr.buf = fr.buf[:0]
		if errors.Is(err, io.EOF) {
			return nil, &badFrame{fr.pos + int64(got), "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", fr.sg.name, fr.pos, err)
	}
	return fr.buf[:n], nil
}

// skip goes on to the next frame header behind a bad place, or the end.
func (fr *frames) skip() error {
	for fr.pos++; fr.pos < fr.end; fr.pos++ {
		b, err := fr.window(format.FrameHeaderSize)
		if err != nil {
			return err
		}
		if _, ok := format.ParseFrameHeader(b, fr.sg.seal, uint32(fr.pos), fr.end-fr.pos); ok {
			break
		}
	}
	fr.footer = false
	return nil
}

// soundEnd reports whether the last frame of a sealed segment, before the
// footer, is what was written, wherever else the segment may be damaged.
func (sg *segment) soundEnd() (sound bool, err error) {
	for fr := newFrames(sg); ; {
		_, err := fr.next()
		if bad := (*badFrame)(nil); errors.As(err, &bad) {
			sound, err = false, fr.skip()
		} else if err == nil && !fr.footer {
			sound = true
		}
		if err != nil {
			return sound, ignoreEnd(err)
		}
	}
}

// resync looks for valid frames behind a bad place: whether there are any, and the highest "synced through" that one of
// them states.
func (fr *frames) resync(from int64) (synced int64, valid bool, err error) {
	for fr.pos = from; fr.end-fr.pos >= format.FrameHeaderSize; fr.pos++ {
		b, err := fr.window(format.FrameHeaderSize)
		if err != nil {
			return 0, false, err
		}
		if h, ok := format.ParseFrameHeader(b, fr.sg.seal, uint32(fr.pos), fr.end-fr.pos); ok {
			synced, valid = max(synced, int64(h.Synced)), true
		}
	}
	return synced, valid, nil
}
