package segment

import (
	"errors"
	"io"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// Check verifies segments: every frame, record and footer (I2), that sequences ascend (I3), that hints agree with the
// data (I8).
type Check struct {
	FS    vfs.FS
	Dir   string
	Ended func() error // ends a check early
	Found func(rule, file string, offset int64, key, format string, args ...any)
	Known func(file string, offset int64) bool // damage that has been reported
	Read  func(bytes int64)                    // that have been verified since the last call

	Records uint64 // that were read
	Hints   int    // that could be opened
}

// Segment reads every frame of a segment, and its hint alongside it. Its error is that of Ended, or of reading.
func (c *Check) Segment(sg *Segment) error {
	var hint func() (*format.Entry, error)
	if sg.Sealed() {
		hs, err := OpenHint(c.FS, c.Dir, sg)
		switch {
		case err == nil:
			c.Hints++
			hint = stepper(hs.Next)
			defer func() {
				if err := hs.Close(); err != nil {
					c.Found("I8", format.HintName(sg.ID), 0, "", "closing: %v", err)
				}
			}()
		case !failure.IsNotExist(err) && !errors.Is(err, failure.ErrVersion): // which are merely rebuilt
			c.Found("I8", format.HintName(sg.ID), 0, "", "%v", err)
		}
	}
	fr := NewFrames(sg)
	var last uint64
	for {
		if err := c.Ended(); err != nil {
			return err
		}
		raw, _, entries, err := fr.NextFrame()
		var bad *BadFrame
		switch {
		case err == io.EOF:
			c.Records += fr.Records
			return c.segmentEnd(sg, fr, hint)
		case errors.As(err, &bad):
			if !c.Known(sg.Name, bad.At) {
				c.Found("I2", sg.Name, bad.At, "", "%s", bad.Reason)
			}
			return nil // nothing after a bad frame can be identified here
		case err != nil:
			return err
		}
		c.Read(int64(len(raw)))
		for i := range entries {
			e := &entries[i]
			if e.Seq <= last {
				c.Found("I3", sg.Name, int64(e.At), string(e.Key), "sequence %d after %d", e.Seq, last)
			}
			last = e.Seq
			c.followers(sg, e, raw[int64(e.At)-(fr.Pos-int64(len(raw))):][:e.Size])
			hint = c.compareHint(sg, hint, e)
		}
	}
}

// segmentEnd checks what is known once all frames were read.
func (c *Check) segmentEnd(sg *Segment, fr *Frames, hint func() (*format.Entry, error)) error {
	if hint != nil {
		if e, err := hint(); err != io.EOF {
			c.Found("I8", format.HintName(sg.ID), 0, "", "says more than the data: %v %v", e, err)
		}
	}
	if fr.HasFooter && (sg.Footer.Records != fr.Records || sg.Footer.MaxSeq != fr.MaxSeq || fr.Records > 0 && sg.Footer.MinSeq != fr.MinSeq) {
		c.Found("I2", sg.Name, fr.Pos-format.FooterSize, "", "footer says %d records %d..%d, found %d records %d..%d",
			sg.Footer.Records, sg.Footer.MinSeq, sg.Footer.MaxSeq, fr.Records, fr.MinSeq, fr.MaxSeq)
	}
	return nil
}

// followers checks the records that share an entry's fate.
func (c *Check) followers(sg *Segment, e *format.Entry, raw []byte) {
	for at := 0; at < len(raw); {
		rec, err := format.ParseRecord(raw[at:])
		if err != nil {
			return // the frame has verified: cannot be
		}
		if at > 0 && !rec.Fits(e) {
			c.Found("I5", sg.Name, int64(e.At)+int64(at), string(e.Key), "follows a record it does not belong to")
		}
		at += rec.Size
	}
}

// stepper turns blocks of entries into single ones.
func stepper(next func() ([]format.Entry, error)) func() (*format.Entry, error) {
	var block []format.Entry
	return func() (*format.Entry, error) {
		for len(block) == 0 {
			var err error
			if block, err = next(); err != nil {
				return nil, err
			}
		}
		e := &block[0]
		block = block[1:]
		return e, nil
	}
}

// compareHint steps the hint alongside the data; it returns nil once the hint has
// been found wrong.
func (c *Check) compareHint(sg *Segment, hint func() (*format.Entry, error), e *format.Entry) func() (*format.Entry, error) {
	if hint == nil {
		return nil
	}
	h, err := hint()
	if errors.Is(err, failure.ErrVersion) {
		return nil // of a newer version: not used
	}
	if err != nil {
		c.Found("I8", format.HintName(sg.ID), 0, "", "%v", err)
		return nil
	}
	same := h.Seq == e.Seq && h.At == e.At && h.Size == e.Size && h.Kind == e.Kind && h.Type == e.Type &&
		h.Namespace == e.Namespace && string(h.Key) == string(e.Key) && string(h.Elem) == string(e.Elem) && string(h.Inline) == string(e.Inline)
	if !same {
		c.Found("I8", format.HintName(sg.ID), 0, string(e.Key), "differs from the data at offset %d", e.At)
		return nil
	}
	return hint
}
