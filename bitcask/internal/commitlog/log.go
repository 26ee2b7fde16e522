package commitlog

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Log is the log of a store. The zero value is not usable: see Init.
type Log struct {
	env   Environment
	spins int // how often a writer checks whether another is done; 0 on one processor
	// waited says that every writer waits for a sync. Then a writer lets others run before it writes, for the sync has
	// released many at once, and one write for all of them is cheaper; and frames are written, not copied.
	waited atomic.Bool

	mu       sync.Mutex // guards all below; never held during a write or a commit's sync
	changed  sync.Cond  // a write or sync has ended, and a rotation waits for that
	waiting  int        // how many wait for changed
	active   *segment.Segment
	shown    bool          // the store is open for reading: active only ends the log
	limit    int64         // from which length active is sealed
	offset   int64         // where the next frame goes, after the queued ones
	commits  uint64        // written since Open
	appended int64         // bytes of commits since Open
	synced   int64         // everything in active before this is on disk
	nextSeq  uint64        // of the next record to be queued
	foot     format.Footer // of active, so far
	writing  bool          // a writer writes, or has been assigned to
	busy     atomic.Bool   // writing, to be read without mu
	tight    atomic.Bool   // active is nearly full, to be read without mu
	large    atomic.Int32  // frames of LargeFrame bytes or more that are being written, or will be soon
	queue    *writeGroup
	writeSeq uint64 // all below are written
	closeLen int64  // length of active that the manifest calls closed
	idleSeq  uint64 // writeSeq at the last NoteIdle
	failed   error
	cuts     uint64 // truncations after failed writes; those above syncing.cuts may not be on disk
	syncing  syncState
	rotation rotation

	onWritten func(effects any, next uint64) // of OnWritten
}

// writeGroup is frames that one write will carry. The first of its writers waits for turn, which is
// closed when the group has been written, or gets a value: then that writer is to write it. The
// others wait for done.
type writeGroup struct {
	pieces  [][]byte // of commits with long values, and what goes before them
	late    []lateFrame
	buf     []byte // what follows them
	at      int64
	size    int64
	recs    uint64
	first   uint64 // sequence of the first record
	next    uint64 // sequence after the last
	members int
	effects []frameEffects // of the frames that have some
	turn    chan struct{}
	done    chan struct{}
	err     error // valid once done is closed
}

// frameEffects are those of a frame, and the sequence number after it.
type frameEffects struct {
	effects any
	next    uint64
}

const (
	// spinLimit is how often a writer checks a flag before it parks: for five to ten microseconds,
	// a few times that of a write(2) in a virtual machine. Parking and waking cost more.
	spinLimit = 10_000
	// maxCombined is how many groups a writer writes for others before one of
	// them has to.
	maxCombined = 4
)

// Environment is what the log needs of its store. Its functions are called without the log's lock, but for Sealed, and
// LogEdit in Close.
type Environment struct {
	SegmentSize    func() int64 // from which length a segment that begins now is sealed
	SyncAlways     bool         // every writer waits for a sync, until SetWaited says otherwise
	CopyStep       int64        // how many bytes of zeros are reserved for commits to be copied into; 0: commits are written
	Logger         *slog.Logger
	Segments       *atomic.Pointer[segment.Set] // of the store, sealed ones included
	Stop           <-chan struct{}              // closed when the store closes
	LogEdit        func(typ byte, body []byte) error
	AddSegment     func() (*segment.Segment, error)   // makes an empty segment and lists it in the manifest as the last
	CheckDirectory func() error                       // why nothing more is to be written to the directory, or nil
	Unlinked       func(active *segment.Segment) bool // its file has lost its name
	Sealed         func()                             // called after a segment has been sealed
}

// Init prepares the log of a store that is being opened: it is empty, and takes no commits before Start.
func (l *Log) Init(env Environment) {
	l.env, l.nextSeq, l.writeSeq = env, 1, 1
	l.changed.L = &l.mu
	l.rotation.wake = make(chan struct{}, 1)
	l.waited.Store(env.SyncAlways)
	if runtime.GOMAXPROCS(0) > 1 {
		l.spins = spinLimit
	}
}

