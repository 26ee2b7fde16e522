package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/internal/vfs"
)

// segmentWriter writes the output segment of a merge, in frames of many
// records, and its hint beside it. Nothing of either counts before finish, and
// nothing relies on them before the manifest names the segment: what a crash
// leaves, the next Open removes.
type segmentWriter struct {
	fs    vfs.FS
	dir   string
	sg    *segment
	hint  *hintWriter // nil: without
	limit int64
	room  func(length int64) error // waits until there may be so many bytes of data
	spare *reserve.Reserve         // for a full disk; nil: none
	pos   int64                    // where frame will stand
	begun int64                    // the kernel has been asked to write what lies before this offset
	frame []byte                   // header and records
	sums  []byte                   // the checksums of the records in frame
	base  uint64                   // sequence of its first record
	foot  format.Footer

	undated bool // records come from a segment whose footer has no time
}

const (
	// rewriteFrame is the length in bytes from which an output frame is written.
	rewriteFrame = 256 << 10
	// writeBackStep is how many bytes are written before the kernel is asked to
	// begin with the disk's part: the sync at the end then has little left to
	// do, and what else is written meanwhile does not queue behind all of it.
	writeBackStep = 4 << 20
	// recordGrowth is how much longer a copied entry may get at most: each of its
	// three records by a sequence.
	recordGrowth = 3 * binary.MaxVarintLen64
)

// writerOptions are those of the store, and the writer's own.
type writerOptions struct {
	*Options
	room  func(length int64) error // see segmentWriter
	spare *reserve.Reserve
}

// newSegmentWriter makes the file of segment id. Neither its header nor its
// name are durable yet. room is asked before anything more is written.
func newSegmentWriter(o writerOptions, dir string, store [16]byte, id uint32) (_ *segmentWriter, err error) {
	if err := format.CheckID(id); err != nil {
		return nil, err
	}
	fs := o.FS
	f, err := fs.Open(filepath.Join(dir, format.DataName(id)), vfs.Create)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{
		fs: fs, dir: dir, limit: o.SegmentSize, room: o.room, spare: o.spare, pos: format.SegmentHeaderSize,
		sg:    newSegment(store, id, f),
		frame: make([]byte, format.FrameHeaderSize, rewriteFrame+64<<10),
	}
	w.sg.merged = true
	if w.sg.nonce, err = drawNonce(); err == nil {
		_, err = f.WriteAt(format.EncodeSegmentHeader(store, id, w.sg.nonce, true), 0)
	}
	if err == nil && !o.NoHints && !o.spare.Full() {
		w.hint, err = newHintWriter(fs, dir, w.sg)
	}
	if err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	w.sg.size.Store(format.SegmentHeaderSize)
	return w, nil
}

// full reports whether an entry of n bytes would not fit.
func (w *segmentWriter) full(n int) bool {
	return w.foot.Records > 0 && w.pos+int64(len(w.frame)+n+recordGrowth)+format.FooterSize > w.limit
}

