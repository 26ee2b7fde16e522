package bitcask

import "fmt"

// segmentWriter writes an output segment in frames of many records.
type segmentWriter struct {
	sg    *segment
	limit int64
	pos   int64
	frame []byte
	at    []int
	base  uint64
	foot  footer
}

// rewriteFrame is the length in bytes from which an output frame is written.
const rewriteFrame = 256 << 10

func newSegmentWriter(sg *segment, limit int64) *segmentWriter {
	w := &segmentWriter{sg: sg, limit: limit, pos: segmentHeaderSize}
	w.frame = make([]byte, frameHeaderSize, rewriteFrame+64<<10)
	return w
}

// full reports whether n more bytes would not fit.
func (w *segmentWriter) full(n int) bool {
	const slack = 16 // a copied record may grow by its sequence
	return w.foot.records > 0 && w.pos+int64(len(w.frame)+n+slack)+footerSize > w.limit
}

// add copies a record and its followers. Their sequences count up from seq.
func (w *segmentWriter) add(raw []byte, seq uint64) error {
	if len(w.frame)+len(raw) > MaxCommit || len(w.frame) > rewriteFrame {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(w.at) == 0 {
		w.base = seq
	}
	for len(raw) > 0 {
		h, err := parseHeader(raw)
		if err != nil {
			return fmt.Errorf("%s: copying: %w", w.sg.name, err)
		}
		w.at = append(w.at, len(w.frame))
		w.frame = appendRecordHeader(w.frame, h.kind, h.typ, int64(seq-w.base), h.ns, h.keyLen, h.elemLen, h.valueLen)
		w.frame = append(w.frame, raw[h.size:h.total()]...)
		raw = raw[h.total():]
		if w.foot.records == 0 {
			w.foot.minSeq = seq
		}
		w.foot.maxSeq = max(w.foot.maxSeq, seq)
		w.foot.records++
		seq++
	}
	return nil
}

func (w *segmentWriter) flush() error {
	if len(w.at) == 0 {
		return nil
	}
	h := frameHeader{many: true, seq: w.base, synced: segmentHeaderSize}
	finishFrame(w.frame, h, w.sg.seal, uint32(w.pos), w.at)
	if _, err := w.sg.file.WriteAt(w.frame, w.pos); err != nil {
		return fmt.Errorf("%s: writing at %d: %w", w.sg.name, w.pos, err)
	}
	w.pos += int64(len(w.frame))
	w.sg.size.Store(w.pos)
	w.frame, w.at = w.frame[:frameHeaderSize], w.at[:0]
	return nil
}

func (w *segmentWriter) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.sg.writeFooter(w.foot)
}
