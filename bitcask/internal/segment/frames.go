package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// Frames reads the frames of a segment in order.
type Frames struct {
	Segment   *Segment
	From      int64 // where it began, if what stands before is on disk
	Pos       int64
	End       int64 // no frame begins there or later
	Reach     int64 // no frame reaches past it
	Loads     int   // how often bytes were read from the file
	buf       []byte
	bufAt     int64
	Entries   []format.Entry
	Records   uint64 // seen so far, followers included
	MinSeq    uint64
	MaxSeq    uint64
	Synced    int64 // highest "synced through" seen
	HasFooter bool  // the last frame was the footer
	Foot      format.Footer
	Chain     Chain // the frames read, without the footer
}

const scanWindow = 1 << 20

func NewFrames(sg *Segment) *Frames {
	size := sg.Size.Load()
	fr := &Frames{Segment: sg, Pos: format.SegmentHeaderSize, End: size, Reach: size, MinSeq: 1<<64 - 1}
	fr.Chain.From, fr.Chain.End, fr.Chain.Last = fr.Pos, fr.Pos, fr.Pos
	if sg.Content > 0 {
		fr.End = sg.Content
	}
	return fr
}

// NewFramesAfter reads on where a segment was read up to before.
func NewFramesAfter(sg *Segment, length int64, before format.Footer) *Frames {
	fr := NewFrames(sg)
	fr.Pos = length
	fr.From = fr.Pos
	fr.Chain.From, fr.Chain.End, fr.Chain.Last = fr.Pos, fr.Pos, fr.Pos
	if before.Records > 0 {
		fr.Records, fr.MinSeq, fr.MaxSeq = before.Records, before.MinSeq, before.MaxSeq
	}
	return fr
}

// BadFrame says that no whole valid frame stands at an offset.
type BadFrame struct {
	At     int64
	Reason string
}

func (e *BadFrame) Error() string { return fmt.Sprintf("%s at offset %d", e.Reason, e.At) }

// Next returns the entries of the next frame, io.EOF at the end or after the footer, *BadFrame
// where no frame is valid, or a read error. I2: the entries of a frame come all together or not at
// all, after its checksums have verified.
func (fr *Frames) Next() ([]format.Entry, error) {
	_, _, entries, err := fr.NextFrame()
	return entries, err
}

// NextFrame is next with the raw frame and its header.
func (fr *Frames) NextFrame() (raw []byte, h format.FrameHeader, entries []format.Entry, err error) {
	if fr.Pos >= fr.End { // beyond it in a file without a whole header
		return nil, h, nil, io.EOF
	}
	if fr.HasFooter {
		return nil, h, nil, &BadFrame{fr.Pos, "bytes after the footer"}
	}
	at := uint32(fr.Pos)
	b, err := fr.Window(format.FrameHeaderSize)
	if err != nil {
		return nil, h, nil, err
	}
	h, ok := format.ParseFrameHeader(b, fr.Segment.Seed, at, fr.Reach-fr.Pos)
	if !ok {
		return nil, h, nil, &BadFrame{fr.Pos, "frame header"}
	}
	if raw, err = fr.Window(int64(h.Size)); err != nil {
		return nil, h, nil, err
	}
	if len(raw) < int(h.Size) {
		return nil, h, nil, &BadFrame{fr.Pos + int64(len(raw)), shorter}
	}
	if h.Footer {
		if h.Size != format.FooterSize || h.Sum != fr.Segment.Seed.Sum(at+format.FrameHeaderSize, raw[format.FrameHeaderSize:]) {
			return nil, h, nil, &BadFrame{fr.Pos, "footer checksum"}
		}
		fr.HasFooter, fr.Foot = true, format.ParseFooter(raw[format.FrameHeaderSize:])
		fr.Pos += int64(h.Size)
		return raw, h, nil, nil
	}
	entries, bad, ok, err := fr.take(raw, &h)
	if err != nil {
		return nil, h, nil, err
	}
	if !ok {
		return nil, h, nil, &BadFrame{int64(bad), "record checksum"}
	}
	return raw, h, entries, nil
}

