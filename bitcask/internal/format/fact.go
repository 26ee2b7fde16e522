package format

import (
	"strconv"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Fact is what name and value of a record say to the index. Which members are set depends on its row.
type Fact struct {
	Place  Place
	Ranges []keydir.ScoreRange // PartGroups of a tombstone: what it removes; nil: the element that it names
	To     keydir.ListPlace    // HidesRange: the last place that it removes; Place has the first
	Score  uint64              // of an element; a deadline is the score of its field
	Stream keydir.StreamMeta   // ValueStream
}

// Place is where in its collection an element is.
type Place struct {
	By    Part
	List  keydir.ListPlace // PartIndex
	Index int64            // PartChunk
	Entry keydir.StreamID  // PartEntry
	Name  string           // of the others: the part as it is, valid as long as that
}

// PlaceOf reads the part after the key.
func (r *Row) PlaceOf(part []byte) (p Place, ok bool) {
	p.By = r.Part
	switch r.Part {
	case PartIndex:
		p.List, ok = ParsePlace(part)
	case PartChunk:
		if p.Index, ok = ParseIndex(part); ok {
			_, _, ok = keydir.ChunkAt(p.Index)
		}
	case PartEntry:
		p.Entry, ok = ParseEntryName(part)
	default:
		p.Name, ok = Text(part), true
	}
	return p, ok
}

// Text is the part after the key for a place in a collection.
func (p *Place) Text() string {
	switch p.By {
	case PartIndex:
		return PlaceName(p.List)
	case PartChunk:
		return IndexName(p.Index)
	case PartEntry:
		return EntryName(p.Entry)
	}
	return p.Name
}

// Read parses the part and the value of a record. It returns what is wrong with them, or an empty string. Their owners parse
// the map of namespaces and the values of system records.
func (f *Fact) Read(r *Row, part, value []byte) (bad string) {
	ok := false
	if r.Hides == HidesRange {
		f.Place = Place{By: r.Part}
		if f.Place.List, f.To, ok = ParseRange(part); !ok {
			return r.Part.bad()
		}
		return ""
	}
	if f.Place, ok = r.PlaceOf(part); !ok {
		return r.Part.bad()
	}
	if r.Removes {
		if r.Part == PartGroups {
			if f.Ranges, ok = keydir.GroupsRangeOf(part); !ok {
				return BadGroups
			}
		}
		return ""
	}
	if f.Score, ok = r.Score(part, value); !ok {
		return r.Value.bad()
	}
	if r.Value == ValueStream {
		if f.Stream, ok = ParseStreamMeta(value); !ok {
			return r.Value.bad()
		}
	}
	return ""
}

// Score is the score that the index has of an element with such a name and value, and the number of a deadline.
func (r *Row) Score(part, value []byte) (score uint64, ok bool) {
	switch r.Value {
	case ValueScore:
		return ordered.ParseHex(value)
	case ValueDeadline:
		ms, err := strconv.ParseInt(Text(value), 10, 64)
		return ordered.Int(ms), err == nil
	case ValueGroups:
		return keydir.GroupsScore(part, value)
	}
	return 0, true
}

// What a CorruptError says of records of streams.
const (
	BadEntryName  = "no id of an entry of a stream"
	BadStreamMeta = "no meta record of a stream"
	BadGroups     = "no group, consumer or pending entry of a stream"
)

func (p Part) bad() string {
	if p == PartEntry {
		return BadEntryName
	}
	return "no index of a list or of a chunk"
}

func (v Value) bad() string {
	switch v {
	case ValueScore:
		return "score is not 16 hex digits"
	case ValueDeadline:
		return "deadline is not a number"
	case ValueStream:
		return BadStreamMeta
	}
	return BadGroups
}

// Fits reports whether a record that follows an entry belongs to it.
func (rec *Record) Fits(leader *Entry) bool {
	if rec.Row().Leader != leader.Kind || rec.Type != leader.Type || string(rec.Key) != string(leader.Key) {
		return false
	}
	return leader.Row().Value != ValueScore || string(rec.Elem) == "s:"+string(leader.Inline)+":"+string(leader.Elem)
}