// SetWaited says whether every writer waits for a sync from now on. It decides how frames are written best, not who
// waits.
func (l *Log) SetWaited(waited bool) { l.waited.Store(waited) }

// OnWritten calls fn for each frame with effects that is written from now on, with the sequence number after it, in the
// order of the log. What Cut shows holds exactly the frames that fn was called for before it. fn is called with the log
// locked: it must not use the log, and must be O(1). nil ends that.
func (l *Log) OnWritten(fn func(effects any, next uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onWritten = fn
}

// Append writes a commit and returns the place of its frame. The sequence numbers of its records
// begin at seq.
func (l *Log) Append(f *Frame) (sg *segment.Segment, at int64, seq uint64, err error) {
	n, size := uint64(len(f.Records)), f.Size
	if size >= LargeFrame {
		defer l.announceLarge()()
	}
	l.spinWait()
	l.mu.Lock()
	if err := l.makeRoomLocked(size); err != nil {
		l.mu.Unlock()
		return nil, 0, 0, err
	}
	if seq, err = l.giveSequencesLocked(n); err != nil {
		l.mu.Unlock()
		return nil, 0, 0, err
	}
	sg, at = l.active, l.offset
	l.offset += size
	l.appended += size
	h := format.FrameHeader{Many: n > 1, Seq: seq, Synced: uint32(l.synced)}

	// Never ahead of queued frames: a hole before an acknowledged commit would look like a torn
	// tail.
	if !l.writing && l.queue == nil {
		l.setWritingLocked(true)
		l.mu.Unlock()
		if l.waited.Load() {
			runtime.Gosched()
		}
		g := writeGroup{at: at, first: seq}
		g.add(f.finish(h, sg.Seed, uint32(at)))
		g.addEffects(f, seq+n)
		g.size, g.recs, g.next = size, n, seq+n
		return sg, at, seq, l.write(sg, &g)
	}
	g := l.queue
	if g == nil {
		g = &writeGroup{at: at, first: seq, turn: make(chan struct{}, 1), done: make(chan struct{})}
		l.queue = g
	}
	if size >= LargeFrame {
		g.addLate(lateFrame{frame: f, header: h, seed: sg.Seed, at: uint32(at)})
	} else {
		g.add(f.finish(h, sg.Seed, uint32(at)))
	}
	g.addEffects(f, seq+n)
	g.size += size
	g.recs += n
	g.next = seq + n
	g.members++
	first := g.members == 1
	l.mu.Unlock()
	if !first {
		<-g.done
	} else if _, mine := <-g.turn; mine {
		l.mu.Lock()
		if l.queue == g {
			l.queue = nil
		}
		l.mu.Unlock()
		return sg, at, seq, l.write(sg, g)
	}
	return sg, at, seq, g.err
}

// spinWait waits a moment for the end of a write in progress.
func (l *Log) spinWait() {
	if l.waited.Load() {
		return
	}
	for i := 0; i < l.spins && l.busy.Load(); i++ {
	}
}

func (l *Log) setWritingLocked(writing bool) {
	l.writing = writing
	l.busy.Store(writing)
}

// write writes a group, whose first member is the caller, and then everything queued since.
func (l *Log) write(sg *segment.Segment, g *writeGroup) error {
	err := g.writeTo(sg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wroteLocked(sg, g, err)
	for range maxCombined {
		next := l.queue
		if next == nil {
			break
		}
		l.queue = nil
		l.mu.Unlock()
		err := next.writeTo(sg)
		l.mu.Lock()
		l.wroteLocked(sg, next, err)
	}
	if l.queue != nil {
		l.queue.turn <- struct{}{}
		return g.err
	}
	l.setWritingLocked(false)
	if l.waiting > 0 {
		l.changed.Broadcast()
	}
	return g.err
}

// add appends a frame, whole or in pieces, to those of the group. The frame of a lone writer is not
// copied.
func (g *writeGroup) add(frame []byte, pieces [][]byte) {
	switch {
	case pieces != nil:
		if len(g.buf) > 0 {
			g.pieces = append(g.pieces, g.buf)
		}
		g.pieces, g.buf = append(g.pieces, pieces...), nil
	case g.members == 0 && g.turn == nil:
		g.buf = frame
	case len(frame) > gatherBytes: // it is not moved with the lock of the log held
		g.pieces, g.buf = append(g.pieces, g.buf, frame), nil
	default:
		g.buf = append(g.buf, frame...)
	}
}

func (g *writeGroup) addEffects(f *Frame, next uint64) {
	if f.Effects != nil {
		g.effects = append(g.effects, frameEffects{f.Effects, next})
	}
}

// gatherBytes is how many bytes of short pieces are gathered for one write; longer pieces are
// written in place.
const gatherBytes = 128 << 10

// writeTo writes the frames of a group, with one write or copy unless there are long
// values among them.
func (g *writeGroup) writeTo(sg *segment.Segment) error {
	g.finishLate()
	at := g.at
	write := func(b []byte) error {
		if len(b) == 0 {
			return nil
		}
		err := sg.Append(b, at)
		at += int64(len(b))
		return err
	}
	var gathered []byte
	for _, piece := range g.pieces {
		if len(gathered)+len(piece) > gatherBytes {
			if err := write(gathered); err != nil {
				return err
			}
			gathered = gathered[:0]
		}
		if len(piece) > gatherBytes {
			if err := write(piece); err != nil {
				return err
			}
			continue
		}
		gathered = append(gathered, piece...)
	}
	if err := write(gathered); err != nil {
		return err
	}
	return write(g.buf)
}

// wroteLocked notes the outcome of a write and wakes those it was for.
func (l *Log) wroteLocked(sg *segment.Segment, g *writeGroup, err error) {
	if err != nil {
		g.err = l.writeFailedLocked(sg, g, err)
	} else {
		sg.Size.Store(g.at + g.size)
		if l.foot.Records == 0 {
			l.foot.MinSeq = g.first
		}
		l.foot.Records += g.recs
		l.foot.MaxSeq = g.next - 1
		l.writeSeq = g.next
		l.commits += uint64(max(g.members, 1)) // a writer alone is no member
		if l.onWritten != nil {
			for _, e := range g.effects {
				l.onWritten(e.effects, e.next)
			}
		}
		l.noteRoomLocked()
		l.prepareLocked()
	}
	g.wake()
}

// wake ends the waiting of a group's writers.
func (g *writeGroup) wake() {
	if g.members > 0 {
		close(g.turn)
		close(g.done)
	}
}

// writeFailedLocked truncates what a failed write may have left. If that works and the disk was
// merely full, the store stays open for writes; otherwise it refuses them. Frames queued after the
// failed one carry offsets and sequence numbers that no longer hold, so they fail with it.
func (l *Log) writeFailedLocked(sg *segment.Segment, g *writeGroup, cause error) error {
	err := fmt.Errorf("%s: writing at %d: %w", sg.Name, g.at, cause)
	l.offset, l.nextSeq = g.at, g.first
	l.cuts++
	if cut := sg.CutAppends(g.at); cut != nil || !failure.IsTransient(cause) {
		err = l.failLocked(errors.Join(err, cut))
	}
	if behind := l.queue; behind != nil {
		l.queue = nil
		behind.err = err
		behind.wake()
	}
	return err
}

// failLocked makes the store refuse writes, unless all is as it was before the
// failure. The first cause stays.
func (l *Log) failLocked(cause error) error {
	if failure.IsRetryable(cause) {
		return cause
	}
	if l.failed == nil {
		l.failed = fmt.Errorf("%w: %w", failure.ErrFailed, cause)
		l.env.Logger.Error("store refuses writes", "cause", cause)
	}
	l.changed.Broadcast()
	return l.failed
}

// Fail makes the store refuse writes for a reason outside of the log, unless that may pass by itself. It returns the
// error that writes fail with, or the cause if they do not.
func (l *Log) Fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failLocked(cause)
}

// OnDisk is the highest sequence number in the unsealed segments that is on
// disk, once the log has been synced; 0 if they hold none.
func (l *Log) OnDisk() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.foot.Records == 0 && l.rotation.sealing == nil {
		return 0
	}
	return l.syncing.seq - 1
}
