package feed

import (
	"context"

	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// A feed of frames is for packages of this module that copy the log instead of what it says: bitcask.Store.Frames begins
// one. It has the writer in its own process, which says what is on the disk.

// A Frame is a commit as it stands in the log.
type Frame struct {
	Segment *segment.Segment
	Offset  int64  // in the segment
	Bytes   []byte // valid until the next call of Next
}

// Frame is the frame of the commit that Next has returned last.
func (f *Feed) Frame() Frame { return f.frame }

// Manifest is the store's manifest as it was read last, which is at least as new as the last commit.
func (f *Feed) Manifest() *manifest.Manifest { return f.r.Manifest }

// Synced says that all commits with sequence numbers up to seq are on the disk.
func (f *Feed) Synced(seq uint64) { f.synced = max(f.synced, seq) }

// Keep opens the segments that the log goes on in, so that merges do not take them before Next has read them, unless the
// feed keeps more than limit bytes already: then it does nothing. Errors are as of Next.
func (f *Feed) Keep(ctx context.Context, limit int64) error {
	if f.r == nil {
		return f.look(ctx)
	}
	held := int64(0)
	for _, sg := range f.r.Open {
		size, err := sg.File.Size()
		if err != nil {
			return err
		}
		held += size
	}
	if held > limit {
		return nil
	}
	return f.look(ctx)
}
