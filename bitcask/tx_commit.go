package bitcask

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/bitcask/internal/undo"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/keydir"
)

// Commit appends everything the transaction did to the log as one frame, and gives the keydir the real locations. The
// locks stay held until End. The result is a ticket for WaitDurable: the sequence number after the last record of the
// commit, so tickets compare as commits do; zero if there was nothing to write. After an error nothing has been
// written: the changes are there for another Commit, or for End to roll back. A handle of a collection that the
// transaction has emptied may not be valid then: get it again.
//
// I1: when Commit returns, the frame has been copied into a mapping of the file, or written to it, with several writes
// if values are long. So it survives the process; WaitDurable returns when it survives the machine.
func (t *Tx) Commit() (ticket uint64, err error) {
	if !t.open {
		return 0, ErrTxDone
	}
	t.call = t.here()
	if err := t.addMeta(); err != nil {
		return 0, t.refuse(err)
	}
	if t.recs.Len() == 0 {
		t.forget()
		return 0, nil
	}
	var sg *segment.Segment
	var at int64
	var seq uint64
	if t.locks.claim != nil || len(t.buf)+t.outOfLine >= commitlog.LargeFrame {
		t.Apart(func() { sg, at, seq, err = t.appendToLog() })
	} else {
		sg, at, seq, err = t.appendToLog()
	}
	if err != nil {
		return 0, t.refuse(err)
	}
	ticket = seq + uint64(t.recs.Len())
	if t.single.put {
		t.placeSingle(sg, at)
	} else {
		t.markReplacedDead()
		t.place(sg, at, seq)
	}
	t.forget()
	return ticket, nil
}

// Changed reports whether the transaction has written anything that is not committed.
func (t *Tx) Changed() bool { return t.recs.Len() > 0 }

// forget makes the changes final.
func (t *Tx) forget() {
	t.turns++
	t.single = singlePut{}
	t.undo.Cut(0)
	t.made = madeCollection{}
	clear(t.touched)
	clear(t.known)
	t.recs.Cut(0)
	clear(t.spaces)
	clear(t.values)
	clear(t.frame.Values)
	t.buf, t.outOfLine, t.touched = t.buf[:format.FrameHeaderSize], 0, t.touched[:0]
	t.spaces, t.values, t.effects = t.spaces[:0], t.values[:0], nil
}

// WaitDurable returns when the commit with this ticket is as durable as
// the store's SyncMode promises for an acknowledged write. Call it after End: no one
// should wait for a disk with locks held.
func (s *Store) WaitDurable(ticket uint64) error {
	if ticket == 0 || s.SyncMode() != SyncAlways {
		return nil
	}
	return s.log.WaitSynced(ticket)
}

// Durable reports whether WaitDurable would return at once.
func (s *Store) Durable(ticket uint64) bool {
	return ticket == 0 || s.SyncMode() != SyncAlways || s.log.IsSynced(ticket)
}

// addMeta adds the meta record of every collection whose count or bounds have changed, and removes
// collections that became empty. I5: so a meta record is in the same frame as the change that it
// counts.
func (t *Tx) addMeta() error {
	for i := range t.touched {
		tf := &t.touched[i]
		coll, ok := tf.sp.Dir.FindCollection(tf.h, tf.key)
		if !ok {
			continue // dropped, with a tombstone
		}
		if coll.Empty() {
			if _, err := t.add(KindTombstone, coll.Type(), tf.sp, tf.h, tf.key, "", nil); err != nil {
				return err
			}
			t.dropCollection(tf.sp, tf.h, tf.key, coll)
			if err := t.dropDeadline(tf); err != nil {
				return err
			}
			continue
		}
		if coll.Type() == keydir.Stream {
			continue // what needs a meta record has written it: PutStreamMeta
		}
		if err := t.addMetaOf(tf, coll); err != nil {
			return err
		}
	}
	return nil
}

// dropDeadline forgets the deadline of a key whose tombstone has been added.
func (t *Tx) dropDeadline(tf *touchedCollection) error {
	slot, ok, err := t.deadlineSlot(tf.sp, tf.h, tf.key)
	if err != nil {
		return err
	}
	if ok {
		t.deleteSlot(tf.sp, tf.h, slot)
	}
	return nil
}

