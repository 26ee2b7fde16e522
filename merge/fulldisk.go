package merge

import (
	"cmp"
	"math"
	"slices"

	"github.com/stavedb/stave/bitcask"
)

// Merging on a full disk: in small steps, each of which releases more than it writes, first those that write nothing.

// thoroughness says which segments a merge on a full disk takes.
type thoroughness int

const (
	worthwhile thoroughness = iota // those of which fullDiskRatio is dead
	anyDead                        // those with a dead byte
	anySealed                      // all: the counts of live bytes are up to an eighth too high, so all may have dead ones
)

// fullDiskRatio is the least share of dead bytes of a segment that a merge in the background takes.
const fullDiskRatio = 0.2

func (t thoroughness) takes(sg bitcask.SegmentInfo) bool {
	switch t {
	case worthwhile:
		return sg.LiveBytes < sg.Bytes && deadRatio(sg) >= fullDiskRatio
	case anyDead:
		return sg.LiveBytes < sg.Bytes
	}
	return true
}

// oneAlone is the room for a step that takes one segment.
const oneAlone = -1

// pickFullDisk plans one step of a merge on a full disk: all segments of which nothing has to be copied; else those with
// the least, as many as fit the room in bytes, and at least one. hidden is firstLive of all segments.
func (p Policy) pickFullDisk(segments []bitcask.SegmentInfo, room int64, hidden uint64, t thoroughness) Plan {
	plan := Plan{Choices: make([]Choice, 0, len(segments))}
	var worth []*Choice
	for _, sg := range segments {
		plan.Choices = append(plan.Choices, Choice{SegmentInfo: sg})
		c := &plan.Choices[len(plan.Choices)-1]
		switch {
		case !sg.Sealed:
			c.Reason = "active"
		case !t.takes(sg):
			c.Reason = "the disk is full, and it gives too little"
		default:
			c.Reason = "the disk is full: another step"
			worth = append(worth, c)
		}
	}
	slices.SortStableFunc(worth, func(a, b *Choice) int { return cmp.Compare(a.LiveBytes, b.LiveBytes) })
	copies := func(c *Choice) int64 {
		if c.LiveBytes == 0 && c.MaxSeq >= hidden {
			return c.Bytes // at most: tombstones, of which the counts of live bytes know nothing
		}
		return c.LiveBytes
	}
	var writes int64
	for i, c := range worth {
		writes += copies(c)
		if i > 0 && (room == oneAlone || copies(c) > 0 && (writes > room || copies(worth[0]) == 0)) {
			break
		}
		c.Taken, c.Reason = true, "the disk is full"
		plan.Reads += c.Bytes
		plan.Writes += c.LiveBytes
	}
	plan.Triggered = plan.Reads > 0
	plan.Reclaims = plan.Reads - plan.Writes
	return plan
}

// firstLive is the lowest sequence that a segment with live bytes may hold, or the active one: tombstones below hide
// nothing that stays.
func firstLive(segments []bitcask.SegmentInfo) uint64 {
	first := uint64(math.MaxUint64)
	for _, sg := range segments {
		if sg.Records > 0 && (sg.LiveBytes > 0 || !sg.Sealed) {
			first = min(first, sg.MinSeq)
		}
	}
	return first
}

// mergeFullDisk merges on a full disk, step by step, until no segment is worth it or, unless all are asked for, the
// disk is no longer full. failed is the error of the usual merge, if there was one. A step that releases nothing is not
// the last one, because tombstones become garbage only when the records that they hide are gone. If all are asked for,
// or deletes wait for space, it becomes more thorough when nothing else is left.
func (r *activeMerge) mergeFullDisk(failed error) error {
	room := r.roomForOutput()
	var tooBig []uint32 // segments that alone need more space than there is
	several := true     // until several have needed more than one output: the counts of live bytes know nothing of tombstones
	take := worthwhile
	for step, most := 0, stepsPerSegment*(len(r.store.Segments())+1); step < most; step++ {
		enough := !r.o.All && failed == nil && !r.store.Full() // but what has nothing live goes all the same
		if !r.o.All && failed == nil && take > worthwhile && !r.store.DeletesLackRoom() {
			return nil
		}
		r.sealActive()
		hidden := firstLive(r.store.Segments())
		segments := slices.DeleteFunc(r.segments(r.background), func(sg bitcask.SegmentInfo) bool {
			return slices.Contains(tooBig, sg.ID) || take > worthwhile && r.isCompact(sg) || enough && sg.LiveBytes > 0
		})
		plan := r.policy.pickFullDisk(segments, room, hidden, take)
		ids := plan.IDs()
		if len(ids) == 0 && !enough && take < anySealed && (r.o.All || r.store.DeletesLackRoom()) {
			take++
			continue
		}
		if len(ids) == 0 {
			return r.store.NoRoom(failed)
		}
		failed = r.rewrite(ids, true)
		r.noteCompact()
		switch {
		case failed == nil:
			if tooBig = nil; several {
				room = r.roomForOutput()
			}
		case bitcask.NoSpace(failed) && len(ids) > 1:
			several, room = false, oneAlone
		case bitcask.NoSpace(failed) && len(tooBig) < mostTooBig:
			tooBig = append(tooBig, ids...)
		default:
			return r.store.NoRoom(failed)
		}
	}
	return r.store.NoRoom(failed)
}

// roomForOutput is how long the output of a step can be for certain.
func (r *activeMerge) roomForOutput() int64 {
	return min(r.store.ReservedForMerges(), r.store.SegmentSize())
}

// noteCompact notes what the last rewrite has written: nothing in it is dead.
func (r *activeMerge) noteCompact() {
	compact := make(map[uint32]int64, len(r.compact)+len(r.outs))
	for _, sg := range r.store.Segments() {
		if live, known := r.compact[sg.ID]; known {
			compact[sg.ID] = live
		} else if slices.Contains(r.outs, sg.ID) {
			compact[sg.ID] = sg.LiveBytes
		}
	}
	r.compact = compact
}

// isCompact reports whether a merge has written a segment, and nothing in it has died since.
func (r *activeMerge) isCompact(sg bitcask.SegmentInfo) bool {
	live, known := r.compact[sg.ID]
	return known && sg.LiveBytes >= live
}

// mostTooBig is how many segments find no space before a merge gives up: they come in the order of what they need, by
// counts that are about right.
const mostTooBig = 3

// stepsPerSegment bounds a merge on a full disk: each step removes a segment, and adds one that has nothing to release.
const stepsPerSegment = 4

// sealActive seals the active segment, so that it can be merged, if most of it is dead.
func (r *activeMerge) sealActive() {
	if slices.ContainsFunc(r.segments(r.background), r.isDeadActive) {
		if err := r.store.Rotate(); err != nil {
			r.logger.Debug("active segment not sealed", "err", err) // merging others may suffice
		}
	}
}

// isDeadActive reports whether a segment is the active one and has enough dead bytes for a trigger.
func (m *Merger) isDeadActive(sg bitcask.SegmentInfo) bool {
	return !sg.Sealed && sg.Records > 0 && deadRatio(sg) >= m.policy.withDefaults(m.store.SegmentSize()).TriggerRatio
}
