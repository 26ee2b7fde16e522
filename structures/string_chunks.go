package structures

import (
	"maps"
	"slices"
	"sync"

	"github.com/stavedb/stave/keydir"
)

// A string is one record as long as it is short, so that to get it is to read one
// record. A long one is cut into chunks of equal size, each a record of its own:
// what changes or reads a part touches the chunks of that part only. A chunk that
// is missing is zeros, and so is what one lacks at its end; the last one is always
// there and ends where the string ends. A string that has been cut stays so until
// it is set again.
//
// SET of more than eight chunks writes a tombstone if the key held anything, and
// then the chunks, all in one commit. The keydir has the chunks as it has a list:
// a location for each, found by its number. STRLEN reads the last chunk: its
// number and its own length say how long the string is. An edit reads the chunks
// that it touches, but for those that it overwrites whole; after a gap nothing is
// written for the zeros. A string that is one record, however long (of a store with
// longer chunks, say), is cut by the first edit after which it is long.
//
// Whoever edits a string in small parts will do so again, and whoever sets it whole may
// never do. So SET cuts into long chunks, which are quicker to read and take less memory,
// and an edit that is shorter than a long chunk cuts into short ones: a string that is one
// record and longer than eight short chunks, or one in long chunks that is not too long to
// be written again at once.

const (
	// oneRecord is how many chunks long a string may be as one record.
	oneRecord = 8
	// shortChunks is how many short chunks are as long as a long one.
	shortChunks = 16
	// minChunk is the length of the shortest chunks in bytes.
	minChunk = 16
	// maxRecut is how many long chunks a string may have that a small edit cuts into short ones.
	maxRecut = 128
	// afterString is for how many bytes there is room after a string that has been read: who writes a little more must
	// not move all of it.
	afterString = 64
)

// stringValue is what the key of a string holds.
type stringValue struct {
	exists bool
	loc    keydir.Loc        // of the record; or else:
	chunks keydir.Collection // the chunks,
	size   int               // into how many bytes the string is cut,
	last   int               // and the number of the last chunk
	name   []byte            // of the chunk that was read last
}

// stringValueOf returns what a key holds of which Find said this; ok is false if it is
// no string.
func stringValueOf(slot keydir.Slot, f keydir.Collection) (c stringValue, ok bool) {
	switch slot.Type {
	case keydir.String:
		return stringValue{exists: true, loc: slot.Loc}, true
	case keydir.Chunks:
		_, tail := f.Bounds()
		c = stringValue{exists: true, chunks: f}
		c.size, c.last, _ = keydir.ChunkAt(tail)
		return c, true
	}
	return c, slot.Type == keydir.None
}

func (c *stringValue) cut() bool { return c.chunks.Valid() }

func (s String) find() (stringValue, error) {
	slot, f, err := s.Txn.Find(s.Key)
	if err != nil {
		return stringValue{}, err
	}
	c, ok := stringValueOf(slot, f)
	if !ok {
		return stringValue{}, ErrWrongType
	}
	return c, nil
}

// len returns the length of the string in bytes.
func (s String) len(c *stringValue) (int, error) {
	switch {
	case !c.exists:
		return 0, nil
	case !c.cut():
		return s.Txn.ValueLen(s.Key, "", keydir.String, c.loc)
	}
	index := keydir.ChunkIndex(c.size, c.last)
	loc, _ := c.chunks.LocAt(index)
	c.name = AppendIndex(c.name[:0], index)
	n, err := s.Txn.ValueLen(s.Key, text(c.name), keydir.Chunks, loc)
	return c.size*c.last + n, err
}

// appendChunk appends what there is of a chunk.
func (s String) appendChunk(dst []byte, c *stringValue, number int) ([]byte, error) {
	return s.appendPart(dst, c, number, 0, c.size)
}

// appendPart appends what there is of a chunk from one position in it to another.
func (s String) appendPart(dst []byte, c *stringValue, number, from, to int) ([]byte, error) {
	index := keydir.ChunkIndex(c.size, number)
	loc, ok := c.chunks.LocAt(index)
	if !ok {
		return dst, nil
	}
	c.name = AppendIndex(c.name[:0], index)
	return s.Txn.ValuePart(dst, s.Key, text(c.name), keydir.Chunks, loc, from, to)
}

