package commitlog

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Rotation: the active segment is sealed and another one takes its place.
//
// A writer that fills the active segment only switches to the next, which has
// been made ahead: file, header and name are durable, and the manifest lists it
// as the last of the unsealed segments. One goroutine does the rest: it syncs
// the old segment, writes and syncs its footer, has the manifest call it
// sealed, and makes another segment when the active one is half full. At most
// two unsealed segments hold frames: a switch waits until the one before the
// active is sealed.
//
// I11: syncs happen in log order. Nothing in the active segment counts as synced before every frame
// of the segment before it is on disk: no writer is acknowledged and no frame's "synced" field
// includes it. What a crash leaves:
//
//	after the switch:            two segments with frames; if the older does not reach
//	                             the newer's first sequence number, what the newer holds
//	                             was never acknowledged as durable, and is dropped (judgeNext)
//	after the first sync:        the same, the older one whole, perhaps with zeros after its frames (segment/append.go)
//	after the truncation:        the same, with or without them
//	after the footer:            the same, with a footer, perhaps a torn one
//	after the edit "seal":       the new state
//	after making the next file:  also a file without frames that no manifest names; Open removes it
//	after the edit "add":        an unsealed segment without frames; Open keeps it as the next
type rotation struct {
	ready   []*segment.Segment // empty, listed in the manifest, in log order
	sealing *sealing           // nil: none
	wanted  int                // how many wait for a segment to be ready
	stopped bool               // the goroutine has ended
	steps   uint64             // how many have begun
	refused uint64             // the last of them that failed and is to be tried again
	cause   error              // what the last step failed with, if a writer that cannot do without it is to have it tried again
	wake    chan struct{}
}

// sealing is a segment that is full and not yet sealed.
type sealing struct {
	sg     *segment.Segment
	foot   format.Footer
	end    int64         // of its frames
	next   uint64        // sequence after its last
	synced bool          // all its frames are on disk
	footed bool          // and its footer; both only ever change in the goroutine
	onDisk chan struct{} // closed when synced, or when that has failed
}

// makeRoomLocked switches segments until a frame of n bytes fits.
func (l *Log) makeRoomLocked(n int64) error {
	for {
		if l.failed != nil {
			return l.failed
		}
		if l.offset+n+format.FooterSize <= l.limit || l.offset == format.SegmentHeaderSize {
			return nil
		}
		if err := l.switchLocked(); err != nil {
			return err
		}
	}
}

// switchLocked makes the next segment the active one, or waits for what blocks that: then nothing
// has changed yet, and the caller checks again. If there is no room for the next segment, every
// waiter gets the error, and the next writer triggers another attempt.
func (l *Log) switchLocked() error {
	r := &l.rotation
	if r.stopped {
		return failure.ErrClosed
	}
	if l.writing || l.queue != nil || r.sealing != nil || len(r.ready) == 0 {
		steps := r.steps
		r.wanted++
		l.wakeRotator()
		l.waitLocked()
		r.wanted--
		return r.refusedSince(steps)
	}
	l.foot.Time = time.Now().UnixMilli()
	r.sealing = &sealing{sg: l.active, foot: l.foot, end: l.offset, next: l.writeSeq, onDisk: make(chan struct{})}
	next := r.ready[0]
	r.ready = r.ready[1:]
	l.startLocked(next, format.Footer{}, format.SegmentHeaderSize, format.SegmentHeaderSize)
	l.wakeRotator()
	return nil
}

// nearEnd is how many bytes before its end a segment counts as nearly full: several commits of an event
// loop.
const nearEnd = 1 << 20

// noteRoomLocked notes whether the active segment is nearly full.
func (l *Log) noteRoomLocked() {
	l.tight.Store(l.offset > l.limit-min(nearEnd, l.limit/4))
}

// MayWait reports whether a commit may have to wait for a large frame, or for the next segment, and so for the disk: the
// active one is nearly full, and the one before it is not sealed yet or the next not made. Nothing is
// reserved: the answer is about commits of up to a quarter of a MiB, unless many are made meanwhile.
func (l *Log) MayWait() bool {
	if l.large.Load() > 0 {
		return true
	}
	if !l.tight.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed == nil && (l.rotation.sealing != nil || len(l.rotation.ready) == 0)
}

// refusedSince returns why a step that began after so many others failed.
func (r *rotation) refusedSince(steps uint64) error {
	if r.refused > steps {
		return r.cause
	}
	return nil
}

// startLocked makes sg the active segment.
func (l *Log) startLocked(sg *segment.Segment, ft format.Footer, size, synced int64) {
	l.active, l.foot, l.offset, l.synced = sg, ft, size, synced
	l.limit, l.closeLen = l.env.SegmentSize(), 0
	l.noteRoomLocked()
	if l.env.CopyStep > 0 {
		sg.BeginAppends(l.env.CopyStep, l.limit, &l.waited)
	}
}

// Shorten has the active segment sealed from the length that holds by now, if that is less than when it began.
func (l *Log) Shorten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = min(l.limit, l.env.SegmentSize())
	l.noteRoomLocked()
	l.prepareLocked() // for those that begin nothing until it is ready: MayWait
}

