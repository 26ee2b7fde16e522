package structures

import "github.com/stavedb/stave/keydir"

// StreamTrim says which entries of a stream are to go: the oldest until MaxLen are left, or those before MinID.
type StreamTrim struct {
	ByID   bool
	MaxLen int
	MinID  StreamID

	// Approximate leaves entries whose removal would not free a whole node of a hundred, unless all entries are to go:
	// a stream that is trimmed at each append writes a record about it once in a hundred appends.
	Approximate bool
	// Limit bounds how many entries an approximate trim removes. Default: no limit.
	Limit int
}

const (
	// trimNode is how many entries an approximate trim removes at a time, as Redis does by default.
	trimNode = 100
	// DefaultTrimLimit is the limit of Redis's approximate trims.
	DefaultTrimLimit = 100 * trimNode
)

// Trim removes entries from the front, and returns how many. O(1) an entry removed.
func (s Stream) Trim(o StreamTrim) (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return s.trim(f, o)
}

// trim writes one record, however many entries go.
func (s Stream) trim(f keydir.Collection, o StreamTrim) (int, error) {
	n := f.Len() - o.MaxLen
	if o.ByID {
		n = entriesBefore(f, o.MinID)
	}
	if n = min(n, f.Len()); o.Approximate && (n < f.Len() || o.Limit > 0 && n > o.Limit) {
		if o.Limit > 0 {
			n = min(n, o.Limit)
		}
		n -= n % trimNode
	}
	if n <= 0 {
		return 0, nil
	}
	info, err := s.Txn.StreamMeta(s.Key, f)
	if err != nil {
		return 0, err
	}
	if n < f.Len() {
		info.First = f.EntryAt(n)
	} else if last, _ := f.LastEntry(); last != MaxStreamID {
		info.First = last.Next()
	} else if _, err := s.Txn.DeleteEntry(s.Key, f, last); err != nil { // nothing is after it
		return 0, err
	} else {
		info.First = last
	}
	return n, notifyUnless(s.Txn, EventXTrim, s.Key, s.Txn.PutStreamMeta(s.Key, f, info))
}

// entriesBefore counts the entries before an id, of which there are few: those that were trimmed before are gone.
func entriesBefore(f keydir.Collection, id StreamID) (n int) {
	f.AscendEntries(StreamID{}, func(have StreamID, _ keydir.Loc) bool {
		if !have.Less(id) {
			return false
		}
		n++
		return true
	})
	return n
}
