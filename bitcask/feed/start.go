package feed

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Where a feed begins. What merges have written has no order of commits any more, so a feed reads the segments that
// commits were appended to, the originals. Their sequence numbers follow each other without a gap: going back from the
// unsealed segments, the one before has the number before. Where there is none a merge has taken it, and the feed
// cannot begin before.
//
// Which namespace a space belongs to is said by the newest record about that, which no merge drops. If it is not newer
// than the place where the feed begins, that is the answer. Otherwise the one before is searched in the originals, and
// if these do not reach back to it, or to the beginning of the log, the answer is lost.

// restart has the reader begin after f.last. The namespaces at that place are known, but for the first time.
func (f *Feed) restart(ctx context.Context, first bool) error {
	for begin := time.Now(); ; {
		if err := f.stop(); err != nil {
			return err
		}
		man, err := manifest.Read(f.src.Held, f.src.Dir, vfs.ReadOnly, nil)
		if err != nil {
			return err
		}
		if err := f.continues(man); err != nil {
			return errors.Join(err, man.Close())
		}
		f.begun = f.begun && first // the log may have been exchanged for one that ends before
		// A segment that the manifest has listed is gone when a merge has just removed it: then there is a newer
		// manifest.
		if err = f.begin(ctx, man, first); !failure.IsNotExist(err) || time.Since(begin) > followlog.Patience {
			return err
		}
		if err := pause(ctx, followlog.Soonest); err != nil {
			return err
		}
	}
}

// begin is restart with the manifest as it is by now.
func (f *Feed) begin(ctx context.Context, man *manifest.Manifest, first bool) error {
	nothing := func(*segment.Segment) error { return nil }
	f.r = &followlog.Reader{
		FS: f.src.Held, Dir: f.src.Dir, Manifest: man, Open: map[uint32]*segment.Segment{},
		Opened: nothing, Listed: func() error { return f.continues(f.r.Manifest) }, Footed: func(*segment.Segment, format.Footer) {},
	}
	chain, err := f.chainTo(f.last + 1)
	if err == nil {
		f.r.Next = chain.first
		err = f.r.OpenListed()
	}
	if err == nil && first && f.src.Spaces != nil {
		err = f.findSpaces(ctx, chain)
	}
	if err != nil {
		return errors.Join(err, f.stop())
	}
	return nil
}

// An originals is a place in the log to which the originals reach back.
type originals struct {
	at    *segment.Segment // nil: there is nothing yet
	first uint64           // sequence number of its first record, or of the one that is to come
}

// chainTo finds the original that has a sequence number, or in which it is to come.
func (f *Feed) chainTo(seq uint64) (c originals, err error) {
	c, err = f.unsealedWith(seq)
	for err == nil && c.first > seq {
		before := c
		if c, err = f.before(c); err == nil && c.at == nil {
			err = &MissingCommitsError{After: seq - 1, From: before.first - 1}
		}
	}
	return c, err
}

// unsealedWith is the unsealed segment that has a sequence number, or the first one.
func (f *Feed) unsealedWith(seq uint64) (c originals, err error) {
	c.first = f.r.Manifest.MaxSeq + 1
	for _, id := range f.r.Manifest.Tail {
		if f.r.Open[id] == nil {
			if err := f.r.OpenSegment(id, nil); err != nil {
				return c, err
			}
		}
		sg := f.r.Open[id]
		size, err := sg.File.Size()
		if err != nil {
			return c, err
		}
		h, err := f.r.HeaderAt(sg, format.SegmentHeaderSize, size)
		if err != nil {
			return c, err
		}
		if h == nil && f.r.Manifest.ClosedUpTo(sg.ID) > format.SegmentHeaderSize {
			return c, &failure.CorruptError{File: sg.Name, Offset: format.SegmentHeaderSize, Reason: "no commit, before the end of the last clean close or pause"}
		}
		if h == nil || h.Footer || c.at != nil && h.Seq > seq {
			continue
		}
		c = originals{sg, h.Seq}
	}
	return c, nil
}

// before is the original that ends where another begins. Its at is nil if there is none.
func (f *Feed) before(c originals) (originals, error) {
	for id, si := range f.r.Manifest.Sealed {
		if si.Records == 0 || si.MaxSeq != c.first-1 {
			continue
		}
		if f.r.Open[id] == nil {
			if err := f.r.OpenSegment(id, &si); err != nil {
				return originals{}, err
			}
		}
		if sg := f.r.Open[id]; !sg.Merged {
			return originals{sg, si.MinSeq}, nil
		}
	}
	return originals{first: c.first}, nil
}

// beginBeforeEnd begins so many commits before the end of the log, as far as that is known to be on the disk.
func (f *Feed) beginBeforeEnd(ctx context.Context, commits int) error {
	f.counting = true
	for f.last = format.MaxSequence - 1; ; {
		err := f.restart(ctx, false)
		if missing := (*MissingCommitsError)(nil); errors.As(err, &missing) {
			f.last = missing.From // all that there is
			break
		}
		if err != nil {
			return err
		}
		first := f.r.Next
		f.last, f.begun = first-1, true
		ring, err := f.firstOfLast(ctx, commits)
		if err != nil {
			return err
		}
		f.last = first - 1
		if len(ring) == commits {
			f.last = ring[0] - 1
		}
		if len(ring) == commits || first == 1 {
			break
		}
		f.last-- // in the segment before
	}
	f.counting = false
	return f.restart(ctx, true)
}

// firstOfLast reads to the end and returns the first sequence number of each of the last commits.
func (f *Feed) firstOfLast(ctx context.Context, commits int) (last []uint64, err error) {
	for {
		c, err := f.Next(ctx)
		if err == io.EOF {
			return last[max(len(last)-commits, 0):], nil
		}
		if err != nil {
			return nil, err
		}
		if last = append(last, c.First); len(last) >= 2*commits {
			last = append(last[:0], last[len(last)-commits:]...)
		}
	}
}

// findSpaces finds out which namespace each space belongs to after f.last, which is in an original or before its first
// record.
func (f *Feed) findSpaces(ctx context.Context, c originals) error {
	moved, newest, err := f.src.Spaces(ctx)
	if err != nil {
		return err
	}
	if f.spaces = moved; newest <= f.last {
		return nil
	}
	for ; c.at != nil; c, err = f.before(c) {
		value, err := lastSpaces(c.at, f.last)
		if err != nil {
			return err
		}
		if value != nil {
			f.spaces, _, err = namespace.Decode(value)
			return err
		}
		if c.first == 1 {
			break
		}
	}
	if err == nil && c.first > 1 {
		err = &MissingCommitsError{After: f.last, From: newest}
	}
	f.spaces = nil
	return err
}

// lastSpaces is the last record about namespaces in a segment, up to a sequence number; nil: there is none.
func lastSpaces(sg *segment.Segment, upTo uint64) (value []byte, err error) {
	err = segment.EachEntry(sg, func(e *format.Entry) {
		if e.Row().Home == format.HomeNamespaces && e.Seq <= upTo {
			value = append([]byte{}, e.Inline...)
		}
	})
	return value, err
}