// appendTo appends the bytes from one position to another, of a string in one record as far as there
// are any. After the end of one that is cut there are zeros.
func (s String) appendTo(dst []byte, c *stringValue, from, to int) ([]byte, error) {
	if !c.cut() {
		return s.Txn.ValuePart(dst, s.Key, "", keydir.String, c.loc, from, to)
	}
	if err := s.Txn.Room(to - from); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, to-from+afterString)
	for from < to {
		number := from / c.size
		first, end := from-number*c.size, min(c.size, to-number*c.size)
		held := len(dst)
		var err error
		if dst, err = s.appendPart(dst, c, number, first, end); err != nil {
			return dst[:start], err
		}
		dst = padded(dst, held+end-first)
		from += end - first
		s.Txn.Yield()
	}
	return dst, nil
}

// padded extends b with zeros to at least n bytes.
func padded(b []byte, n int) []byte {
	if held := len(b); held < n {
		b = slices.Grow(b, n-held)[:n]
		clear(b[held:])
	}
	return b
}

// visit calls fn for the bytes from one position to another, a piece after the
// other, until it returns false. A piece is valid during the call.
func (s String) visit(c *stringValue, from, to int, fn func(part []byte) bool) error {
	step := to - from
	if c.cut() {
		step = c.size
	}
	var buf []byte
	for from < to {
		end := to
		if c.cut() {
			end = min(to, (from/step+1)*step)
		}
		var err error
		if buf, err = s.appendTo(buf[:0], c, from, end); err != nil {
			return err
		}
		if !fn(buf) {
			return nil
		}
		from = end
	}
	return nil
}

// put makes the string value. The deadline stays.
func (s String) put(value []byte) error { return s.putCut(value, s.Txn.ChunkSize()) }

// putEdited is put of a string that has been edited in a small part and will be again.
func (s String) putEdited(value []byte) error { return s.putCut(value, s.shortChunk()) }

// putCut is put of a string that is cut into chunks of size bytes if it is longer than eight of them.
func (s String) putCut(value []byte, size int) error {
	if len(value) > oneRecord*size {
		_, err := s.Txn.PutChunks(s.Key, value, size)
		return err
	}
	return s.Txn.PutString(s.Key, value)
}

// long reports whether a string of that length is cut when it is set.
func (s String) long(length int) bool { return length > oneRecord*s.Txn.ChunkSize() }

// shortChunk is into how many bytes small edits cut a string.
func (s String) shortChunk() int {
	long := s.Txn.ChunkSize()
	return min(long, max(long/shortChunks, minChunk))
}

// cutFor is into how many bytes an edit of that length cuts a string.
func (s String) cutFor(edit int) int {
	if long := s.Txn.ChunkSize(); edit >= long {
		return long
	}
	return s.shortChunk()
}

// edit writes part over what the string has at an offset, with zeros before it
// where the string, n bytes long, was shorter. The deadline stays.
func (s String) edit(c *stringValue, n, offset int, part []byte) error {
	length, size := max(n, offset+len(part)), s.cutFor(len(part))
	if !c.cut() && length <= oneRecord*size {
		whole, err := s.grown(c, n, length)
		if err != nil {
			return err
		}
		copy(whole[offset:], part)
		return s.Txn.PutString(s.Key, whole)
	}
	if err := s.split(c, n, size); err != nil {
		return err
	}
	scratch := editBuffers.Get().(*[]byte)
	defer editBuffers.Put(scratch)
	for len(part) > 0 {
		number := offset / c.size
		first := offset - number*c.size
		k := min(c.size-first, len(part))
		chunk := part[:k]
		if k < c.size {
			buf, err := s.appendChunk((*scratch)[:0], c, number)
			if err != nil {
				return err
			}
			buf = padded(buf, first+k)
			copy(buf[first:], chunk)
			chunk, *scratch = buf, buf
		}
		if err := s.Txn.PutIndex(s.Key, c.chunks, keydir.ChunkIndex(c.size, number), chunk); err != nil {
			return err
		}
		offset, part = offset+k, part[k:]
	}
	return nil
}

