package replay

import (
	"errors"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Reading: from a segment to batches of its entries.

// read sends the entries of a segment, from its hint as far as that is good and
// from its data otherwise.
func (rp *replayer) read(r *reader, sg *segment.Segment) error {
	upTo := rp.After.UpTo
	if sg.Sealed() {
		if !rp.NoHints {
			var done bool
			var err error
			if upTo, done, err = rp.readHint(r, sg); done || err != nil {
				return err
			}
			rp.noteHintless(sg.ID)
		}
		rp.mu.Lock()
		rp.result.Scanned++
		rp.mu.Unlock()
	}
	before := rp.After.SegmentOf(sg.ID)
	err := rp.readData(r, segment.NewFramesAfter(sg, int64(before.Length), before.Foot), upTo)
	if err == io.EOF {
		return nil
	}
	return err
}

func (rp *replayer) noteHintless(id uint32) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.result.Hintless = append(rp.result.Hintless, id)
}

func (rp *replayer) noteStale(name string) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.result.Stale = append(rp.result.Stale, name)
}

// errStopped ends a reader whose consumer has stopped.
var errStopped = errors.New("stopped")

// send passes a batch on, unless it is empty.
func (rp *replayer) send(r *reader, b *batch) error {
	if len(b.entries) == 0 {
		rp.free.Put(b)
		return nil
	}
	if err := rp.Passed(b.bytes); err != nil {
		return err
	}
	b.users.Store(1)
	select {
	case r.out <- b:
		return nil
	case <-rp.stop:
		return errStopped
	}
}

// batch returns an empty batch.
func (rp *replayer) batch(sg *segment.Segment) *batch {
	b := rp.free.Get().(*batch)
	b.sg, b.buf, b.entries, b.hashes, b.stops, b.bytes = sg, b.buf[:0], b.entries[:0], b.hashes[:0], b.stops[:0], 0
	return b
}

// add adds an entry whose bytes stay as they are.
func (b *batch) add(seed keydir.Seed, e *format.Entry) {
	if !e.Row().OfStripe() {
		b.stops = append(b.stops, len(b.entries))
	}
	b.bytes += int64(e.Size)
	b.entries = append(b.entries, *e)
	b.hashes = append(b.hashes, seed.Hash(format.Text(e.Key)))
}

// wants reports whether an entry is of a stripe that is replayed.
func (rp *replayer) wants(e *format.Entry) bool {
	only := rp.Only
	return only == nil || !e.Row().OfStripe() || only[keydir.StripeOf(rp.Manifest.Seed.Hash(format.Text(e.Key)))]
}

// readHint reads from the hint. Each block is verified before it is used, so what came before a bad
// one is right: the rest is read from the data, after sequence upTo, unless done.
func (rp *replayer) readHint(r *reader, sg *segment.Segment) (upTo uint64, done bool, err error) {
	before := rp.After.SegmentOf(sg.ID).Length
	upTo = rp.After.UpTo
	hs, err := segment.OpenHint(rp.FS, rp.Dir, sg)
	if err != nil {
		rp.hintFailed(sg, err)
		return upTo, false, nil
	}
	defer func() {
		if err := hs.Close(); err != nil {
			rp.Logger.Warn("closing hint", "file", format.HintName(sg.ID), "err", err)
		}
	}()
	for last := uint64(0); ; {
		b := rp.batch(sg)
		hs.Buf, hs.Keys = b.buf, b.keys
		entries, err := hs.Next()
		b.buf, b.keys = hs.Buf, hs.Keys
		if err == nil && len(entries) > 0 {
			if entries[0].Seq <= last {
				err = segment.ErrHint
			}
			last = max(last, entries[len(entries)-1].Seq)
		}
		if err != nil {
			rp.free.Put(b)
			if err == io.EOF {
				return upTo, true, nil
			}
			rp.hintFailed(sg, err)
			return upTo, false, nil
		}
		for i := range entries {
			if e := &entries[i]; e.Seq > rp.After.UpTo && uint64(e.At) >= before && rp.wants(e) {
				b.add(rp.Manifest.Seed, e)
			}
		}
		upTo = max(upTo, last)
		if err := rp.send(r, b); err != nil {
			return upTo, false, err
		}
	}
}

