package replay

import (
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Truncate truncates torn tails, durably, before anything is appended after them or read from them. It begins with the
// newest segment: its torn records must be gone before an older segment is long enough again for them to follow it. It
// returns how many bytes were torn.
func Truncate(tail []*segment.Segment) (bytes int64, err error) {
	for _, sg := range slices.Backward(tail) {
		size, end := sg.Size.Load(), sg.FramesEnd
		if torn := sg.TornBytes(); torn > 0 || size != end || sg.Content > 0 { // not of a store that is served by now
			bytes += torn
			sg.EndAtFrames()
		}
		// Also where it has that length: if the sync after an earlier truncation failed, the file may still be longer
		// on disk, and a footer must have nothing after it.
		if err := sg.File.Truncate(end); err != nil {
			return bytes, fmt.Errorf("%s: truncating a torn tail: %w", sg.Name, failure.Retryable(err))
		}
		if size == format.SegmentHeaderSize {
			continue
		}
		// What recovery serves must not be lost by a power cut after it: a killed
		// process leaves written but unsynced bytes in the page cache.
		if err := files.WriteAgain(sg.File, sg.DurableTo, end); err != nil {
			return bytes, fmt.Errorf("%s: %w", sg.Name, err)
		}
		if err := sg.File.Sync(); err != nil {
			return bytes, fmt.Errorf("%s: sync: %w", sg.Name, err)
		}
	}
	return bytes, nil
}