func (t *Tx) addMetaOf(tf *touchedCollection, coll keydir.Collection) error {
	typ, count := coll.Type(), coll.Len()
	var head, tail int64
	if typ.Indexed() {
		head, tail = coll.Bounds()
	}
	old := coll.Meta()
	if old != 0 && typ == tf.typ && count == tf.count && head == tf.head && tail == tf.tail && !t.rewritesLastChunk(coll) {
		return nil
	}
	var length int64
	if typ == keydir.Chunks {
		var err error
		if length, err = t.chunkedLen(tf.sp, tf.key, coll); err != nil {
			return err
		}
	}
	var b [format.MetaSize]byte
	loc, err := t.add(KindMeta, typ, tf.sp, tf.h, tf.key, format.MetaLen, format.AppendMeta(b[:0], typ, length, count))
	if err != nil {
		return err
	}
	if typ == keydir.List {
		if err := t.follow(KindBound, typ, tf.sp, tf.h, tf.key, format.MetaHead, []byte(format.IndexName(head))); err != nil {
			return err
		}
		if err := t.follow(KindBound, typ, tf.sp, tf.h, tf.key, format.MetaTail, []byte(format.IndexName(tail))); err != nil {
			return err
		}
	}
	coll.SetMeta(loc)
	t.undo.Append(undo.Op{Kind: undo.Meta, Dir: tf.sp.Dir, Hash: tf.h, Key: tf.key, Loc: old})
	return nil
}

// encode returns the commit as the log takes it: without the out-of-line values in its bytes, and with
// the position of each record in them.
func (t *Tx) encode() *commitlog.Frame {
	// Records begin 24 bytes into buf. A single one begins 20 bytes into its
	// frame, its checksum being the last field of the header.
	start := 0
	if t.recs.Len() == 1 {
		start = format.FrameHeaderSize - format.FrameSumAt
	}
	f := &t.frame
	f.Records, f.Values = f.Records[:0], f.Values[:0]
	if cap(f.Records) < t.recs.Len() {
		f.Records = make([]int, 0, t.recs.Len()) // zeroed in steps, unlike what slices.Grow does
	}
	for i := range t.recs.Len() {
		f.Records = append(f.Records, int(t.recs.At(i).pos)-start)
	}
	if t.outOfLine > 0 {
		for i := range t.recs.Len() {
			f.Values = append(f.Values, t.valueOf(t.recs.At(i)))
		}
	}
	t.frameStart = start
	f.Bytes = t.buf[start:]
	f.Size = int64(len(f.Bytes) + t.outOfLine)
	f.Effects = t.effects
	if f.Effects == nil && t.s.effects.wanted.Load() {
		f.Effects = t.missing()
	}
	return f
}

// markReplacedDead turns what the transaction replaced into dead bytes.
func (t *Tx) markReplacedDead() {
	for i := range t.undo.Len() {
		u := t.undo.At(i)
		t.s.dead.add(u.Loc)
		switch u.Kind {
		case undo.Trim:
			u.Trimmed.Each(t.s.dead.add)
		case undo.Drop:
			t.s.dead.addTogether(*u.Dropped)
		case undo.DeleteRange:
			t.s.dead.addTogether(*u.Removed)
		}
	}
}

// place gives the keydir the real location of every record that it still
// points to, and counts the bytes as live.
func (t *Tx) place(sg *segment.Segment, at int64, seq uint64) {
	in := placing{spaces: t.spaces, buf: t.buf}
	for i := 0; i < t.recs.Len(); {
		r := t.recs.At(i)
		size := r.size
		n := 1
		for ; i+n < t.recs.Len() && t.recs.At(i+n).kind.Follows(); n++ {
			size += t.recs.At(i + n).size
		}
		pending := keydir.MakeLoc(keydir.PendingSegment, uint32(i), r.size)
		loc := keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.offset(t.frameStart)), size)
		if r.row().Home == format.HomeSystem {
			t.placeSystem(r, sg, loc, seq+uint64(i))
		} else if in.move(r, pending, loc) {
			addLive(sg, loc)
		}
		if i += n; t.locks.claim != nil {
			t.Yield()
		}
	}
}

// placing is the collection of the record that was placed last: mostly those of one collection follow each other.
type placing struct {
	spaces []*namespace.Space
	buf    []byte

	of   *txRecord
	coll keydir.Collection
	ok   bool // it is there
}

