package structures

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Stream is a key that holds entries of fields and values, each under an id greater than all before it.
// The ids are in memory, the entries on disk. A stream may be empty: only Delete of the key removes it.
//
// An append writes one record. What a stream knows besides its entries (StreamInfo) is derived from
// one other record and the ids, and is written again only when something else than an append happens.
type Stream struct {
	Txn StreamTxn
	Key string
}

// StreamID is the id of an entry: Unix milliseconds, and a number within the millisecond.
type StreamID = keydir.StreamID

// MaxStreamID is the greatest id.
var MaxStreamID = keydir.MaxStreamID

// StreamInfo is what is known of a stream: Last is the greatest id that was ever given or set, Added how many
// entries have ever been added, Deleted the greatest id that was deleted by itself, and First the id
// before which everything has been trimmed.
type StreamInfo = keydir.StreamMeta

// ParseStreamID reads an id as "time-number"; with the time alone, number is the number. ok is false if it is neither.
func ParseStreamID(text string, number uint64) (id StreamID, ok bool) {
	ms, seq, both := strings.Cut(text, "-")
	id.Seq = number
	if id.Ms, ok = parseUnsigned(ms); ok && both {
		id.Seq, ok = parseUnsigned(seq)
	}
	return id, ok
}

// parseUnsigned reads a number as Redis does: zeros, blanks and a plus in front are left out.
func parseUnsigned(text string) (uint64, bool) {
	digits := text
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	if n, ok := number.ParseInt(digits); ok {
		return uint64(n), n >= 0
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimLeft(text, " \t\n\v\f\r"), "+"), 10, 64)
	return n, err == nil
}

// appendEntryName appends the name of an id, as the entry's record has it.
func appendEntryName(dst []byte, id StreamID) []byte {
	return ordered.AppendHex(append(ordered.AppendHex(dst, id.Ms), '-'), id.Seq)
}

// An entry is its fields and values in turns, each as a uvarint length and the bytes.

func appendEntry(dst []byte, fields [][]byte) []byte {
	for _, field := range fields {
		dst = append(binary.AppendUvarint(dst, uint64(len(field))), field...)
	}
	return dst
}

// ParseEntry appends the fields and values of an entry, as PutEntry has it, to list.
func ParseEntry(list [][]byte, value []byte) ([][]byte, bool) {
	for len(value) > 0 {
		size, n := binary.Uvarint(value)
		if n <= 0 || size > uint64(len(value)-n) {
			return list, false
		}
		end := n + int(size)
		list = append(list, value[n:end:end])
		value = value[end:]
	}
	return list, len(list)%2 == 0
}

func (s Stream) open() (keydir.Collection, error) { return open(s.Txn, s.Key, keydir.Stream) }

// Len returns the number of entries, 0 if the key does not exist. O(1).
func (s Stream) Len() (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return f.Len(), nil
}

// Info returns what is known of the stream; ok is false if the key does not exist. O(entries
// appended since the last other change / 100).
func (s Stream) Info() (info StreamInfo, ok bool, err error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return info, false, err
	}
	info, err = s.Txn.StreamMeta(s.Key, f)
	return info, err == nil, err
}

// HasAfter reports whether there is an entry after an id. O(log n).
func (s Stream) HasAfter(id StreamID) (bool, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	last, ok := f.LastEntry()
	return ok && id.Less(last), nil
}

// LastID returns the last id that was given or set, the zero id if the key does not exist. O(log n).
func (s Stream) LastID() (StreamID, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return StreamID{}, err
	}
	return s.Txn.LastEntryID(s.Key, f)
}

// StreamNewID says which id a new entry gets. The zero value is the next one by the clock.
type StreamNewID struct {
	Given     bool // the id is ID, or
	NextInMs  bool // with the time ID.Ms the next number
	ID        StreamID
	ClockInMs int64 // Unix milliseconds, for an id by the clock
}

// of returns the id after last.
func (n StreamNewID) of(last StreamID) (StreamID, error) {
	if last == MaxStreamID {
		return last, ErrStreamExhausted
	}
	id := n.ID
	switch {
	case n.Given:
	case n.NextInMs:
		if id.Seq = 0; id.Ms == last.Ms {
			if id = last.Next(); id.Ms != last.Ms {
				return id, ErrStreamIDSmall
			}
		}
	default:
		if id = (StreamID{Ms: uint64(max(n.ClockInMs, 0))}); id.Ms <= last.Ms {
			id = last.Next()
		}
	}
	if !last.Less(id) {
		return id, ErrStreamIDSmall
	}
	return id, nil
}

// StreamAddOptions narrow Add.
type StreamAddOptions struct {
	ID   StreamNewID
	Only bool        // only to a stream that exists
	Trim *StreamTrim // afterwards
}

// Add appends an entry of fields and values in turns and returns its id. ok is false if the stream does not exist and o
// wants that. O(log n), and O(1) an entry trimmed.
func (s Stream) Add(fields [][]byte, o StreamAddOptions) (id StreamID, ok bool, err error) {
	if o.ID.Given && o.ID.ID == (StreamID{}) {
		return id, false, ErrStreamIDZero
	}
	if len(fields)%2 != 0 || len(fields) == 0 {
		return id, false, ErrSyntax
	}
	size := 0
	for _, field := range fields {
		if size += len(field) + binary.MaxVarintLen32; size > MaxString {
			return id, false, ErrStreamTooLarge
		}
	}
	f, err := s.open()
	if err != nil || !f.Valid() && o.Only {
		return id, false, err
	}
	last := StreamID{}
	if f.Valid() {
		last, err = s.Txn.LastEntryID(s.Key, f)
	} else {
		f, err = s.Txn.Collection(s.Key, keydir.Stream)
	}
	if err != nil {
		return id, false, err
	}
	if id, err = o.ID.of(last); err != nil {
		return id, false, err
	}
	if err := s.Txn.PutEntry(s.Key, f, id, appendEntry(make([]byte, 0, size), fields)); err != nil {
		return id, false, err
	}
	s.Txn.Notify(EventXAdd, s.Key)
	if o.Trim != nil {
		_, err = s.trim(f, *o.Trim)
	}
	return id, err == nil, err
}

