package merge

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/bitcask"
)

// Merging on a full disk: in small steps, each of which gives back more than it takes, those first that take nothing.

// frugalRatio is the share of dead bytes from which a segment is worth it that nobody has asked for.
const frugalRatio = 0.2

// frugal plans one step of a merge on a full disk: all segments that hold nothing live, which take no space; else those with the least
// that is live, as many as fit the room in bytes, and at least one. All takes whatever has a dead byte.
func (p Policy) frugal(segments []bitcask.SegmentInfo, room int64, all bool) Plan {
	plan := Plan{Choices: make([]Choice, 0, len(segments))}
	var worth []*Choice
	for _, sg := range segments {
		plan.Choices = append(plan.Choices, Choice{SegmentInfo: sg})
		c := &plan.Choices[len(plan.Choices)-1]
		switch {
		case !sg.Sealed:
			c.Reason = "active"
		case sg.LiveBytes >= sg.Bytes || !all && deadRatio(sg) < frugalRatio:
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

// frugal merges on a full disk, step by step, until there is nothing left to be had or, unless everything is asked for, the disk is not
// full any more. failed is why merging as usual has failed, if it has. A step that gives nothing back is not the last: tombstones are
// no garbage before what they hide is gone.
func (r *running) frugal(failed error) error {
	room := max(r.store.Spare(), 1)
	var hopeless []uint32 // alone they take more than there is
	for step, most := 0, stepsPerSegment*(len(r.store.Segments())+1); step < most; step++ {
		if !r.o.All && failed == nil && !r.store.Full() {
			return nil
		}
		r.sealActive()
		segments := slices.DeleteFunc(r.segments(r.byTick), func(sg bitcask.SegmentInfo) bool { return slices.Contains(hopeless, sg.ID) })
		plan := r.policy.frugal(segments, room, r.o.All)
		ids := plan.IDs()
		if len(ids) == 0 {
			return failed
		}
		failed = r.rewrite(ids)
		switch {
		case failed == nil:
			room, hopeless = max(r.store.Spare(), 1), nil
		case bitcask.NoSpace(failed) && len(ids) > 1:
			room = 0 // less at a time
		case bitcask.NoSpace(failed):
			hopeless = append(hopeless, ids...)
		default:
			return failed
		}
	}
	return failed
}

// stepsPerSegment bounds a merge on a full disk: each step takes a segment out, and puts one in that nothing is to be had of.
const stepsPerSegment = 4

// sealActive makes the active segment one that can be merged if most of it is dead.
func (r *running) sealActive() {
	if slices.ContainsFunc(r.segments(r.byTick), r.wasted) {
		if err := r.store.Rotate(); err != nil {
			r.logger.Debug("active segment not sealed", "err", err) // what else there is may do
		}
	}
}

// wasted reports whether a segment is the active one, and a trigger if it were not.
func (m *Merger) wasted(sg bitcask.SegmentInfo) bool {
	return !sg.Sealed && sg.Records > 0 && deadRatio(sg) >= m.policy.withDefaults(m.store.SegmentSize()).TriggerRatio
}
