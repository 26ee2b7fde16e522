package bitcask

import (
	"container/heap"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Loading replays every segment, from its hint where there is a good one and
// from its data otherwise, in order of sequence number: the segments are merged
// like sorted files, so what was written last wins without the keydir having
// to remember sequence numbers, and the order in which merges left the segments
// does not matter.

// source yields the entries of one segment in order.
type source struct {
	sg      *segment
	next    func() ([]entry, error)
	entries []entry
}

// fill makes sure that an entry is at hand.
func (src *source) fill() error {
	for len(src.entries) == 0 {
		var err error
		if src.entries, err = src.next(); err != nil {
			return err
		}
	}
	return nil
}

// sources is a heap by the sequence of the entry at hand.
type sources []*source

func (h sources) Len() int           { return len(h) }
func (h sources) Less(i, j int) bool { return h[i].entries[0].seq < h[j].entries[0].seq }
func (h sources) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)        { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// inOrder calls fn for every entry of all sources, lowest sequence first.
func inOrder(list []*source, fn func(sg *segment, e *entry) error) error {
	var h sources
	for _, src := range list {
		if err := src.fill(); err == nil {
			h = append(h, src)
		} else if err != io.EOF {
			return err
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		src := h[0]
		if err := fn(src.sg, &src.entries[0]); err != nil {
			return err
		}
		src.entries = src.entries[1:]
		if err := src.fill(); err == io.EOF {
			heap.Pop(&h)
			continue
		} else if err != nil {
			return err
		}
		// Segments mostly follow one another: look before re-sorting.
		if len(h) > 1 {
			heap.Fix(&h, 0)
		}
	}
	return nil
}

// load builds the keydir: from the INDEX and what the log has after it, or from
// all of the log.
func (s *Store) load() error {
	var ix *indexContents
	if !s.opts.NoIndex {
		var err error
		if ix, err = s.loadIndex(); err != nil && !isNotExist(err) {
			s.opts.Logger.Warn("index not used", "file", IndexFile, "err", err)
		}
	}
	if ix != nil && !s.startReplay(ix.upTo) {
		if err := s.tellDeadlines(max(ix.upTo, 1)); err != nil {
			s.opts.Logger.Warn("index not used", "file", IndexFile, "err", err)
			s.unload()
			ix = nil
		}
	}
	if ix == nil {
		s.startReplay(0)
		return s.replayLog(new(indexContents))
	}
	s.recovery.Indexed = true
	s.noteIndex(ix)
	return s.replayLog(ix)
}

// startReplay tells who listens for deadlines from where on he will hear of
// changes. It reports false if he does not know those before.
func (s *Store) startReplay(after uint64) (known bool) {
	s.replayed = func(DeadlineEvent) {}
	if s.opts.Loading == nil {
		return true
	}
	s.replayed, known = s.opts.Loading(s.man.store, after)
	return known || after == 0
}

// tellDeadlines tells of all the deadlines there are, from their records.
func (s *Store) tellDeadlines(seq uint64) error {
	for _, sp := range s.spaces.now.Load().byID {
		var locs []keydir.Loc
		for stripe := range keydir.Stripes {
			sp.dir.Scan(stripe, 0, func(_ uint64, slot keydir.Slot) bool {
				if slot.Type == keydir.Deadline {
					locs = append(locs, slot.Loc)
				}
				return true
			})
		}
		slices.Sort(locs) // in the order in which they lie on disk
		for _, loc := range locs {
			if err := s.tellDeadline(sp, loc, seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) tellDeadline(sp *space, loc keydir.Loc, seq uint64) error {
	sg, err := s.segmentOf(loc)
	if err != nil {
		return err
	}
	ms, perr := int64(0), error(nil)
	err = sg.identify(loc, func(rec *record) {
		if ms, perr = strconv.ParseInt(text(rec.value), 10, 64); rec.Kind != KindDeadline || rec.Namespace != sp.id {
			perr = errIndex
		}
		if perr == nil {
			s.replayed(DeadlineEvent{Space: sp.id, Key: text(rec.Key), Deadline: ms, Sequence: seq})
		}
	})
	return errors.Join(err, perr)
}

// replayLog applies what the log has after ix.
func (s *Store) replayLog(ix *indexContents) error {
	var list []*source
	defer func() {
		for _, h := range s.openHints {
			if err := h.close(); err != nil {
				s.opts.Logger.Warn("closing hint", "err", err)
			}
		}
		s.openHints = nil
	}()
	for _, sg := range s.segments.Load().all() {
		// Not from the entries: records that follow others have numbers too.
		s.log.nextSeq = max(s.log.nextSeq, sg.foot.maxSeq+1)
		src, err := s.sourceOf(sg, ix.segment(sg.id))
		if err != nil {
			return err
		}
		if src != nil {
			list = append(list, src)
		}
	}
	err := inOrder(list, func(sg *segment, e *entry) error { return s.replay(ix, sg, e) })
	for _, sg := range s.tail {
		s.log.nextSeq = max(s.log.nextSeq, sg.foot.maxSeq+1)
	}
	return err
}

// sourceOf picks hint or data of what comes after the part of a segment that
// was replayed before. It is nil if that is all.
func (s *Store) sourceOf(sg *segment, before indexSegment) (*source, error) {
	src := &source{sg: sg}
	if sg.sealed() && int64(before.length) >= sg.size.Load()-footerSize {
		if !s.opts.NoHints && !s.present[hintName(sg.id)] {
			s.hintless = append(s.hintless, sg.id)
		}
		return nil, nil
	}
	if sg.sealed() && !s.opts.NoHints {
		hs, err := openHint(s.opts.FS, s.dir, s.man.store, sg)
		if err == nil {
			s.openHints = append(s.openHints, hs)
			if err = hs.check(); err == nil {
				src.next = func() ([]entry, error) {
					entries, err := hs.next()
					for len(entries) > 0 && uint64(entries[0].at) < before.length {
						entries = entries[1:]
					}
					return entries, err
				}
				return src, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			s.opts.Logger.Warn("hint not used", "file", hintName(sg.id), "err", err)
			s.removeHint(sg)
		}
		s.hintless = append(s.hintless, sg.id)
	}
	if sg.sealed() {
		s.recovery.Scanned++
	}
	fr := newFramesAfter(sg, before)
	src.next = func() ([]entry, error) {
		if sg.dropped {
			return nil, io.EOF
		}
		entries, err := fr.next()
		var bad *badFrame
		switch {
		case err == nil, err != io.EOF && !errors.As(err, &bad):
			return entries, err
		case !sg.sealed():
			if err := s.judgeTail(fr, bad); err != nil {
				return nil, err
			}
			return nil, io.EOF
		case bad != nil:
			return nil, &CorruptError{sg.name, bad.at, bad.reason}
		}
		return nil, err
	}
	return src, nil
}

// removeHint removes a hint that is no good, so that the next Open does not
// read it again in vain. It only saves time: a failure is no reason to stop.
func (s *Store) removeHint(sg *segment) {
	if s.opts.ReadOnly {
		return
	}
	if err := s.opts.FS.Remove(filepath.Join(s.dir, hintName(sg.id))); err != nil {
		s.opts.Logger.Warn("bad hint not removed", "file", hintName(sg.id), "err", err)
	}
}

// replay applies one entry to the keydir, if what was loaded before lacks it.
func (s *Store) replay(ix *indexContents, sg *segment, e *entry) error {
	if e.seq <= ix.upTo || sg.dropped { // dropped: read ahead, before the end of the segment before it was judged
		return nil
	}
	s.recovery.Replayed++
	if e.Kind == KindNamespaces {
		return s.replayNamespaces(sg, e)
	}
	h := s.man.seed.Hash(text(e.Key))
	if e.seq <= ix.stripes[keydir.StripeOf(h)] {
		return s.retellDeadline(sg, e)
	}
	sp := s.spaces.replaySpace(e.Namespace)
	loc := keydir.MakeLoc(sg.id, e.at, e.size)
	switch e.Kind {
	case KindString:
		s.replayGone(sp, h, e.Key)
		sp.dir.Insert(h, keydir.Slot{Type: keydir.String, Loc: loc})
		s.live(sg, loc)
	case KindElement:
		return s.replayElem(sp, h, sg, e, loc)
	case KindMeta:
		fam := s.replayFamily(sp, h, e)
		s.unlive(fam.Meta())
		fam.SetMeta(loc)
		s.live(sg, loc)
	case KindElementTombstone:
		return s.replayElemGone(sp, h, sg, e)
	case KindTombstone:
		s.replayGone(sp, h, e.Key)
		s.replayDeadline(sp, h, e, 0)
	case KindDeadline:
		ms, err := e.deadline(sg)
		if err != nil {
			return err
		}
		s.replayDeadline(sp, h, e, ms)
		sp.dir.Insert(h, keydir.Slot{Type: keydir.Deadline, Loc: loc})
		s.live(sg, loc)
	case KindDeadlineTombstone:
		s.replayDeadline(sp, h, e, 0)
	}
	return nil
}

// deadline is what an entry of KindDeadline says.
func (e *entry) deadline(sg *segment) (int64, error) {
	ms, err := strconv.ParseInt(text(e.inline), 10, 64)
	if err != nil {
		return 0, &CorruptError{sg.name, int64(e.at), "deadline is not a number"}
	}
	return ms, nil
}

// retellDeadline tells of a change of deadlines that the keydir has already:
// he who keeps the deadlines was asked about an earlier moment.
func (s *Store) retellDeadline(sg *segment, e *entry) (err error) {
	ev := DeadlineEvent{Space: e.Namespace, Key: text(e.Key), Sequence: e.seq}
	switch e.Kind {
	case KindDeadline:
		if ev.Deadline, err = e.deadline(sg); err != nil {
			return err
		}
	case KindTombstone, KindDeadlineTombstone:
	default:
		return nil
	}
	s.replayed(ev)
	return nil
}

func (s *Store) replayNamespaces(sg *segment, e *entry) error {
	dropped, err := s.spaces.replay(e.inline)
	if err != nil {
		return &CorruptError{sg.name, int64(e.at), "namespace map"}
	}
	for _, sp := range dropped {
		s.forgetSpace(sp)
		s.replayed(DeadlineEvent{Space: sp.id, Dropped: true, Sequence: e.seq})
	}
	s.unlive(s.spaces.record)
	s.spaces.record = keydir.MakeLoc(sg.id, e.at, e.size)
	s.live(sg, s.spaces.record)
	return nil
}

// replayGone removes what the key holds.
func (s *Store) replayGone(sp *space, h uint64, key []byte) {
	if fam, ok := sp.dir.FindFamily(h, text(key)); ok {
		s.leave(sp.dir.DropFamily(h, fam))
		return
	}
	for i := 0; ; i++ {
		slot, ok := sp.dir.Find(h, i)
		if !ok {
			return
		}
		if slot.Type == keydir.String && s.isKey(slot.Loc, key) {
			sp.dir.Delete(h, slot)
			s.unlive(slot.Loc)
			return
		}
	}
}

// isKey reports whether the record at loc is about key. Hashes of different
// keys agree about once in 2^61 pairs; a record that cannot be read is taken
// for the one that its hash says.
func (s *Store) isKey(loc keydir.Loc, key []byte) bool {
	same := true
	sg, err := s.segmentOf(loc)
	if err == nil {
		err = sg.identify(loc, func(rec *record) { same = string(rec.Key) == string(key) })
	}
	return err != nil || same
}

// replayFamily finds the collection that an element belongs to, or makes it.
func (s *Store) replayFamily(sp *space, h uint64, e *entry) keydir.Family {
	if fam, ok := sp.dir.FindFamily(h, text(e.Key)); ok {
		if fam.Type() == e.Type {
			return fam
		}
	}
	s.replayGone(sp, h, e.Key)
	return sp.dir.NewFamily(h, e.Type, string(e.Key))
}

func (s *Store) replayElem(sp *space, h uint64, sg *segment, e *entry, loc keydir.Loc) error {
	fam := s.replayFamily(sp, h, e)
	var old keydir.Loc
	switch e.Type {
	case keydir.ZSet:
		score, ok := ordered.ParseHex(e.inline)
		if !ok {
			return &CorruptError{sg.name, int64(e.at), "score is not 16 hex digits"}
		}
		_, old, _ = fam.PutScored(text(e.Elem), score, loc)
	case keydir.List:
		index, ok := parseIndex(e.Elem)
		if !ok {
			return &CorruptError{sg.name, int64(e.at), "list index is not 16 hex digits"}
		}
		old, _ = fam.PutAt(index, loc)
	default:
		old, _ = fam.Put(text(e.Elem), loc)
	}
	s.unlive(old)
	s.live(sg, loc)
	return nil
}

func (s *Store) replayElemGone(sp *space, h uint64, sg *segment, e *entry) error {
	fam, ok := sp.dir.FindFamily(h, text(e.Key))
	if !ok || fam.Type() != e.Type {
		return nil
	}
	var old keydir.Loc
	switch e.Type {
	case keydir.ZSet:
		_, old, _ = fam.DeleteScored(text(e.Elem))
	case keydir.List:
		index, ok := parseIndex(e.Elem)
		if !ok {
			return &CorruptError{sg.name, int64(e.at), "list index is not 16 hex digits"}
		}
		old, _ = fam.DeleteAt(index)
	default:
		old, _ = fam.Delete(text(e.Elem))
	}
	s.unlive(old)
	return nil
}

// replayDeadline removes the deadline slot of a key and tells of the change.
func (s *Store) replayDeadline(sp *space, h uint64, e *entry, ms int64) {
	for i := 0; ; i++ {
		slot, ok := sp.dir.Find(h, i)
		if !ok {
			break
		}
		if slot.Type == keydir.Deadline && s.isKey(slot.Loc, e.Key) {
			sp.dir.Delete(h, slot)
			s.unlive(slot.Loc)
			break
		}
	}
	s.replayed(DeadlineEvent{Space: sp.id, Key: text(e.Key), Deadline: ms, Sequence: e.seq})
}