// StreamRange is the entries from one id to another, both inclusive.
type StreamRange struct {
	From, To StreamID
	Reverse  bool // from To down to From
	Count    int  // at most so many; 0: all
}

// Visit calls visit for each entry of a range with its fields and values in turns, until it returns false. The
// slices are valid during the call only, and visit may not change the stream. O(log n + number visited).
func (s Stream) Visit(r StreamRange, visit func(id StreamID, fields [][]byte) bool) error {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return err
	}
	return s.visit(f, r, visit)
}

// entry appends the value of an entry's record.
func (s Stream) entry(dst []byte, id StreamID, loc keydir.Loc) ([]byte, error) {
	var name [2*ordered.HexLen + 1]byte
	return s.Txn.Value(dst, s.Key, text(appendEntryName(name[:0], id)), keydir.Stream, loc)
}

// StreamSetID says what SetID sets besides the last id; nil leaves it.
type StreamSetID struct {
	Added   *uint64
	Deleted *StreamID
}

// SetID sets the last id of a stream: entries that are added later get greater ones. ok is false if the key does not
// exist. It must not be before the greatest deleted id, the one that o sets or the one that the stream has: ids of deleted
// entries are not given again. O(1); O(n) for an id before entries that have been trimmed.
func (s Stream) SetID(last StreamID, o StreamSetID) (ok bool, err error) {
	if o.Deleted != nil && last.Less(*o.Deleted) {
		return false, ErrStreamSetDeleted
	}
	f, err := s.open()
	if err != nil || !f.Valid() {
		return false, err
	}
	info, err := s.Txn.StreamMeta(s.Key, f)
	if err != nil {
		return false, err
	}
	if last.Less(info.Deleted) {
		return false, ErrStreamSetBelowDeleted
	}
	if top, some := f.LastEntry(); some {
		switch {
		case last.Less(top):
			return false, ErrStreamSetTop
		case o.Added != nil && *o.Added < uint64(f.Len()):
			return false, ErrStreamSetAdded
		}
	}
	info.Last = last
	if o.Added != nil {
		info.Added = *o.Added
	}
	if o.Deleted != nil && *o.Deleted != (StreamID{}) {
		info.Deleted = *o.Deleted
	}
	if last.Less(info.First) {
		// Ids below First would be taken for trimmed entries: the stream, which is empty, is made anew.
		if f, err = s.remake(); err != nil {
			return false, err
		}
		info.First = StreamID{}
	}
	return true, notifyUnless(s.Txn, EventXSetID, s.Key, s.Txn.Unwatched().PutStreamMeta(s.Key, f, info))
}

// remake makes an empty stream anew, with its deadline and its groups.
func (s Stream) remake() (keydir.Collection, error) {
	quiet := s.Txn.Unwatched()
	old, err := s.open()
	if err != nil {
		return old, err
	}
	groups, err := s.groupRecords()
	if err != nil {
		return old, err
	}
	ms, timed := quiet.Deadline(s.Key)
	if _, err := quiet.Drop(s.Key); err != nil {
		return keydir.Collection{}, err
	}
	f, err := quiet.Collection(s.Key, keydir.Stream)
	if err != nil {
		return f, err
	}
	if err := quiet.PutStreamMeta(s.Key, f, StreamInfo{}); err != nil {
		return f, err
	}
	for _, r := range groups {
		if err := quiet.PutGroups(s.Key, keydir.Collection{}, r.elem, r.value); err != nil {
			return f, err
		}
	}
	if !timed {
		return f, nil
	}
	return f, quiet.SetDeadline(s.Key, ms)
}

// Restore sets what is known of a stream whose entries have been added.
func (s Stream) Restore(info StreamInfo) error {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return err
	}
	return s.Txn.PutStreamMeta(s.Key, f, info)
}

// Create makes an empty stream, or fails with ErrStreamExists if the key exists.
func (s Stream) Create(info StreamInfo) error {
	slot, _, err := s.Txn.Find(s.Key)
	if err != nil {
		return err
	}
	if slot.Type != keydir.None {
		return ErrStreamExists
	}
	f, err := s.Txn.Collection(s.Key, keydir.Stream)
	if err != nil {
		return err
	}
	return s.Txn.PutStreamMeta(s.Key, f, info)
}

// copy copies the entries, what else is known of the stream, and its groups. The entries are listed first: putting into
// one collection may move memory that the other one shares.
func (s Stream) copy(dst StreamTxn, to string, source, target keydir.Collection) error {
	info, err := s.Txn.StreamMeta(s.Key, source)
	if err != nil {
		return err
	}
	type entry struct {
		id  StreamID
		loc keydir.Loc
	}
	list := make([]entry, 0, source.Len())
	source.AscendEntries(StreamID{}, func(id StreamID, loc keydir.Loc) bool {
		list = append(list, entry{id, loc})
		return true
	})
	var value []byte
	for _, e := range list {
		if value, err = s.entry(value[:0], e.id, e.loc); err != nil {
			return err
		}
		if err := dst.PutEntry(to, target, e.id, value); err != nil {
			return err
		}
	}
	if err := dst.PutStreamMeta(to, target, info); err != nil {
		return err
	}
	return s.copyGroups(dst, to)
}
