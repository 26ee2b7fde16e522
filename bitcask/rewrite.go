package bitcask

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/keydir"
)

// Rewriting is what a merge does with the segments it has picked: copy what is
// live into new ones, swap the sets in the manifest, move the locations, remove
// the old files. Package merge decides which and when; this file knows how.
//
// Readers and writers go on throughout. A record is copied if it is live when
// it is met, and its location moves only if the keydir still points to the
// original at the end: whatever was written, deleted or expired meanwhile has
// a higher sequence and wins, now and at the next Open.

// SegmentInfo describes a segment, for planning a merge and for statistics.
type SegmentInfo struct {
	ID             uint32
	Bytes          int64 // length of the file
	LiveBytes      int64 // estimate of what a merge would keep
	Records        uint64
	MinSeq, MaxSeq uint64
	Sealed         bool
	Merged         bool // written by a merge
}

// Segments lists the segments by id.
func (s *Store) Segments() []SegmentInfo {
	s.Settle()
	active := s.activeSegment()
	var list []SegmentInfo
	for _, sg := range s.segments.Load().all() {
		info := SegmentInfo{ID: sg.id, Bytes: sg.size.Load(), Merged: sg.merged}
		if sg == active {
			s.log.mu.Lock()
			info.Records, info.MinSeq, info.MaxSeq = s.log.foot.records, s.log.foot.minSeq, s.log.foot.maxSeq
			s.log.mu.Unlock()
		} else {
			info.Sealed = true
			info.Records, info.MinSeq, info.MaxSeq = sg.foot.records, sg.foot.minSeq, sg.foot.maxSeq
		}
		info.LiveBytes = min(max(sg.liveBytes.Load(), 0), info.Bytes)
		list = append(list, info)
	}
	return list
}

// RewriteOptions steer a rewrite.
type RewriteOptions struct {
	// Throttle is called with the number of bytes just read; it may sleep, and
	// its error ends the rewrite. Default: no limit.
	Throttle func(bytes int) error
	// Progress is called now and then with the bytes read since the last call. Default: nobody.
	Progress func(bytes int64)
}

// RewriteResult is what a rewrite did.
type RewriteResult struct {
	In, Out           []uint32 // segment ids
	BytesIn, BytesOut int64
	Copied, Dropped   uint64 // records, followers not counted
}

// rewriter carries one rewrite.
type rewriter struct {
	s       *Store
	ctx     context.Context
	o       RewriteOptions
	in      []*segment
	outside uint64 // lowest sequence of any segment that is not rewritten
	out     *segmentWriter
	outs    []*segment
	moved   [][]keydir.Loc // per output: where each of its entries was; 0 for tombstones
	result  RewriteResult
	sinceIO int
}

// Rewrite copies the live records of the given sealed segments and replaces
// them. One runs at a time. After an error or a cancelled context the store is
// as it was.
func (s *Store) Rewrite(ctx context.Context, ids []uint32, o RewriteOptions) (RewriteResult, error) {
	if s.opts.ReadOnly {
		return RewriteResult{}, ErrReadOnly
	}
	s.upkeep.Lock()
	defer s.upkeep.Unlock()
	if s.closed.Load() {
		return RewriteResult{}, ErrClosed
	}
	rw := &rewriter{s: s, ctx: ctx, o: o}
	if err := rw.choose(ids); err != nil {
		return RewriteResult{}, err
	}
	if err := rw.copyAll(); err != nil {
		return RewriteResult{}, errors.Join(err, rw.abandon())
	}
	if err := rw.publish(); err != nil {
		return RewriteResult{}, err
	}
	return rw.result, rw.removeInputs()
}

// choose finds the inputs and the lowest sequence outside of them: a tombstone
// below that has nothing left to hide.
func (rw *rewriter) choose(ids []uint32) error {
	s := rw.s
	s.log.mu.Lock() // no rotation meanwhile
	defer s.log.mu.Unlock()
	if s.log.failed != nil {
		return s.log.failed
	}
	active := s.log.active
	rw.outside = s.log.nextSeq
	if s.log.foot.records > 0 {
		rw.outside = s.log.foot.minSeq
	}
	for _, sg := range s.segments.Load().all() {
		switch {
		case sg == active:
		case slices.Contains(ids, sg.id):
			rw.in = append(rw.in, sg)
			rw.result.In = append(rw.result.In, sg.id)
			rw.result.BytesIn += sg.size.Load()
		case sg.foot.records > 0:
			rw.outside = min(rw.outside, sg.foot.minSeq)
		}
	}
	if len(rw.in) != len(ids) {
		return fmt.Errorf("segments %v: not all of them are sealed and there", ids)
	}
	return nil
}

