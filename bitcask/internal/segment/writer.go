package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/internal/vfs"
)

// Writer writes the output segment of a merge, in frames of many records, and its hint alongside it. Nothing of either
// counts before Finish, and nothing relies on them before the manifest names the segment: what a crash leaves, the next
// Open removes.
type Writer struct {
	fs      vfs.FS
	dir     string
	Segment *Segment
	hint    *HintWriter // nil: without
	limit   int64
	room    func(length int64) error // waits until there may be so many bytes of data
	spare   *reserve.Reserve         // for a full disk; nil: none
	pos     int64                    // where frame will stand
	begun   int64                    // the kernel has been asked to write the bytes before this offset
	frame   []byte                   // header and records
	sums    []byte                   // the checksums of the records in frame
	base    uint64                   // sequence of its first record
	footer  format.Footer

	undated bool // records come from a segment whose footer has no time
}

const (
	// rewriteFrame is the length in bytes from which an output frame is written.
	rewriteFrame = 256 << 10
	// writeBackStep is how many bytes are written before the kernel is asked to begin writing them
	// to disk: the sync at the end then has little left to do, and other writes do not queue after
	// all of it.
	writeBackStep = 4 << 20
	// recordGrowth is how much longer a copied entry may get at most: each of its
	// three records by a sequence.
	recordGrowth = 3 * binary.MaxVarintLen64
)

// WriterOptions are those of the store, and the writer's own.
type WriterOptions struct {
	FS    vfs.FS
	Limit int64                    // length from which a segment is full
	Hint  bool                     // whether to write a hint
	Room  func(length int64) error // see Writer
	Spare *reserve.Reserve
}

// NewWriter makes the file of segment id. Neither its header nor its
// name are durable yet. room is asked before anything more is written.
func NewWriter(o WriterOptions, dir string, store [16]byte, id uint32) (_ *Writer, err error) {
	if err := format.CheckID(id); err != nil {
		return nil, err
	}
	fs := o.FS
	f, err := fs.Open(filepath.Join(dir, format.DataName(id)), vfs.Create)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		fs: fs, dir: dir, limit: o.Limit, room: o.Room, spare: o.Spare, pos: format.SegmentHeaderSize,
		Segment: New(store, id, f),
		frame:   make([]byte, format.FrameHeaderSize, rewriteFrame+64<<10),
	}
	w.Segment.Merged = true
	if w.Segment.Nonce, err = drawNonce(); err == nil {
		_, err = f.WriteAt(format.EncodeSegmentHeader(store, id, w.Segment.Nonce, true), 0)
	}
	if err == nil && o.Hint && !o.Spare.Full() {
		w.hint, err = NewHintWriter(fs, dir, w.Segment)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	w.Segment.Size.Store(format.SegmentHeaderSize)
	return w, nil
}

// Full reports whether an entry of n bytes would not fit.
func (w *Writer) Full(n int) bool {
	return w.footer.Records > 0 && w.pos+int64(len(w.frame)+n+recordGrowth)+format.FooterSize > w.limit
}