// move is locate.Move of a record of the transaction.
func (p *placing) move(r *txRecord, pending, loc keydir.Loc) bool {
	id := Identity{Kind: r.kind, Type: r.typ}
	dir := p.spaces[r.space].Dir
	if !id.Row().InCollection() {
		return locate.Move(dir, r.h, &id, pending, loc)
	}
	id.Key, id.Elem = r.key(p.buf), r.elem(p.buf)
	if l := p.of; l == nil || l.space != r.space || l.h != r.h || l.typ != r.typ || !bytes.Equal(l.key(p.buf), id.Key) {
		p.coll, p.ok = locate.CollectionOf(dir, r.h, &id)
	}
	p.of = r
	return p.ok && locate.MoveIn(p.coll, &id, pending, loc)
}

// appendToLog appends the transaction to the log. One that only deletes may draw on the reserve, and so may what Open
// and Close note; the others wait until that is whole.
func (t *Tx) appendToLog() (sg *segment.Segment, at int64, seq uint64, err error) {
	log, r, f := &t.s.log, &t.s.reserve, t.encode()
	if err := t.takeOfBound(f.Size); err != nil {
		return nil, 0, 0, err
	}
	full, short, seen := r.Full(), r.Short(), r.Seen()
	if !short || t.draws() {
		if sg, at, seq, err = t.append(f); err == nil {
			t.s.grown.Stir(nap.Any)
			if full && !t.draws() {
				r.NoteSpace()
			}
			return sg, at, seq, nil
		}
		if !NoSpace(err) {
			return nil, 0, 0, err
		}
	}
	switch {
	case t.draws():
		if sg, at, seq, err = t.appendDrawing(f, seen, err); err == nil || !NoSpace(err) {
			return sg, at, seq, err
		}
		r.NoteLack(err)
		err = t.s.NoRoom(err)
	case err != nil:
		r.NoteLack(err)
	case !r.Refill():
		err = r.Refuse()
	default:
		if sg, at, seq, err = t.append(f); err != nil && NoSpace(err) {
			r.NoteLack(err)
		}
	}
	if err != nil && t.s.SyncMode() == SyncAlways { // what it has left in the file must not come back
		err = errors.Join(err, log.Sync())
	}
	return sg, at, seq, failure.NameNoSpace(err)
}

// append appends without the reserve. Before a commit that is longer than a segment the reserve becomes what it should be afterwards.
func (t *Tx) append(f *commitlog.Frame) (sg *segment.Segment, at int64, seq uint64, err error) {
	if f.Size > t.s.SegmentSize() && !t.draws() {
		t.s.measureDisk()
		defer t.s.reserve.Appended(f.Size)
		if err := t.s.reserve.Prepare(f.Size); err != nil {
			return nil, 0, 0, fmt.Errorf("before a commit of %d bytes: %w", f.Size, err)
		}
	}
	return t.s.log.Append(f)
}

// appendDrawing appends with what the reserve gives up for it. failed is why it could not be appended without.
func (t *Tx) appendDrawing(f *commitlog.Frame, seen uint64, failed error) (sg *segment.Segment, at int64, seq uint64, err error) {
	r := &t.s.reserve
	defer r.Turn()()
	err = failed
	leave := max(t.floor, r.LeaveByDeletes())
	if t.recs.Len() == 1 && t.recs.At(0).row().Home == format.HomeNamespaces { // it empties whole namespaces, which needs no room for copies
		leave = max(leave, reserve.LeaveFourth)
	}
	for r.Release(seen, leave, err) {
		seen = r.Seen()
		if sg, at, seq, err = t.s.log.Append(f); err == nil || !NoSpace(err) {
			break
		}
	}
	return sg, at, seq, err
}

// draws reports whether the transaction may draw on the reserve.
func (t *Tx) draws() bool { return t.floor > 0 || t.deletes() }

// deletes reports whether the transaction only removes: it may need a few bytes now, and frees more sooner or later. What the store notes of
// itself meanwhile takes the place of an earlier note: a member of a group can delete nothing that it cannot note.
func (t *Tx) deletes() bool {
	for i := range t.recs.Len() {
		if r := t.recs.At(i); r.row().Grows() && !t.isNote(r) {
			return false
		}
	}
	return true
}

// isNote reports whether a record is a system record, but for parts of libraries and for the clock, which is noted with each key that is shown
// as gone: the deletes of those keys come first.
func (t *Tx) isNote(r *txRecord) bool {
	if r.row().Home != format.HomeSystem {
		return false
	}
	name := string(r.key(t.buf))
	return name != system.ClockName && !strings.HasPrefix(name, system.LibraryPrefix)
}
