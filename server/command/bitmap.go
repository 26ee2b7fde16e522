package command

import (
	"bytes"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/structures"
)

// A bitmap is a string, so GET, SET and STRLEN work on it, and all these commands keep the key's
// deadline, except BITOP, which replaces its destination. Positions count bits from the highest of
// the first byte. They go up to 2^32-1, the last bit of 512 MiB: SETBIT of that bit writes one
// chunk, not 512 MiB, and reads of the gap give zeros.

// bitmapCommands work on the bits of a string. Bit 0 is the highest of byte 0, as in Redis, and a
// key that does not exist is a string of zeros.
var bitmapCommands = InGroup(GroupBitmap, []*Command{
	{Name: "getbit", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: getbitCommand},
	{Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Work: Constant, Keys: OneKey("RW access update"), Run: setbitCommand},
	{Name: "bitcount", Arity: -2, Flags: ReadOnly, Keys: OneKey("RO access"), Run: bitcountCommand},
	{Name: "bitpos", Arity: -3, Flags: ReadOnly, Keys: OneKey("RO access"), Run: bitposCommand},
	{Name: "bitop", Arity: -4, Flags: Write | DenyOOM,
		Keys: []Keys{{Use: "OW update", First: 2, Step: 1}, {Use: "RO access", First: 3, Last: -1, Step: 1}}, Run: bitopCommand},
	{Name: "bitfield", Arity: -2, Flags: Write | DenyOOM, Keys: oneKeyVaried(bitfieldUse),
		Run: func(c *Call) error { return bitfield(c, false) }},
	{Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return bitfield(c, true) }},
})

// The words of BITOP, of OVERFLOW, and of units: true for positions that are bits.
var (
	bitOps = words[db.BitOp]{{"and", db.BitAnd}, {"or", db.BitOr}, {"xor", db.BitXor}, {"not", db.BitNot},
		{"diff", db.BitDiff}, {"diff1", db.BitDiff1}, {"andor", db.BitAndOr}, {"one", db.BitOne}}
	overflows = words[db.Overflow]{{"wrap", db.OverflowWrap}, {"sat", db.OverflowSat}, {"fail", db.OverflowFail}}
	bitUnits  = words[bool]{{"byte", false}, {"bit", true}}
)

// parseBitOffset reads argument i as a position of a bit. With a width, "#n" is the position of the
// n-th integer. A "#n" whose product overflows wraps around before it is checked, in Redis too: the
// reply to it is the same.
func (a Args) parseBitOffset(i int, width int64) (int64, error) {
	digits, counted := bytes.CutPrefix(a[i], []byte("#"))
	if counted && width == 0 {
		return 0, structures.ErrBitOffset
	}
	n, ok := number.ParseInt(digits)
	if counted {
		n *= width
	}
	if !ok || n < 0 || n/8 >= structures.MaxString {
		return 0, structures.ErrBitOffset
	}
	return n, nil
}

// getbitCommand is GETBIT. A bit after the end of the string is 0.
func getbitCommand(c *Call) error {
	offset, err := c.Args.parseBitOffset(2, 0)
	if err != nil {
		return err
	}
	return c.Flag(c.Tx.Bitmap(c.Key(1)).Get(offset))
}

// setbitCommand is SETBIT. The string grows with zeros to hold the bit, even if that is set to 0.
// The reply is the old bit. Nothing is written if the bit has that value already and the string is
// long enough.
func setbitCommand(c *Call) error {
	offset, err := c.Args.parseBitOffset(2, 0)
	if err != nil {
		return err
	}
	bit, ok := number.ParseInt(c.Args[3])
	if !ok || bit != 0 && bit != 1 {
		return Error("ERR bit is not an integer or out of range")
	}
	return c.Flag(c.Tx.Bitmap(c.Key(1)).Set(offset, bit == 1))
}

// bitUnit reads BYTE or BIT. Without the word, positions of BITCOUNT and BITPOS are bytes, and what
// BITPOS returns is a bit all the same.
func (a Args) bitUnit(i int) (bits bool, err error) {
	bits, ok := bitUnits.find(a[i])
	if !ok {
		return false, ErrSyntax
	}
	return bits, nil
}

// bitcountCommand is BITCOUNT. A range needs both ends, which Redis calls a syntax error otherwise;
// negative ones count from the end of the string. The numbers are checked before the key, and BYTE
// or BIT after them.
func bitcountCommand(c *Call) error {
	r := db.AllBits
	switch len(c.Args) {
	case 2:
	case 4, 5:
		var err error
		if r.Start, r.End, err = c.Args.parseRange(2); err != nil {
			return err
		}
		if len(c.Args) == 5 {
			if r.Bits, err = c.Args.bitUnit(4); err != nil {
				return err
			}
		}
	default:
		return ErrSyntax
	}
	return c.Int64(c.Tx.Bitmap(c.Key(1)).Count(r))
}