// Begin makes room for an entry of n bytes whose first record has the number
// seq, and returns the offset at which it will stand.
func (w *Writer) Begin(n int, seq uint64) (at uint32, err error) {
	if len(w.frame)+n+recordGrowth > format.MaxCommit || len(w.frame) > rewriteFrame {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(w.sums) == 0 {
		w.base = seq
	}
	return uint32(w.pos) + uint32(len(w.frame)), nil
}

// Add copies a record.
func (w *Writer) Add(r *format.Record, seq uint64) {
	at := len(w.frame)
	w.frame = format.AppendRecord(w.frame, r.Kind, r.Type, int64(seq-w.base), r.Namespace, r.Key, r.Elem, r.Value)
	rec := w.frame[at:]
	binary.LittleEndian.PutUint32(rec, w.Segment.Seed.Sum(uint32(w.pos)+uint32(at), rec[format.RecordCRCSize:]))
	w.sums = append(w.sums, rec[:format.RecordCRCSize]...)
	if w.footer.Records == 0 {
		w.footer.MinSeq = seq
	}
	w.footer.MaxSeq = seq
	w.footer.Records++
}

// From notes that a record comes from a segment with such a footer: the time of
// the output is the latest of those, if all are known.
func (w *Writer) From(ft format.Footer) {
	w.undated = w.undated || ft.Time == 0
	if w.footer.Time = max(w.footer.Time, ft.Time); w.undated {
		w.footer.Time = 0
	}
}

// Note adds the entry that has been copied to at, its first record being r, to
// the hint.
func (w *Writer) Note(r *format.Record, seq uint64, at uint32) error {
	if w.hint == nil {
		return nil
	}
	e := format.Entry{Identity: r.Identity, Seq: seq, At: at, Size: uint32(w.pos) + uint32(len(w.frame)) - at}
	if format.Inlined(r.Kind, r.Type) {
		e.Inline = r.Value
	}
	if err := w.hint.Add(&e); failure.NoSpace(err) {
		return w.abandonHint()
	} else if err != nil {
		return fmt.Errorf("%s: %w", format.HintName(w.Segment.ID), err)
	}
	return nil
}

// abandonHint continues without a hint: on a full disk it can be made later.
func (w *Writer) abandonHint() error {
	hint := w.hint
	w.hint = nil
	return hint.Abandon()
}

// flush writes the frame. Its "synced through" claims nothing: that is of use
// only in a segment that a crash can leave unsealed and listed.
func (w *Writer) flush() error {
	if len(w.sums) == 0 {
		return nil
	}
	h := format.FrameHeader{Size: uint32(len(w.frame)), Many: true, Seq: w.base}
	h.Sum = format.ExtendSum(w.Segment.Seed.Start(uint32(w.pos)), w.sums)
	h.Put(w.frame, w.Segment.Seed, uint32(w.pos))
	if err := w.write(w.frame); err != nil {
		return err
	}
	w.frame, w.sums = w.frame[:format.FrameHeaderSize], w.sums[:0]
	return nil
}

func (w *Writer) write(b []byte) error {
	if err := w.room(w.pos + int64(len(b))); err != nil {
		return err
	}
	defer w.spare.Turn()()
	for {
		seen := w.spare.Seen()
		_, err := w.Segment.File.WriteAt(b, w.pos)
		if err == nil {
			break
		}
		if err = fmt.Errorf("%s: writing at %d: %w", w.Segment.Name, w.pos, err); !failure.NoSpace(err) {
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
	w.Segment.Size.Store(w.pos)
	if wb, ok := w.Segment.File.(vfs.WriteBacker); ok && w.pos-w.begun >= writeBackStep {
		wb.WriteBack(w.begun, w.pos-w.begun)
		w.begun = w.pos
	}
	return nil
}

// Finish seals the segment and publishes its hint; all of both is on disk then. One sync is enough:
// a crash that leaves the footer without the bytes before it leaves it in a file that no manifest
// names.
func (w *Writer) Finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.write(w.Segment.encodeFooter(w.footer, uint32(w.pos), 0)); err != nil {
		return err
	}
	if err := w.Segment.File.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", w.Segment.Name, err)
	}
	w.Segment.Footer = w.footer
	w.Segment.MarkSealed()
	if w.hint == nil {
		return w.fs.SyncDir(w.dir)
	}
	hint := w.hint
	w.hint = nil
	if err := hint.Finish(); !failure.NoSpace(err) {
		return err
	}
	return w.fs.SyncDir(w.dir) // as the hint does
}

// Abandon closes and removes the unfinished files.
func (w *Writer) Abandon() error {
	var errs []error
	if w.hint != nil {
		errs = append(errs, w.hint.Abandon())
	}
	errs = append(errs, w.Segment.Close(), Remove(w.fs, w.dir, w.Segment))
	return errors.Join(errs...)
}
