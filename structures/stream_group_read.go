package structures

import "github.com/stavedb/stave/keydir"

// StreamGroupRead says who reads how much of a group.
type StreamGroupRead struct {
	Consumer string // is made if it does not exist
	Count    int    // at most so many entries; 0: all
	NoAck    bool   // what is read counts as acknowledged
}

// HasNew reports whether there are entries that the group has not delivered. O(log n).
func (g StreamGroup) HasNew() (bool, error) {
	o, err := g.open()
	if err != nil {
		return false, err
	}
	last, ok := o.coll.LastEntry()
	return ok && o.last.Less(last), nil
}

// HasNewBeyond reports whether there are more than n entries that the group has not delivered. O(n + log m), m being
// all entries.
func (g StreamGroup) HasNewBeyond(n int) (bool, error) {
	o, err := g.open()
	if err != nil {
		return false, err
	}
	found := 0
	o.coll.AscendEntries(o.last.Next(), func(StreamID, keydir.Loc) bool {
		found++
		return found <= n
	})
	return found > n, nil
}

// Read delivers the next entries of the stream to a consumer, for whom they are pending then, and calls visit for each
// until it returns false. The slices are valid during the call only, and visit may not change the stream. O(log n) an
// entry.
func (g StreamGroup) Read(r StreamGroupRead, visit func(id StreamID, fields [][]byte) bool) error {
	o, err := g.open()
	if err != nil {
		return err
	}
	c, _, err := o.see(r.Consumer)
	if err != nil {
		return err
	}
	if o.last == MaxStreamID { // nothing comes after it
		return nil
	}
	var ids []StreamID // the records are written after the walk, which they would disturb
	all := StreamRange{From: o.last.Next(), To: MaxStreamID, Count: r.Count}
	err = g.stream().visit(o.coll, all, func(id StreamID, fields [][]byte) bool {
		ids = append(ids, id)
		return visit(id, fields)
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := o.deliver(c, ids, r.NoAck); err != nil {
		return err
	}
	o.note()
	return nil
}

// deliver writes that a consumer has been given entries.
func (o *streamGroup) deliver(c groupConsumer, ids []StreamID, acked bool) error {
	if err := o.advance(ids); err != nil {
		return err
	}
	if acked {
		return o.put()
	}
	for _, id := range ids {
		// The entry may be pending for another consumer, if the group has been set back.
		if err := o.putPending(pending{id, c.number, o.Now, 1}); err != nil {
			return err
		}
	}
	if err := o.acted(c); err != nil {
		return err
	}
	return o.put()
}

// History calls visit for what is pending for a consumer after an id, which counts as one more delivery, until it
// returns false. fields is nil for an entry that is gone. O(log n) an entry.
func (g StreamGroup) History(r StreamGroupRead, after StreamID, visit func(id StreamID, fields [][]byte) bool) error {
	o, err := g.open()
	if err != nil {
		return err
	}
	c, _, err := o.see(r.Consumer)
	if err != nil || after == MaxStreamID {
		return err
	}
	walk, reader, n := o.walkPending(after.Next(), c), entryReader{s: g.stream(), f: o.coll}, 0
	for id, _, ok := walk.next(); ok; id, _, ok = walk.next() {
		fields, there, err := reader.read(id)
		if err != nil {
			return err
		}
		if there {
			p, _, err := o.pendingOf(id)
			if err == nil {
				err = o.putPending(pending{id, c.number, o.Now, p.deliveries + 1})
			}
			if err != nil {
				return err
			}
		}
		n++
		if !visit(id, fields) || n == r.Count {
			break
		}
	}
	return nil
}

// entryReader reads one entry after the other.
type entryReader struct {
	s     Stream
	f     keydir.Collection
	value []byte
	list  [][]byte
}

// read returns the fields of an entry, valid until the next call, if it is there.
func (r *entryReader) read(id StreamID) (fields [][]byte, there bool, err error) {
	loc, there := r.f.Entry(id)
	if !there {
		return nil, false, nil
	}
	if r.value, err = r.s.entry(r.value[:0], id, loc); err != nil {
		return nil, false, err
	}
	var ok bool
	if r.list, ok = ParseEntry(r.list[:0], r.value); !ok {
		return nil, false, &EntryError{Key: r.s.Key, ID: id}
	}
	return r.list, true, nil
}

// The number of entries that a group has read is a logical one: that of the entries added up to its last one. It is
// unknown after the group was set to some id, or where entries have been deleted.
const (
	unknownRead = -1
	neverActive = -1
)

// advance moves the group past entries, which follow each other.
func (o *streamGroup) advance(ids []StreamID) error {
	info, err := o.Txn.StreamMeta(o.Key, o.coll)
	if err != nil {
		return err
	}
	first, _ := o.coll.FirstEntry()
	for _, id := range ids {
		switch {
		case o.read != unknownRead && !o.last.Less(first) && !hasTombstones(info, first, o.last):
			o.read++
		case info.Added > 0:
			o.read = entriesUpTo(info, first, id)
		}
		o.last = id
	}
	return nil
}

// hasTombstones reports whether entries may have been deleted from an id on.
func hasTombstones(info StreamInfo, first, from StreamID) bool {
	if info.Len == 0 || info.Deleted == (StreamID{}) || info.Deleted.Less(first) {
		return false
	}
	return from.Compare(info.Deleted) <= 0
}

// entriesUpTo is how many entries have been added up to an id, or unknownRead.
func entriesUpTo(info StreamInfo, first, id StreamID) int64 {
	switch {
	case info.Added == 0:
		return 0
	case info.Len == 0 && id.Compare(info.Last) < 1:
		return int64(info.Added)
	case id != StreamID{} && id.Less(info.Deleted):
		return unknownRead
	case id == info.Last:
		return int64(info.Added)
	case info.Last.Less(id):
		return unknownRead
	}
	if info.Deleted == (StreamID{}) || info.Deleted.Less(first) {
		switch {
		case id.Less(first):
			return int64(info.Added) - int64(info.Len)
		case id == first:
			return int64(info.Added) - int64(info.Len) + 1
		}
	}
	return unknownRead
}

// lag is how many entries the group has not read, or unknownRead.
func (o *streamGroup) lag(info StreamInfo) int64 {
	first, _ := o.coll.FirstEntry()
	switch {
	case info.Added == 0 || info.Len == 0:
		return 0
	case o.last.Less(first) && info.Deleted.Less(first):
		return int64(info.Len)
	case o.read != unknownRead && !hasTombstones(info, first, o.last):
		return int64(info.Added) - o.read
	}
	if read := entriesUpTo(info, first, o.last); read != unknownRead {
		return int64(info.Added) - read
	}
	return unknownRead
}