// bitposCommand is BITPOS. A search for a 0 without an end continues into the zeros that are
// thought to follow the string, so there it always finds one; with an end it may find none. The
// words are read in Redis's order, which is not theirs: start, the unit, end. So the error for
// "BITPOS k 1 0 x NOPE" is about NOPE.
func bitposCommand(c *Call) error {
	bit, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	if bit != 0 && bit != 1 {
		return Error("ERR The bit argument must be 1 or 0.")
	}
	r := db.AllBits
	if len(c.Args) > 6 {
		return ErrSyntax
	}
	if len(c.Args) > 3 {
		if r.Start, err = c.Args.ParseInt(3); err != nil {
			return err
		}
	}
	if len(c.Args) > 5 {
		if r.Bits, err = c.Args.bitUnit(5); err != nil {
			return err
		}
	}
	if len(c.Args) > 4 {
		r.Open = false
		if r.End, err = c.Args.ParseInt(4); err != nil {
			return err
		}
	}
	return c.Int64(c.Tx.Bitmap(c.Key(1)).Position(bit == 1, r))
}

// bitopCommand is BITOP. Shorter strings are filled up with zeros, and NOT takes one source only. DIFF, DIFF1, ANDOR and
// ONE are of Redis 8.2.
// The result is as long as the longest source; a source that does not exist is zeros. An empty
// result deletes the destination. All sources and the destination are locked together, and the
// destination may be one of them.
func bitopCommand(c *Call) error {
	op, ok := bitOps.find(c.Args[1])
	if !ok {
		return ErrSyntax
	}
	n, err := c.Tx.Keyspace().CombineBits(op, c.Key(2), c.Args.Strings(3)...)
	if err == structures.ErrBitTwoSources {
		return Errorf("ERR BITOP %s must be called with at least two source keys.", strings.ToUpper(string(c.Args[1])))
	}
	return c.Int(n, err)
}

// bitfieldOps reads the steps of BITFIELD. OVERFLOW holds for what follows it, up to the next
// OVERFLOW, and writes nothing by itself.
func (a Args) bitfieldOps() (ops []db.BitfieldOp, writes bool, err error) {
	overflow := db.OverflowWrap
	for i := 2; i < len(a); {
		more := len(a) - i - 1
		op := db.BitfieldOp{Overflow: overflow}
		switch {
		case a.Is(i, "get") && more >= 2:
			op.Action = db.BitfieldGet
		case a.Is(i, "set") && more >= 3:
			op.Action = db.BitfieldSet
		case a.Is(i, "incrby") && more >= 3:
			op.Action = db.BitfieldIncr
		case a.Is(i, "overflow") && more >= 1:
			var ok bool
			if overflow, ok = overflows.find(a[i+1]); !ok {
				return nil, false, Error("ERR Invalid OVERFLOW type specified")
			}
			i += 2
			continue
		default:
			return nil, false, ErrSyntax
		}
		if op.Signed, op.Bits, err = parseBitfieldType(a[i+1]); err != nil {
			return nil, false, err
		}
		if op.Offset, err = a.parseBitOffset(i+2, int64(op.Bits)); err != nil {
			return nil, false, err
		}
		if op.Action != db.BitfieldGet {
			writes = true
			if op.Value, err = a.ParseInt(i + 3); err != nil {
				return nil, false, err
			}
			i++
		}
		i += 3
		ops = append(ops, op)
	}
	return ops, writes, nil
}

// parseBitfieldType reads "i16" and its like. As in Redis a NUL ends it. Unsigned integers have 63
// bits at most, because a reply is a signed 64-bit integer.
func parseBitfieldType(text []byte) (signed bool, width int, err error) {
	text, _, _ = bytes.Cut(text, []byte{0})
	if len(text) == 0 || text[0] != 'i' && text[0] != 'u' {
		return false, 0, structures.ErrBitfieldType
	}
	signed = text[0] == 'i'
	n, ok := number.ParseInt(text[1:])
	if !ok || n < 1 || n > 64 || !signed && n > 63 {
		return false, 0, structures.ErrBitfieldType
	}
	return signed, int(n), nil
}

// bitfield is BITFIELD and BITFIELD_RO. All operations are parsed before the first is done, so that
// a syntax error changes nothing. An increment that overflows under FAIL replies null and leaves
// its field. Operations see the results of those before them. One that only reads leaves the string
// as long as it is; a write grows it before the first operation.
func bitfield(c *Call, readOnly bool) error {
	ops, writes, err := c.Args.bitfieldOps()
	if err != nil {
		return err
	}
	if readOnly && writes {
		return Error("ERR BITFIELD_RO only supports the GET subcommand")
	}
	results, err := c.Tx.Bitmap(c.Key(1)).Field(ops...)
	if err != nil {
		return err
	}
	c.Out.Array(len(results))
	for _, r := range results {
		if r.OK {
			c.Out.Int(r.Value)
		} else {
			c.Out.Null()
		}
	}
	return nil
}

// bitfieldUse is what BITFIELD does with its key: it reads it only if there is nothing but GET, as far as the words can
// be understood.
func bitfieldUse(args [][]byte) string {
	for i := 2; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case equalFold(args[i], "get") && more >= 2:
			i += 2
		case equalFold(args[i], "overflow") && more >= 1:
			i++
		default:
			return "RW access update"
		}
	}
	return "RO access"
}
