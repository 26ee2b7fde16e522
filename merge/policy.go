package merge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask"
)

// Policy decides when to merge and what. The zero value works.
type Policy struct {
	// TriggerRatio starts a merge when a segment's dead bytes reach this share
	// of it. Default: 0.6.
	TriggerRatio float64
	// TriggerBytes starts a merge when a segment has this many dead bytes.
	// Default: 512 MiB.
	TriggerBytes int64
	// IncludeRatio includes a segment with this share of dead bytes in a merge.
	// Default: 0.4.
	IncludeRatio float64
	// IncludeBytes includes a segment with this many dead bytes in a merge.
	// Default: 128 MiB.
	IncludeBytes int64
	// SmallBytes includes a segment shorter than this in a merge. Default:
	// 1/16 of the segment size given to Pick.
	SmallBytes int64
	// SmallCount starts a merge when there are this many short segments.
	// Default: 8.
	SmallCount int
	// BytesPerSecond limits how many bytes a merge reads and writes in a second. Four
	// times the growth of the log during the merge is added, so that a merge keeps up with any
	// writer. Default: 64 MiB. Negative: no limit.
	BytesPerSecond int64
}

// Check fails with bitcask.ErrOption if no merger can have the policy. The error names the field. Every BytesPerSecond
// has a meaning.
func (p Policy) Check() error {
	for _, ratio := range []struct {
		field string
		value float64
	}{{"TriggerRatio", p.TriggerRatio}, {"IncludeRatio", p.IncludeRatio}} {
		if !(ratio.value >= 0 && ratio.value <= 1) { // NaN is neither
			return fmt.Errorf("%w: Policy.%s is %v, want a share of at most 1, or 0 for the default", bitcask.ErrOption, ratio.field, ratio.value)
		}
	}
	for _, number := range []struct {
		field string
		value int64
	}{{"TriggerBytes", p.TriggerBytes}, {"IncludeBytes", p.IncludeBytes}, {"SmallBytes", p.SmallBytes}, {"SmallCount", int64(p.SmallCount)}} {
		if number.value < 0 {
			return fmt.Errorf("%w: Policy.%s is %d, want a positive number, or 0 for the default", bitcask.ErrOption, number.field, number.value)
		}
	}
	return nil
}

// withDefaults returns the policy with its unset fields set.
func (p Policy) withDefaults(segmentSize int64) Policy {
	set := func(v *float64, d float64) {
		if *v <= 0 {
			*v = d
		}
	}
	setInt := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&p.TriggerRatio, 0.6)
	set(&p.IncludeRatio, 0.4)
	setInt(&p.TriggerBytes, 512<<20)
	setInt(&p.IncludeBytes, 128<<20)
	setInt(&p.SmallBytes, segmentSize/16)
	if p.SmallCount <= 0 {
		p.SmallCount = 8
	}
	if p.BytesPerSecond == 0 {
		p.BytesPerSecond = 64 << 20
	}
	return p
}

// Choice is one segment, with the reason why a plan takes it or not.
type Choice struct {
	bitcask.SegmentInfo
	Taken  bool   `json:"taken"`
	Reason string `json:"reason"`
}

// Plan is what a merge would do.
type Plan struct {
	Choices   []Choice `json:"choices"`
	Triggered bool     `json:"triggered"`
	Reads     int64    `json:"reads"`    // bytes
	Writes    int64    `json:"writes"`   // bytes, estimated
	Reclaims  int64    `json:"reclaims"` // bytes, estimated
}

// IDs returns the segments that the plan takes.
func (p *Plan) IDs() []uint32 {
	var ids []uint32
	for _, c := range p.Choices {
		if c.Taken {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Pick makes a plan. It is pure: the same segments give the same plan. If all is
// set, it takes every sealed segment. Otherwise the estimated output stays within
// one segment, so that a merge needs at most that much spare space.
func (p Policy) Pick(segments []bitcask.SegmentInfo, segmentSize int64, all bool) Plan {
	p = p.withDefaults(segmentSize)
	var plan Plan
	small := 0
	for _, sg := range segments {
		c := Choice{SegmentInfo: sg}
		c.Taken, c.Reason = p.include(sg, all)
		if p.triggers(sg) {
			plan.Triggered = true
		}
		if sg.Sealed && sg.Bytes < p.SmallBytes {
			small++
		}
		plan.Choices = append(plan.Choices, c)
	}
	if all || small >= p.SmallCount {
		plan.Triggered = true
	}
	if !all {
		plan.fitOutput(segmentSize)
	}
	for _, c := range plan.Choices {
		if c.Taken {
			plan.Reads += c.Bytes
			plan.Writes += c.LiveBytes
		}
	}
	plan.Reclaims = max(plan.Reads-plan.Writes, 0)
	return plan
}

// deadRatio returns the share of a segment's bytes that are dead.
func deadRatio(sg bitcask.SegmentInfo) float64 {
	if sg.Bytes == 0 {
		return 0
	}
	return float64(sg.Bytes-sg.LiveBytes) / float64(sg.Bytes)
}

func (p Policy) triggers(sg bitcask.SegmentInfo) bool {
	return sg.Sealed && (deadRatio(sg) >= p.TriggerRatio || sg.Bytes-sg.LiveBytes >= p.TriggerBytes)
}

// include reports whether a merge takes a segment, and why.
func (p Policy) include(sg bitcask.SegmentInfo, all bool) (bool, string) {
	dead := sg.Bytes - sg.LiveBytes
	switch {
	case !sg.Sealed:
		return false, "active"
	case all:
		return true, "all asked for"
	case sg.LiveBytes == 0:
		return true, "nothing live"
	case deadRatio(sg) >= p.IncludeRatio:
		return true, fmt.Sprintf("%.0f %% dead", deadRatio(sg)*100)
	case dead >= p.IncludeBytes:
		return true, fmt.Sprintf("%d MiB dead", dead>>20)
	case sg.Bytes < p.SmallBytes:
		return true, "small"
	}
	return false, fmt.Sprintf("%.0f %% dead", deadRatio(sg)*100)
}

// fitOutput leaves out the taken segments with the greatest share of live bytes until
// the output fits one segment. Those stay that release the most for the least writing.
func (p *Plan) fitOutput(segmentSize int64) {
	var taken []*Choice
	for i := range p.Choices {
		if p.Choices[i].Taken {
			taken = append(taken, &p.Choices[i])
		}
	}
	slices.SortStableFunc(taken, func(a, b *Choice) int {
		return cmp.Compare(float64(a.LiveBytes)/float64(max(a.Bytes, 1)), float64(b.LiveBytes)/float64(max(b.Bytes, 1)))
	})
	var live int64
	for i, c := range taken {
		if live += c.LiveBytes; live > segmentSize && i > 0 {
			live -= c.LiveBytes
			c.Taken, c.Reason = false, c.Reason+", next time: the output is full"
		}
	}
}
