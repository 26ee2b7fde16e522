package merge

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/bitcask"
)

// Merging in a store whose directory has a bound (bitcask.Store.SetBound): when it comes near to that a merge takes what has
// the most dead bytes, however few these are, and as fast as it can. Live data take up to half of the bound, so there are enough.
//
// Tombstones go only when nothing is left that they may hide (I6), and a segment in which nothing ever dies, such as one of keys that
// a cache keeps for long, would keep all tombstones that are younger. So when they take too much, every other merge
// takes the segments that hold them back, the oldest first, though nothing in them is dead: a copy holds back only what is
// deleted later (segment.Segment.Clean).

const (
	boundedRatio  = 1.0 / 8  // of a segment is dead, for a merge to begin with it, or to take it
	boundedHiding = 1.0 / 16 // of the bound may be taken by tombstones
)

// pickBounded plans a merge near the bound of the directory, in turns of segments that give something back and of
// those that hold tombstones back.
func (p Policy) pickBounded(segments []bitcask.SegmentInfo, segmentSize, bound int64, refresh bool) Plan {
	var hiding int64
	for _, sg := range segments {
		hiding += sg.Hiding
	}
	if refresh && float64(hiding) > boundedHiding*float64(bound) {
		return p.pickOldest(segments, segmentSize)
	}
	p = p.withDefaults(segmentSize)
	p.TriggerRatio, p.IncludeRatio = min(p.TriggerRatio, boundedRatio), min(p.IncludeRatio, boundedRatio)
	return p.Pick(segments, segmentSize, false)
}

// pickOldest plans a merge of the segments that hold back the most tombstones, as many as fit one output.
func (p Policy) pickOldest(segments []bitcask.SegmentInfo, segmentSize int64) Plan {
	plan := Plan{Choices: make([]Choice, 0, len(segments)), Triggered: true}
	var order []*Choice
	for _, sg := range segments {
		plan.Choices = append(plan.Choices, Choice{SegmentInfo: sg, Reason: "active"})
		if c := &plan.Choices[len(plan.Choices)-1]; sg.Sealed {
			c.Reason = "it holds back few tombstones"
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b *Choice) int { return cmp.Compare(a.Hidable, b.Hidable) })
	for i, c := range order {
		if plan.Writes += c.LiveBytes; plan.Writes > segmentSize && i > 0 {
			plan.Writes -= c.LiveBytes
			break
		}
		c.Taken, c.Reason = true, "it holds tombstones back"
		plan.Reads += c.Bytes
	}
	plan.Reclaims = max(plan.Reads-plan.Writes, 0)
	return plan
}