// take consumes the frame at pos, whose header has verified, and returns its entries. If a record does not verify
// it reports where.
func (fr *Frames) take(raw []byte, h *format.FrameHeader) (entries []format.Entry, bad uint32, ok bool, err error) {
	fr.Entries = fr.Entries[:0]
	records, maxSeq := fr.Records, fr.MaxSeq
	bad, ok, err = format.EachRecord(raw, h, fr.Segment.Seed, uint32(fr.Pos), fr.Collect)
	if errors.Is(err, failure.ErrVersion) {
		err = fmt.Errorf("%s: %w", fr.Segment.Name, err)
	}
	if err != nil {
		return nil, 0, false, err
	}
	if !ok {
		fr.Records, fr.MaxSeq = records, maxSeq // the records before the bad one do not count
		return nil, bad, false, nil
	}
	for i := range fr.Entries {
		fr.MinSeq, fr.MaxSeq = min(fr.MinSeq, fr.Entries[i].Seq), max(fr.MaxSeq, fr.Entries[i].Seq)
	}
	fr.Synced = max(fr.Synced, int64(h.Synced))
	fr.Pos += int64(h.Size)
	fr.Chain.add(raw, h.Size)
	return fr.Entries, 0, true, nil
}

var errFollower = errors.New("a record that follows another stands alone")

// Collect turns a record into an entry, or adds a follower to the last one.
func (fr *Frames) Collect(at uint32, seq uint64, rec format.Record) error {
	fr.Records++
	fr.MaxSeq = max(fr.MaxSeq, seq)
	if rec.Kind.Follows() {
		if len(fr.Entries) == 0 {
			return errFollower
		}
		fr.Entries[len(fr.Entries)-1].Size += uint32(rec.Size)
		return nil
	}
	e := format.Entry{Identity: rec.Identity, Seq: seq, At: at, Size: uint32(rec.Size)}
	if format.Inlined(rec.Kind, rec.Type) {
		e.Inline = rec.Value
	}
	fr.Entries = append(fr.Entries, e)
	return nil
}

// Window returns n bytes at pos (fewer only at the end), reading ahead.
func (fr *Frames) Window(n int64) ([]byte, error) {
	n = max(min(n, fr.Reach-fr.Pos), 0)
	if n == 0 {
		return nil, nil
	}
	from := fr.Pos - fr.bufAt
	if from >= 0 && from+n <= int64(len(fr.buf)) {
		return fr.buf[from : from+n], nil
	}
	want := min(max(n, scanWindow), fr.Reach-fr.Pos)
	if int64(cap(fr.buf)) < want {
		fr.buf = make([]byte, want)
	}
	fr.buf = fr.buf[:want]
	fr.bufAt = fr.Pos
	fr.Loads++
	got, err := fr.Segment.File.ReadAt(fr.buf, fr.Pos)
	switch reached := fr.Pos + int64(got); {
	case err == nil:
		return fr.buf[:n], nil
	case errors.Is(err, io.EOF) && reached >= fr.End:
		// A writer alongside has truncated the zeros that it had reserved. What has been read counts.
		fr.Reach, fr.buf = reached, fr.buf[:got]
		return fr.buf[:min(n, int64(got))], nil
	case errors.Is(err, io.EOF):
		fr.buf = fr.buf[:0]
		return nil, &BadFrame{reached, shorter}
	}
	fr.buf = fr.buf[:0]
	return nil, fmt.Errorf("%s: reading at %d: %w", fr.Segment.Name, fr.Pos, err)
}

// shorter is the reason of a bad frame that the file no longer holds.
const shorter = "file is shorter than it was"

// Again is Next of a frame that was bad a moment ago, in a file to which a writer alongside may have been copying it.
func (fr *Frames) Again() ([]format.Entry, error) {
	fr.buf = fr.buf[:0]
	return fr.Next()
}

// Extend has the reader go on in a file that is of another length by now. What it had read ahead does not count: a
// writer alongside may have copied frames there since.
func (fr *Frames) Extend(size int64) {
	fr.End, fr.Reach, fr.buf = size, size, fr.buf[:0]
}

