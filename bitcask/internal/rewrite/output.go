package rewrite

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// The outputs of a rewrite: how one begins, and how it is abandoned.

// startOutput makes the next output segment, for entries from sequence seq on. Inputs without live
// entries are removed first, which needs no output: on a full disk that is where its space comes
// from.
func (rw *rewriter) startOutput(seq uint64) error {
	if err := rw.publish(seq); err != nil {
		return err
	}
	if err := rw.takeID(); err != nil {
		return err
	}
	limit := rw.SegmentSize()
	if rw.o.OneOutput && len(rw.sel.In.All) == 1 {
		limit = math.MaxUint32 - format.MaxCommit // no segment is that long
	}
	w := segment.WriterOptions{FS: rw.FS, Limit: limit, Hint: !rw.NoHints, Room: rw.removed, Spare: rw.Reserve}
	for {
		var err error
		seen := rw.Reserve.Seen()
		if rw.out, err = segment.NewWriter(w, rw.Dir, rw.Manifest.Store, *rw.SpareID); err == nil {
			rw.out.Segment.Clean = rw.clean
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			*rw.SpareID = 0 // what an output has left could not be removed
		}
		if !failure.NoSpace(err) || !rw.Reserve.Spend(seen, err) {
			return err
		}
	}
}

// takeID reserves the id of the next output in the manifest, so that an unlisted file of that id is
// known to be a leftover. The id of an abandoned output is used again, unless a segment
// has been made since: who follows the store tells by the ids which of two outputs is newer.
func (rw *rewriter) takeID() error {
	rw.ManifestMu.Lock()
	id := rw.Manifest.NextID
	if *rw.SpareID != 0 && *rw.SpareID == id-1 {
		rw.ManifestMu.Unlock()
		return nil
	}
	err := format.CheckID(id)
	if err == nil {
		err = rw.Manifest.Log(manifest.EditNextID, binary.LittleEndian.AppendUint32(nil, id+1))
	}
	rw.ManifestMu.Unlock()
	if err != nil {
		return rw.Log.Fail(err)
	}
	*rw.SpareID = id
	return nil
}

// abandon removes an output that is not to be. Its id is that of the next one, or
// merges that fail one after the other would use them up.
func (rw *rewriter) abandon() error {
	err := rw.out.Abandon()
	if err != nil {
		*rw.SpareID = 0
	}
	rw.out = nil
	return err
}
