package structures

import "github.com/stavedb/stave/keydir"

// StreamReferences says what becomes of the references to an entry that is to be deleted: groups in which it is pending.
type StreamReferences uint8

// What becomes of references.
const (
	KeepReferences   StreamReferences = iota // KEEPREF: the entry stays pending
	DeleteReferences                         // DELREF: it is pending in no group any more
	NeedAcknowledged                         // ACKED: an entry stays if a group has it pending, or has not delivered it
)

// StreamDeletion is what became of an entry that was to be deleted, in Redis's numbers.
type StreamDeletion int8

// What became of an entry.
const (
	EntryAbsent  StreamDeletion = -1 // there was none, or it was not pending in the group
	EntryDeleted StreamDeletion = 1
	EntryKept    StreamDeletion = 2 // NeedAcknowledged: it is referenced
)

// streamDeletion deletes entries of a stream in one call.
type streamDeletion struct {
	s      Stream
	f      keydir.Collection
	info   StreamInfo
	how    StreamReferences
	groups []streamGroup // unless references are kept
	least  StreamID      // NeedAcknowledged: all groups have been delivered what comes up to here

	deleted      int
	unreferenced []StreamID // DeleteReferences: the ids whose references end deletes
}

func (s Stream) deletion(f keydir.Collection, how StreamReferences) (*streamDeletion, error) {
	d := &streamDeletion{s: s, f: f, how: how}
	var err error
	if d.info, err = s.Txn.StreamMeta(s.Key, f); err != nil || how == KeepReferences {
		return d, err
	}
	names, err := s.GroupNames()
	if err != nil {
		return d, err
	}
	d.least = MaxStreamID
	for _, name := range names {
		g := StreamGroup{Txn: s.Txn, Key: s.Key, Name: name}
		o, err := g.find()
		if err == nil && how == NeedAcknowledged {
			if o, err = g.open(); o.last.Less(d.least) { // which its record says
				d.least = o.last
			}
		}
		if err != nil {
			return d, err
		}
		d.groups = append(d.groups, o)
		s.Txn.Yield()
	}
	return d, nil
}

// stays says whether a reference keeps an entry. O(log n) a group.
func (d *streamDeletion) stays(id StreamID) bool {
	if d.how != NeedAcknowledged {
		return false
	}
	if d.least.Less(id) {
		return true
	}
	for i := range d.groups {
		if _, _, pending := d.groups[i].all.Score(keydir.PendingElem(d.groups[i].number, id)); pending {
			return true
		}
	}
	return false
}

// delete deletes one entry.
func (d *streamDeletion) delete(id StreamID) (StreamDeletion, error) {
	if d.how == DeleteReferences {
		d.unreferenced = append(d.unreferenced, id)
	}
	if _, there := d.f.Entry(id); !there {
		return EntryAbsent, nil
	}
	if d.stays(id) {
		return EntryKept, nil
	}
	if _, err := d.s.Txn.DeleteEntry(d.s.Key, d.f, id); err != nil {
		return EntryAbsent, err
	}
	d.deleted++
	if d.info.Deleted.Less(id) {
		d.info.Deleted = id
	}
	return EntryDeleted, nil
}

// end writes what is known of the stream, and deletes references.
func (d *streamDeletion) end(event EventKind) error {
	if d.deleted > 0 {
		if err := d.s.Txn.PutStreamMeta(d.s.Key, d.f, d.info); err != nil {
			return err
		}
		d.s.Txn.Notify(event, d.s.Key)
	}
	for _, id := range d.unreferenced {
		for i := range d.groups {
			if _, err := d.groups[i].removePending(id); err != nil {
				return err
			}
			d.s.Txn.Yield()
		}
	}
	return nil
}

// Delete deletes entries, and visits what became of each. O(log n) an entry, and a group unless references are kept.
func (s Stream) Delete(ids []StreamID, how StreamReferences, visit func(StreamDeletion)) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	if !f.Valid() {
		for range ids {
			visit(EntryAbsent)
		}
		return nil
	}
	d, err := s.deletion(f, how)
	if err != nil {
		return err
	}
	for _, id := range ids {
		became, err := d.delete(id)
		if err != nil {
			return err
		}
		visit(became)
		s.Txn.Yield()
	}
	return d.end(EventXDel)
}

// AckAndDelete acknowledges entries, deletes them from the stream as well, and visits what became of each:
// EntryAbsent if it was not pending. Without a group none was. An entry that was gone counts as deleted. O(log n) an
// entry, and a group unless references are kept.
func (g StreamGroup) AckAndDelete(ids []StreamID, how StreamReferences, visit func(StreamDeletion)) error {
	o, err := g.find()
	if err == ErrNoGroup {
		for range ids {
			visit(EntryAbsent)
		}
		return nil
	}
	if err != nil {
		return err
	}
	d, err := g.stream().deletion(o.coll, how)
	if err != nil {
		return err
	}
	for _, id := range ids {
		did, err := o.removePending(id)
		if err != nil {
			return err
		}
		if !did {
			visit(EntryAbsent)
			continue
		}
		became, err := d.delete(id)
		if err != nil {
			return err
		}
		if became == EntryAbsent {
			became = EntryDeleted
		}
		visit(became)
		g.Txn.Yield()
	}
	return d.end(EventXDel)
}
