package db

import (
	"iter"
	"strconv"
	"time"

	"github.com/stavedb/stave/structures"
)

// Stream is a handle on a key that holds a stream: entries of fields and values, each under an id that is greater than
// all before it. Its methods return ErrWrongType if the key holds anything else. A stream without entries exists until
// its key is deleted.
type Stream struct{ handle }

// Stream returns a handle on the stream at key. It reads nothing.
func (s *Store) Stream(key string) Stream { return Stream{s.handle(key)} }

// Stream returns a handle on the stream at key, inside the transaction. It reads nothing.
func (t *Tx) Stream(key string) Stream { return Stream{t.handle(key)} }

// StreamID is the id of an entry: Unix milliseconds, and a number within the millisecond.
//
//	Ms  uint64
//	Seq uint64
type StreamID = structures.StreamID

// MaxStreamID is the greatest id; the zero StreamID is before all entries.
var MaxStreamID = structures.MaxStreamID

// ParseStreamID reads an id as StreamID.String writes it, "time-number"; ok is false if text is none.
func ParseStreamID(text string) (id StreamID, ok bool) { return structures.ParseStreamID(text, 0) }

// StreamIDAt returns the least id of a moment, for ranges by time.
func StreamIDAt(at time.Time) StreamID { return StreamID{Ms: uint64(max(at.UnixMilli(), 0))} }

// StreamEntry is an entry of a stream. Field names may repeat, and keep their order.
type StreamEntry struct {
	ID     StreamID
	Fields []Field
}

// StreamInfo is what is known of a stream besides its entries.
//
//	First   StreamID // entries before it have been trimmed
//	Last    StreamID // the last id that was given or set
//	Deleted StreamID // the greatest id that was deleted by itself
//	Added   uint64   // how many entries have ever been added
//	Len     int
type StreamInfo = structures.StreamInfo

// Len returns the number of entries, 0 if the key does not exist. O(1).
func (s Stream) Len() (int, error) {
	return call(s.handle, reading, func(t *Tx) (int, error) { return s.on(t).Len() })
}

// Info returns what is known of the stream, or ErrNotFound if the key does not exist. O(1), and O(1) for each hundred
// entries that were added since an entry was last deleted or trimmed.
func (s Stream) Info() (StreamInfo, error) {
	return callFound(s.handle, reading, func(t *Tx) (StreamInfo, bool, error) { return s.on(t).Info() })
}

// StreamTrim says which entries are to go: the oldest until MaxLen are left or, with ByID, those before MinID.
//
//	ByID        bool
//	MaxLen      int
//	MinID       StreamID
//	Approximate bool // in steps of a hundred entries, which costs less
//	Limit       int  // at most so many, if Approximate. Default: no limit
//	References  StreamReferences
type StreamTrim = structures.StreamTrim

// StreamAddOptions narrow Stream.AddWith.
type StreamAddOptions struct {
	// ID is the id of the entry. Default: the next one by the clock.
	ID StreamID
	// Only adds to a stream that exists. Default: a missing stream is made.
	Only bool
	// Trim removes old entries in the same step. Default: none.
	Trim *StreamTrim
}

// Add appends an entry and returns its id: the present millisecond, or the id after the last one if that is later. It
// fails with structures.ErrSyntax without fields. O(log n).
func (s Stream) Add(fields ...Field) (StreamID, error) {
	return s.AddWith(StreamAddOptions{}, fields...)
}

// AddWith is Add with options. It fails with structures.ErrStreamIDSmall if the stream has had an id as great, and with
// ErrNotFound if the stream does not exist and o wants that. O(log n), and O(1) an entry trimmed.
func (s Stream) AddWith(o StreamAddOptions, fields ...Field) (StreamID, error) {
	list := make([][]byte, 0, 2*len(fields))
	for _, field := range fields {
		list = append(list, []byte(field.Name), field.Value)
	}
	return s.Append(list, structures.StreamNewID{Given: o.ID != StreamID{}, ID: o.ID}, o.Only, o.Trim)
}

