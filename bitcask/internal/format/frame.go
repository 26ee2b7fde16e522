package format

import (
	"encoding/binary"
)

// A frame is one commit: all of it or none of it is there after a crash.
//
//	 0         4         8                 16        20        24
//	+---------+---------+-----------------+---------+---------+----------------
//	| crc u32 | size u32| sequence u64    | synced  | sum u32 | record, record ...
//	+---------+---------+-----------------+---------+---------+----------------
//	size:     bits 0-29 length of the whole frame; bit 31 many records, bit 30 footer
//	sequence: of the first record; the others count up from it unless they
//	          carry their own
//	synced:   everything in this segment before this offset was on disk when
//	          the frame was written: damage below it is never a torn tail
//	sum:      one record: the record's own crc, which the record then does not
//	          repeat (it starts at byte 20); many: the crc of all their crcs
//	crc:      of bytes 4 to 24
//
// So a one-record commit costs 24 bytes and the record's header (5 to 8
// bytes), and every record can be verified alone.
const (
	FrameHeaderSize = 24
	FrameSumAt      = 20
	frameMany       = 1 << 31
	frameFooter     = 1 << 30
	frameSizeMask   = 1<<30 - 1
)

type FrameHeader struct {
	Size   uint32
	Many   bool
	Footer bool
	Seq    uint64
	Synced uint32
	Sum    uint32
}

// Records is the offset of the first record within the frame.
func (h *FrameHeader) Records() int {
	if h.Many {
		return FrameHeaderSize
	}
	return FrameSumAt
}

// Put writes the header, sum and checksum included, at the start of b.
func (h *FrameHeader) Put(b []byte, s ChecksumSeed, offset uint32) {
	word := h.Size
	if h.Many {
		word |= frameMany
	}
	if h.Footer {
		word |= frameFooter
	}
	binary.LittleEndian.PutUint32(b[4:], word)
	binary.LittleEndian.PutUint64(b[8:], h.Seq)
	binary.LittleEndian.PutUint32(b[16:], h.Synced)
	binary.LittleEndian.PutUint32(b[20:], h.Sum)
	binary.LittleEndian.PutUint32(b, s.Sum(offset, b[4:FrameHeaderSize]))
}

// ParseFrameHeader reads a frame header at offset of a segment of which limit
// bytes follow from there. Its lengths are used only after its checksum has
// been found right.
func ParseFrameHeader(b []byte, s ChecksumSeed, offset uint32, limit int64) (h FrameHeader, ok bool) {
	if len(b) < FrameHeaderSize || limit < FrameHeaderSize {
		return h, false
	}
	if binary.LittleEndian.Uint32(b) != s.Sum(offset, b[4:FrameHeaderSize]) {
		return h, false
	}
	word := binary.LittleEndian.Uint32(b[4:])
	h.Size = word & frameSizeMask
	h.Many, h.Footer = word&frameMany != 0, word&frameFooter != 0
	h.Seq = binary.LittleEndian.Uint64(b[8:])
	h.Synced = binary.LittleEndian.Uint32(b[16:])
	h.Sum = binary.LittleEndian.Uint32(b[20:])
	// Zeros never parse: no frame is shorter than its header.
	if int64(h.Size) > limit || h.Size <= FrameHeaderSize || h.Synced > offset || h.Many && h.Footer {
		return h, false
	}
	return h, true
}

// EachRecord walks the records of a whole frame at offset, verifying each. It
// reports the offset, in the segment, of the first that does not verify. If all
// of them do, and the kind of one is of a newer version, the error is an
// *UnknownRecord; fn sees no record from there on.
func EachRecord(frame []byte, h *FrameHeader, s ChecksumSeed, offset uint32, fn func(at uint32, seq uint64, rec Record) error) (bad uint32, ok bool, err error) {
	pos := h.Records()
	sum := s.Start(offset)
	var unknown *UnknownRecord
	for i := uint64(0); pos < len(frame); i++ {
		at := offset + uint32(pos)
		rec, perr := ParseRecord(frame[pos:])
		if perr != nil || (!h.Many && rec.Size != len(frame)-pos) {
			return at, false, nil
		}
		if !s.Verifies(frame[pos:pos+rec.Size], at) {
			return at, false, nil
		}
		sum = ExtendSum(sum, frame[pos:pos+RecordCRCSize])
		seq := h.Seq + i
		if rec.HasSeq {
			seq = h.Seq + rec.SeqDelta
		}
		if seq < h.Seq || seq > MaxSequence {
			return at, false, nil
		}
		if rec.Unknown && unknown == nil {
			unknown = &UnknownRecord{Kind: rec.Kind, At: at}
		}
		if fn != nil && unknown == nil {
			if err := fn(at, seq, rec); err != nil {
				return 0, true, err
			}
		}
		pos += rec.Size
	}
	if h.Many && sum != h.Sum {
		return offset, false, nil
	}
	if unknown != nil {
		return 0, true, unknown
	}
	return 0, true, nil
}

// FinishFrame fills in the checksums of a frame whose records are at the given offsets within it.
// values, if not empty, has for each record the part of its value that follows its bytes in frame.
func FinishFrame(frame []byte, h FrameHeader, s ChecksumSeed, offset uint32, records []int, values [][]byte) {
	h.Size = uint32(len(frame))
	sum := s.Start(offset)
	at := offset
	for i, pos := range records {
		end := len(frame)
		if i+1 < len(records) {
			end = records[i+1]
		}
		crc := s.Sum(at+uint32(pos), frame[pos+RecordCRCSize:end])
		if len(values) > 0 {
			crc = ExtendSum(crc, values[i])
			at += uint32(len(values[i]))
		}
		binary.LittleEndian.PutUint32(frame[pos:], crc)
		sum = ExtendSum(sum, frame[pos:pos+RecordCRCSize])
		h.Sum = crc
	}
	if h.Many {
		h.Sum = sum
	}
	h.Size += at - offset
	h.Put(frame, s, offset)
}
