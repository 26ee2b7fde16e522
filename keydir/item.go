package keydir

import (
	"encoding/binary"
	"math/bits"
)

// itemContext is what the slot and the place of an item in a dump refer to.
type itemContext struct {
	stripe int
	begun  bool
	hash   uint64 // of the item before, shifted right by three
	class  uint8  // of the place before
}

const (
	itemSize = 1<<3 - 1 // bits of the slot: its length, less one
	itemType = 3        // shift
	itemSame = 1 << 6
	itemHash = 7 // shift
)

func (c *itemContext) begin() {
	c.begun = true
	c.hash = uint64(c.stripe) << (64 - stripeBits) >> typeBits
}

// append appends slot and place, behind the stripe if they are the first.
func (c *itemContext) append(b []byte, h uint64, t Type, loc Loc) []byte {
	if !c.begun {
		c.begin()
		b = append(b, byte(c.stripe))
	}
	word := (h>>typeBits - c.hash) << itemHash
	if t != Chunks {
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

// next takes slot and place, and returns what is behind them. Hashes ascend, within the stripe.
func (c *itemContext) next(b []byte) (h uint64, t Type, loc Loc, rest []byte, ok bool) {
	if !c.begun {
		if len(b) < 2 || int(b[0]) != c.stripe {
			return 0, 0, 0, nil, false
		}
		c.begin()
		b = b[1:]
	}
	n := int(b[0]&itemSize) + 1
	if len(b) < n {
		return 0, 0, 0, nil, false
	}
	var word uint64
	if len(b) >= 8 {
		word = binary.LittleEndian.Uint64(b) << (64 - 8*n) >> (64 - 8*n)
	} else {
		for i, x := range b[:n] {
			word |= uint64(x) << (8 * i)
		}
	}
	if n > 1 && b[n-1] == 0 {
		return 0, 0, 0, nil, false
	}
	hash := c.hash + word>>itemHash
	h, t = hash<<typeBits, Type(word>>itemType&typeMask)
	if hash>>(64-typeBits) != 0 || StripeOf(h) != c.stripe {
		return 0, 0, 0, nil, false
	}
	b = b[n:]
	segment, k := uvarint24(b)
	if k == 0 || len(b) < k+4 {
		return 0, 0, 0, nil, false
	}
	offset := binary.LittleEndian.Uint32(b[k:])
	b = b[k+4:]
	if word&itemSame == 0 {
		if len(b) == 0 || b[0] == c.class {
			return 0, 0, 0, nil, false
		}
		c.class = b[0]
		b = b[1:]
	}
	c.hash = hash
	if t == None {
		t = Chunks
	}
	return h, t, Loc(segment)<<40 | Loc(offset)<<8 | Loc(c.class), b, true
}

// uvarint24 reads a number of up to 24 bits in the fewest bytes possible; n is 0 if there is none.
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
