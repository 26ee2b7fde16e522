package rewrite

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/mergeselect"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// The steps after the copy: an output is published, the locations of its records are moved, and inputs are removed.

// publish replaces the inputs that hold nothing from sequence seq on, and have
// been dealt with before it, by the output (I9). A crash before the manifest
// edit leaves the inputs and files that the next Open removes; after it the
// output, and files of inputs that the next Open removes.
func (rw *rewriter) publish(seq uint64) error {
	var outs []*segment.Segment
	var infos []format.SealedInfo
	if rw.out != nil {
		if err := rw.out.Finish(); err != nil {
			return err
		}
		outs = []*segment.Segment{rw.out.Segment}
		infos = []format.SealedInfo{rw.out.Segment.Info()}
		if !rw.NoMapping && rw.Segments.Load().Len() < segment.MostMappings {
			rw.out.Segment.MapTo(int(rw.out.Segment.Size.Load()))
		}
	}
	var gone []*segment.Segment
	var ids []uint32
	for _, in := range rw.sel.In.Releasable(seq) {
		gone, ids = append(gone, in.Segment), append(ids, in.Segment.ID)
		if err := in.Close(); err != nil {
			return err
		}
	}
	if len(outs)+len(gone) == 0 {
		return nil
	}
	if err := rw.CheckDirectory(); err != nil {
		return err
	}
	// What made a record dead must be on disk before the record goes: else a
	// power cut would take the new version, and the merge has the old one.
	if err := rw.Log.Sync(); err != nil {
		return err
	}
	through := rw.Log.OnDisk()
	rw.ManifestMu.Lock()
	err := rw.Manifest.Log(manifest.EditMerge, manifest.MergeBody(through, ids, infos))
	if err == nil {
		rw.Segments.Store(rw.Segments.Load().With(outs, nil))
	}
	rw.ManifestMu.Unlock()
	if err != nil {
		// Unless the edit is undone, whether it is on disk is unknown: neither set may go.
		err = rw.Log.Fail(err)
		for _, sg := range outs {
			again := failure.IsRetryable(err)
			if err = errors.Join(err, sg.Close()); again {
				err = errors.Join(err, segment.Remove(rw.FS, rw.Dir, sg))
			}
			*rw.SpareID = 0
		}
		rw.out = nil
		return err
	}
	if rw.out = nil; len(outs) > 0 {
		*rw.SpareID = 0
	}
	for _, sg := range outs {
		rw.result.Out = append(rw.result.Out, sg.ID)
		rw.result.BytesOut += sg.Size.Load()
		if err := rw.move(sg); err != nil {
			return rw.Log.Fail(err)
		}
		if err := sg.Park(rw.Segments.Load().Len() - 1); err != nil { // not before: there may be no other descriptor to read it back
			return err
		}
	}
	return rw.remove(gone)
}

// move points the keydir to the copies. Reading the names back from the
// output's hint costs less than to keep them all until here, and proves that
// it can be read.
func (rw *rewriter) move(sg *segment.Segment) error {
	in := &mergeinput.Input{Env: rw.Inputs, Segment: sg, Read: rw.pace}
	for i, done := 0, false; !done; {
		rw.moves.Reset()
		for ; !rw.moves.Full(); i++ {
			err := in.Next()
			if done = err == io.EOF; done {
				break
			}
			if err == nil && i == len(rw.from) {
				err = errors.New("more records than were copied")
			}
			if err != nil {
				return errors.Join(fmt.Errorf("%s: reading back: %w", sg.Name, err), in.Close())
			}
			if rw.from[i] != 0 {
				rw.moves.Add(&in.Entry, rw.Manifest.Seed.Hash(format.Text(in.Entry.Key)), uint32(i))
			}
		}
		if done && i < len(rw.from) {
			return errors.Join(fmt.Errorf("%s: reading back: %d of %d records that were copied", sg.Name, i, len(rw.from)), in.Close())
		}
		err := rw.Index.Visit(&rw.moves, true, func(sp *namespace.Space, x *mergeinput.BatchEntry) { rw.moveOne(sg, sp, x) }, func(n int) error { return rw.pace(n * mergeselect.LookupCost) })
		if err != nil {
			return err
		}
	}
	rw.from = rw.from[:0]
	return in.Close()
}

// pace is Pacer.Spend for what cannot be given up any more.
func (rw *rewriter) pace(bytes int) error {
	_ = rw.pacer.Spend(bytes) // Rewrite's caller waits for the end of this output even if it cancels
	return nil
}

// moveOne is the compare-and-swap of a location, under the lock of its key.
func (rw *rewriter) moveOne(sg *segment.Segment, sp *namespace.Space, x *mergeinput.BatchEntry) {
	old, loc := rw.from[x.From], keydir.MakeLoc(sg.ID, x.At, x.Size)
	moved := false
	switch home := format.RowOf(x.Kind, x.Type).Home; {
	case home == format.HomeNamespaces:
		rw.Index.Spaces.Mu.Lock()
		defer rw.Index.Spaces.Mu.Unlock()
		if moved = rw.Index.Spaces.Record == old; moved {
			rw.Index.Spaces.Record = loc
		}
	case home == format.HomeSystem:
		id := rw.moves.Identity(x)
		moved = rw.Index.System.Move(string(id.Key), old, loc)
	case sp != nil:
		id := rw.moves.Identity(x)
		moved = locate.Move(sp.Dir, x.Hash, &id, old, loc)
	}
	if moved {
		sg.LiveBytes.Add(int64(loc.Size()))
		rw.Dead(old) // its segment may stay
	}
}

// remove unlinks inputs when no reader can be using them: every locking reader holds a stripe's
// lock while it follows a location, and no location leads to them any more, so one pass through all
// locks is enough. Freeing the pages of files takes time, in which the next output can be begun.
func (rw *rewriter) remove(gone []*segment.Segment) error {
	err := rw.removed(math.MaxInt64) // the ones before
	if len(gone) == 0 {
		return err
	}
	for i := range keydir.Stripes {
		if err := rw.Index.Lock(i, true); err != nil {
			return err
		}
		rw.Index.Unlock(i, true) // passing through is the point
	}
	rw.ManifestMu.Lock()
	rw.Segments.Store(rw.Segments.Load().With(nil, gone))
	rw.ManifestMu.Unlock()
	for _, sg := range gone {
		rw.result.In = append(rw.result.In, sg.ID)
		rw.result.BytesIn += sg.Size.Load()
	}
	freed := make(chan int64, len(gone))
	rw.freed, rw.room = freed, 0
	go func() {
		rw.removeErr = rw.Pins.Discard(gone, func(bytes int64) { freed <- bytes })
		close(freed)
	}()
	return err
}

// removed waits until so many bytes have been freed, or all that is to be removed is gone.
func (rw *rewriter) removed(bytes int64) error {
	for rw.freed != nil && rw.room < bytes {
		n, more := <-rw.freed
		rw.room += n
		if !more {
			rw.freed = nil
			return rw.removeErr
		}
	}
	return nil
}