// ExtendToFile is Extend to where the file ends.
func (fr *Frames) ExtendToFile() error {
	size, err := fr.Segment.File.Size()
	if err == nil {
		fr.Extend(size)
	}
	return err
}

// NextInFile is Next in a file whose reserved zeros a writer alongside may have truncated since ExtendToFile.
func (fr *Frames) NextInFile() ([]format.Entry, error) {
	_, _, entries, err := fr.NextFrameInFile()
	return entries, err
}

// NextFrameInFile is NextInFile with the raw frame and its header. It gives up if a file says the same size twice and ends
// before it at the same place: no writer truncates that.
func (fr *Frames) NextFrameInFile() (raw []byte, h format.FrameHeader, entries []format.Entry, err error) {
	for size, at := int64(-1), int64(-1); ; {
		if raw, h, entries, err = fr.NextFrame(); err == nil {
			return raw, h, entries, nil
		}
		bad := (*BadFrame)(nil)
		if !errors.As(err, &bad) || bad.Reason != shorter || fr.End == size && bad.At == at {
			return nil, h, nil, err
		}
		size, at = fr.End, bad.At
		if err := fr.ExtendToFile(); err != nil {
			return nil, h, nil, err
		}
	}
}

// BackTo undoes what was read since before, a copy of fr.
func (fr *Frames) BackTo(before *Frames) {
	buf, loads := fr.buf[:0], fr.Loads
	*fr = *before
	fr.buf, fr.Loads = buf, loads
}

// Skip moves to the next frame header after a bad place, or to the end.
func (fr *Frames) Skip() error {
	for fr.Pos++; fr.Pos < fr.End; fr.Pos++ {
		b, err := fr.Window(format.FrameHeaderSize)
		if err != nil {
			return err
		}
		if _, ok := format.ParseFrameHeader(b, fr.Segment.Seed, uint32(fr.Pos), fr.Reach-fr.Pos); ok {
			break
		}
	}
	fr.HasFooter = false
	return nil
}

// soundEnd reports whether the last frame of a sealed segment, before the footer, is intact,
// wherever else the segment may be damaged.
func (sg *Segment) soundEnd() (sound bool, err error) {
	for fr := NewFrames(sg); ; {
		_, err := fr.Next()
		if bad := (*BadFrame)(nil); errors.As(err, &bad) {
			sound, err = false, fr.Skip()
		} else if err == nil && !fr.HasFooter {
			sound = true
		}
		if err != nil {
			return sound, IgnoreEnd(err)
		}
	}
}

// Resync searches for valid frames after a bad place: whether there are any, and the highest "synced through" in them.
func (fr *Frames) Resync(from int64) (synced int64, valid bool, err error) {
	for fr.Pos = from; fr.End-fr.Pos >= format.FrameHeaderSize; fr.Pos++ {
		b, err := fr.Window(format.FrameHeaderSize)
		if err != nil {
			return 0, false, err
		}
		if h, ok := format.ParseFrameHeader(b, fr.Segment.Seed, uint32(fr.Pos), fr.Reach-fr.Pos); ok {
			synced, valid = max(synced, int64(h.Synced)), true
		}
	}
	return synced, valid, nil
}

// IgnoreEnd returns an error that is not about where the bytes end.
func IgnoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return IgnoreBad(err)
}

// IgnoreBad returns an error that is not about the bytes.
func IgnoreBad(err error) error {
	var bad *BadFrame
	if errors.As(err, &bad) {
		return nil
	}
	return err
}

// EachEntry reads a segment from the beginning: a sealed one to its end, another one as far as it verifies.
func EachEntry(sg *Segment, fn func(e *format.Entry)) error {
	fr := NewFrames(sg)
	if err := fr.ExtendToFile(); err != nil {
		return err
	}
	next := fr.NextInFile
	if sg.Sealed() {
		next = fr.Next
	}
	for {
		entries, err := next()
		if bad := (*BadFrame)(nil); errors.As(err, &bad) && sg.Sealed() {
			return &failure.CorruptError{File: sg.Name, Offset: bad.At, Reason: bad.Reason}
		}
		if err != nil {
			return IgnoreEnd(err)
		}
		for i := range entries {
			fn(&entries[i])
		}
	}
}
