package keydir

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// layout is the layout of packed entries.
//
//	plain:  | tag 1   | length | name | location 8 |           hash fields, set members
//	scored: | tag 1   | length | name | location 8 | score 8 | sorted set members
//	ranked: | score 8 | length | name |                        the second order of a sorted set
//
// A length below 128 takes one byte; others take three, the first of them 128.
type layout uint8

const (
	plain layout = iota
	scored
	ranked
)

// head returns the bytes of an entry before its length.
func (l layout) head() int {
	if l == ranked {
		return 8
	}
	return 1
}

// tail returns the bytes of an entry after its name.
func (l layout) tail() int {
	switch l {
	case plain:
		return 8
	case scored:
		return 16
	}
	return 0
}

// lengthBytes returns the bytes that the length of a name takes.
func lengthBytes(n int) int {
	if n < 128 {
		return 1
	}
	return 3
}

// entrySize returns the size of an entry with a name of that length.
func (l layout) entrySize(name int) int { return l.head() + lengthBytes(name) + name + l.tail() }

// tagRange maps hashes to tags: the distance above base, in steps of 1<<shift, between 0
// and 255. Tags ascend with hashes, whatever the range. One that just covers the hashes of
// a page makes equal tags rare.
type tagRange struct {
	base  uint64
	shift uint8
}

// allHashes is the tagRange of entries that may have any hash.
var allHashes = tagRange{shift: 56}

// tag returns the tag of a hash. Hashes outside the range get the tag at its end.
func (r tagRange) tag(hash uint64) uint8 {
	if hash < r.base {
		return 0
	}
	return uint8(min((hash-r.base)>>r.shift, 255))
}

// holds reports whether a hash is within the range.
func (r tagRange) holds(hash uint64) bool { return hash >= r.base && (hash-r.base)>>r.shift < 256 }

func tagRangeOf(first, last uint64) tagRange {
	return tagRange{first, uint8(max(bits.Len64(last-first)-8, 0))}
}

// packed is a sequence of packed entries, sorted by key and then by name. The key of a
// ranked entry is its score. That of the others is the hash of the name, of which an entry
// keeps one byte, the tag; a search computes the hash itself only where tags are equal.
type packed struct {
	data   []byte
	n      int
	even   int // the size of each entry, if it is known to be the same for all; otherwise 0
	layout layout
	tags   tagRange
	hash   *hasher
}

// evenSize returns the size that each entry has, 0 if that is not the same for all, or exceeds maxEven.
func (p *packed) evenSize() int {
	size := 0
	for off := 0; off < len(p.data); {
		e := p.entryAt(off)
		if off == 0 && e.end <= maxEven {
			size = e.end
		} else if e.end-off != size {
			return 0
		}
		off = e.end
	}
	return size
}

// entry is the offsets of one packed entry.
type entry struct {
	off  int // of the entry
	name int // of the name
	tail int // of the values after the name
	end  int
}

// entryAt reads the entry at an offset.
func (p *packed) entryAt(off int) entry {
	e := entry{off: off, name: off + p.layout.head() + 1}
	length := int(p.data[e.name-1])
	if length >= 128 {
		length = int(binary.LittleEndian.Uint16(p.data[e.name:]))
		e.name += 2
	}
	e.tail = e.name + length
	e.end = e.tail + p.layout.tail()
	return e
}

func (p *packed) nameOf(e entry) []byte { return p.data[e.name:e.tail:e.tail] }

func (p *packed) loc(e entry) Loc { return Loc(binary.LittleEndian.Uint64(p.data[e.tail:])) }

func (p *packed) setLoc(e entry, loc Loc) {
	binary.LittleEndian.PutUint64(p.data[e.tail:], uint64(loc))
}

// score returns the score of a scored entry.
func (p *packed) score(e entry) uint64 { return binary.LittleEndian.Uint64(p.data[e.tail+8:]) }

func (p *packed) setScore(e entry, score uint64) {
	binary.LittleEndian.PutUint64(p.data[e.tail+8:], score)
}

// key returns the key that the entries are sorted by.
func (p *packed) key(e entry) uint64 {
	if p.layout == ranked {
		return binary.LittleEndian.Uint64(p.data[e.off:])
	}
	return p.hash.sumBytes(p.nameOf(e))
}

// skipEntry returns the offset of the entry after the one at off. The entries are not ranked.
func skipEntry(data []byte, off, tail int) int {
	length := int(data[off+1])
	if length >= 128 {
		length = int(binary.LittleEndian.Uint16(data[off+2:])) + 2
	}
	return off + 2 + length + tail
}

// seek returns the offset and the number of the first entry that is not below
// (key, name), and whether it is that very entry.
func (p *packed) seek(key uint64, name string) (off, i int, found bool) {
	if p.layout == ranked {
		return p.seekRanked(key, name)
	}
	tag, tail, data := p.tags.tag(key), p.layout.tail(), p.data
	if p.even > 0 {
		off, i = p.seekTag(tag)
	} else {
		for off < len(data) && data[off] < tag {
			off = skipEntry(data, off, tail)
			i++
		}
	}
	for off < len(data) && data[off] == tag {
		e := p.entryAt(off)
		have := p.nameOf(e)
		if string(have) == name && name != "" {
			return off, i, true
		}
		// A scan seeks a hash and an empty name, which an entry may have, too.
		if h := p.hash.sumBytes(have); h > key || h == key && string(have) >= name {
			return off, i, h == key && string(have) == name
		}
		off = e.end
		i++
	}
	return off, i, false
}