// copyAll copies every live record, in order of sequence, so that outputs are
// ordered like any segment.
func (rw *rewriter) copyAll() error {
	var list []*source
	raws := make(map[*segment]*frames)
	for _, sg := range rw.in {
		fr := newFrames(sg)
		raws[sg] = fr
		list = append(list, &source{sg: sg, next: func() ([]entry, error) {
			at := fr.pos
			entries, err := fr.next()
			var bad *badFrame
			if errors.As(err, &bad) {
				err = &CorruptError{sg.name, bad.at, bad.reason}
			}
			if terr := rw.tick(int(fr.pos - at)); terr != nil {
				return nil, terr
			}
			return entries, err
		}})
	}
	err := inOrder(list, func(sg *segment, e *entry) error {
		return rw.copy(sg, raws[sg], e)
	})
	if err != nil {
		return err
	}
	return rw.finishOutput()
}

// tick counts bytes read, throttles, reports, and notices cancellation.
func (rw *rewriter) tick(n int) error {
	rw.sinceIO += n
	if rw.sinceIO < scanWindow {
		return nil
	}
	n, rw.sinceIO = rw.sinceIO, 0
	if rw.s.stopping() {
		return ErrClosed
	}
	if err := rw.ctx.Err(); err != nil {
		return err
	}
	if rw.o.Progress != nil {
		rw.o.Progress(int64(n))
	}
	if rw.o.Throttle != nil {
		return rw.o.Throttle(n)
	}
	return nil
}

// copy writes one entry, with the records that follow it, to the output if it
// still says something.
func (rw *rewriter) copy(sg *segment, fr *frames, e *entry) error {
	loc := keydir.MakeLoc(sg.id, e.at, e.size)
	old := loc
	switch {
	case e.Kind.tombstone():
		// I6: a tombstone goes only when nothing older is left outside.
		if e.seq < rw.outside || rw.s.spaces.byRecord(e.Namespace) == nil {
			rw.result.Dropped++
			return nil
		}
		old = 0
	case !rw.s.isLive(&e.Identity, loc):
		rw.result.Dropped++
		return nil
	}
	raw := fr.buf[int64(e.at)-fr.bufAt:][:e.size]
	if rw.out != nil && rw.out.full(len(raw)) {
		if err := rw.finishOutput(); err != nil {
			return err
		}
	}
	if rw.out == nil {
		if err := rw.startOutput(); err != nil {
			return err
		}
	}
	rw.result.Copied++
	i := len(rw.moved) - 1
	rw.moved[i] = append(rw.moved[i], old)
	return rw.out.add(raw, e.seq)
}

// isLive reports whether the keydir points to the record at loc.
func (s *Store) isLive(id *Identity, loc keydir.Loc) bool {
	if id.Kind == KindNamespaces {
		s.spaces.mu.Lock()
		defer s.spaces.mu.Unlock()
		return s.spaces.record == loc
	}
	h := s.man.seed.Hash(text(id.Key))
	lock := &s.stripes[keydir.StripeOf(h)]
	lock.RLock()
	defer lock.RUnlock()
	sp := s.spaces.byRecord(id.Namespace)
	return sp != nil && pointsTo(sp.dir, h, id, loc)
}

// startOutput makes the next output segment. Its id is taken in the manifest
// first, so that an unlisted file of that id is known to be a leftover.
func (rw *rewriter) startOutput() error {
	s := rw.s
	s.manifestMu.Lock()
	id := s.man.nextID
	err := s.man.log(editNextID, binary.LittleEndian.AppendUint32(nil, id+1))
	s.manifestMu.Unlock()
	if err != nil {
		return s.log.fail(err)
	}
	sg, err := createSegment(s.opts.FS, s.dir, s.man.store, id, true, 0)
	if err != nil {
		return err
	}
	rw.out = newSegmentWriter(sg, s.opts.SegmentSize)
	rw.outs = append(rw.outs, sg)
	rw.moved = append(rw.moved, nil)
	return nil
}

