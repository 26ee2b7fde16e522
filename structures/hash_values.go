package structures

import (
	"sync"

	"github.com/stavedb/stave/keydir"
)

// fieldReader reads values of fields together, which costs less than one by one, and visits them in the order in which
// they were added. Readers are used again.
type fieldReader struct {
	hashView
	visit func(i int, name, value []byte) bool

	n, found int // fields that wait, and those of them that exist
	visited  int
	names    [readAhead][]byte
	places   [readAhead]int // of those that exist, among names
	elems    [readAhead]string
	locs     [readAhead]keydir.Loc
	room     []byte // of names that are memory of the hash
	buf      []byte
	ends     []int
}

var fieldReaders = sync.Pool{New: func() any {
	return &fieldReader{room: make([]byte, 0, 1<<10), buf: make([]byte, 0, 1<<10), ends: make([]int, 0, readAhead)}
}}

// reader returns a reader that calls visit for each field with its number, its name and its value, nil if it does
// not exist, until it returns false. The slices are valid during the call only.
func (v *hashView) reader(visit func(i int, name, value []byte) bool) *fieldReader {
	r := fieldReaders.Get().(*fieldReader)
	r.hashView, r.visit = *v, visit
	r.n, r.found, r.visited = 0, 0, 0
	return r
}

// release ends the use of a reader.
func (r *fieldReader) release() {
	r.hashView, r.visit = hashView{}, nil
	clear(r.names[:])
	clear(r.elems[:])
	if cap(r.buf) > keptBuffer || cap(r.room) > keptBuffer {
		r.buf, r.room = make([]byte, 0, 1<<10), make([]byte, 0, 1<<10)
	}
	fieldReaders.Put(r)
}

// add adds a field, of which loc is the value, 0 if it does not exist.
func (r *fieldReader) add(name []byte, elem string, loc keydir.Loc) {
	r.names[r.n] = name
	if loc != 0 {
		r.elems[r.found], r.locs[r.found], r.places[r.found] = elem, loc, r.n
		r.found++
	}
	r.n++
}

// read visits the fields that have been added, and says whether to go on.
func (r *fieldReader) read() (more bool, err error) {
	next := 0 // to be visited
	absent := func(end int) bool {
		for ; next < end; next++ {
			if !r.visit(r.visited+next, r.names[next], nil) {
				return false
			}
		}
		return true
	}
	for done := 0; done < r.found; {
		r.buf, r.ends, err = r.hash.Txn.Values(r.buf[:0], r.ends[:0], r.hash.Key, r.elems[done:r.found], keydir.Hash, r.locs[done:r.found])
		if err != nil {
			return false, err
		}
		start := 0
		for _, end := range r.ends {
			at := r.places[done]
			if !absent(at) || !r.visit(r.visited+at, r.names[at], r.buf[start:end:end]) {
				return false, nil
			}
			start, next = end, at+1
			done++
		}
	}
	more = absent(r.n)
	r.visited += r.n
	r.n, r.found, r.room = 0, 0, r.room[:0]
	return more, nil
}

// eachValue calls visit with the name and the value of each field that walk comes to, until it returns false. It reads
// few values in vain if that is soon.
func (v *hashView) eachValue(walk func(visit func(name []byte, loc keydir.Loc) bool), visit func(name, value []byte) bool) error {
	r := v.reader(func(_ int, name, value []byte) bool { return visit(name, value) })
	defer r.release()
	var err error
	more, ahead := true, 4
	walk(func(name []byte, loc keydir.Loc) bool {
		at := len(r.room)
		r.room = append(r.room, name...)
		name = r.room[at:len(r.room):len(r.room)]
		r.add(name, text(name), loc)
		if r.n == ahead {
			more, err = r.read()
			ahead = min(4*ahead, readAhead)
		}
		return more
	})
	if more && r.n > 0 {
		_, err = r.read()
	}
	return err
}

// VisitMany calls visit with the place and the value of each of several fields, in their order, until it returns false;
// nil stands for a field that does not exist. The slice is valid during the call only, and visit must not change the
// hash. O(log n) a field.
func (h Hash) VisitMany(fields []string, visit func(i int, value []byte) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	r := v.reader(func(i int, _, value []byte) bool { return visit(i, value) })
	defer r.release()
	for i, field := range fields {
		loc, _ := v.get(field)
		r.add(nil, field, loc)
		if r.n == readAhead || i == len(fields)-1 {
			if more, err := r.read(); !more {
				return err
			}
		}
	}
	return nil
}
