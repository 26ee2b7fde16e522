package structures

import (
	"sync"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// entryNameLen is the length of the name of an id: see appendEntryName.
const entryNameLen = 2*ordered.HexLen + 1

// streamVisitor reads the entries of a range, several together. Visitors are used again, so that a visit allocates
// nothing.
type streamVisitor struct {
	buf    []byte
	ends   []int
	fields [][]byte
	ids    []StreamID
	locs   []keydir.Loc
	names  [readAhead][entryNameLen]byte
	elems  [readAhead]string // the bytes of names
}

var streamVisitors = sync.Pool{New: func() any {
	v := &streamVisitor{ends: make([]int, 0, readAhead), ids: make([]StreamID, 0, readAhead), locs: make([]keydir.Loc, 0, readAhead)}
	for i := range v.names {
		v.elems[i] = text(v.names[i][:])
	}
	return v
}}

// visit is Visit of a stream that exists.
func (s Stream) visit(f keydir.Collection, r StreamRange, visit func(id StreamID, fields [][]byte) bool) error {
	v := streamVisitors.Get().(*streamVisitor)
	defer v.release()
	// It reads few entries in vain if visit stops soon.
	for ahead, left := 4, r.Count; !r.To.Less(r.From); ahead = min(4*ahead, readAhead) {
		n := ahead
		if r.Count > 0 {
			n = min(left, readAhead)
		}
		if v.list(f, r, n); len(v.ids) == 0 {
			return nil
		}
		done, more, err := v.read(s, visit)
		if err != nil || !more || done == left {
			return err
		}
		left -= done
		switch last := v.ids[done-1]; {
		case done == len(v.ids) && done < n:
			return nil
		case r.Reverse && last != StreamID{}:
			r.To = last.Previous()
		case !r.Reverse && last != MaxStreamID:
			r.From = last.Next()
		default:
			return nil
		}
	}
	return nil
}

// list notes the ids and the locations of the next entries of a range, n at most.
func (v *streamVisitor) list(f keydir.Collection, r StreamRange, n int) {
	v.ids, v.locs = v.ids[:0], v.locs[:0]
	one := func(id StreamID, loc keydir.Loc) bool {
		if id.Less(r.From) || r.To.Less(id) {
			return false
		}
		v.ids, v.locs = append(v.ids, id), append(v.locs, loc)
		return len(v.ids) < n
	}
	switch {
	case r.Reverse:
		f.DescendEntries(r.To, one)
	default:
		f.AscendEntries(r.From, one)
	}
}

// read reads the entries that are noted, or the first of them, and calls visit for each. It returns for how many it did
// that, and whether visit wants more.
func (v *streamVisitor) read(s Stream, visit func(id StreamID, fields [][]byte) bool) (done int, more bool, err error) {
	for i, id := range v.ids {
		appendEntryName(v.names[i][:0], id)
	}
	v.buf, v.ends, err = s.Txn.Values(v.buf[:0], v.ends[:0], s.Key, v.elems[:len(v.ids)], keydir.Stream, v.locs)
	if err != nil {
		return 0, false, err
	}
	start := 0
	for i, end := range v.ends {
		var ok bool
		if v.fields, ok = ParseEntry(v.fields[:0], v.buf[start:end]); !ok {
			return i, false, &EntryError{Key: s.Key, ID: v.ids[i]}
		}
		if !visit(v.ids[i], v.fields) {
			return i + 1, false, nil
		}
		start = end
	}
	return len(v.ends), true, nil
}

// release ends the use of a visitor and of the slices that it gave out.
func (v *streamVisitor) release() {
	clear(v.fields)
	if cap(v.buf) > keptBuffer || cap(v.fields) > readAhead {
		v.buf, v.fields = nil, nil
	}
	streamVisitors.Put(v)
}
