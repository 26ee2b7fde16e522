// Package reserve keeps disk space in the file RESERVE for operations that free space when the disk is full: deletes,
// edits of the manifest, outputs of merges.
//
// A Reserve may be used from any goroutine; its lock is taken within all others. A nil Reserve has nothing and refuses
// nothing. Of the file only the length matters: anyone may delete it.
package reserve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/vfs"
)

// Reserve is disk space that the store holds in the file RESERVE, for what frees space when the disk is full: commits
// that only delete or are notes of the store, edits of the manifest, and the outputs of merges. It is released piece by piece, by truncating the
// file. Until it is whole again every other write is refused, or a put would consume the space released for a delete.
//
//	 0                  8          16
//	+------------------+----------+------------------------
//	| magic "STAVERSV" | want u64 | bytes that do not compress
//	+------------------+----------+------------------------
//	want: the file's length when it was whole. A shorter one has been drawn on.
//
// A file and not a threshold of free space: the operating system would have to be asked before each write, other
// programs consume free space, and a quota does not show in it. Written and synced, not allocated as a hole: some file
// systems reserve space for neither holes nor compressible bytes. Truncated, not overwritten: where an overwrite
// allocates new space, truncating needs the least. Its bytes mean nothing. A crash leaves it shorter or longer, and
// anyone may delete it.
type Reserve struct {
	env Environment

	state     atomic.Uint32 // stateShort, stateLack
	bytesHeld atomic.Int64  // of the file; its changes are guarded by mu
	drawn     atomic.Uint64 // counts releases
	free      atomic.Int64  // bytes left of the disk when that was measured last
	low       atomic.Bool   // that was not much
	coming    atomic.Int64  // bytes of commits between Prepare and Appended

	turn sync.Mutex // see Turn; taken before mu

	mu    sync.Mutex // guards all below, and the file; taken within all other locks
	want  int64      // how long the file is when it is whole
	held  bool       // a merge draws on it: not filled up until it ends
	cause error      // of the last write that met a full disk
	next  time.Time  // it is not tried to fill it up before
	room  roomForDeletes
	grow  backoff.Backoff // of attempts to make it longer
	again backoff.Backoff // of attempts to fill it up between writes; the background's own
	lack  chan struct{}
}

// Bits of reserve.state.
const (
	stateShort = 1 // it has been drawn on: what needs space is refused
	stateLack  = 2 // the last write that was tried met a full disk
)

const (
	// FileName is the file that holds disk space for deletes and merges.
	FileName = "RESERVE"

	magic      = "STAVERSV"
	headerSize = 16
	page       = 4 << 10  // it is drawn on by at least so much
	unit       = 64 << 10 // default lengths are multiples of this, and it is written in such pieces
	piece      = 1 << 20  // it grows by so much at least
	parts      = 16       // and drawn on in so many
)

// What of a whole reserve is left to others, as a part of it: whatever frees space later needs what frees it now.
const (
	LeaveAll    = 1  // by what can wait
	LeaveHalf   = 2  // by commits that delete, which free nothing before a merge has run, and the segments for them
	LeaveFourth = 4  // by segments that are sealed for a merge, and outputs of merges if it is as long as sizes.go says
	LeaveEighth = 8  // by outputs of merges otherwise, and by commits that delete while a merge draws on it
	LeaveOpen   = 16 // by Open, which comes before all of them in the next process
	LeaveNone   = 0  // by the edits of the manifest that let segments go
)

// Environment is what a reserve knows of its store.
type Environment struct {
	FS          vfs.FS
	Dir         string
	Logger      *slog.Logger
	Store       func() [16]byte // its id
	SegmentSize func() int64    // from which length segments are sealed
	Longest     func() int64    // length of the longest segment that a merge may have to copy
	Want        int64           // how long the reserve is to be: Options.Reserve
	LogSize     func() int64    // bytes of all segments
	SpaceAgain  func()          // is called when writes are possible again, with a lock held
}

// Start is to be called before anything else.
func (r *Reserve) Start(env Environment) {
	r.env, r.lack = env, make(chan struct{}, 1)
	r.room.hopeless = -1
}

func (r *Reserve) path() string { return filepath.Join(r.env.Dir, FileName) }

// Open examines the reserve, with the lock of the directory held. A file that is not whole was drawn on by the
// process before: the disk may be full still.
func (r *Reserve) Open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.env.FS.Open(r.path(), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		return // it is made when it is due
	}
	var size int64
	head := make([]byte, headerSize)
	if err == nil {
		if size, err = f.Size(); err == nil && size >= headerSize {
			_, err = f.ReadAt(head, 0)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.env.Logger.Warn("reserve not read", "file", FileName, "err", err)
		return
	}
	r.bytesHeld.Store(size)
	r.want = size
	if string(head[:8]) == magic {
		r.want = int64(min(binary.LittleEndian.Uint64(head[8:]), uint64(max(segments*r.env.SegmentSize(), r.env.Want, size))))
	}
	if size < r.want {
		r.setLocked(stateShort, failure.ErrNoSpace)
	}
}

