package bitcask

import (
	"context"
	"errors"
	"fmt"

	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// FeedOptions say where a feed begins.
type FeedOptions struct {
	// After is the sequence number after which the feed begins: the Last of the last commit that was seen. 0 is the
	// beginning of the log.
	After uint64
	// Newest, if not 0, has the feed begin so many commits before the end of the log, or with the oldest one that it
	// has.
	Newest int
	// Store is how the directory is opened. It is for reading only.
	Store *Options
}

// OpenFeed begins to read the commits of the store in dir. Errors: those of Open, for
// reading; *feed.MissingCommitsError.
func OpenFeed(ctx context.Context, dir string, o FeedOptions) (*feed.Feed, error) {
	opts, err := o.Store.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	held, err := vfs.Hold(opts.seam.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	opts.ReadOnly, opts.ReadDamaged, opts.Follow, opts.Loading = true, false, false, nil
	opts.seam.FS, opts.seam.Load = held, seam.LoadOnDemand
	spaces := func(ctx context.Context) (map[uint32]uint32, uint64, error) { return spacesOf(ctx, dir, &opts) }
	f, err := feed.Open(ctx, feed.Source{Held: held, Dir: dir, Spaces: spaces}, o.After, o.Newest)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return f, nil
}

// Frames begins to read the commits of this store as they stand in its log (feed.Feed.Frame), from its directory, as
// OpenFeed does. o.Store counts for nothing. The feed may be used after Close, which makes all commits known to be on
// the disk. Errors are those of OpenFeed.
func (s *Store) Frames(ctx context.Context, o FeedOptions) (*feed.Feed, error) {
	held, err := vfs.Hold(s.opts.seam.FS, s.dir)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", s.dir, err)
	}
	f, err := feed.Open(ctx, feed.Source{Held: held, Dir: s.dir}, o.After, o.Newest)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", s.dir, err)
	}
	return f, nil
}

// spacesOf is feed.Source.Spaces.
func spacesOf(ctx context.Context, dir string, o *Options) (moved map[uint32]uint32, newest uint64, err error) {
	s, err := openUntil(ctx, dir, o)
	if err != nil {
		return nil, 0, err
	}
	record := s.spaces.Record
	if record != 0 {
		newest, err = sequenceOf(s.segments.Load().Find(record.Segment()), record.Offset())
	}
	return s.spaces.Now.Load().Moved, newest, errors.Join(err, s.Close())
}

// sequenceOf is the sequence number of the record at an offset of a segment.
func sequenceOf(sg *segment.Segment, at uint32) (seq uint64, err error) {
	err = segment.EachEntry(sg, func(e *format.Entry) {
		if e.At == at {
			seq = e.Seq
		}
	})
	if err == nil && seq == 0 {
		err = &CorruptError{File: sg.Name, Offset: int64(at), Reason: "no record, where one was that says what the namespaces are"}
	}
	return seq, err
}
