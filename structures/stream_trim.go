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
	// References says what becomes of references to what goes. With NeedAcknowledged later entries go in place of those
	// that stay. Default: they are kept.
	References StreamReferences
}

const (
	// trimNode is how many entries an approximate trim removes at a time, as Redis does by default.
	trimNode = 100
	// DefaultTrimLimit is the limit of Redis's approximate trims.
	DefaultTrimLimit = 100 * trimNode
)

// Trim removes entries from the front, and returns how many. O(1) an entry removed, and O(log n) a group and an entry
// passed unless references are kept.
func (s Stream) Trim(o StreamTrim) (int, error) {
	f, err := s.open()
	if err != nil || !f.Valid() {
		return 0, err
	}
	return s.trim(f, o)
}

// trim writes one record, however many entries go, and one for each that goes after one that stays.
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
	d, err := s.deletion(f, o.References)
	if err != nil {
		return 0, err
	}
	var later []StreamID
	if o.References != KeepReferences {
		n, later = d.chosen(n, o)
	}
	for _, id := range later {
		if _, err := d.delete(id); err != nil {
			return 0, err
		}
		s.Txn.Yield()
	}
	if err := d.cut(n); err != nil {
		return 0, err
	}
	return d.deleted, d.end(EventXTrim)
}

// chosenTogether is how many entries are looked at before others may work.
const chosenTogether = 256

// chosen says which of the entries go that a trim is to remove, n at most: so many from the front, and later ones. It looks at no
// entry that a group has not been delivered yet but the first.
func (d *streamDeletion) chosen(n int, o StreamTrim) (front int, later []StreamID) {
	stayed := false
	take := func(id StreamID) bool {
		switch {
		case front+len(later) == n || o.ByID && !id.Less(o.MinID):
			return false
		case d.how == NeedAcknowledged && d.least.Less(id):
			return false
		case d.stays(id):
			stayed = true
		case stayed:
			later = append(later, id)
		default:
			front++
			if d.how == DeleteReferences {
				d.unreferenced = append(d.unreferenced, id)
			}
		}
		return true
	}
	var next StreamID
	for more := true; more; d.s.Txn.Yield() {
		seen := 0
		more = false
		d.f.AscendEntries(next, func(id StreamID, _ keydir.Loc) bool {
			if seen++; seen > chosenTogether {
				next, more = id, true
				return false
			}
			return take(id)
		})
	}
	return front, later
}

// cut removes the first n entries: those before info.First are gone.
func (d *streamDeletion) cut(n int) error {
	if n == 0 {
		return nil
	}
	d.deleted += n
	if n < d.f.Len() {
		d.info.First = d.f.EntryAt(n)
		return nil
	}
	last, _ := d.f.LastEntry()
	if last != MaxStreamID {
		d.info.First = last.Next()
		return nil
	}
	d.info.First = last // nothing is after it
	_, err := d.s.Txn.DeleteEntry(d.s.Key, d.f, last)
	return err
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