// hintFailed has a hint removed that is no good. One of another version stays until the new one takes its name.
func (rp *replayer) hintFailed(sg *segment.Segment, err error) {
	switch {
	case errors.Is(err, failure.ErrVersion):
		rp.Logger.Info("hint not used", "file", format.HintName(sg.ID), "err", err)
	case !failure.IsNotExist(err):
		rp.Logger.Warn("hint not used", "file", format.HintName(sg.ID), "err", err)
		rp.noteStale(format.HintName(sg.ID))
	}
}

// readData reads from the frames, after sequence upTo. io.EOF is the end.
func (rp *replayer) readData(r *reader, fr *segment.Frames, upTo uint64) error {
	b := rp.batch(fr.Segment)
	for {
		entries, err := rp.frame(fr)
		if err != nil {
			if serr := rp.send(r, b); serr != nil {
				return serr
			}
			return err
		}
		for i := range entries {
			e := &entries[i]
			if e.Seq <= upTo || !rp.wants(e) {
				continue
			}
			n := len(e.Key) + len(e.Elem) + len(e.Inline)
			if len(b.entries) == batchEntries || len(b.entries) > 0 && len(b.buf)+n > cap(b.buf) {
				if err := rp.send(r, b); err != nil {
					return err
				}
				b = rp.batch(fr.Segment)
			}
			left := int(min(batchBytes, fr.End-fr.Pos)) + n // the rest of the segment needs no more
			b.buf = slices.Grow(b.buf, max(n, min(batchBytes-len(b.buf), left)))
			copied := *e // the frame's bytes go when the next one is read
			copied.Key, copied.Elem, copied.Inline = b.keep(e.Key), b.keep(e.Elem), b.keep(e.Inline)
			b.add(rp.Manifest.Seed, &copied)
		}
	}
}

// keep copies bytes into the batch, which has room for them.
func (b *batch) keep(bytes []byte) []byte {
	n := len(b.buf)
	b.buf = append(b.buf, bytes...)
	return b.buf[n:len(b.buf):len(b.buf)]
}

// frame reads one frame and judges the end.
func (rp *replayer) frame(fr *segment.Frames) ([]format.Entry, error) {
	at := fr.Pos
	entries, err := fr.Next()
	var bad *segment.BadFrame
	switch {
	case err == nil, err != io.EOF && !errors.As(err, &bad):
		return entries, err
	case fr.Segment.Cut: // all of it was written, and verified, before
		if bad != nil {
			err = &failure.CorruptError{File: fr.Segment.Name, Offset: bad.At, Reason: bad.Reason}
		}
		return nil, err
	case !fr.Segment.Sealed():
		err := rp.judge(fr, bad)
		if bad != nil && rp.ReadOnly { // by now a writer alongside may have finished it
			if entries, err := fr.Again(); err == nil {
				return entries, nil
			}
		}
		if err != nil {
			return rp.correct(fr, at, err)
		}
		return nil, io.EOF
	case bad != nil:
		return rp.correct(fr, at, &failure.CorruptError{File: fr.Segment.Name, Offset: bad.At, Reason: bad.Reason})
	}
	return nil, err
}

// correct continues reading, where damage is tolerated, if err is damage to the frame at an offset and a single flipped
// bit explains it. The location of a damaged record stays the same: reading it is an error.
func (rp *replayer) correct(fr *segment.Frames, at int64, err error) ([]format.Entry, error) {
	if rp.Tolerate == nil || !failure.IsDamage(err) {
		return nil, err
	}
	fr.Pos = at
	entries, ok := fr.Corrected()
	if !ok {
		return nil, err
	}
	rp.mu.Lock()
	defer rp.mu.Unlock()
	return entries, rp.Tolerate(err)
}
