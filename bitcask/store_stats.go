package bitcask

import (
	"math"
	"time"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Stats are the figures of the store at one moment.
type Stats struct {
	Segments   int    `json:"segments"`
	Bytes      int64  `json:"bytes"`       // of all segment files
	LiveBytes  int64  `json:"live_bytes"`  // an estimate
	IndexBytes int64  `json:"index_bytes"` // RAM of the keydir, estimated
	Keys       int    `json:"keys"`        // of all namespaces
	Deadlines  int    `json:"deadlines"`
	Sequence   uint64 `json:"sequence"`         // of the newest record
	Commits    uint64 `json:"commits"`          // since Open
	Written    int64  `json:"written"`          // bytes of these commits
	Syncs      uint64 `json:"syncs"`            // of the log, since Open
	Failed     string `json:"failed,omitempty"` // why writes are refused
	State      State  `json:"state"`
	Reserve    int64  `json:"reserve"`      // bytes kept for deletes and merges on a full disk
	ReserveDue int64  `json:"reserve_want"` // bytes that these should be

	SyncTimes SyncTimes `json:"-"`
}

// State says whether a store takes writes.
type State string

// The states of a store.
const (
	StateOK     State = "ok"
	StateFull   State = "full"   // the disk is; only what frees space is taken, and the rest again as soon as there is some
	StateFailed State = "failed" // a write or sync has failed: no write is taken before it is opened again
)

// Stats returns current figures. It locks nothing for long.
func (s *Store) Stats() Stats {
	var st Stats
	for _, info := range s.Segments() {
		st.Segments++
		st.Bytes += info.Bytes
		st.LiveBytes += info.LiveBytes
	}
	for _, sp := range s.spaces.Now.Load().ByID {
		st.Keys += sp.Dir.Len()
		st.Deadlines += sp.Dir.LenDeadlines()
		st.IndexBytes += sp.Dir.Bytes()
	}
	st.Reserve, st.ReserveDue = s.reserve.Figures()
	log := s.log.Stats()
	st.Sequence, st.Syncs, st.Commits, st.Written = log.Sequence, log.Syncs, log.Commits, log.Written
	st.SyncTimes = log.SyncTimes
	if st.State = StateOK; log.Failed != nil {
		st.State, st.Failed = StateFailed, log.Failed.Error()
	} else if s.Full() {
		st.State = StateFull
	}
	return st
}

// SyncTimes counts the syncs of the log by how long they took: Counts has those up to each of SyncBuckets, and the
// longer ones.
type SyncTimes = commitlog.SyncTimes

// SyncBuckets are the bounds of SyncTimes.
var SyncBuckets = commitlog.SyncBuckets

// IndexBytes is the memory of the index, estimated. O(1) a namespace.
func (s *Store) IndexBytes() (n int64) {
	for _, sp := range s.spaces.Now.Load().ByID {
		n += sp.Dir.Bytes()
	}
	return n
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

// logSize is the length of all segments, in bytes.
func (s *Store) logSize() (n int64) {
	for _, sg := range s.segments.Load().All() {
		n += sg.Size.Load()
	}
	return n
}

// StoreID identifies this store among all others; it never changes.
func (s *Store) StoreID() [16]byte { return s.man.Store }

// Sequence is the number of the newest record.
func (s *Store) Sequence() uint64 { return s.log.Stats().Sequence }

// Appended is the length in bytes of all commits since Open.
func (s *Store) Appended() int64 { return s.log.Stats().Written }

// Err is why the store refuses writes, or nil.
func (s *Store) Err() error { return s.log.Err() }

// SegmentSize is the length in bytes from which segments are sealed: that of the options, or less on a small disk.
func (s *Store) SegmentSize() int64 { return s.segmentSize.Load() }

// measureDisk decides how long segments are, by what the log can have of the disk.
func (s *Store) measureDisk() {
	free, ok := vfs.SpaceOf(s.opts.seam.FS, s.dir)
	if size := s.opts.SegmentSize; ok || s.bound.set.Load() > 0 {
		if ok {
			size = s.reserve.Measured(size, free)
		}
		if bound := s.bound.set.Load(); bound > 0 {
			size = boundedSegment(size, bound)
		}
		s.segmentSize.Store(size)
	}
}

// longestSegment is the length of the longest segment, without sealed ones of a single entry, which have nothing to be copied once that
// is dead.
func (s *Store) longestSegment() (n int64) {
	for _, sg := range s.segments.Load().All() {
		if !sg.Sealed() || sg.Footer.Records > recordsOfEntry {
			n = max(n, sg.Size.Load())
		}
	}
	return n
}

// recordsOfEntry is how many records an entry has at most: a list's first element has two that follow it.
const recordsOfEntry = 3

// Room is how many bytes a merge can write: what is left of the disk, if that is known, and of the reserve.
func (s *Store) Room() (bytes int64, known bool) {
	free, known := vfs.SpaceOf(s.opts.seam.FS, s.dir)
	held := s.reserve.Bytes()
	if s.opts.ReadOnly {
		held = reserve.Length(s.opts.seam.FS, s.dir)
	}
	return free + held, known
}

// NoRoom adds to the error of a delete or merge that has found no space how much is missing.
func (s *Store) NoRoom(err error) error {
	least := int64(math.MaxInt64)
	for _, sg := range s.segments.Load().All() {
		if sg.Sealed() {
			least = min(least, max(sg.LiveBytes.Load(), 0))
		}
	}
	if room, known := s.Room(); known && NoSpace(err) && least < math.MaxInt64 {
		return &NoRoomError{Live: least, Room: room, Err: err}
	}
	return err
}

// Attend says that the caller merges whenever Lacking gets a value, and calls Tried then, until Leave: deletes on a full
// disk, for which the reserve has no more room, wait for that.
func (s *Store) Attend() { s.reserve.Attend() }

// Leave ends Attend.
func (s *Store) Leave() { s.reserve.Leave() }

// Tried says that merges have done what they could for now: who waits for more space waits no longer.
func (s *Store) Tried() { s.reserve.Tried() }

// DeletesLackRoom reports whether deletes have used up nearly all that they may have of the reserve.
func (s *Store) DeletesLackRoom() bool { return s.reserve.Tight() }

// Full reports whether the last write that needed space failed for lack of it, or whether deletes and merges have drawn
// on a reserve that is not full again. Writes resume by themselves once there is space. If nothing was drawn from the
// reserve, only a write or a merge finds that out.
func (s *Store) Full() bool { return s.reserve.Full() }

// Lacking gets a value when a write meets a full disk: a sign to free space.
func (s *Store) Lacking() <-chan struct{} { return s.reserve.Lacks() }

// Spare is how many bytes of the reserve a merge can count on.
func (s *Store) Spare() int64 { return s.reserve.Bytes() }

// ReservedForMerges is how many bytes outputs of a merge can draw from the reserve for certain: copies may be longer than
// the records.
func (s *Store) ReservedForMerges() int64 { return s.reserve.ForOutputs() * 3 / 4 }

// ReserveName is the file that holds disk space for deletes and merges.
const ReserveName = reserve.FileName

// Inheritance says that a store is a copy of another one, and where they parted.
type Inheritance struct {
	Store   [16]byte // id of the other one
	Through uint64   // sequence of the last record that the two share; 0: unknown
}

// Inherited lists the stores that this one is a copy of, the first one first: its original is the last.
func (s *Store) Inherited() []Inheritance {
	s.man.mu.Lock()
	defer s.man.mu.Unlock()
	var list []Inheritance
	for _, in := range s.man.Origins {
		list = append(list, Inheritance{in.Store, in.Through})
	}
	return list
}

// SegmentInfo describes a segment, for planning a merge and for statistics.
type SegmentInfo struct {
	ID             uint32
	File           string // its name
	Bytes          int64  // length of the file
	LiveBytes      int64  // estimate of what a merge would keep
	Records        uint64
	MinSeq, MaxSeq uint64
	Hidable        uint64 // a tombstone below it hides nothing here
	Hiding         int64  // of LiveBytes: tombstones that a merge had to copy, and would have to again
	Sealed         bool
	Merged         bool // written by a merge
	// Time, of a sealed segment, is not before its last commit and not after the first one of a later segment, as the
	// machine's clock was then; zero if that is unknown.
	Time time.Time
}

// Segments lists the segments by id.
func (s *Store) Segments() []SegmentInfo {
	s.DrainDropped()
	var list []SegmentInfo
	var of []*segment.Segment
	first, second := uint64(math.MaxUint64), uint64(math.MaxUint64) // the two lowest of those at which tombstones hide something
	for _, sg := range s.segments.Load().All() {
		foot, sealed, listed := s.log.FootOf(sg)
		if !listed {
			continue
		}
		info := SegmentInfo{ID: sg.ID, File: sg.Name, Bytes: sg.Size.Load(), Merged: sg.Merged, Sealed: sealed}
		info.Records, info.MinSeq, info.MaxSeq = foot.Records, foot.MinSeq, foot.MaxSeq
		if sealed && foot.Time != 0 {
			info.Time = time.UnixMilli(foot.Time)
		}
		info.Hidable = sg.Hidable(info.MinSeq)
		list, of = append(list, info), append(of, sg)
		if lowest := info.Hidable; foot.Records > 0 && lowest < first {
			first, second = lowest, first
		} else if foot.Records > 0 {
			second = min(second, lowest)
		}
	}
	for i := range list {
		others := first
		if list[i].Hidable == first {
			others = second
		}
		list[i].LiveBytes, list[i].Hiding = of[i].Kept(others, list[i].Sealed)
	}
	return list
}
