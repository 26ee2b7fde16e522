package rdb

import (
	"cmp"
	"encoding/binary"
	"math"
	"strconv"
)

// A stream is nodes, each the id of its first entry and a listpack, and then what is known of the stream. In the
// listpack ids are differences to the node's, and entries with the fields of the first one leave them out.

// StreamID is the id of an entry.
type StreamID struct{ Ms, Seq uint64 }

// Less reports whether an id is before another one.
func (id StreamID) Less(other StreamID) bool {
	return cmp.Or(cmp.Compare(id.Ms, other.Ms), cmp.Compare(id.Seq, other.Seq)) < 0
}

// StreamEntry is an entry, its fields and values in turns.
type StreamEntry struct {
	ID     StreamID
	Fields [][]byte
}

// Stream is a decoded stream.
type Stream struct {
	Entries             []StreamEntry
	First, Last, Delete StreamID // the first entry, the last id that was given, the greatest deleted one
	Added               uint64
	Groups              []StreamGroup

	// Recounted says that it was written with a length, a last id or a number of added entries that its entries
	// contradict. Redis never compares them, and early releases of Redis 5 wrote such streams. The numbers here agree.
	Recounted bool
}

const (
	nodeEntries = 100
	nodeBytes   = 4096

	entryDeleted = 1
	entrySame    = 2 // it has the fields of the node's first entry
)

// StreamWriter writes a stream: its entries in order, then Seal. The zero StreamWriter is ready.
type StreamWriter struct {
	nodes   []byte
	count   int // of nodes
	list    []byte
	items   int // of list
	entries int // of the node
	total   int
	first   StreamID // of the stream
	master  StreamID // of the node
	fields  [][]byte // of its first entry
}

// Len is the number of bytes so far.
func (w *StreamWriter) Len() int { return len(w.nodes) + len(w.list) }

// Add writes an entry. The fields may be reused after it.
func (w *StreamWriter) Add(id StreamID, fields [][]byte) {
	if w.entries == nodeEntries || len(w.list) >= nodeBytes {
		w.Flush()
	}
	if w.total++; w.total == 1 {
		w.first = id
	}
	if w.entries++; w.entries == 1 {
		w.begin(id, fields)
	}
	same := w.same(fields)
	flags, items := int64(0), 4+len(fields)
	if same {
		flags, items = entrySame, 3+len(fields)/2
	}
	w.integer(flags)
	w.integer(int64(id.Ms - w.master.Ms))
	w.integer(int64(id.Seq - w.master.Seq))
	if !same {
		w.integer(int64(len(fields) / 2))
	}
	for i, field := range fields {
		if !same || i%2 == 1 {
			w.text(field)
		}
	}
	w.integer(int64(items))
}

// begin begins a node.
func (w *StreamWriter) begin(id StreamID, fields [][]byte) {
	w.master, w.fields = id, w.fields[:0]
	for i := 0; i < len(fields); i += 2 {
		w.fields = append(w.fields, append([]byte{}, fields[i]...))
	}
	w.integer(0) // entries, set by Flush
	w.integer(0) // deleted ones
	w.integer(int64(len(w.fields)))
	for _, field := range w.fields {
		w.text(field)
	}
	w.integer(0)
}

func (w *StreamWriter) same(fields [][]byte) bool {
	if len(fields) != 2*len(w.fields) {
		return false
	}
	for i, field := range w.fields {
		if string(fields[2*i]) != string(field) {
			return false
		}
	}
	return true
}

// Flush ends a node. The number of its entries takes the one byte that it was begun with.
func (w *StreamWriter) Flush() {
	if w.entries == 0 {
		return
	}
	w.list[0] = byte(w.entries)
	pack := binary.LittleEndian.AppendUint32(nil, uint32(6+len(w.list)+1))
	pack = binary.LittleEndian.AppendUint16(pack, uint16(min(w.items, math.MaxUint16)))
	pack = append(append(pack, w.list...), packEnd)
	out := Writer{buf: w.nodes}
	out.length(16)
	out.pendingID(w.master)
	out.length(uint64(len(pack)))
	w.nodes = append(out.buf, pack...)
	w.list, w.items, w.entries = w.list[:0], 0, 0
	w.count++
}

// ended writes the length of an element that begins at start, backwards.
func (w *StreamWriter) ended(start int) {
	n := uint64(len(w.list) - start)
	size := int(backLength(n))
	for i := size - 1; i >= 0; i-- {
		b := byte(n>>(7*i)) & 0x7f
		if i < size-1 {
			b |= 0x80
		}
		w.list = append(w.list, b)
	}
	w.items++
}

// integer appends an integer to the node.
func (w *StreamWriter) integer(n int64) {
	start := len(w.list)
	u := uint64(n)
	switch {
	case n >= 0 && n < 1<<7:
		w.list = append(w.list, byte(n))
	case n >= -1<<12 && n < 1<<12:
		w.list = append(w.list, 0xc0|byte(u>>8)&0x1f, byte(u))
	case n == int64(int16(n)):
		w.list = append(w.list, 0xf1, byte(u), byte(u>>8))
	case n >= -1<<23 && n < 1<<23:
		w.list = append(w.list, 0xf2, byte(u), byte(u>>8), byte(u>>16))
	case n == int64(int32(n)):
		w.list = binary.LittleEndian.AppendUint32(append(w.list, 0xf3), uint32(u))
	default:
		w.list = binary.LittleEndian.AppendUint64(append(w.list, 0xf4), u)
	}
	w.ended(start)
}

