// Package followlog reads the commits of a log that another process may be appending to, in their order, each once. It
// takes no lock and relies on no event: what it needs to know it finds in the files.
//
//   - A frame that does not verify is not there yet: the writer copies it, or will. A place that stays bad while the log goes on elsewhere
//     is a gap.
//   - The number of each commit follows that of the one before. Any other is a gap: what is missing was merged before it was read, or the
//     end of the log was lost and numbers were given again.
//   - What was read stays as it was. A writer that could not write a group of commits truncates it, and readers may have seen a part: then
//     other bytes stand there, or none. So frames that are not known to have been on disk are compared again (segment.Chain): the last
//     one at each look, all of them as often as there is time, and before they are forgotten.
//   - The manifest is at least as new as the frames that are handed out: a collision of hashes is noted there before a key that has one is
//     written.
//
// Segments are opened when the manifest lists them, before they hold anything, so that a merge that removes their names
// does not matter.
package followlog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Patience is for how long an error is not reported: the writer may have been in the middle of something.
const Patience = 2 * time.Second

// Who follows looks after Soonest while commits come, and ever more rarely, up to Latest, while none do.
const (
	Soonest = time.Millisecond
	Latest  = 50 * time.Millisecond
)

// A Reader reads one log. It is not safe for concurrent use. The fields up to Open are set before Begin.
type Reader struct {
	FS     *vfs.Held // of Dir
	Dir    string
	Opened func(*segment.Segment) error          // a segment was opened; its error closes it
	Listed func() error                          // the manifest was read again
	Footed func(*segment.Segment, format.Footer) // a segment was read up to its footer
	Merged bool                                  // merged segments are opened as well
	Open   map[uint32]*segment.Segment           // those that were opened, and not forgotten

	Manifest *manifest.Manifest // as it was read last
	Waiting  []*segment.Segment // open, and not read yet
	Frames   *segment.Frames    // of the segment that is read; nil: none yet
	Next     uint64             // sequence number of the record to come
	Checked  time.Time          // when all that may still be truncated was compared last
	took     time.Duration      // how long that took

	placed    time.Time // when inPlace was asked last
	changed   bool      // the manifest was read again since the round began
	loads     int       // of Frames, when the manifest was looked at
	rewritten bool      // frames that were read have been overwritten or truncated
	stuck     stuck

	buf [format.FrameHeaderSize]byte
}

// checkShare is the part of the time, 1/checkShare, that comparing what was read may take. The last frame is always
// compared.
const checkShare = 32

var (
	// ErrGap says that the rest cannot be read from here: the store is to be read again.
	ErrGap = errors.New("commits are missing: they were merged, or lost, before they could be read")
	// ErrRewritten says that frames that were read have been overwritten or truncated.
	ErrRewritten = errors.New("the end of the log has been rewritten")
)

// Begin sets where the reader begins: where a reader before it has ended, in a segment that holds foot up to there.
func (r *Reader) Begin(sg *segment.Segment, foot format.Footer) error {
	r.Frames = segment.NewFramesAfter(sg, sg.FramesEnd, foot)
	sg.Unsettled.Store(max(sg.Chain.From, format.SegmentHeaderSize))
	r.Frames.HasFooter, r.Frames.Foot, r.Frames.Chain, r.Frames.Synced = sg.HasFooter, foot, sg.Chain, sg.DurableTo
	if sg.HasFooter {
		return r.final()
	}
	return r.check(true)
}