// endAppends truncates the zeros after the frames of a segment; nothing has changed if there is no space for that.
func endAppends(sg *segment.Segment) error {
	err := sg.EndAppends()
	if failure.IsTransient(err) {
		return failure.NewRetryable(err)
	}
	return err
}

// waitLocked waits until a write, a sync or a step of the rotation has ended.
func (l *Log) waitLocked() {
	l.waiting++
	l.changed.Wait()
	l.waiting--
}

// prepareLocked has the next segment made in time.
func (l *Log) prepareLocked() {
	if l.needsReadyLocked() {
		l.wakeRotator()
	}
}

func (l *Log) needsReadyLocked() bool {
	r := &l.rotation
	return len(r.ready) == 0 && (r.wanted > 0 || r.cause == nil && l.offset > l.limit/2)
}

func (l *Log) wakeRotator() {
	select {
	case l.rotation.wake <- struct{}{}:
	default:
	}
}

// Run is the goroutine that seals and makes segments, until the store closes. A segment whose
// sealing has begun when the store closes is sealed still, unless the disk is full: then the next
// Open seals it.
func (l *Log) Run() {
	for !l.stopRotator() {
		select {
		case <-l.rotation.wake:
		case <-l.env.Stop:
		}
		for l.rotateStep() {
		}
	}
}

func (l *Log) stopping() bool {
	select {
	case <-l.env.Stop:
		return true
	default:
		return false
	}
}

// stopRotator reports whether the goroutine may end; if so nothing is switched
// any more.
func (l *Log) stopRotator() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotation.stopped = l.stopping() && (l.rotation.sealing == nil || l.rotation.cause != nil)
	if l.rotation.stopped {
		l.changed.Broadcast()
	}
	return l.rotation.stopped
}

// rotateStep does one piece of work and reports whether there may be more. A
// failure is kept, and every later write returns it, unless it may pass.
func (l *Log) rotateStep() bool {
	l.mu.Lock()
	sl, wanted, failed := l.rotation.sealing, l.needsReadyLocked(), l.failed != nil
	l.rotation.steps++
	step := l.rotation.steps
	l.mu.Unlock()
	var err error
	switch {
	case failed:
		l.abandonSealing()
		return false
	case sl != nil:
		if err = l.env.CheckDirectory(); err == nil {
			err = l.seal(sl)
		}
	case wanted && !l.stopping():
		if err = l.env.CheckDirectory(); err == nil {
			err = l.makeReady()
		}
	default:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.rotation.cause = nil
	case failure.IsRetryable(err):
		if l.rotation.cause == nil {
			l.env.Logger.Warn("cannot go on to the next segment yet", "cause", err)
		}
		l.rotation.refused, l.rotation.cause = step, err
	default:
		l.failLocked(err)
	}
	l.changed.Broadcast()
	return !failure.IsRetryable(err)
}

// abandonSealing releases the waiters for a sealing that will not happen: the store has failed.
func (l *Log) abandonSealing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sl := l.rotation.sealing; sl != nil {
		l.rotation.sealing = nil
		if !sl.synced {
			close(sl.onDisk)
		}
	}
}

// seal makes a full segment a sealed one.
func (l *Log) seal(sl *sealing) error {
	// Not alongside another sync of the file: the kernel reports a failure to only one of the two.
	l.mu.Lock()
	for l.syncing.going {
		l.waitLocked()
	}
	failed := l.failed
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if !sl.synced {
		if err := sl.sg.File.Sync(); err != nil {
			return fmt.Errorf("%s: sync before footer: %w", sl.sg.Name, err)
		}
	}
	l.mu.Lock()
	if !sl.synced {
		l.syncing.seq = max(l.syncing.seq, sl.next)
		l.syncing.count += 2
		sl.synced = true
		close(sl.onDisk)
	}
	active := l.active.ID
	l.mu.Unlock()
	if !sl.footed {
		if err := endAppends(sl.sg); err != nil {
			return err
		}
		if err := sl.sg.AppendFooter(sl.foot); err != nil {
			return err
		}
		sl.footed = true
	}
	if err := l.env.LogEdit(manifest.EditSeal, manifest.SealBody(sl.sg.Info(), active)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := sl.sg.Park(l.env.Segments.Load().Len()); err != nil {
		l.env.Logger.Warn("segment keeps its descriptor", "file", sl.sg.Name, "err", err)
	}
	sl.sg.MarkSealed()
	l.rotation.sealing = nil
	l.env.Sealed()
	return nil
}

// makeReady makes the segment that will be the next active one.
func (l *Log) makeReady() error {
	sg, err := l.env.AddSegment()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotation.ready = append(l.rotation.ready, sg)
	return nil
}

// Rotate seals the active segment and returns when that is done. It does nothing if the segment is empty.
func (l *Log) Rotate() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sg := l.active; l.failed == nil && l.active == sg && l.offset > format.SegmentHeaderSize; {
		if err := l.switchLocked(); err != nil {
			return err
		}
	}
	steps := l.rotation.steps
	for sl := l.rotation.sealing; sl != nil && l.rotation.sealing == sl && l.failed == nil; {
		l.wakeRotator()
		l.waitLocked()
		if err := l.rotation.refusedSince(steps); err != nil {
			return err
		}
	}
	return l.failed
}
