package keydir

import (
	"encoding/binary"
	"math/bits"
)

// shape says what the entries of a run are made of.
//
//	plain:  | tag 1   | length | name | location 8 |           hash fields, set members
//	scored: | tag 1   | length | name | location 8 | score 8 | sorted set members
//	ranked: | score 8 | length | name |                        the second order of a sorted set
//
// A length below 128 takes one byte; others take three, the first of them 128.
type shape uint8

const (
	plain shape = iota
	scored
	ranked
)

// head returns the bytes of an entry before the length.
func (s shape) head() int {
	if s == ranked {
		return 8
	}
	return 1
}

// tail returns the bytes of an entry behind the name.
func (s shape) tail() int {
	switch s {
	case plain:
		return 8
	case scored:
		return 16
	}
	return 0
}

func lengthBytes(n int) int {
	if n < 128 {
		return 1
	}
	return 3
}

// entrySize returns the bytes that an entry of that name takes.
func (s shape) entrySize(name int) int { return s.head() + lengthBytes(name) + name + s.tail() }

// window maps hashes to tags: what lies how far above base, in steps of 1<<shift. Tags
// rise with hashes, whatever the window. A good window, one that just holds the
// hashes of a run, makes equal tags rare.
type window struct {
	base  uint64
	shift uint8
}

// whole is the window of a run that may hold any hash.
var whole = window{shift: 56}

func (w window) tag(hash uint64) uint8 {
	if hash < w.base {
		return 0
	}
	return uint8(min((hash-w.base)>>w.shift, 255))
}

// holds reports whether a hash has a tag that those around the window do not have.
func (w window) holds(hash uint64) bool { return hash >= w.base && (hash-w.base)>>w.shift < 256 }

func windowOf(first, last uint64) window {
	return window{first, uint8(max(bits.Len64(last-first)-8, 0))}
}

// run is a sequence of packed entries, sorted by key and then by name. The key of a ranked
// entry is its score. That of the others is the hash of the name, of which a run keeps
// one byte, the tag; a search needs the hash itself only where tags are equal.
type run struct {
	data   []byte
	n      int
	shape  shape
	window window
	hash   *hasher
}

// entry is where an entry of a run is.
type entry struct {
	off  int // of the entry
	name int // of the name
	tail int // of the values behind the name
	end  int
}

// entryAt reads the entry at an offset.
func (r *run) entryAt(off int) entry {
	e := entry{off: off, name: off + r.shape.head() + 1}
	length := int(r.data[e.name-1])
	if length >= 128 {
		length = int(binary.LittleEndian.Uint16(r.data[e.name:]))
		e.name += 2
	}
	e.tail = e.name + length
	e.end = e.tail + r.shape.tail()
	return e
}

func (r *run) nameOf(e entry) []byte { return r.data[e.name:e.tail:e.tail] }

func (r *run) loc(e entry) Loc { return Loc(binary.LittleEndian.Uint64(r.data[e.tail:])) }

func (r *run) setLoc(e entry, loc Loc) { binary.LittleEndian.PutUint64(r.data[e.tail:], uint64(loc)) }

// score returns the score of a scored entry.
func (r *run) score(e entry) uint64 { return binary.LittleEndian.Uint64(r.data[e.tail+8:]) }

func (r *run) setScore(e entry, score uint64) {
	binary.LittleEndian.PutUint64(r.data[e.tail+8:], score)
}

// key returns what the run is sorted by.
func (r *run) key(e entry) uint64 {
	if r.shape == ranked {
		return binary.LittleEndian.Uint64(r.data[e.off:])
	}
	return r.hash.sumBytes(r.nameOf(e))
}

// skip returns the offset of the entry behind the one at off, of a run that is not ranked.
func skip(data []byte, off, tail int) int {
	length := int(data[off+1])
	if length >= 128 {
		length = int(binary.LittleEndian.Uint16(data[off+2:])) + 2
	}
	return off + 2 + length + tail
}

// seek returns the offset and the number of the first entry that is not below
// (key, name), and whether it is that very entry.
func (r *run) seek(key uint64, name string) (off, i int, found bool) {
	if r.shape == ranked {
		return r.seekRanked(key, name)
	}
	tag, tail, data := r.window.tag(key), r.shape.tail(), r.data
	for off < len(data) && data[off] < tag {
		off = skip(data, off, tail)
		i++
	}
	for off < len(data) && data[off] == tag {
		e := r.entryAt(off)
		have := r.nameOf(e)
		if string(have) == name && name != "" {
			return off, i, true
		}
		// Scans look for a hash and no name, though there may be an entry without one.
		if h := r.hash.sumBytes(have); h > key || h == key && string(have) >= name {
			return off, i, h == key && string(have) == name
		}
		off = e.end
		i++
	}
	return off, i, false
}

func (r *run) seekRanked(score uint64, name string) (off, i int, found bool) {
	for ; off < len(r.data); i++ {
		have := binary.LittleEndian.Uint64(r.data[off:])
		if have > score {
			return off, i, false
		}
		e := r.entryAt(off)
		if have == score {
			if have := r.nameOf(e); string(have) >= name {
				return off, i, string(have) == name
			}
		}
		off = e.end
	}
	return off, i, false
}

// at returns the offset of the i-th entry; that of the end for i = n.
func (r *run) at(i int) int {
	off := 0
	if r.shape == ranked {
		for ; i > 0; i-- {
			off = r.entryAt(off).end
		}
		return off
	}
	for tail := r.shape.tail(); i > 0; i-- {
		off = skip(r.data, off, tail)
	}
	return off
}

// middle returns the offset and the number of the entry boundary nearest to the middle,
// never the start or the end of a run of two entries or more.
func (r *run) middle() (off, i int) {
	for off < len(r.data)/2 {
		end := r.entryAt(off).end
		if i > 0 && (i == r.n-1 || len(r.data)/2-off < end-len(r.data)/2) {
			break
		}
		off = end
		i++
	}
	return off, i
}

// write puts an entry at an offset where there is room for it.
func (r *run) write(off int, key uint64, name string, loc Loc, score uint64) {
	b := r.data[off:]
	if r.shape == ranked {
		binary.LittleEndian.PutUint64(b, key)
	} else {
		b[0] = r.window.tag(key)
	}
	b = b[r.shape.head():]
	if len(name) < 128 {
		b[0] = uint8(len(name))
	} else {
		b[0] = 128
		binary.LittleEndian.PutUint16(b[1:], uint16(len(name)))
	}
	b = b[lengthBytes(len(name)):]
	b = b[copy(b, name):]
	if r.shape != ranked {
		binary.LittleEndian.PutUint64(b, uint64(loc))
	}
	if r.shape == scored {
		binary.LittleEndian.PutUint64(b[8:], score)
	}
}

// retag gives the entries the tags of another window.
func (r *run) retag(w window) {
	r.window = w
	for off := 0; off < len(r.data); {
		e := r.entryAt(off)
		r.data[off] = w.tag(r.key(e))
		off = e.end
	}
}

// openGap moves what stands at off and behind, up to used, by size bytes.
func openGap(b []byte, off, used, size int) { copy(b[off+size:used+size], b[off:used]) }

// closeGap removes size bytes at off.
func closeGap(b []byte, off, used, size int) { copy(b[off:used-size], b[off+size:used]) }