// Append is AddWith for fields and values in turns, which it does not copy, and with every way to choose an id; the
// clock of the transaction is filled in. O(log n), and O(1) an entry trimmed.
func (s Stream) Append(fields [][]byte, id structures.StreamNewID, only bool, trim *StreamTrim) (StreamID, error) {
	return callFound(s.handle, writing, func(t *Tx) (StreamID, bool, error) {
		id.ClockInMs = t.now()
		return s.on(t).Add(fields, structures.StreamAddOptions{ID: id, Only: only, Trim: trim})
	})
}

// Get returns an entry, or ErrNotFound. O(log n).
func (s Stream) Get(id StreamID) (StreamEntry, error) {
	list, err := s.Range(id, id, 1)
	if err != nil || len(list) == 0 {
		return StreamEntry{}, found(false, err)
	}
	return list[0], nil
}

// HasAfter reports whether there is an entry after an id. O(log n).
func (s Stream) HasAfter(id StreamID) (bool, error) {
	return call(s.handle, reading, func(t *Tx) (bool, error) { return s.on(t).HasAfter(id) })
}

// LastID returns the last id that was given or set, the zero id if the key does not exist. O(log n).
func (s Stream) LastID() (StreamID, error) {
	return call(s.handle, reading, func(t *Tx) (StreamID, error) { return s.on(t).LastID() })
}

// Range returns up to count entries, all if it is 0, from one id to another, both inclusive. O(log n + number
// returned).
func (s Stream) Range(from, to StreamID, count int) ([]StreamEntry, error) {
	return s.entries(structures.StreamRange{From: from, To: to, Count: count})
}

// RangeReverse is Range from the greatest id down. O(log n + number returned).
func (s Stream) RangeReverse(from, to StreamID, count int) ([]StreamEntry, error) {
	return s.entries(structures.StreamRange{From: from, To: to, Count: count, Reverse: true})
}

func (s Stream) entries(r structures.StreamRange) (list []StreamEntry, err error) {
	err = s.do(reading, func(t *Tx) error {
		return s.on(t).Visit(r, func(id StreamID, fields [][]byte) bool {
			list = append(list, streamEntry(id, fields))
			return true
		})
	})
	return list, err
}

// CopyStreamEntry is an entry of what a visitor is given, copied.
func CopyStreamEntry(id StreamID, fields [][]byte) StreamEntry { return streamEntry(id, fields) }

// streamEntry copies an entry.
func streamEntry(id StreamID, fields [][]byte) StreamEntry {
	e := StreamEntry{ID: id, Fields: make([]Field, 0, len(fields)/2)}
	for i := 0; i+1 < len(fields); i += 2 {
		e.Fields = append(e.Fields, Field{Name: string(fields[i]), Value: append([]byte{}, fields[i+1]...)})
	}
	return e
}

// Visit calls visit for each entry from one id to another, both inclusive, with its fields and values in turns, until
// it returns false, all at one moment. The slices are valid during the call only, and visit may not use the store or
// change the transaction: it is the form that copies nothing. O(log n + number visited).
func (s Stream) Visit(from, to StreamID, visit func(id StreamID, fields [][]byte) bool) error {
	return s.visit(func(t *Tx) error {
		return s.on(t).Visit(structures.StreamRange{From: from, To: to}, visit)
	})
}

// VisitRange is Visit of a range in either order, and of so many entries.
func (s Stream) VisitRange(r structures.StreamRange, visit func(id StreamID, fields [][]byte) bool) error {
	return s.visit(func(t *Tx) error { return s.on(t).Visit(r, visit) })
}