// Length is how long the reserve in a directory is, for a store that is open for reading; 0 if that cannot be read.
func Length(fs vfs.FS, dir string) (size int64) {
	f, err := fs.Open(filepath.Join(dir, FileName), vfs.ReadOnly)
	if err != nil {
		return 0
	}
	if size, err = f.Size(); errors.Join(err, f.Close()) != nil {
		return 0
	}
	return size
}

// Begin makes the reserve of a store that has none, or tries to make one whole, before the first write. A long one
// grows in the background.
func (r *Reserve) Begin() {
	if r.due() <= piece || r.Full() {
		r.Adjust()
	}
}

// Full reports whether the disk was full at the last check.
func (r *Reserve) Full() bool { return r != nil && r.state.Load() != 0 }

// setLocked notes that the disk is full, once.
func (r *Reserve) setLocked(bit uint32, cause error) {
	was := r.state.Load()
	r.state.Store(was | bit)
	r.cause = cause
	if was == 0 {
		r.env.Logger.Warn("disk full: writes that need space are refused", "cause", cause)
	}
	select {
	case r.lack <- struct{}{}:
	default:
	}
}

func (r *Reserve) clearLocked(bit uint32) {
	was := r.state.Load()
	r.state.Store(was &^ bit)
	if was != 0 && was&^bit == 0 {
		r.env.Logger.Info("space again: writes resume")
		r.env.SpaceAgain()
	}
}

// NoteLack notes that a write has met a full disk.
func (r *Reserve) NoteLack(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(stateLack, cause)
}

// NoteSpace notes that a write has been made.
func (r *Reserve) NoteSpace() {
	if r.state.Load()&stateLack == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearLocked(stateLack)
}

// Release gives up a piece of the reserve, but for the part that is left to others, for a caller whose write has met a
// full disk. seen is what drawn was before that write: if others have given up something since, that may do. It reports
// whether to try again.
func (r *Reserve) Release(seen uint64, leave int64, cause error) bool {
	if errors.Is(cause, failure.ErrFileLimit) {
		return false // no other file's space is of use
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drawn.Load() != seen {
		return true
	}
	size, floor := r.bytesHeld.Load(), int64(0)
	if leave > 0 {
		floor = r.want / leave
	}
	to := max(size-max(r.want/parts, page), floor) / page * page
	to = max(to, floor, min(size, headerSize))
	if to >= size {
		return false
	}
	r.setLocked(stateShort, cause)
	if err := r.truncate(to); err != nil {
		if !failure.IsNotExist(err) {
			r.env.Logger.Error("reserve not released", "file", FileName, "err", err)
			return false
		}
		to = 0
	}
	r.bytesHeld.Store(to)
	r.drawn.Add(1)
	return true
}

// truncate makes the file shorter. It is synced because some file systems give space back only then.
func (r *Reserve) truncate(to int64) error {
	f, err := r.env.FS.Open(r.path(), vfs.ReadWrite)
	if err != nil {
		return err
	}
	if err = f.Truncate(to); err == nil {
		if serr := f.Sync(); serr != nil { // its bytes matter to nobody
			r.env.Logger.Warn("reserve not synced", "file", FileName, "err", serr)
		}
	}
	return errors.Join(err, f.Close())
}

// Short reports whether the reserve has been drawn on: what needs space is refused.
func (r *Reserve) Short() bool { return r.state.Load()&stateShort != 0 }

// Lacks gets a value when a write meets a full disk.
func (r *Reserve) Lacks() <-chan struct{} { return r.lack }

// Bytes is how many bytes a merge can count on.
func (r *Reserve) Bytes() int64 { return r.bytesHeld.Load() }

// Refuse returns why a write that needs space is refused, and signals that space is lacking.
func (r *Reserve) Refuse() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.cause
	r.setLocked(stateLack, err)
	return err
}

// Seen is the argument for a later release.
func (r *Reserve) Seen() uint64 {
	if r == nil {
		return 0
	}
	return r.drawn.Load()
}

// With runs something that frees space, again and again while it meets a full disk and there is something left of the
// reserve. What fails must have changed nothing.
func (r *Reserve) With(leave int64, fn func() error) error {
	for {
		if r == nil {
			return fn()
		}
		seen := r.drawn.Load()
		err := fn()
		if err == nil || !failure.NoSpace(err) || !r.Release(seen, leave, err) {
			return err
		}
	}
}

// Spend gives up a piece of the reserve for a merge whose write has met a full disk. It is not filled up again before
// the merge ends.
func (r *Reserve) Spend(seen uint64, cause error) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	r.held = true
	r.mu.Unlock()
	return r.Release(seen, r.leaveByOutputs(), cause)
}

func (r *Reserve) leaveByOutputs() int64 {
	if r.env.Want == 0 && r.low.Load() {
		return LeaveFourth
	}
	return LeaveEighth
}

// ForOutputs is how many bytes outputs can draw.
func (r *Reserve) ForOutputs() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.bytesHeld.Load()-r.want/r.leaveByOutputs(), 0)
}

