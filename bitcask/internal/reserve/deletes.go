package reserve

import (
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// Deletes on a full disk that are faster than the merges that free it. What deletes may have of the reserve is used up
// then, and a delete waits, before it takes any lock, until a merge has given something back: Prepare has made the
// reserve long enough for that to happen (sizes.go).

// roomForDeletes is guarded by the lock of the reserve.
type roomForDeletes struct {
	mergers  int           // that merge when space is lacking
	tried    uint64        // how often one of them has done what it could
	hopeless int64         // how long the reserve was when that did not help; -1: it has helped
	given    chan struct{} // closed when it is to be looked again; nil: nobody waits
}

const (
	// oneDelete is room for a delete of an element that is as long as elements may be, of a key that is as long as keys may be: its
	// tombstone has both names, and the record of the new count the key's.
	oneDelete = 208 << 10
	// longestStep is how long a delete waits for one step of a merge.
	longestStep = 10 * time.Second
)

func (d *roomForDeletes) wakeLocked() {
	if d.given != nil {
		close(d.given)
		d.given = nil
	}
}

// Prepare makes the reserve as long as it should be once the log has grown by a commit of so many bytes in a segment of its own, unless so
// much of the disk is left that it can be made alongside. A full disk shows here, and not when there is no space left for the reserve. It is
// called before the log gets another segment, with 0, and before a commit that is longer than a segment;
// Appended is to be called when that has been appended, or has failed.
func (r *Reserve) Prepare(commit int64) error {
	r.coming.Add(commit)
	low := r.low.Load() || commit > 0
	if due := r.dueWith(commit); !low || r.free.Load()-commit > prepareParts*due || r.bytesHeld.Load() >= due || r.Short() {
		return nil
	}
	if r.free.Load() > 0 {
		r.low.Store(true) // it is when the commit has been appended, and else Adjust would shorten what is made for that
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.dueWith(commit)
	if r.held || r.bytesHeld.Load() >= due || r.state.Load()&stateShort != 0 {
		return nil
	}
	err := r.extendLocked(due)
	if failure.NoSpace(err) {
		r.want = max(r.want, due)
		r.setLocked(stateShort, err)
		return failure.NewRetryable(err)
	}
	r.changedLocked(err) // the log goes on without it
	return nil
}

// Appended ends Prepare for a commit.
func (r *Reserve) Appended(commit int64) { r.coming.Add(-commit) }

// Spares reports whether a disk that has just been measured has room for a file of so many bytes that only saves time: on a
// low disk Prepare must find enough for the reserve afterwards.
func (r *Reserve) Spares(n int64) bool {
	return !r.low.Load() || r.free.Load()-n > prepareParts*r.due()
}

// Attend notes that somebody merges whenever space is lacking, and calls Tried.
func (r *Reserve) Attend() { r.attend(1) }

// Leave ends Attend.
func (r *Reserve) Leave() { r.attend(-1) }

func (r *Reserve) attend(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room.mergers += n
	r.room.wakeLocked()
}

// Tried notes that merges have done what they could for now.
func (r *Reserve) Tried() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room.tried++
	r.room.wakeLocked()
}

// Turn is held by a commit that draws on the reserve and by a write of an output while the disk is full, so that neither
// takes what was released for the other. release ends the turn.
func (r *Reserve) Turn() (release func()) {
	if !r.Full() {
		return func() {}
	}
	r.turn.Lock()
	return r.turn.Unlock
}

// LeaveByDeletes is what a commit that deletes leaves to others. If a merge has begun to draw on the reserve since the
// commit awaited room, the merge comes second: what it has drawn comes back when it fails.
func (r *Reserve) LeaveByDeletes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return LeaveEighth
	}
	return LeaveHalf
}

// Tight reports whether deletes have used up nearly all that they may have.
func (r *Reserve) Tight() bool {
	if !r.Short() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tightLocked()
}

func (r *Reserve) tightLocked() bool {
	left := r.bytesHeld.Load() - r.want/LeaveHalf
	return r.state.Load()&stateShort != 0 && left < min(max(r.want/parts, oneDelete), r.want/4)
}

// Waits reports whether AwaitRoom would wait.
func (r *Reserve) Waits() bool {
	if !r.Short() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waitsLocked()
}

func (r *Reserve) waitsLocked() bool {
	return r.room.mergers > 0 && r.tightLocked() && r.bytesHeld.Load() != r.room.hopeless
}

// AwaitRoom waits until deletes have room in the reserve, if they have next to none and somebody merges to give them
// some. It gives up when merges have done what they could, and then does not wait again before something has changed.
// The caller holds no lock that a merge takes.
func (r *Reserve) AwaitRoom(stop <-chan struct{}) {
	if !r.Waits() {
		return
	}
	r.Refill() // there may be space by now
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := r.room.tried
	for r.waitsLocked() {
		if r.room.tried > begun+1 { // the first may have begun before what is dead by now
			r.room.hopeless = r.bytesHeld.Load()
			return
		}
		if !r.awaitLocked(stop) {
			return
		}
	}
}

// awaitLocked waits for one step of a merge, and reports whether to go on.
func (r *Reserve) awaitLocked(stop <-chan struct{}) bool {
	if r.room.given == nil {
		r.room.given = make(chan struct{})
	}
	given := r.room.given
	select {
	case r.lack <- struct{}{}:
	default:
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	longest := time.NewTimer(longestStep)
	defer longest.Stop()
	select {
	case <-given:
		return true
	case <-stop:
	case <-longest.C:
	}
	return false
}
