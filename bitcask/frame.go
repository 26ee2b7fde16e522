package bitcask

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
	frameHeaderSize = 24
	frameSumAt      = 20
	frameMany       = 1 << 31
	frameFooter     = 1 << 30
	frameSizeMask   = 1<<30 - 1
)

type frameHeader struct {
	size   uint32
	many   bool
	footer bool
	seq    uint64
	synced uint32
	sum    uint32
}

// records is the offset of the first record within the frame.
func (h *frameHeader) records() int {
	if h.many {
		return frameHeaderSize
	}
	return frameSumAt
}

// put writes the header, sum and checksum included, at the start of b.
func (h *frameHeader) put(b []byte, s seal, offset uint32) {
	word := h.size
	if h.many {
		word |= frameMany
	}
	if h.footer {
		word |= frameFooter
	}
	binary.LittleEndian.PutUint32(b[4:], word)
	binary.LittleEndian.PutUint64(b[8:], h.seq)
	binary.LittleEndian.PutUint32(b[16:], h.synced)
	binary.LittleEndian.PutUint32(b[20:], h.sum)
	binary.LittleEndian.PutUint32(b, s.sum(offset, b[4:frameHeaderSize]))
}

// parseFrameHeader reads a frame header at offset of a segment of which limit
// bytes follow from there. Its lengths are used only after its checksum has
// been found right.
func parseFrameHeader(b []byte, s seal, offset uint32, limit int64) (h frameHeader, ok bool) {
	if len(b) < frameHeaderSize || limit < frameHeaderSize {
		return h, false
	}
	if binary.LittleEndian.Uint32(b) != s.sum(offset, b[4:frameHeaderSize]) {
		return h, false
	}
	word := binary.LittleEndian.Uint32(b[4:])
	h.size = word & frameSizeMask
	h.many, h.footer = word&frameMany != 0, word&frameFooter != 0
	h.seq = binary.LittleEndian.Uint64(b[8:])
	h.synced = binary.LittleEndian.Uint32(b[16:])
	h.sum = binary.LittleEndian.Uint32(b[20:])
	// Zeros never parse: no frame is shorter than its header.
	if int64(h.size) > limit || h.size <= frameHeaderSize || h.synced > offset || h.many && h.footer {
		return h, false
	}
	return h, true
}

// eachRecord walks the records of a whole frame at offset, verifying each. It
// reports the offset, in the segment, of the first that does not verify. If all
// of them do, and the kind of one is of a newer version, the error is an
// *unknownRecord; fn sees no record from there on.
func eachRecord(frame []byte, h *frameHeader, s seal, offset uint32, fn func(at uint32, seq uint64, rec *record) error) (bad uint32, ok bool, err error) {
	pos := h.records()
	sum := s.start(offset)
	var unknown *unknownRecord
	for i := uint64(0); pos < len(frame); i++ {
		at := offset + uint32(pos)
		rec, perr := parseRecord(frame[pos:])
		if perr != nil || (!h.many && rec.size != len(frame)-pos) {
			return at, false, nil
		}
		crc := frame[pos : pos+recordCRCSize]
		if binary.LittleEndian.Uint32(crc) != s.sum(at, frame[pos+recordCRCSize:pos+rec.size]) {
			return at, false, nil
		}
		sum = extend(sum, crc)
		seq := h.seq + i
		if rec.hasSeq {
			seq = h.seq + rec.seqDelta
		}
		if seq < h.seq || seq > maxSequence {
			return at, false, nil
		}
		if rec.unknown && unknown == nil {
			unknown = &unknownRecord{rec.Kind, at}
		}
		if fn != nil && unknown == nil {
			if err := fn(at, seq, &rec); err != nil {
				return 0, true, err
			}
		}
		pos += rec.size
	}
	if h.many && sum != h.sum {
		return offset, false, nil
	}
	if unknown != nil {
		return 0, true, unknown
	}
	return 0, true, nil
}

// finishFrame fills in the checksums of a frame whose records stand at the
// given offsets within it. If apart is given, it returns for each record the
// value that goes behind what frame has of it.
func finishFrame(frame []byte, h frameHeader, s seal, offset uint32, records []int, apart func(i int) []byte) {
	h.size = uint32(len(frame))
	sum := s.start(offset)
	at := offset
	for i, pos := range records {
		end := len(frame)
		if i+1 < len(records) {
			end = records[i+1]
		}
		crc := s.sum(at+uint32(pos), frame[pos+recordCRCSize:end])
		if apart != nil {
			value := apart(i)
			crc = extend(crc, value)
			at += uint32(len(value))
		}
		binary.LittleEndian.PutUint32(frame[pos:], crc)
		sum = extend(sum, frame[pos:pos+recordCRCSize])
		h.sum = crc
	}
	if h.many {
		h.sum = sum
	}
	h.size += at - offset
	h.put(frame, s, offset)
}
