package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/vfs"
)

// The reserve is disk space that the store holds in the file RESERVE, for what frees space when the disk is full: commits that only
// delete, edits of the manifest, and the outputs of merges. It is given up piece by piece, by truncating the file. Until it is whole again
// every other write is refused, or what a delete has been given would be gone to a put.
//
//	 0                  8          16
//	+------------------+----------+------------------------
//	| magic "STAVERSV" | want u64 | bytes that do not compress
//	+------------------+----------+------------------------
//	want: how long the file was when it was whole. A shorter one has been drawn on.
//
// A file and not a threshold of free space: the operating system would have to be asked for that before each write, other programs
// take what is free, and a quota does not show in it. Written and synced, not allocated as a hole: some file systems give space
// to neither holes nor compressible bytes. Truncated, not overwritten: where an overwrite takes new space, truncating takes the
// least. The file holds nothing that anybody needs. A crash leaves it shorter or longer, and whoever wants may delete it.
type reserve struct {
	s *Store

	state atomic.Uint32 // reserveShort, reserveLack
	size  atomic.Int64  // of the file; its changes are guarded by mu
	drawn atomic.Uint64 // counts releases

	mu     sync.Mutex      // guards all below, and the file; taken within all other locks
	want   int64           // how long the file is when it is whole
	held   bool            // a merge draws on it: not filled up meanwhile
	cause  error           // of the last write that met a full disk
	next   time.Time       // it is not tried to fill it up before
	grow   backoff.Backoff // of attempts to make it longer
	again  backoff.Backoff // of attempts to fill it up while nobody writes; the background's own
	lack   chan struct{}
	filler []byte // a piece of what it is filled with
}

// Bits of reserve.state.
const (
	reserveShort = 1 // it has been drawn on: what needs space is refused
	reserveLack  = 2 // the last write that was tried met a full disk
)

const (
	// ReserveName is the file that holds disk space for deletes and merges.
	ReserveName = "RESERVE"

	reserveMagic  = "STAVERSV"
	reserveHeader = 16
	reservePage   = 4 << 10  // it is drawn on by at least so much
	reserveUnit   = 64 << 10 // and made a multiple of this, if nobody says how long
	reservePiece  = 1 << 20  // and written in such pieces
	reserveParts  = 16       // and drawn on in so many
)

// What of a whole reserve is left to others, as a part of it: whatever frees space later needs what frees it now.
const (
	leaveAll    = 1  // by what can wait
	leaveHalf   = 2  // by commits that delete, which free nothing before a merge has run, and the segments for them
	leaveFourth = 4  // by segments that are sealed for a merge
	leaveEighth = 8  // by outputs of merges
	leaveOpen   = 16 // by Open, which comes before all of them in the next process
	leaveNone   = 0  // by the edits of the manifest that let segments go
)

// reserveFor is how long the reserve of a log should be: a quarter of it up to 1 MiB, a 64th of it beyond 64 MiB, and no more than a segment, which
// is what a merge can need.
func reserveFor(o *Options, log int64) int64 {
	switch {
	case o.Reserve < 0:
		return 0
	case o.Reserve > 0:
		return max(o.Reserve, reserveHeader)
	}
	n := max(log/64, min(log/4, 1<<20))
	return min(n, max(o.SegmentSize, reserveUnit)) / reserveUnit * reserveUnit
}

func (r *reserve) init(s *Store) {
	r.s, r.lack = s, make(chan struct{}, 1)
}

func (r *reserve) path() string { return filepath.Join(r.s.dir, ReserveName) }

// open looks at what there is of a reserve, with the lock of the directory held. A file that is not whole was drawn on by the
// process before: the disk may be full still.
func (r *reserve) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.s.opts.FS.Open(r.path(), vfs.ReadOnly)
	if failure.IsNotExist(err) {
		return // it is made when it is due
	}
	var size int64
	head := make([]byte, reserveHeader)
	if err == nil {
		if size, err = f.Size(); err == nil && size >= reserveHeader {
			_, err = f.ReadAt(head, 0)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.s.opts.Logger.Warn("reserve not read", "file", ReserveName, "err", err)
		return
	}
	r.size.Store(size)
	r.want = size
	if string(head[:8]) == reserveMagic {
		r.want = int64(min(binary.LittleEndian.Uint64(head[8:]), uint64(max(r.s.opts.SegmentSize, r.s.opts.Reserve, size))))
	}
	if size < r.want {
		r.setLocked(reserveShort, ErrNoSpace)
	}
}