// Refill makes the reserve whole again, so that writes can resume, and reports whether it is. Attempts take only a
// small part of the time: every write that finds the disk full triggers one.
func (r *Reserve) Refill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Load()&stateShort == 0 {
		return true
	}
	begin := time.Now()
	if r.held || begin.Before(r.next) {
		return false
	}
	const part = 20
	want := min(r.want, r.due())
	if r.bytesHeld.Load() < want {
		if err := r.extendLocked(want); err != nil {
			if !failure.NoSpace(err) {
				r.env.Logger.Warn("reserve not filled up", "file", FileName, "err", err)
			}
			now := time.Now()
			r.next = now.Add(min(max(part*now.Sub(begin), time.Millisecond), time.Second))
			return false
		}
	}
	r.want = r.bytesHeld.Load() // it may have been longer when it was drawn on, for a longer log
	r.clearLocked(stateShort | stateLack)
	return true
}

// Figures returns how long the reserve is, and how long it should be.
func (r *Reserve) Figures() (size, due int64) {
	return r.bytesHeld.Load(), r.due()
}

// Freed notes that a merge has ended, which may have given space back.
func (r *Reserve) Freed(removed bool) {
	r.mu.Lock()
	r.held, r.next = false, time.Time{}
	short := r.state.Load()&stateShort != 0
	if removed && !short {
		r.clearLocked(stateLack)
	}
	r.mu.Unlock()
	if short {
		r.Refill()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room.wakeLocked()
}

// due is how long the reserve should be now.
func (r *Reserve) due() int64 { return r.dueWith(r.coming.Load()) }

// dueWith is how long the reserve should be after a commit of so many bytes in a segment of its own.
func (r *Reserve) dueWith(commit int64) int64 {
	log := r.env.LogSize() + commit
	n := length(r.env.SegmentSize(), r.env.Want, log)
	if r.env.Want == 0 && (commit > 0 || r.low.Load()) {
		n = max(n, lengthWhenLow(max(r.env.SegmentSize(), r.env.Longest(), commit), log))
	}
	return n
}

// extendLocked extends the file to a length. A failure keeps what has been written: there may be no more space
// to get.
func (r *Reserve) extendLocked(to int64) (err error) {
	f, err := r.env.FS.Open(r.path(), vfs.ReadWrite)
	if failure.IsNotExist(err) {
		r.bytesHeld.Store(0)
		f, err = r.env.FS.Open(r.path(), vfs.Create)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	r.bytesHeld.Store(size)
	id, filler := r.env.Store(), make([]byte, min(max(to-size, 0), unit))
	var seed [32]byte
	copy(seed[:], id[:])
	binary.LittleEndian.PutUint64(seed[len(id):], uint64(size)) // no two extensions are the same
	random := rand.NewChaCha8(seed)
	for at := size; at < to; {
		some := filler[:min(to-at, unit)]
		if _, err := random.Read(some); err != nil {
			return err
		}
		n, err := f.WriteAt(some, at)
		at += int64(n)
		r.bytesHeld.Store(max(at, size))
		if err != nil {
			return fmt.Errorf("%s: writing at %d: %w", FileName, at, err)
		}
	}
	head := binary.LittleEndian.AppendUint64([]byte(magic), uint64(to))
	if _, err := f.WriteAt(head[:min(len(head), int(to))], 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", FileName, err)
	}
	r.bytesHeld.Store(max(size, to))
	r.want = max(size, to)
	return nil
}

// Adjust makes the reserve as long as it should be, some at a time: longer as the log grows, shorter when that has
// become much shorter. It reports whether that is done, as long as the log stays as it is.
func (r *Reserve) Adjust() (settled bool) {
	if r.Full() {
		if r.again.Due() && !r.Refill() {
			r.again.Failed(Every, fillEvery, failure.ErrNoSpace)
		}
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again.Worked()
	due, size := r.due(), r.bytesHeld.Load()
	switch {
	case r.held:
		return false
	case size >= due && size <= 2*due:
		return true
	case !r.grow.Due():
	case size > due:
		r.changedLocked(r.shortenLocked(due))
	default:
		r.changedLocked(r.extendLocked(min(due, size+max(piece, due/64))))
		r.want = max(r.want, r.bytesHeld.Load())
	}
	return false
}

// fillEvery is the longest time between attempts to fill the reserve up without writes.
const fillEvery = 5 * time.Second

// changedLocked notes the outcome of Adjust: what failed is tried again later.
func (r *Reserve) changedLocked(err error) {
	if err == nil {
		r.grow.Worked()
	} else if r.grow.Failed(time.Second, time.Minute, err) {
		r.env.Logger.Warn("reserve for a full disk not made", "file", FileName, "err", err)
	}
}

// shortenLocked makes the file so long, which is less than it is.
func (r *Reserve) shortenLocked(to int64) error {
	var err error
	if to > 0 {
		err = r.truncate(to)
	} else {
		err = r.env.FS.Remove(r.path())
	}
	if err != nil && !failure.IsNotExist(err) {
		return err
	}
	r.bytesHeld.Store(to)
	r.want = to
	if err != nil || to == 0 {
		return nil
	}
	return r.extendLocked(to) // which notes how long it is
}

// Every is how often it is looked whether the reserve is as it should be.
const Every = 100 * time.Millisecond
