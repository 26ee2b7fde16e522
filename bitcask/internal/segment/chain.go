package segment

import (
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// A Chain is what a reader remembers of frames that it has read one after another, to see later whether they still
// stand. A writer whose write fails half way truncates what it has written of it, and others may have read that; what
// it writes then may have the same lengths and sequence numbers.
type Chain struct {
	From, End int64  // of the frames
	Last      int64  // where the last of them begins
	last, sum uint64 // of it, and of all
}

// sumOf is the checksums of a frame's header: that of the header, and that of the records.
func sumOf(header []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(header))<<32 | uint64(binary.LittleEndian.Uint32(header[format.FrameSumAt:]))
}

// add adds the frame that begins at the end of the chain.
func (c *Chain) add(header []byte, size uint32) {
	c.Last, c.last = c.End, sumOf(header)
	c.sum = bits.RotateLeft64(c.sum^c.last, 23) * 0x9E3779B97F4A7C15 // odd: no change of one frame is lost
	c.End += int64(size)
}

// chainReader reads headers, several at once where frames are short.
type chainReader struct {
	sg  *Segment
	at  int64
	buf []byte
}

const chainWindow = 32 << 10

// header is the bytes of the header at pos; fewer if the file ends.
func (r *chainReader) header(pos, end int64) ([]byte, error) {
	if pos < r.at || pos+format.FrameHeaderSize > r.at+int64(len(r.buf)) {
		if r.buf == nil {
			r.buf = make([]byte, min(chainWindow, end-pos))
		}
		r.at = pos
		n, err := r.sg.File.ReadAt(r.buf[:min(int64(cap(r.buf)), end-pos)], pos)
		if err != nil && err != io.EOF {
			return nil, err
		}
		r.buf = r.buf[:n]
	}
	return r.buf[pos-r.at:][:min(format.FrameHeaderSize, int64(len(r.buf))-(pos-r.at))], nil
}

// LastStands reports whether the last frame of a chain stands as it was read.
func (sg *Segment) LastStands(c *Chain) (bool, error) {
	if c.Last == c.End {
		return true, nil
	}
	b := make([]byte, format.FrameHeaderSize)
	_, err := sg.File.ReadAt(b, c.Last)
	if err != nil && err != io.EOF {
		return false, err
	}
	return err == nil && sumOf(b) == c.last, nil
}

// Stands reports whether all frames of a chain stand as they were read. Those before synced, which was on disk before
// the call, need not be looked at again: the chain loses them.
func (sg *Segment) Stands(c *Chain, synced int64) (bool, error) {
	r := chainReader{sg: sg}
	all, rest := Chain{From: c.From, End: c.From, Last: c.From}, Chain{From: c.From, End: c.From, Last: c.From}
	for all.End < c.End {
		b, err := r.header(all.End, c.End)
		if err != nil {
			return false, err
		}
		h, ok := format.ParseFrameHeader(b, sg.Seed, uint32(all.End), c.End-all.End)
		if !ok {
			return false, nil
		}
		if all.End <= synced {
			rest = Chain{From: all.End, End: all.End, Last: all.End}
		}
		rest.add(b, h.Size)
		all.add(b, h.Size)
	}
	if all.sum != c.sum {
		return false, nil
	}
	at, last := c.Last, c.last
	if *c = rest; c.End <= synced {
		*c = Chain{From: c.End, End: c.End, Last: at, last: last} // LastStands: another copy of the file may be written over it
	}
	return true, nil
}