// All ranges over the entries from an id on. See the package documentation on iterators: it reads in pages, and sees
// entries that are added before it has come to the end.
func (s Stream) All(from StreamID) iter.Seq2[StreamEntry, error] {
	return func(yield func(StreamEntry, error) bool) {
		for next := from; ; {
			page, err := s.Range(next, MaxStreamID, pageSize)
			if err != nil {
				yieldError(s.handle, err, yield)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				next = e.ID.Next()
			}
			if len(page) == 0 || next == (StreamID{}) {
				return
			}
		}
	}
}

// Delete deletes entries and returns how many of them were there. Where they are pending they stay so. O(log n) an entry.
func (s Stream) Delete(ids ...StreamID) (deleted int, err error) {
	err = s.do(writing, func(t *Tx) error {
		return s.on(t).Delete(ids, structures.KeepReferences, func(became StreamDeletion) {
			if became == structures.EntryDeleted {
				deleted++
			}
		})
	})
	return deleted, err
}

// StreamReferences says what becomes of the references to entries that are deleted: groups that have them pending.
type StreamReferences = structures.StreamReferences

// What becomes of references.
const (
	KeepReferences   = structures.KeepReferences   // the entry stays pending
	DeleteReferences = structures.DeleteReferences // it is pending in no group any more
	NeedAcknowledged = structures.NeedAcknowledged // an entry stays if a group has it pending, or has not delivered it
)

// StreamDeletion is what became of an entry.
type StreamDeletion = structures.StreamDeletion

// What became of an entry.
const (
	EntryAbsent  = structures.EntryAbsent // there was none, or it was not pending in the group
	EntryDeleted = structures.EntryDeleted
	EntryKept    = structures.EntryKept // because of a reference
)

// DeleteWith is Delete that minds the groups, and returns what became of each entry. O(log n) an entry and a group.
func (s Stream) DeleteWith(how StreamReferences, ids ...StreamID) (list []StreamDeletion, err error) {
	list = make([]StreamDeletion, 0, len(ids))
	err = s.do(writing, func(t *Tx) error {
		return s.on(t).Delete(ids, how, func(became StreamDeletion) { list = append(list, became) })
	})
	return owned(list, err)
}

// Trim removes entries from the front and returns how many. It writes one record, and more only with o.References. O(1) an
// entry removed.
func (s Stream) Trim(o StreamTrim) (int, error) {
	return call(s.handle, writing, func(t *Tx) (int, error) { return s.on(t).Trim(o) })
}

// StreamSetID says what Stream.SetID sets besides the last id; nil leaves it.
//
//	Added   *uint64
//	Deleted *StreamID
type StreamSetID = structures.StreamSetID

// SetID sets the last id: entries that are added later get greater ones. It returns ErrNotFound if the key does not
// exist, and fails with structures.ErrStreamSetTop, ErrStreamSetAdded or ErrStreamSetDeleted if the stream holds more
// than that. O(1).
func (s Stream) SetID(last StreamID, o StreamSetID) error {
	ok, err := call(s.handle, writing, func(t *Tx) (ok bool, err error) {
		err = t.described(s.key, func() error {
			ok, err = s.on(t).SetID(last, o)
			return err
		}, func() []string {
			args := []string{"XSETID", s.key, last.String()}
			if o.Added != nil {
				args = append(args, "ENTRIESADDED", strconv.FormatUint(*o.Added, 10))
			}
			if o.Deleted != nil {
				args = append(args, "MAXDELETEDID", o.Deleted.String())
			}
			return args
		})
		return ok, err
	})
	return found(ok, err)
}

// Create makes an empty stream, of which info says what is known: First and Len are left out. It returns ErrExists if
// the key exists. O(1).
func (s Stream) Create(info StreamInfo) error {
	err := s.do(writing, func(t *Tx) error {
		return s.on(t).Create(StreamInfo{Last: info.Last, Added: info.Added, Deleted: info.Deleted})
	})
	if err == structures.ErrStreamExists {
		return ErrExists
	}
	return err
}

func (s Stream) on(t *Tx) structures.Stream { return structures.Stream{Txn: t.txn(), Key: s.key} }