// begin makes the reserve of a store that has none, or tries to make one whole, before anybody writes. A long one grows in the background.
func (r *reserve) begin() {
	if r.due() <= reservePiece || r.full() {
		r.adjust()
	}
}

// full reports whether the disk was full when it was looked at last.
func (r *reserve) full() bool { return r != nil && r.state.Load() != 0 }

// setLocked notes that the disk is full, once.
func (r *reserve) setLocked(bit uint32, cause error) {
	was := r.state.Load()
	r.state.Store(was | bit)
	r.cause = cause
	if was == 0 {
		r.s.opts.Logger.Warn("disk full: writes that need space are refused", "cause", cause)
	}
	select {
	case r.lack <- struct{}{}:
	default:
	}
}

func (r *reserve) clearLocked(bit uint32) {
	was := r.state.Load()
	r.state.Store(was &^ bit)
	if was != 0 && was&^bit == 0 {
		r.s.opts.Logger.Info("space again: writes go on")
		r.s.wakeHinter()
	}
}

// noteLack notes that a write has met a full disk.
func (r *reserve) noteLack(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(reserveLack, cause)
}

// noteSpace notes that a write has been made.
func (r *reserve) noteSpace() {
	if r.state.Load()&reserveLack == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearLocked(reserveLack)
}

// release gives up a piece of the reserve, but for the part that is left to others, for a caller whose write has met a full disk. seen is what drawn was
// before that write: if others have given up something since, that may do. It reports whether to try again.
func (r *reserve) release(seen uint64, leave int64, cause error) bool {
	if errors.Is(cause, failure.ErrFileLimit) {
		return false // no other file's space is of use
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drawn.Load() != seen {
		return true
	}
	size, floor := r.size.Load(), int64(0)
	if leave > 0 {
		floor = r.want / leave
	}
	to := max(size-max(r.want/reserveParts, reservePage), floor) / reservePage * reservePage
	to = max(to, floor, min(size, reserveHeader))
	if to >= size {
		return false
	}
	r.setLocked(reserveShort, cause)
	if err := r.truncate(to); err != nil {
		if !failure.IsNotExist(err) {
			r.s.opts.Logger.Error("reserve not released", "file", ReserveName, "err", err)
			return false
		}
		to = 0
	}
	r.size.Store(to)
	r.drawn.Add(1)
	return true
}

// truncate makes the file shorter. It is synced because some file systems give space back only then.
func (r *reserve) truncate(to int64) error {
	f, err := r.s.opts.FS.Open(r.path(), vfs.ReadWrite)
	if err != nil {
		return err
	}
	if err = f.Truncate(to); err == nil {
		if serr := f.Sync(); serr != nil { // what was in it matters to nobody
			r.s.opts.Logger.Warn("reserve not synced", "file", ReserveName, "err", serr)
		}
	}
	return errors.Join(err, f.Close())
}

// seen is what release is to be told.
func (r *reserve) seen() uint64 {
	if r == nil {
		return 0
	}
	return r.drawn.Load()
}

// with runs something that frees space, again and again while it meets a full disk and there is something left of the reserve. What
// fails must have changed nothing.
func (r *reserve) with(leave int64, fn func() error) error {
	for {
		if r == nil {
			return fn()
		}
		seen := r.drawn.Load()
		err := fn()
		if err == nil || !NoSpace(err) || !r.release(seen, leave, err) {
			return err
		}
	}
}

// spend gives up a piece of the reserve for a merge whose write has met a full disk. It is not filled up again before the merge ends.
func (r *reserve) spend(seen uint64, cause error) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	r.held = true
	r.mu.Unlock()
	return r.release(seen, leaveEighth, cause)
}

// refill makes the reserve whole again, so that writes may go on, and reports whether it is. It is tried for a small part of the
// time only: whoever finds the disk full asks for it.
func (r *reserve) refill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Load()&reserveShort == 0 {
		return true
	}
	begin := time.Now()
	if r.held || begin.Before(r.next) {
		return false
	}
	const part = 20
	if want := min(r.want, r.due()); r.size.Load() < want {
		if err := r.extendLocked(want); err != nil {
			if !NoSpace(err) {
				r.s.opts.Logger.Warn("reserve not filled up", "file", ReserveName, "err", err)
			}
			now := time.Now()
			r.next = now.Add(min(max(part*now.Sub(begin), time.Millisecond), time.Second))
			return false
		}
	}
	r.clearLocked(reserveShort | reserveLack)
	return true
}

