package segment

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// Appends by copy: a commit that need not be synced at once is copied into a writable mapping of the file, which takes
// a tenth of the time of a write(2). There must be something to copy into: zeros are written to the end of the file, a
// step ahead, and what is left of them is truncated before the footer, at Close, or by the next Open. What must hold:
//
//   - M1 A copy stays below reach, the length of the file. Beyond it bytes are lost without an error.
//   - M2 Between Size and reach are zeros, or the rest of a write that failed. Zeros are no frame (FORMAT.md, section 4).
//   - M3 Commits are copied in the order of the log by one writer at a time, and each in ascending order of its bytes: what a kill leaves is
//     the first part of a write, then zeros. Size is stored after the copy.
//   - M4 A segment is sealed after EndAppends: no mapping, nothing after the footer. The sync of the footer covers the truncation.
//   - M5 Open truncates every unsealed file at the end of its frames, also where it has that length (bitcask/internal/replay/truncate.go).
//   - M6 A reader does not take the length of an unsealed file for the end of its frames, and keeps what it has read when the file becomes
//     shorter (FindContent, Frames.Window).
//   - M7 Only the file systems that [vfs.Copier] knows are copied into. The others, and a file that cannot be mapped, are written to.
//   - M8 A fault in a copy is EIO: the store refuses writes, as after any write that failed so.
//   - M9 While each commit waits for a sync nothing is copied: a copy makes more pages dirty than a write does. That may change with
//     Store.SetSync: commits are written from then on, or copied again.
//   - M10 Page faults happen in system calls: a goroutine that waits in one keeps its processor, and no garbage collection can begin. So the
//     pages are made ready when they are reserved, and again after each sync.
type appends struct {
	copier vfs.Copier   // nil: every append is a write(2)
	paused *atomic.Bool // M9; while it is set every append is a write(2) too
	step   int64        // in bytes, a multiple of 4 * ReserveUnit; zeros are reserved up to a multiple of it
	limit  int64        // beyond which no more zeros are reserved than needed
	reach  int64        // M1, M2
	to     int64        // the end of the window of copier; 0: none
	tried  bool         // the file can be copied into
	synced atomic.Bool
}

// BeginAppends has commits copied to the end of the segment, which is to become the active one, if its file can be
// copied into. step is a multiple of four times [ReserveUnit], up to [MaxReserve]; limit is the length of a full
// segment. While paused is set they are written.
func (sg *Segment) BeginAppends(step, limit int64, paused *atomic.Bool) {
	if c, ok := sg.File.(vfs.Copier); ok {
		sg.appends.copier, sg.appends.step, sg.appends.limit, sg.appends.reach = c, step, limit, sg.Size.Load()
		sg.appends.paused = paused
	}
}

// Append puts bytes at the end of the segment, after Size. One goroutine at a time may call it.
func (sg *Segment) Append(b []byte, at int64) error {
	if a := &sg.appends; a.copier != nil {
		switch ready, err := sg.reserve(at, int64(len(b))); {
		case err != nil:
			return err
		case ready:
			return a.copier.CopyAt(b, at)
		}
		a.reach = max(a.reach, at+int64(len(b)))
	}
	_, err := sg.File.WriteAt(b, at)
	return err
}

// zeros is the source of the zeros that reserve writes.
var zeros [2 * MaxReserve]byte

// reserve makes sure that n bytes can be copied to an offset, or says that they are to be written. After the frame
// remains at least one zero, by which an open distinguishes a copy that was cut short from damage to one that was not
// (NotTorn).
func (sg *Segment) reserve(at, n int64) (ready bool, err error) {
	a := &sg.appends
	switch end := at + n; {
	case a.paused.Load():
		if a.to > 0 {
			return false, sg.CutAppends(at)
		}
		return false, nil
	case n > MaxReserve:
		return false, nil
	case end < a.to:
		if !a.synced.Load() {
			return true, nil
		}
		a.synced.Store(false)
		if a.copier.Populate(at) == nil {
			return true, nil
		}
		return false, sg.stopCopies(at)
	case !a.tried: // before there are zeros
		if a.copier.Window(0, format.SegmentHeaderSize) != nil {
			return false, sg.stopCopies(at)
		}
		a.tried = true
	}
	step := a.step
	if at < step {
		step /= 4 // many stores are small
	}
	end := at + n + 1
	next := max(min(roundUp(end, step), a.limit/ReserveUnit*ReserveUnit), roundUp(end, ReserveUnit))
	if next > a.reach {
		// The length first: a write that a kill ends may have stopped at any byte, and then the file would not have one
		// by which its zeros are known (FindContent).
		err := sg.File.Truncate(next)
		if err == nil {
			_, err = sg.File.WriteAt(zeros[:next-a.reach], a.reach)
		}
		if err != nil {
			return false, sg.reserveFailed(at, err)
		}
		a.reach = next
	}
	a.synced.Store(false)
	if a.copier.Window(at, int(next-at)) != nil {
		return false, sg.stopCopies(at)
	}
	a.to = next
	return true, nil
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// reserveFailed has the commit written instead, if the disk is merely full: it may fit. What the zeros have taken is
// released.
func (sg *Segment) reserveFailed(at int64, cause error) error {
	if !failure.IsTransient(cause) {
		return fmt.Errorf("reserving space: %w", cause)
	}
	return sg.CutAppends(at)
}

// stopCopies has everything from an offset on written, as where copies are not possible.
func (sg *Segment) stopCopies(at int64) error {
	if err := sg.CutAppends(at); err != nil {
		return err
	}
	sg.appends.copier = nil
	return nil
}

// CutAppends truncates the file to an offset, no lower than Size: after it is what a failed append has left.
func (sg *Segment) CutAppends(at int64) error {
	a := &sg.appends
	a.to = 0
	var err error
	if a.copier != nil {
		err = a.copier.EndWindow()
	}
	cut := sg.File.Truncate(at)
	if cut == nil { // else EndAppends tries again
		a.reach = at
	}
	return errors.Join(err, cut)
}

// EndAppends truncates the zeros (M4). It may be called again after a failure; the sync that makes it durable is the
// caller's.
func (sg *Segment) EndAppends() error {
	if a := &sg.appends; a.copier == nil || a.to == 0 && a.reach <= sg.Size.Load() {
		return nil
	}
	if err := sg.CutAppends(sg.Size.Load()); err != nil {
		return fmt.Errorf("%s: truncating reserved zeros: %w", sg.Name, err)
	}
	return nil
}

// NoteSynced says that the file has been synced: the kernel wants to know of the first change to each page after that
// (M10).
func (sg *Segment) NoteSynced() { sg.appends.synced.Store(true) }
