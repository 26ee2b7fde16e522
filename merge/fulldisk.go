package merge

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/bitcask"
)

// Merging on a full disk: in small steps, each of which releases more than it writes, first those that write nothing.

// fullDiskRatio is the least share of dead bytes of a segment that a merge in the background takes.
const fullDiskRatio = 0.2

// pickFullDisk plans one step of a merge on a full disk: all segments without live bytes, which need no space; else
// those with the fewest live bytes, as many as fit the room in bytes, and at least one. If all is set, it takes any
// segment with a dead byte.
func (p Policy) pickFullDisk(segments []bitcask.SegmentInfo, room int64, all bool) Plan {
	plan := Plan{Choices: make([]Choice, 0, len(segments))}
	var worth []*Choice
	for _, sg := range segments {
		plan.Choices = append(plan.Choices, Choice{SegmentInfo: sg})
		c := &plan.Choices[len(plan.Choices)-1]
		switch {
		case !sg.Sealed:
			c.Reason = "active"
		case sg.LiveBytes >= sg.Bytes || !all && deadRatio(sg) < fullDiskRatio:
			c.Reason = "the disk is full, and it gives too little"
		default:
			c.Reason = "the disk is full: another step"
			worth = append(worth, c)
		}
	}
	slices.SortStableFunc(worth, func(a, b *Choice) int { return cmp.Compare(a.LiveBytes, b.LiveBytes) })
	for i, c := range worth {
		if i > 0 && (room <= 0 || c.LiveBytes > 0 && (plan.Writes+c.LiveBytes > room || worth[0].LiveBytes == 0)) {
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

// mergeFullDisk merges on a full disk, step by step, until no segment is worth it or, unless all are asked for, the
// disk is no longer full. failed is the error of the usual merge, if there was one. A step that releases nothing is not
// the last one, because tombstones become garbage only when the records that they hide are gone.
func (r *activeMerge) mergeFullDisk(failed error) error {
	room := max(r.store.Spare(), 1)
	var tooBig []uint32 // segments that alone need more space than there is
	for step, most := 0, stepsPerSegment*(len(r.store.Segments())+1); step < most; step++ {
		if !r.o.All && failed == nil && !r.store.Full() {
			return nil
		}
		r.sealActive()
		segments := slices.DeleteFunc(r.segments(r.background), func(sg bitcask.SegmentInfo) bool { return slices.Contains(tooBig, sg.ID) })
		plan := r.policy.pickFullDisk(segments, room, r.o.All)
		ids := plan.IDs()
		if len(ids) == 0 {
			return failed
		}
		failed = r.rewrite(ids)
		switch {
		case failed == nil:
			room, tooBig = max(r.store.Spare(), 1), nil
		case bitcask.NoSpace(failed) && len(ids) > 1:
			room = 0 // less at a time
		case bitcask.NoSpace(failed):
			tooBig = append(tooBig, ids...)
		default:
			return failed
		}
	}
	return failed
}

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