// begin makes room for an entry of n bytes whose first record has the number
// seq, and returns the offset at which it will stand.
func (w *segmentWriter) begin(n int, seq uint64) (at uint32, err error) {
	if len(w.frame)+n+recordGrowth > MaxCommit || len(w.frame) > rewriteFrame {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(w.sums) == 0 {
		w.base = seq
	}
	return uint32(w.pos) + uint32(len(w.frame)), nil
}

// add copies a record.
func (w *segmentWriter) add(r *format.Record, seq uint64) {
	at := len(w.frame)
	w.frame = format.AppendRecord(w.frame, r.Kind, r.Type, int64(seq-w.base), r.Namespace, r.Key, r.Elem, r.Value)
	rec := w.frame[at:]
	binary.LittleEndian.PutUint32(rec, w.sg.seal.Sum(uint32(w.pos)+uint32(at), rec[format.RecordCRCSize:]))
	w.sums = append(w.sums, rec[:format.RecordCRCSize]...)
	if w.foot.Records == 0 {
		w.foot.MinSeq = seq
	}
	w.foot.MaxSeq = seq
	w.foot.Records++
}

// from notes that a record comes from a segment with such a footer: the time of
// the output is the latest of those, if all are known.
func (w *segmentWriter) from(ft format.Footer) {
	w.undated = w.undated || ft.Time == 0
	if w.foot.Time = max(w.foot.Time, ft.Time); w.undated {
		w.foot.Time = 0
	}
}

// note adds the entry that has been copied to at, its first record being r, to
// the hint.
func (w *segmentWriter) note(r *format.Record, seq uint64, at uint32) error {
	if w.hint == nil {
		return nil
	}
	e := format.Entry{Identity: r.Identity, Seq: seq, At: at, Size: uint32(w.pos) + uint32(len(w.frame)) - at}
	if format.Inlined(r.Kind, r.Type) {
		e.Inline = r.Value
	}
	if err := w.hint.add(&e); NoSpace(err) {
		return w.abandonHint()
	} else if err != nil {
		return fmt.Errorf("%s: %w", format.HintName(w.sg.id), err)
	}
	return nil
}

// abandonHint goes on without a hint: on a full disk that can be made later.
func (w *segmentWriter) abandonHint() error {
	hint := w.hint
	w.hint = nil
	return hint.abandon()
}

// flush writes the frame. Its "synced through" claims nothing: that is of use
// only in a segment that a crash can leave unsealed and listed.
func (w *segmentWriter) flush() error {
	if len(w.sums) == 0 {
		return nil
	}
	h := format.FrameHeader{Size: uint32(len(w.frame)), Many: true, Seq: w.base}
	h.Sum = format.ExtendSum(w.sg.seal.Start(uint32(w.pos)), w.sums)
	h.Put(w.frame, w.sg.seal, uint32(w.pos))
	if err := w.write(w.frame); err != nil {
		return err
	}
	w.frame, w.sums = w.frame[:format.FrameHeaderSize], w.sums[:0]
	return nil
}

func (w *segmentWriter) write(b []byte) error {
	if err := w.room(w.pos + int64(len(b))); err != nil {
		return err
	}
	for {
		seen := w.spare.Seen()
		_, err := w.sg.file.WriteAt(b, w.pos)
		if err == nil {
			break
		}
		if err = fmt.Errorf("%s: writing at %d: %w", w.sg.name, w.pos, err); !NoSpace(err) {
			return err
		}
		if w.hint != nil { // it can be made later
			if err := w.abandonHint(); err != nil {
				return err
			}
		} else if !w.spare.Spend(seen, err) {
			return err
		}
	}
	w.pos += int64(len(b))
	w.sg.size.Store(w.pos)
	if wb, ok := w.sg.file.(vfs.WriteBacker); ok && w.pos-w.begun >= writeBackStep {
		wb.WriteBack(w.begun, w.pos-w.begun)
		w.begun = w.pos
	}
	return nil
}

// finish seals the segment and publishes its hint; all of both is on disk
// then. One sync is enough: whoever finds the footer without what is before it
// finds it in a file that no manifest names.
func (w *segmentWriter) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.write(w.sg.encodeFooter(w.foot, uint32(w.pos), 0)); err != nil {
		return err
	}
	if err := w.sg.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", w.sg.name, err)
	}
	w.sg.foot = w.foot
	w.sg.setSealed()
	if w.hint == nil {
		return w.fs.SyncDir(w.dir)
	}
	hint := w.hint
	w.hint = nil
	if err := hint.finish(); !NoSpace(err) {
		return err
	}
	return w.fs.SyncDir(w.dir) // as the hint does
}

// abandon closes and removes what has been written.
func (w *segmentWriter) abandon() error {
	var errs []error
	if w.hint != nil {
		errs = append(errs, w.hint.abandon())
	}
	errs = append(errs, w.sg.close(), removeSegment(w.fs, w.dir, w.sg))
	return errors.Join(errs...)
}