// Round calls fn for each commit that has come since the last one, in order. current says that it has met the end of
// the log, as the manifest was when the round began.
func (r *Reader) Round(fn func(h *format.FrameHeader, entries []format.Entry) error) (current bool, err error) {
	if _, err := r.Refresh(); err != nil {
		return false, err
	}
	if err := r.inPlace(); err != nil {
		return false, err
	}
	for r.changed = false; ; {
		if err := r.readSegment(fn); err != nil {
			return false, err
		}
		sg, err := r.following()
		if err == nil && sg == nil {
			err = r.stalled()
		}
		if err != nil || sg == nil {
			return err == nil && !r.changed, err
		}
		if r.Frames != nil {
			if err := r.final(); err != nil {
				return false, err
			}
		}
		sg.Unsettled.Store(format.SegmentHeaderSize)
		r.Frames, r.loads = segment.NewFrames(sg), 0
		r.Waiting = slices.DeleteFunc(r.Waiting, func(w *segment.Segment) bool { return w == sg })
	}
}

// readSegment reads what the segment at hand has.
func (r *Reader) readSegment(fn func(h *format.FrameHeader, entries []format.Entry) error) error {
	if r.Frames == nil || r.Frames.HasFooter {
		return nil
	}
	size, err := r.Frames.Segment.File.Size()
	if err != nil {
		return err
	}
	if size < r.Frames.Pos {
		return r.found()
	}
	if err := r.check(false); err != nil {
		return err
	}
	if there, err := r.HeaderAt(r.Frames.Segment, r.Frames.Pos, size); err != nil || there == nil {
		return err
	}
	r.Frames.Extend(size)
	for {
		h, entries, err := r.frame()
		if err != nil || h == nil {
			return err
		}
		if err := fn(h, entries); err != nil {
			return err
		}
	}
}

// check makes sure that what has been read, and may still be truncated, stands: all of it, or what there is time for.
func (r *Reader) check(all bool) error {
	sg, c := r.Frames.Segment, &r.Frames.Chain
	begin := time.Now()
	all = all || begin.Sub(r.Checked) >= checkShare*r.took
	var stands bool
	var err error
	switch {
	case r.rewritten:
		return ErrRewritten
	case c.From == c.End:
		stands, err = sg.LastStands(c)
	case all:
		if stands, err = sg.Stands(c, max(r.Frames.Synced, r.Manifest.ClosedUpTo(sg.ID))); stands {
			sg.Unsettled.Store(c.From)
		}
		r.Checked = time.Now()
		r.took = r.Checked.Sub(begin)
	default:
		stands, err = sg.LastStands(c)
	}
	if err != nil || stands {
		return err
	}
	return r.found()
}

// final is check of a segment that its writer has gone on from: it truncates nothing there any more.
func (r *Reader) final() error {
	if err := r.check(true); err != nil {
		return err
	}
	c := &r.Frames.Chain
	c.From, c.Last = c.End, c.End
	r.Frames.Segment.Unsettled.Store(0)
	return nil
}

// found notes that frames that were read have been overwritten or truncated.
func (r *Reader) found() error {
	r.rewritten = true
	return ErrRewritten
}

// stuck is a place where nothing verifies.
type stuck struct {
	sg    *segment.Segment
	at    int64
	since time.Time
	wait  time.Duration // after since, until what follows is searched
	err   error         // what the search has found
}

// stalled is why what stands where the reader has ended, if it is no frame, cannot be one that is about to be copied:
// what is to follow it is there, and stays.
func (r *Reader) stalled() error {
	if r.Frames == nil || r.Frames.HasFooter {
		return nil
	}
	sg, at := r.Frames.Segment, r.Frames.Pos
	if r.stuck.sg != sg || r.stuck.at != at {
		r.stuck = stuck{sg: sg, at: at, since: time.Now(), wait: Patience}
	}
	closed := at < r.Manifest.ClosedUpTo(sg.ID)
	if !closed && time.Since(r.stuck.since) < r.stuck.wait {
		return r.stuck.err
	}
	fr := segment.NewFramesAfter(sg, at, format.Footer{})
	if err := fr.ExtendToFile(); err != nil {
		return err
	}
	_, err := fr.NextInFile()
	if bad := (*segment.BadFrame)(nil); err == nil || err != io.EOF && !errors.As(err, &bad) {
		return err
	}
	r.stuck.wait, r.stuck.err = 2*r.stuck.wait, nil
	if closed {
		r.stuck.err = &failure.CorruptError{File: sg.Name, Offset: at, Reason: "no commit, before the end of the last clean close or pause"}
	} else if _, valid, err := fr.Resync(at + 1); err != nil {
		return segment.IgnoreBad(err)
	} else if valid {
		r.stuck.err = &failure.CorruptError{File: sg.Name, Offset: at, Reason: "no commit, before commits that were written after it"}
	}
	return r.stuck.err
}