// editBuffers hold a chunk, or a sketch, while it is changed: a transaction copies what is shorter than 1 MiB.
var editBuffers = sync.Pool{New: func() any { return new([]byte) }}

// split cuts a string of n bytes that is one record, or not there, into chunks of size bytes. It
// cuts one in longer chunks again, unless that is too much at once. If the string is empty the caller puts
// the last chunk.
func (s String) split(c *stringValue, n, size int) error {
	var whole []byte
	var err error
	switch {
	case !c.cut():
		whole, err = s.grown(c, n, n)
	case c.size <= size, n > maxRecut*s.Txn.ChunkSize():
		return nil
	default:
		whole, err = s.appendTo(nil, c, 0, n)
	}
	if err != nil {
		return err
	}
	f, err := s.Txn.PutChunks(s.Key, whole, size)
	if err != nil {
		return err
	}
	*c = stringValue{exists: true, chunks: f, size: size, last: max(n-1, 0) / size, name: c.name}
	return nil
}

// grown returns a copy of the string, n bytes in one record or none at all,
// extended with zeros to at least the given length.
func (s String) grown(c *stringValue, n, length int) ([]byte, error) {
	length = max(length, n)
	whole := make([]byte, 0, length)
	if c.exists {
		var err error
		if whole, err = s.Txn.Value(whole, s.Key, "", keydir.String, c.loc); err != nil {
			return nil, err
		}
	}
	return whole[:length], nil
}

// fieldChunks executes the operations of a bitfield on a string of length bytes
// that is cut, or will be, after it has grown to at least need bytes.
func (s String) fieldChunks(c *stringValue, length, need int, ops []BitfieldOp) ([]BitfieldResult, error) {
	if need > 0 {
		if err := s.split(c, length, s.shortChunk()); err != nil {
			return nil, err
		}
	}
	p := chunkCache{s: s, c: c, held: map[int]*cachedChunk{}}
	changed := need > length
	if changed {
		p.store(need-1, []byte{0})
	}
	results := make([]BitfieldResult, len(ops))
	for i := range ops {
		op := ops[i]
		first := int(op.Offset / 8)
		op.Offset %= 8
		data := p.load(first, int(op.Offset+int64(op.Bits)+7)/8)
		var wrote bool
		if results[i], wrote = op.apply(data); wrote {
			p.store(first, data)
			changed = true
		}
	}
	err := p.flush()
	if changed {
		err = notifyUnless(s.Txn, EventSetBit, s.Key, err)
	}
	return results, err
}

// chunkCache are the chunks of a string that many small changes touch, kept until all
// are made, so that each chunk is read and written once.
type chunkCache struct {
	s    String
	c    *stringValue
	held map[int]*cachedChunk // by number
	err  error                // first read error
}

type cachedChunk struct {
	data    []byte
	changed bool
}

// at returns the chunk of a position, and the offset within it.
func (p *chunkCache) at(pos int) (*cachedChunk, int) {
	number := pos / p.c.size
	x := p.held[number]
	if x == nil {
		x = new(cachedChunk)
		p.held[number] = x
		if p.err == nil {
			x.data, p.err = p.s.appendChunk(nil, p.c, number)
		}
	}
	return x, pos - number*p.c.size
}

// load returns n bytes from a position on.
func (p *chunkCache) load(first, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		if x, at := p.at(first + i); at < len(x.data) {
			data[i] = x.data[at]
		}
	}
	return data
}

// store writes bytes from a position on.
func (p *chunkCache) store(first int, data []byte) {
	for i, b := range data {
		x, at := p.at(first + i)
		x.data = padded(x.data, at+1)
		x.data[at], x.changed = b, true
	}
}

// flush writes the chunks that have changed.
func (p *chunkCache) flush() error {
	if p.err != nil {
		return p.err
	}
	for _, number := range slices.Sorted(maps.Keys(p.held)) {
		x := p.held[number]
		if !x.changed {
			continue
		}
		if err := p.s.Txn.PutIndex(p.s.Key, p.c.chunks, keydir.ChunkIndex(p.c.size, number), x.data); err != nil {
			return err
		}
	}
	return nil
}
