package archive

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// The bytes of a log object are entries, in the order of the log:
//
//	1 mark:     u8 | time i64, Unix ms | sequence u64
//	2 frames:   u8 | segment header 40 | offset u32 | length u32 | frames
//	3 manifest: u8 | feature bits u16 | n u32 | n times: hash u64
//
// A mark says that sequence was the newest record of the log at time; it stands after the frames up to there. Frames are
// whole ones, in one segment, from offset on. What the manifest says of features and of hashes that two keys have stands
// first, and is of no earlier moment than all frames after it.
const (
	entryMark     = 1
	entryFrames   = 2
	entryManifest = 3

	markSize   = 1 + 8 + 8
	framesHead = 1 + format.SegmentHeaderSize + 4 + 4
)

// mark is a moment of the log.
type mark struct {
	time     int64 // Unix ms
	sequence uint64
}

// contents is a log object in the making.
type contents struct {
	first, last uint64
	from, to    int64 // times of its marks; 0 without one
	buf         []byte

	segment uint32 // of the frames that were added last
	head    int    // where their entry is in buf; -1: a mark came after it
	end     int64  // where they end in the segment
}

// addFrame adds the next commit.
func (c *contents) addFrame(of *feed.Commit, fr feed.Frame) {
	if len(c.buf) == 0 {
		c.first, c.head = of.First, -1
	}
	sg := fr.Segment
	if c.head < 0 || c.segment != sg.ID || c.end != fr.Offset {
		c.head, c.segment, c.end = len(c.buf), sg.ID, fr.Offset
		c.buf = append(c.buf, entryFrames)
		c.buf = append(c.buf, format.EncodeSegmentHeader(sg.StoreID, sg.ID, sg.Nonce, false)...)
		c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(fr.Offset))
		c.buf = binary.LittleEndian.AppendUint32(c.buf, 0)
	}
	c.buf = append(c.buf, fr.Bytes...)
	c.end += int64(len(fr.Bytes))
	binary.LittleEndian.PutUint32(c.buf[c.head+framesHead-4:], uint32(len(c.buf)-c.head-framesHead))
	c.last = of.Last
}

// addMark adds a mark after the frames.
func (c *contents) addMark(m mark) {
	c.buf = append(c.buf, entryMark)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(m.time))
	c.buf = binary.LittleEndian.AppendUint64(c.buf, m.sequence)
	if c.from == 0 || m.time < c.from {
		c.from = m.time
	}
	c.to, c.head = max(c.to, m.time), -1
}

// manifestEntry is an entry of kind 3.
func manifestEntry(features uint16, collided []uint64) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{entryManifest}, features)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(collided)))
	for _, hash := range slices.Sorted(slices.Values(collided)) {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	return b
}

// visitor is what walk calls for each entry. Nil functions are not called.
type visitor struct {
	mark     func(mark) error
	frames   func(header []byte, offset int64, frames *io.LimitedReader) error // what is left of frames is skipped
	manifest func(features uint16, collided []uint64) error
}

// walk reads the contents of a log object.
func (v *visitor) walk(d *decoder) error {
	for r := bufio.NewReaderSize(d, 64<<10); ; {
		typ, err := r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = v.entry(r, typ, d)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = d.corrupt(d.at, "an entry ends early")
		}
		if err != nil {
			return err
		}
	}
}

func (v *visitor) entry(r *bufio.Reader, typ byte, d *decoder) error {
	var buf [framesHead - 1]byte
	get := func(n int) ([]byte, error) {
		_, err := io.ReadFull(r, buf[:n])
		return buf[:n], err
	}
	switch typ {
	case entryMark:
		b, err := get(markSize - 1)
		if err != nil || v.mark == nil {
			return err
		}
		return v.mark(mark{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])})
	case entryFrames:
		b, err := get(framesHead - 1)
		if err != nil {
			return err
		}
		at, n := binary.LittleEndian.Uint32(b[format.SegmentHeaderSize:]), binary.LittleEndian.Uint32(b[format.SegmentHeaderSize+4:])
		frames := &io.LimitedReader{R: r, N: int64(n)}
		if v.frames != nil {
			if err := v.frames(b[:format.SegmentHeaderSize], int64(at), frames); err != nil {
				return err
			}
		}
		if _, err = io.Copy(io.Discard, frames); err == nil && frames.N > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	case entryManifest:
		b, err := get(2 + 4)
		if err != nil {
			return err
		}
		features, collided := binary.LittleEndian.Uint16(b), []uint64{}
		for range binary.LittleEndian.Uint32(b[2:]) {
			if b, err = get(8); err != nil {
				return err
			}
			collided = append(collided, binary.LittleEndian.Uint64(b))
		}
		if v.manifest == nil {
			return nil
		}
		return v.manifest(features, collided)
	}
	return d.corrupt(d.at, "an entry of unknown type")
}