// finishOutput seals the output and writes its hint. Both are on disk before
// the manifest may name it.
func (rw *rewriter) finishOutput() error {
	if rw.out == nil {
		return nil
	}
	sg := rw.out.sg
	if err := rw.out.finish(); err != nil {
		return err
	}
	rw.out = nil
	rw.result.Out = append(rw.result.Out, sg.id)
	rw.result.BytesOut += sg.size.Load()
	sg.mapTo(rw.s.mapFor(sg))
	if rw.s.opts.NoHints {
		return nil
	}
	return writeHint(rw.s.opts.FS, rw.s.dir, rw.s.man.store, sg, nil)
}

// abandon removes the outputs of a rewrite that did not get to publish.
func (rw *rewriter) abandon() error {
	var errs []error
	for _, sg := range rw.outs {
		errs = append(errs, sg.close(), rw.s.removeSegment(sg))
	}
	return errors.Join(errs...)
}

// publish swaps the sets of segments (I9). A crash before the manifest record
// leaves the old set and files that the next Open removes; after it the new
// set, and input files that the next Open removes.
func (rw *rewriter) publish() error {
	s := rw.s
	// What made a record dead must be on disk before the record goes: else a
	// power cut would take the new version, and the merge has the old one.
	if err := s.log.sync(); err != nil {
		return errors.Join(err, rw.abandon())
	}
	infos := make([]sealedInfo, len(rw.outs))
	for i, sg := range rw.outs {
		infos[i] = sg.info()
	}
	s.manifestMu.Lock()
	err := s.man.log(editSwap, swapBody(rw.result.In, infos))
	if err == nil {
		s.segments.Store(s.segments.Load().with(rw.outs, nil))
	}
	s.manifestMu.Unlock()
	if err != nil {
		// Whether the record is on disk is unknown: neither set may go.
		return errors.Join(s.log.fail(err), rw.closeOutputs())
	}
	for i, sg := range rw.outs {
		if err := rw.moveAll(sg, rw.moved[i]); err != nil {
			return s.log.fail(err)
		}
	}
	return nil
}

func (rw *rewriter) closeOutputs() error {
	var errs []error
	for _, sg := range rw.outs {
		errs = append(errs, sg.close())
	}
	return errors.Join(errs...)
}

// moveAll points the keydir to the copies. Reading the output back also proves
// that it can be read.
func (rw *rewriter) moveAll(sg *segment, from []keydir.Loc) error {
	s := rw.s
	fr := newFrames(sg)
	for len(from) > 0 {
		entries, err := fr.next()
		if err != nil {
			return fmt.Errorf("%s: reading back: %w", sg.name, err)
		}
		for i := range entries {
			e := &entries[i]
			if old := from[i]; old != 0 {
				s.move(sg, &e.Identity, old, keydir.MakeLoc(sg.id, e.at, e.size))
			}
		}
		from = from[len(entries):]
	}
	return nil
}

// move is the compare-and-swap of one location, under the lock of its key.
func (s *Store) move(sg *segment, id *Identity, old, new keydir.Loc) {
	if id.Kind == KindNamespaces {
		s.spaces.mu.Lock()
		defer s.spaces.mu.Unlock()
		if s.spaces.record == old {
			s.spaces.record = new
			s.live(sg, new)
		}
		return
	}
	h := s.man.seed.Hash(text(id.Key))
	lock := &s.stripes[keydir.StripeOf(h)]
	lock.Lock()
	defer lock.Unlock()
	if sp := s.spaces.byRecord(id.Namespace); sp != nil && moveLoc(sp.dir, h, id, old, new) {
		s.live(sg, new)
	}
}

// removeInputs unlinks the old files once nobody can be reading them: every
// reader holds a stripe lock while it follows a location, no location leads to
// them any more, so passing through every lock once is enough.
func (rw *rewriter) removeInputs() error {
	s := rw.s
	for i := range s.stripes {
		s.stripes[i].Lock()
		//lint:ignore SA2001 passing through is the point
		s.stripes[i].Unlock()
	}
	s.manifestMu.Lock()
	s.segments.Store(s.segments.Load().with(nil, rw.in))
	s.manifestMu.Unlock()
	var errs []error
	for _, sg := range rw.in {
		errs = append(errs, sg.close(), s.removeSegment(sg))
	}
	errs = append(errs, s.opts.FS.SyncDir(s.dir))
	return errors.Join(errs...)
}

// removeSegment unlinks a segment and its hint.
func (s *Store) removeSegment(sg *segment) error {
	err := s.opts.FS.Remove(filepath.Join(s.dir, hintName(sg.id)))
	if isNotExist(err) {
		err = nil
	}
	return errors.Join(err, s.opts.FS.Remove(filepath.Join(s.dir, sg.name)))
}