// text appends a string to the node.
func (w *StreamWriter) text(b []byte) {
	start := len(w.list)
	switch n := len(b); {
	case n < 1<<6:
		w.list = append(w.list, 0x80|byte(n))
	case n < 1<<12:
		w.list = append(w.list, 0xe0|byte(n>>8), byte(n))
	default:
		w.list = binary.LittleEndian.AppendUint32(append(w.list, 0xf0), uint32(n))
	}
	w.list = append(w.list, b...)
	w.ended(start)
}

// Seal ends the payload and returns it. s says what is known of the stream besides its entries; its First is left out.
func (w *StreamWriter) Seal(s Stream) []byte {
	w.Flush()
	out := Writer{buf: append(make([]byte, 0, len(w.nodes)+100), typeStream2)}
	out.length(uint64(w.count))
	out.buf = append(out.buf, w.nodes...)
	w.about(&out, s, true)
	return out.Seal()
}

// stream reads a stream of any version.
func (r *reader) stream(code byte) {
	s := &Stream{}
	r.v.Kind, r.v.Stream = StreamKind, s
	var length uint64
	var first StreamID
	for n := r.count(); n > 0 && !r.failed; n-- {
		id := r.string()
		if len(id) != 16 {
			r.spoil()
			id = make([]byte, 16)
		}
		length += r.streamNode(StreamID{binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])}, &first)
	}
	s.Recounted = length != r.count()
	top := s.Last
	s.Last = r.streamID()
	s.Added = length
	if code != typeStream {
		s.First, s.Delete, s.Added = r.streamID(), r.streamID(), r.count()
	}
	for _, least := range []StreamID{top, s.Delete} {
		if s.Last.Less(least) {
			s.Last, s.Recounted = least, true
		}
	}
	if s.Added < length {
		s.Added, s.Recounted = length, true
	}
	s.Groups = r.groups(code)
	if code == typeStream {
		for i := range s.Groups {
			s.Groups[i].Read = s.readUpTo(s.Groups[i].Last, first)
		}
	}
}

// readUpTo is how many entries a group at an id has read, -1 if unknown, as Redis takes it to be of the files from
// before it was counted: no entry is known to have been deleted, and first is the first one.
func (s *Stream) readUpTo(id, first StreamID) int64 {
	switch {
	case s.Added == 0:
		return 0
	case id == s.Last:
		return int64(s.Added)
	case s.Last.Less(id):
		return -1
	case id.Less(first):
		return 0
	case id == first:
		return 1
	}
	return -1
}

func (r *reader) streamID() StreamID { return StreamID{r.count(), r.count()} }

// streamNode reads the listpack of a node whose first entry has that id, and returns how many entries it has. What it
// says about that itself is not believed. *first becomes the id of the first entry of all.
func (r *reader) streamNode(master StreamID, first *StreamID) (entries uint64) {
	r.inside(func(r *reader) {
		r.header(6)
		items := packItems{r: r}
		items.number() // entries
		items.number() // deleted ones
		fields := items.several(nil, items.number(), nil)
		if items.number() != 0 {
			r.fail()
		}
		for !r.failed && (len(r.rest) == 0 || r.rest[0] != packEnd) {
			if !r.streamEntry(&items, master, fields) {
				continue
			}
			if entries++; *first == (StreamID{}) {
				*first = r.v.Stream.Last
			}
		}
		r.byte()
	})
	return entries
}

// streamEntry reads an entry of a node. A deleted one is none.
func (r *reader) streamEntry(items *packItems, master StreamID, fields [][]byte) bool {
	before := items.n
	flags := items.number()
	e := StreamEntry{ID: StreamID{master.Ms + uint64(items.number()), master.Seq + uint64(items.number())}}
	if flags&entrySame != 0 {
		e.Fields = items.several(e.Fields, int64(len(fields)), fields)
	} else if n := items.number(); n > 0 {
		e.Fields = items.several(e.Fields, 2*min(n, maxEntryFields), nil)
	}
	if used := items.n - before; items.number() != used {
		r.fail()
	}
	s := r.v.Stream
	switch {
	case flags&entryDeleted != 0 || r.failed:
		return false
	case len(e.Fields) == 0, e.ID == StreamID{}, !s.Last.Less(e.ID):
		r.fail()
		return false
	}
	s.Last = e.ID
	s.Entries = append(s.Entries, e)
	if r.piece != nil {
		size := 0
		for _, field := range e.Fields {
			size += len(field) + elementBytes
		}
		r.piece.grown(r, size)
	}
	return true
}

// maxEntryFields is how many fields an entry may have: what fits into a command of a client.
const maxEntryFields = 1 << 20

// packItems takes the elements of a listpack one by one, and counts them.
type packItems struct {
	r *reader
	n int64
}

func (p *packItems) next() []byte {
	item, more := p.r.listpackNext()
	if !more {
		p.r.fail()
	}
	p.n++
	return item
}

// several takes so many elements, each after its name if there are names.
func (p *packItems) several(list [][]byte, n int64, names [][]byte) [][]byte {
	if n > 2*maxEntryFields {
		p.r.fail()
	}
	for i := int64(0); i < n && !p.r.failed; i++ {
		if names != nil {
			list = append(list, names[i])
		}
		list = append(list, p.next())
	}
	return list
}

func (p *packItems) number() int64 {
	n, err := strconv.ParseInt(string(p.next()), 10, 64)
	if err != nil {
		p.r.fail()
	}
	return n
}