// JudgeEnd is what says that the place where the log ends is damaged, without any patience.
func (r *Reader) JudgeEnd() error {
	r.stuck = stuck{}
	if err := r.stalled(); err != nil {
		return err
	}
	r.stuck.wait = 0 // at once
	return r.stalled()
}

// inPlace makes sure that the segments that are open are those that the directory has under their names. A writer never
// replaces a segment, so another file under a name means that somebody has put another copy of the store there.
func (r *Reader) inPlace() error {
	if time.Since(r.placed) < Latest {
		return nil
	}
	where, err := r.FS.Where()
	if err != nil {
		return err
	}
	if where == vfs.Elsewhere {
		return fmt.Errorf("%s: %w", r.Dir, failure.ErrReplaced)
	}
	for _, id := range r.inUse() {
		sg := r.Open[id]
		named, err := vfs.HasName(sg.File, filepath.Join(r.Dir, sg.Name))
		if err != nil {
			return err
		}
		if named {
			continue
		}
		if _, err := r.Refresh(); err != nil { // a merge removes names after it has taken them off the list
			return err
		}
		if slices.Contains(r.inUse(), id) && r.Open[id] == sg {
			return r.found()
		}
	}
	r.placed = time.Now()
	return nil
}

// inUse are the open segments that hold the end of the log.
func (r *Reader) inUse() []uint32 {
	ids := slices.Clone(r.Manifest.Tail)
	if r.Frames != nil {
		if _, sealed := r.Manifest.Sealed[r.Frames.Segment.ID]; sealed {
			ids = append(ids, r.Frames.Segment.ID)
		}
	}
	return slices.DeleteFunc(ids, func(id uint32) bool { return r.Open[id] == nil })
}

// HeaderAt is the header of the frame at pos, nil if none verifies there.
func (r *Reader) HeaderAt(sg *segment.Segment, pos, size int64) (*format.FrameHeader, error) {
	b := r.buf[:format.FrameHeaderSize]
	if _, err := sg.File.ReadAt(b, pos); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: reading at %d: %w", sg.Name, pos, err)
	}
	h, ok := format.ParseFrameHeader(b, sg.Seed, uint32(pos), size-pos)
	if !ok {
		return nil, nil
	}
	return &h, nil
}

// frame reads the next frame; nil if there is none, or it is the footer.
func (r *Reader) frame() (*format.FrameHeader, []format.Entry, error) {
	before := *r.Frames
	_, h, entries, err := r.Frames.NextFrameInFile()
	if err != nil {
		return nil, nil, segment.IgnoreEnd(err)
	}
	if r.loads != r.Frames.Loads {
		if _, err := r.Refresh(); err != nil {
			r.Frames.BackTo(&before)
			return nil, nil, err
		}
		r.loads = r.Frames.Loads
		if err := r.check(false); err != nil {
			r.Frames.BackTo(&before)
			return nil, nil, err
		}
	}
	if h.Footer {
		r.Footed(r.Frames.Segment, r.Frames.Foot)
		return nil, nil, r.final()
	}
	if h.Seq != r.Next {
		r.Frames.BackTo(&before)
		return nil, nil, ErrGap
	}
	r.Next = r.Frames.MaxSeq + 1
	return &h, entries, nil
}

