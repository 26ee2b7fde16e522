package bitcask

import (
	"encoding/binary"
	"errors"
	"io/fs"

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
	s := rw.s
	if err := rw.takeID(); err != nil {
		return err
	}
	w := segment.WriterOptions{FS: s.opts.seam.FS, Limit: s.opts.SegmentSize, Hint: !s.opts.seam.NoHints, Room: rw.removed, Spare: &s.reserve}
	for {
		var err error
		seen := s.reserve.Seen()
		if rw.out, err = segment.NewWriter(w, s.dir, s.man.Store, s.spareID); err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			s.spareID = 0 // what an output has left could not be removed
		}
		if !NoSpace(err) || !s.reserve.Spend(seen, err) {
			return err
		}
	}
}

// takeID reserves the id of the next output in the manifest, so that an unlisted file of that id is
// known to be a leftover. The id of an abandoned output is used again, unless a segment
// has been made since: who follows the store tells by the ids which of two outputs is newer.
func (rw *rewriter) takeID() error {
	s := rw.s
	s.manifestMu.Lock()
	id := s.man.NextID
	if s.spareID != 0 && s.spareID == id-1 {
		s.manifestMu.Unlock()
		return nil
	}
	err := format.CheckID(id)
	if err == nil {
		err = s.man.Log(manifest.EditNextID, binary.LittleEndian.AppendUint32(nil, id+1))
	}
	s.manifestMu.Unlock()
	if err != nil {
		return s.log.Fail(err)
	}
	s.spareID = id
	return nil
}

// abandon removes an output that is not to be. Its id is that of the next one, or
// merges that fail one after the other would use them up.
func (rw *rewriter) abandon() error {
	err := rw.out.Abandon()
	if err != nil {
		rw.s.spareID = 0
	}
	rw.out = nil
	return err
}
