package keydir

import (
	"encoding/binary"
	"math/bits"
)

// itemContext is the context of a dump's item: its slot and location refer to the item before.
type itemContext struct {
	stripe int
	begun  bool
	hash   uint64 // of the previous item, shifted right by three
	last   uint64 // hash of the stripe
	class  uint8  // of the previous location
}

const (
	itemSize = 1<<3 - 1 // bits of the slot: its length, less one
	itemType = 3        // shift
	itemSame = 1 << 6
	itemHash = 7         // shift
	itemMost = 8 + 4 + 8 // bytes of slot and location; next reads no fewer
)

// begin sets the context of the first item: the stripe's lowest and highest hash.
func (c *itemContext) begin() {
	c.begun = true
	c.hash = uint64(c.stripe) << (64 - stripeBits) >> typeBits
	c.last = c.hash | (1<<(64-stripeBits-typeBits) - 1)
}

// append appends slot and location; before the first ones, the stripe.
func (c *itemContext) append(b []byte, h uint64, t Type, loc Loc) []byte {
	if !c.begun {
		c.begin()
		b = append(b, byte(c.stripe))
	}
	word := (h>>typeBits - c.hash) << itemHash
	if t != Chunks && t != Stream && t != StreamGroups {
		word |= uint64(t) << itemType
	}
	class := uint8(loc)
	if class == c.class {
		word |= itemSame
	}
	n := (bits.Len64(word|1) + 7) / 8
	b = binary.LittleEndian.AppendUint64(b, word|uint64(n-1))
	b = binary.AppendUvarint(b[:len(b)-8+n], uint64(loc.Segment()))
	b = binary.LittleEndian.AppendUint32(b, loc.Offset())
	if class != c.class {
		b = append(b, class)
	}
	c.hash, c.class = h>>typeBits, class
	return b
}

// open reads the stripe at the beginning of a dump.
func (c *itemContext) open(dump []byte) (items []byte, ok bool) {
	c.begin()
	if len(dump) == 0 {
		return nil, true
	}
	return dump[1:], len(dump) > 1 && int(dump[0]) == c.stripe
}

// next reads slot and location, of n bytes; n is 0 if append does not write such bytes. Hashes
// ascend, within the stripe.
func (c *itemContext) next(b []byte) (h uint64, t Type, loc Loc, n int) {
	if len(b) < itemMost {
		var padded [itemMost]byte
		copy(padded[:], b)
		if h, t, loc, n = c.next(padded[:]); n > len(b) {
			n = 0
		}
		return h, t, loc, n
	}
	word := binary.LittleEndian.Uint64(b)
	n = int(word&itemSize) + 1
	word = word << (64 - 8*n) >> (64 - 8*n)
	hash := c.hash + word>>itemHash
	h, t = hash<<typeBits, Type(word>>itemType&typeMask)
	if word>>(8*n-8) == 0 && n > 1 || hash > c.last {
		return 0, 0, 0, 0
	}
	raw := binary.LittleEndian.Uint64(b[n:])
	segment := raw & 0x7f
	if raw&0x80 == 0 {
		raw >>= 8
		n++
	} else {
		long, k := uvarint24(b[n:])
		if k == 0 {
			return 0, 0, 0, 0
		}
		segment = uint64(long)
		n += k
		raw = binary.LittleEndian.Uint64(b[n:])
	}
	class := c.class
	n += 4
	if word&itemSame == 0 {
		if class = uint8(raw >> 32); class == c.class {
			return 0, 0, 0, 0
		}
		c.class = class
		n++
	}
	c.hash = hash
	if t == None {
		t = Chunks
	}
	return h, t, Loc(segment<<40 | raw&(1<<32-1)<<8 | uint64(class)), n
}

// uvarint24 reads a number of up to 24 bits in the fewest possible bytes; n is 0 if there is none.
func uvarint24(b []byte) (v uint32, n int) {
	for n = range min(len(b), 4) {
		v |= uint32(b[n]&0x7f) << (7 * n)
		if b[n] < 0x80 {
			if n > 0 && b[n] == 0 || v > PendingSegment {
				return 0, 0
			}
			return v, n + 1
		}
	}
	return 0, 0
}