// following finds the segment in which the log goes on after the one at hand; nil if it does not go on yet.
func (r *Reader) following() (*segment.Segment, error) {
	later := false
	for _, sg := range r.Waiting {
		if sg.Merged {
			continue
		}
		size, err := sg.File.Size()
		if err != nil {
			return nil, err
		}
		h, err := r.HeaderAt(sg, format.SegmentHeaderSize, size)
		if err != nil {
			return nil, err
		}
		if h != nil && !h.Footer && h.Seq == r.Next {
			return sg, nil
		}
		later = later || h != nil && !h.Footer && h.Seq > r.Next
	}
	if r.changed { // this is no longer all that there is
		return nil, nil
	}
	for _, si := range r.Manifest.Sealed {
		if si.Records > 0 && si.MaxSeq >= r.Next {
			return nil, ErrGap
		}
	}
	// What was sealed merges have removed, without a rest. What was never sealed a power cut may have taken.
	if later && r.Manifest.MaxSeq >= r.Next {
		return nil, ErrGap
	}
	return nil, nil
}

// Refresh reads the manifest again if it has changed.
func (r *Reader) Refresh() (bool, error) {
	size, err := r.Manifest.File.Size()
	if err != nil {
		return false, err
	}
	named, err := vfs.HasName(r.Manifest.File, filepath.Join(r.Dir, manifest.FileName))
	if err != nil || named && size == r.Manifest.Size+int64(len(r.Manifest.Rest)) {
		return false, err
	}
	now, err := manifest.Read(r.FS, r.Dir, vfs.ReadOnly, nil)
	if err != nil {
		return false, err
	}
	if now.Store != r.Manifest.Store {
		return false, errors.Join(fmt.Errorf("%s: %w", manifest.FileName, failure.ErrForeign), now.Close())
	}
	before := r.Manifest
	if now.NextID < before.NextID || now.MaxSeq < before.MaxSeq { // an older copy was put in its place
		return false, errors.Join(r.found(), now.Close())
	}
	r.Manifest, r.changed = now, true
	if err := r.OpenListed(); err != nil {
		r.Manifest = before // it will be read again
		return false, errors.Join(err, now.Close())
	}
	if err := before.Close(); err != nil {
		return true, err
	}
	if err := r.Listed(); err != nil {
		now.Size = -1 // it will be read again
		return true, err
	}
	return true, nil
}

// OpenListed opens the segments that the log goes on in.
func (r *Reader) OpenListed() error {
	for _, id := range r.Manifest.Tail {
		if r.Open[id] == nil {
			if err := r.OpenSegment(id, nil); err != nil {
				return err
			}
		}
	}
	for id, si := range r.Manifest.Sealed {
		if r.Open[id] == nil && si.Records > 0 && (r.Merged || si.MaxSeq >= r.Next) {
			if err := r.OpenSegment(id, &si); err != nil {
				return err
			}
		}
	}
	return nil
}

// OpenSegment opens a segment, a sealed one as the manifest says it is.
func (r *Reader) OpenSegment(id uint32, si *format.SealedInfo) error {
	sg, err := segment.Open(r.FS, r.Dir, r.Manifest.StoreOf(id), id, vfs.ReadOnly)
	if err != nil {
		return err
	}
	if si == nil {
		sg.Size.Store(format.SegmentHeaderSize)
	} else if err = sg.ReadFooter(); err == nil && sg.Info() != *si {
		err = &failure.CorruptError{File: sg.Name, Offset: int64(si.Length), Reason: "footer does not agree with the manifest"}
	}
	if err == nil {
		err = r.Opened(sg)
	}
	if err != nil {
		return errors.Join(err, sg.Close())
	}
	r.Open[id] = sg
	r.Waiting = append(r.Waiting, sg)
	return nil
}

// Forget has the reader forget a segment, which its owner closes.
func (r *Reader) Forget(sg *segment.Segment) {
	delete(r.Open, sg.ID)
	r.Waiting = slices.DeleteFunc(r.Waiting, func(w *segment.Segment) bool { return w == sg })
}
