package feed

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// A Change is one thing that a commit has done. Which members have a meaning depends on Op and Type. Slices are valid
// as long as the commit.
//
// Changes state what holds afterwards and not how it came about: applying one twice, or all from an earlier commit on,
// ends in the same content. A change of another type than its key had replaces what the key had.
type Change struct {
	Op        ChangeOp
	Namespace int
	Type      string // string, hash, list, set, zset or stream; of consumer groups GroupsType; "" where the op has none
	Key       []byte
	Element   []byte   // the field or the member; of groups the end of the record's name (docs/FORMAT.md, section 1)
	Value     []byte   // of a string, a chunk, a field, an element of a list, a record of groups, a library
	Score     float64  // of a member of a sorted set
	Index     int64    // of an element of a list: elements are in order of Index, then Sub, and keep both; indexes may be missing
	Sub       uint64   // of an element of a list that was inserted after the one at Index, and before the next; else 0
	To        int64    // of OpRemoveRange: the last index of an element that is gone, Index being the first
	ToSub     uint64   // of OpRemoveRange: Sub of the last element that is gone
	ID        string   // of an entry of a stream
	Fields    [][]byte // of an entry of a stream: fields and values in turns
	ExpireAt  int64    // of OpExpire, Unix milliseconds

	Offset    int64 // of a chunk in its string
	ChunkSize int   // into how many bytes the string is cut: a chunk of another size begins another string
	Length    int64 // of OpLength, in bytes

	First, Last, Deleted string // of OpStream: ids; entries before First are gone
	Added                uint64 // of OpStream

	With int // of OpSwap: the other namespace
}

// A ChangeOp says what a change does.
type ChangeOp string

// The values of [Change.Op].
const (
	OpPut         ChangeOp = "put"          // a string, or an element of a collection, has this value; a deadline of the key stays
	OpRemove      ChangeOp = "remove"       // the element is gone, a field with its deadline
	OpRemoveRange ChangeOp = "remove-range" // the elements of a list from Index and Sub to To and ToSub are gone
	OpDelete      ChangeOp = "delete"       // the key is gone, with its deadlines
	OpExpire      ChangeOp = "expire"       // the key, or the field Element, has this deadline
	OpPersist     ChangeOp = "persist"      // it has none any more
	OpLength      ChangeOp = "length"       // a string that is put in chunks is so long
	OpStream      ChangeOp = "stream"       // First, Last, Deleted and Added of a stream
	OpFlush       ChangeOp = "flush"        // the namespace is empty
	OpSwap        ChangeOp = "swap"         // two namespaces have exchanged their content
	OpLibrary     ChangeOp = "library"      // the library of functions named Key has the text Value; empty: it is gone
)

// GroupsType is the type of changes of a stream's consumer groups, which are records of the log as they are.
const GroupsType = "groups"

// namespaceOf is the namespace of a space, if it has one.
func namespaceOf(moved map[uint32]uint32, space uint32) (ns int, ok bool) {
	if _, other := moved[space]; !other && space < namespace.MaxNamespaces {
		return int(space), true
	}
	for ns, id := range moved {
		if id == space {
			return int(ns), true
		}
	}
	return 0, false
}

func spaceOf(moved map[uint32]uint32, ns uint32) uint32 {
	if id, ok := moved[ns]; ok {
		return id
	}
	return ns
}

// remap is what a record about namespaces does.
func (f *Feed) remap(value []byte) (changes []Change, err error) {
	now, _, err := namespace.Decode(value)
	if err != nil {
		return nil, err
	}
	for ns := range uint32(namespace.MaxNamespaces) {
		id := spaceOf(now, ns)
		if id == spaceOf(f.spaces, ns) {
			continue
		}
		other, named := namespaceOf(f.spaces, id)
		switch {
		case !named:
			changes = append(changes, Change{Op: OpFlush, Namespace: int(ns)})
		case spaceOf(now, uint32(other)) != spaceOf(f.spaces, ns):
			return nil, fmt.Errorf("namespaces are neither emptied nor swapped: %w", failure.ErrVersion)
		case int(ns) < other:
			changes = append(changes, Change{Op: OpSwap, Namespace: int(ns), With: other})
		}
	}
	f.spaces = now
	return changes, nil
}

// changes takes from a frame that has verified what it changes.
func (f *Feed) changes(sg *segment.Segment, at int64, raw []byte, h *format.FrameHeader) error {
	c := &f.commit
	_, _, err := format.EachRecord(raw, h, sg.Seed, uint32(at), func(at uint32, _ uint64, rec format.Record) error {
		corrupt := func(reason string) error {
			return &failure.CorruptError{File: sg.Name, Offset: int64(at), Reason: reason}
		}
		switch rec.Row().Home {
		case format.HomeNamespaces:
			changes, err := f.remap(rec.Value)
			if err == format.ErrRecord {
				err = corrupt("namespace map")
			}
			c.Changes = append(c.Changes, changes...)
			return err
		case format.HomeSystem:
			c.library(&rec)
			return nil
		}
		ns, named := namespaceOf(f.spaces, rec.Namespace)
		if !named { // nobody sees it
			return nil
		}
		ch := Change{Namespace: ns, Key: rec.Key, Type: rec.Type.Public().String()}
		shown, reason := ch.of(&rec)
		if reason != "" {
			return corrupt(reason)
		}
		if shown {
			c.Changes = append(c.Changes, ch)
		}
		return nil
	})
	return err
}

