package replay

import (
	"errors"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// The end of the log at Open: the unsealed segments, of which at most two hold
// frames (commitlog/rotate.go).

// judge decides, where reading an unsealed segment has ended at fr.Pos, between its three
// states: clean, a torn tail (to be truncated there), or damage, which is an error (I7).
//
// A bad frame is a torn tail only if nothing proves that its bytes were ever on disk (not the
// manifest of the last close or pause, no later valid frame, no later segment), and if a crash can
// have left it as it is: NotTorn.
func (env *Environment) judge(fr *segment.Frames, bad *segment.BadFrame) error {
	sg, end := fr.Segment, fr.Pos
	at, reason := end, "file ends"
	if bad != nil {
		at, reason = bad.At, bad.Reason
	}
	reach := end
	if fr.HasFooter {
		reach -= format.FooterSize // of another copy of this segment, perhaps, which was sealed sooner
	}
	if reach < env.Manifest.ClosedUpTo(sg.ID) {
		return &failure.CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before the end of the last clean close"}
	}
	if sg.Damaged && bad != nil {
		return &failure.CorruptError{File: sg.Name, Offset: at, Reason: reason + ", in a file whose header is damaged too"}
	}
	sg.FramesEnd, sg.HasFooter, sg.DurableTo = end, fr.HasFooter, max(fr.Synced, fr.From)
	sg.DurableTo = max(sg.DurableTo, env.Manifest.ClosedUpTo(sg.ID))
	sg.Chain = fr.Chain
	sg.Footer = format.Footer{}
	if fr.Records > 0 {
		sg.Footer = format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq, Time: fr.Foot.Time, Nonce: fr.Foot.Nonce}
	}
	whole, err := env.judgeNext(sg, at, reason)
	if err != nil || whole || bad == nil {
		return err // after a segment that is otherwise complete stands a torn footer
	}
	why, err := fr.NotTorn(env.Manifest.NothingLost())
	if why != "" {
		err = &failure.CorruptError{File: sg.Name, Offset: at, Reason: reason + ", " + why}
	} else if bad := (*segment.BadFrame)(nil); errors.As(err, &bad) {
		err = &failure.CorruptError{File: sg.Name, Offset: bad.At, Reason: bad.Reason} // it has become shorter in the meantime
	}
	return err
}

// judgeNext examines the segments after sg. Either they continue where sg ends, so that it is
// whole, or sg is incomplete: then nothing of theirs was ever synced, or sg was.
func (env *Environment) judgeNext(sg *segment.Segment, at int64, reason string) (whole bool, err error) {
	later := env.Tail[slices.Index(env.Tail, sg)+1:]
	if len(later) == 0 {
		return false, nil
	}
	next := later[0]
	_, h, _, err := segment.NewFrames(next).NextFrame()
	if bad := (*segment.BadFrame)(nil); err == io.EOF || errors.As(err, &bad) {
		return false, nil // nothing that could be judged before next is read itself
	}
	if err != nil {
		return false, err
	}
	if sg.Footer.Records > 0 && h.Seq == sg.Footer.MaxSeq+1 {
		return true, nil
	}
	for _, next := range later {
		synced, err := env.syncedIn(next)
		if err != nil {
			return false, err
		}
		if synced > format.SegmentHeaderSize || sg.HasFooter {
			return false, &failure.CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before " + next.Name + ", which was written once this was on disk"}
		}
	}
	if env.Manifest.NothingLost() {
		return false, &failure.CorruptError{File: sg.Name, Offset: at, Reason: reason + ", before " + next.Name + ", which was written after it"}
	}
	for _, next := range later {
		next.Dropped, next.FramesEnd, next.Footer = true, format.SegmentHeaderSize, format.Footer{}
	}
	return false, nil
}

// syncedIn is the highest offset of a segment that is known to have been on
// disk.
func (env *Environment) syncedIn(sg *segment.Segment) (int64, error) {
	if env.Manifest.ClosedID == sg.ID {
		return int64(env.Manifest.ClosedLen), nil
	}
	return segment.NewFrames(sg).LastSynced()
}