// seekTag returns the first of entries of one size whose tag is not below. Hashes, and so tags, are spread evenly: it is
// near to where it would be if they were so exactly.
func (p *packed) seekTag(tag uint8) (off, i int) {
	i = int(tag) * p.n >> 8
	off = i * p.even
	for off < len(p.data) && p.data[off] < tag {
		off += p.even
		i++
	}
	for off > 0 && p.data[off-p.even] >= tag {
		off -= p.even
		i--
	}
	return off, i
}

// seekRanked is seek for ranked entries, which hold their scores in full.
func (p *packed) seekRanked(score uint64, name string) (off, i int, found bool) {
	if p.even > 0 {
		return p.seekEven(score, name)
	}
	for ; off < len(p.data); i++ {
		have := binary.LittleEndian.Uint64(p.data[off:])
		if have > score {
			return off, i, false
		}
		e := p.entryAt(off)
		if have == score {
			if have := p.nameOf(e); string(have) >= name {
				return off, i, string(have) == name
			}
		}
		off = e.end
	}
	return off, i, false
}

// seekEven is seekRanked for entries of one size. It looks at every eighth entry, and then at each: that waits less for
// memory than halving does, and less for branches. It halves what has the same score.
func (p *packed) seekEven(score uint64, name string) (off, i int, found bool) {
	const stride = 8
	for i+stride <= p.n && p.scoreOf(i+stride-1) < score {
		i += stride
	}
	for i < p.n && p.scoreOf(i) < score {
		i++
	}
	for end := p.n; i < end; {
		mid := i
		if p.scoreOf(min(i+stride, end)-1) == score {
			mid = int(uint(i+end) / 2)
		}
		have := p.scoreOf(mid)
		if have > score {
			end = mid
			continue
		}
		switch cmp.Compare(asString(p.nameOf(p.entryAt(mid*p.even))), name) {
		case 0:
			return mid * p.even, mid, true
		case -1:
			i = mid + 1
		default:
			end = mid
		}
	}
	return i * p.even, i, false
}

// scoreOf returns the score of the i-th of ranked entries of one size.
func (p *packed) scoreOf(i int) uint64 { return binary.LittleEndian.Uint64(p.data[i*p.even:]) }

// first returns the name of the first entry, valid while the entries do not change.
func (p packed) first() string { return asString(p.nameOf(p.entryAt(0))) }

// at returns the offset of the i-th entry; the end for i = n.
func (p *packed) at(i int) int {
	if p.even > 0 {
		return i * p.even
	}
	off := 0
	if p.layout == ranked {
		for ; i > 0; i-- {
			off = p.entryAt(off).end
		}
		return off
	}
	for tail := p.layout.tail(); i > 0; i-- {
		off = skipEntry(p.data, off, tail)
	}
	return off
}

// middle returns the offset and the number of the entry boundary nearest to the middle,
// never the start or the end of two entries or more.
func (p *packed) middle() (off, i int) {
	for off < len(p.data)/2 {
		end := p.entryAt(off).end
		if i > 0 && (i == p.n-1 || len(p.data)/2-off < end-len(p.data)/2) {
			break
		}
		off = end
		i++
	}
	return off, i
}

// write writes an entry at an offset that has room for it.
func (p *packed) write(off int, key uint64, name string, loc Loc, score uint64) {
	b := p.data[off:]
	if p.layout == ranked {
		binary.LittleEndian.PutUint64(b, key)
	} else {
		b[0] = p.tags.tag(key)
	}
	b = b[p.layout.head():]
	if len(name) < 128 {
		b[0] = uint8(len(name))
	} else {
		b[0] = 128
		binary.LittleEndian.PutUint16(b[1:], uint16(len(name)))
	}
	b = b[lengthBytes(len(name)):]
	b = b[copy(b, name):]
	if p.layout != ranked {
		binary.LittleEndian.PutUint64(b, uint64(loc))
	}
	if p.layout == scored {
		binary.LittleEndian.PutUint64(b[8:], score)
	}
}

// retag gives the entries the tags of another range.
func (p *packed) retag(r tagRange) {
	p.tags = r
	for off := 0; off < len(p.data); {
		e := p.entryAt(off)
		p.data[off] = r.tag(p.key(e))
		off = e.end
	}
}

// asString returns b as a string without a copy: it is valid while b does not change.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// openGap moves the bytes from off to used by size bytes.
func openGap(b []byte, off, used, size int) { copy(b[off+size:used+size], b[off:used]) }

// closeGap removes size bytes at off.
func closeGap(b []byte, off, used, size int) { copy(b[off:used-size], b[off+size:used]) }