// figures returns how long the reserve is, and how long it should be.
func (r *reserve) figures() (size, due int64) {
	return r.size.Load(), r.due()
}

// freed notes that a merge has ended, which may have given space back.
func (r *reserve) freed(removed bool) {
	r.mu.Lock()
	r.held, r.next = false, time.Time{}
	short := r.state.Load()&reserveShort != 0
	if removed && !short {
		r.clearLocked(reserveLack)
	}
	r.mu.Unlock()
	if short {
		r.refill()
	}
}

// due is how long the reserve should be now.
func (r *reserve) due() int64 {
	var log int64
	for _, sg := range r.s.segments.Load().all() {
		log += sg.size.Load()
	}
	return reserveFor(&r.s.opts, log)
}

// extendLocked makes the file so long. What has been written stays when it fails: it may be all that can be had.
func (r *reserve) extendLocked(to int64) (err error) {
	f, err := r.s.opts.FS.Open(r.path(), vfs.ReadWrite)
	if failure.IsNotExist(err) {
		r.size.Store(0)
		f, err = r.s.opts.FS.Open(r.path(), vfs.Create)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	r.size.Store(size)
	if r.filler == nil {
		id := r.s.StoreID()
		r.filler = make([]byte, reservePiece)
		var seed [32]byte
		copy(seed[:], id[:])
		if _, err := rand.NewChaCha8(seed).Read(r.filler); err != nil {
			return err
		}
		defer func() { r.filler = nil }()
	}
	for at := size; at < to; {
		piece := r.filler[:min(to-at, reservePiece)]
		binary.LittleEndian.PutUint64(r.filler, uint64(at)) // no two pieces are the same
		n, err := f.WriteAt(piece, at)
		at += int64(n)
		r.size.Store(max(at, size))
		if err != nil {
			return fmt.Errorf("%s: writing at %d: %w", ReserveName, at, err)
		}
	}
	head := binary.LittleEndian.AppendUint64([]byte(reserveMagic), uint64(to))
	if _, err := f.WriteAt(head[:min(len(head), int(to))], 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", ReserveName, err)
	}
	r.size.Store(max(size, to))
	r.want = max(size, to)
	return nil
}

// adjust makes the reserve as long as it should be, some at a time: longer as the log grows, shorter when that has become much shorter.
func (r *reserve) adjust() {
	if r.full() {
		if r.again.Due() && !r.refill() {
			r.again.Failed(reserveEvery, fillEvery, ErrNoSpace)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again.Worked()
	due, size := r.due(), r.size.Load()
	switch {
	case r.held || size == due:
	case size > 2*due && r.grow.Due():
		r.changedLocked(r.shortenLocked(due))
	case size < due && r.grow.Due():
		r.changedLocked(r.extendLocked(min(due, size+max(reservePiece, due/64))))
		r.want = max(r.want, r.size.Load())
	}
}

// fillEvery is how often it is tried at least to fill the reserve up while nobody writes.
const fillEvery = 5 * time.Second

// changedLocked notes the outcome of adjust: what failed is tried again later.
func (r *reserve) changedLocked(err error) {
	if err == nil {
		r.grow.Worked()
	} else if r.grow.Failed(time.Second, time.Minute, err) {
		r.s.opts.Logger.Warn("reserve for a full disk not made", "file", ReserveName, "err", err)
	}
}

// shortenLocked makes the file so long, which is less than it is.
func (r *reserve) shortenLocked(to int64) error {
	var err error
	if to > 0 {
		err = r.truncate(to)
	} else {
		err = r.s.opts.FS.Remove(r.path())
	}
	if err != nil && !failure.IsNotExist(err) {
		return err
	}
	r.size.Store(to)
	r.want = to
	if err != nil || to == 0 {
		return nil
	}
	return r.extendLocked(to) // which notes how long it is
}

// reserveEvery is how often it is looked whether the reserve is as it should be.
const reserveEvery = 100 * time.Millisecond

// Full reports whether the last write that needed space did not get it, or what deletes and merges have taken of the reserve has not
// come back. Writes go on by themselves once there is space.
func (s *Store) Full() bool { return s.reserve.full() }

// Lacking gets a value when a write meets a full disk: whoever can free space may begin.
func (s *Store) Lacking() <-chan struct{} { return s.reserve.lack }

// Spare is how many bytes of the reserve a merge can count on.
func (s *Store) Spare() int64 { return s.reserve.size.Load() }