// library adds a part of a library; the parts follow each other. Other system records concern the store alone.
func (c *Commit) library(rec *format.Record) {
	name, part, ok := system.LibraryOf(format.Text(rec.Key))
	switch n := len(c.Changes); {
	case !ok || part > 0 && len(rec.Value) == 0: // the text before had more parts
	case len(rec.Value) < system.LibraryHeader:
		c.Changes = append(c.Changes, Change{Op: OpLibrary, Key: []byte(name)})
	case rec.Value[0] != system.LibraryVersion:
	case part == 0:
		c.Changes = append(c.Changes, Change{Op: OpLibrary, Key: []byte(name), Value: slices.Clip(rec.Value[system.LibraryHeader:])})
	case n > 0 && c.Changes[n-1].Op == OpLibrary && string(c.Changes[n-1].Key) == name:
		c.Changes[n-1].Value = append(c.Changes[n-1].Value, rec.Value[system.LibraryHeader:]...)
	}
}

// of fills in what a record says. Those that only repeat what follows from others, such as counts, are not shown.
func (c *Change) of(rec *format.Record) (shown bool, bad string) {
	row := rec.Row()
	var f format.Fact
	if bad := f.Read(row, rec.Elem, rec.Value); bad != "" {
		return false, bad
	}
	switch {
	case row.Home == format.HomeLeader:
		return false, ""
	case row.Home == format.HomeMeta:
		return c.meta(rec, &f)
	case row.Home == format.HomeKey:
		c.Op = OpDelete
	case rec.Type == keydir.Deadline, rec.Type == keydir.FieldDeadlines:
		c.Op, c.Type, c.Element = OpPersist, "", rec.Elem
		if !row.Removes {
			c.Op, c.ExpireAt = OpExpire, ordered.ToInt(f.Score)
		}
	case row.Removes:
		if c.Op = OpRemove; row.Hides == format.HidesRange && f.Place.List.Less(f.To) {
			c.Op, c.To, c.ToSub = OpRemoveRange, f.To.Index, f.To.Sub
		}
		bad = c.element(rec, &f, nil)
	default:
		c.Op = OpPut
		bad = c.element(rec, &f, rec.Value)
	}
	return bad == "", bad
}

// element is of for a string, an element or the tombstone of one, which has no value.
func (c *Change) element(rec *format.Record, f *format.Fact, value []byte) (bad string) {
	c.Value = value
	switch f.Place.By {
	case format.PartIndex:
		c.Index, c.Sub = f.Place.List.Index, f.Place.List.Sub
	case format.PartChunk:
		size, number, _ := keydir.ChunkAt(f.Place.Index)
		c.ChunkSize, c.Offset = size, int64(size)*int64(number)
	case format.PartScored:
		c.Element, c.Value = rec.Elem, nil
		if c.Op == OpPut {
			c.Score = ordered.ToFloat(f.Score)
		}
	case format.PartEntry:
		ok := false
		c.ID, c.Value = f.Place.Entry.String(), nil
		if c.Fields, ok = streamFields(value); !ok {
			return "fields of a stream's entry"
		}
	case format.PartGroups:
		c.Type, c.Element = GroupsType, rec.Elem
	default:
		c.Element = rec.Elem
	}
	return ""
}

// streamFields are the fields and values of an entry.
func streamFields(value []byte) (fields [][]byte, ok bool) {
	for len(value) > 0 {
		n, size := binary.Uvarint(value)
		if size <= 0 || n > uint64(len(value)-size) {
			return nil, false
		}
		fields = append(fields, value[size:size+int(n)])
		value = value[size+int(n):]
	}
	return fields, true
}

// meta is of for records that count: of strings in chunks and of streams they say more.
func (c *Change) meta(rec *format.Record, f *format.Fact) (shown bool, bad string) {
	switch rec.Type {
	case keydir.Chunks:
		count := 0
		if n, err := fmt.Sscanf(format.Text(rec.Value), "%d %d", &c.Length, &count); n != 2 || err != nil {
			return false, "length of a string"
		}
		c.Op = OpLength
	case keydir.Stream:
		m := &f.Stream
		c.Op, c.First, c.Last, c.Deleted, c.Added = OpStream, m.First.String(), m.Last.String(), m.Deleted.String(), m.Added
	default:
		return false, ""
	}
	return true, ""
}
