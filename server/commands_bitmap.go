package server

import (
	"bytes"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

const (
	bitmapRead   = "O(n), n being the length of the range"
	bitCost      = "O(1), or O(n), n being the length of a string up to 64 KiB"
	bitfieldCost = "O(n), n being the number of operations, or the length of a string up to 64 KiB"
	stringEdit   = "O(n), n being the length of the new part, or that of a string up to 64 KiB"
)

var bitmapCommands = []*Command{
	{
		Name: "getbit", Arity: 3, Flags: ReadOnly | Fast, Group: GroupBitmap, Keys: oneKey("RO access"), Since: "2.2.0",
		Complexity: bitCost, Summary: "Returns a bit of the string at a key.", Syntax: "key offset", run: getbitCommand,
	},
	{
		Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Group: GroupBitmap, Keys: oneKey("RW access update"), Since: "2.2.0",
		Complexity: bitCost, Summary: "Changes a bit of the string at a key and returns what it was.", Syntax: "key offset value", run: setbitCommand,
	},
	{
		Name: "bitcount", Arity: -2, Flags: ReadOnly, Group: GroupBitmap, Keys: oneKey("RO access"), Since: "2.6.0",
		Complexity: bitmapRead, Summary: "Counts the bits that are set in a string.",
		Syntax: "key [start end [BYTE | BIT]]", run: bitcountCommand,
	},
	{
		Name: "bitpos", Arity: -3, Flags: ReadOnly, Group: GroupBitmap, Keys: oneKey("RO access"), Since: "2.8.7",
		Complexity: bitmapRead, Summary: "Finds the first bit of a string that is set, or clear.",
		Syntax: "key bit [start [end [BYTE | BIT]]]", run: bitposCommand,
	},
	{
		Name: "bitop", Arity: -4, Flags: Write | DenyOOM, Group: GroupBitmap,
		Keys:  []Keys{{Use: "OW update", First: 2, Step: 1}, {Use: "RO access", First: 3, Last: -1, Step: 1}},
		Since: "2.6.0", Complexity: "O(n), n being the length of all strings", Summary: "Combines strings bit by bit into another one.",
		Syntax: "<AND | OR | XOR | NOT> destkey key [key ...]", run: bitopCommand,
	},
	{
		Name: "bitfield", Arity: -2, Flags: Write | DenyOOM, Group: GroupBitmap, Keys: oneKey("RW access update variable_flags"), Since: "3.2.0",
		Complexity: bitfieldCost, Summary: "Reads and changes integers of any width within a string.",
		Syntax: "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment> ...]",
		run:    func(c *call) error { return bitfield(c, false) },
	},
	{
		Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast, Group: GroupBitmap, Keys: oneKey("RO access"), Since: "6.0.0",
		Complexity: bitfieldCost, Summary: "Reads integers of any width within a string.",
		Syntax: "key [GET encoding offset [GET encoding offset ...]]", run: func(c *call) error { return bitfield(c, true) },
	},
}

// parseBitOffset reads argument i as a position of a bit. With a width, "#n" is the position of the n-th integer.
func (c *call) parseBitOffset(i int, width int64) (int64, error) {
	digits, counted := bytes.CutPrefix(c.args[i], []byte("#"))
	if counted && width == 0 {
		return 0, structures.ErrBitOffset
	}
	n, ok := parseInt(digits)
	if counted {
		n *= width
	}
	if !ok || n < 0 || n/8 >= structures.MaxString {
		return 0, structures.ErrBitOffset
	}
	return n, nil
}

func getbitCommand(c *call) error {
	offset, err := c.parseBitOffset(2, 0)
	if err != nil {
		return err
	}
	return c.flag(c.tx.Bitmap(c.key(1)).Get(offset))
}

func setbitCommand(c *call) error {
	offset, err := c.parseBitOffset(2, 0)
	if err != nil {
		return err
	}
	bit, ok := parseInt(c.args[3])
	if !ok || bit != 0 && bit != 1 {
		return replyError("ERR bit is not an integer or out of range")
	}
	return c.flag(c.tx.Bitmap(c.key(1)).Set(offset, bit == 1))
}

// bitUnit reads BYTE or BIT.
func (c *call) bitUnit(i int) (bits bool, err error) {
	switch {
	case c.is(i, "bit"):
		return true, nil
	case c.is(i, "byte"):
		return false, nil
	}
	return false, errSyntax
}

func bitcountCommand(c *call) error {
	r := db.AllBits
	switch len(c.args) {
	case 2:
	case 4, 5:
		var err error
		if r.Start, err = c.parseInt(2); err != nil {
			return err
		}
		if r.End, err = c.parseInt(3); err != nil {
			return err
		}
		if len(c.args) == 5 {
			if r.Bits, err = c.bitUnit(4); err != nil {
				return err
			}
		}
	default:
		return errSyntax
	}
	return c.int64(c.tx.Bitmap(c.key(1)).Count(r))
}

func bitposCommand(c *call) error {
	bit, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if bit != 0 && bit != 1 {
		return replyError("ERR The bit argument must be 1 or 0.")
	}
	r := db.AllBits
	if len(c.args) > 6 {
		return errSyntax
	}
	if len(c.args) > 3 {
		if r.Start, err = c.parseInt(3); err != nil {
			return err
		}
	}
	if len(c.args) > 5 {
		if r.Bits, err = c.bitUnit(5); err != nil {
			return err
		}
	}
	if len(c.args) > 4 {
		r.Open = false
		if r.End, err = c.parseInt(4); err != nil {
			return err
		}
	}
	return c.int64(c.tx.Bitmap(c.key(1)).Position(bit == 1, r))
}

func bitopCommand(c *call) error {
	var op db.BitOp
	switch {
	case c.is(1, "and"):
		op = db.BitAnd
	case c.is(1, "or"):
		op = db.BitOr
	case c.is(1, "xor"):
		op = db.BitXor
	case c.is(1, "not"):
		op = db.BitNot
	default:
		return errSyntax
	}
	return c.int(c.tx.Keyspace().CombineBits(op, c.key(2), c.strings(3)...))
}

// bitfieldOps reads the steps of BITFIELD.
func (c *call) bitfieldOps() (ops []db.BitfieldOp, writes bool, err error) {
	overflow := db.OverflowWrap
	for i := 2; i < len(c.args); {
		more := len(c.args) - i - 1
		op := db.BitfieldOp{Overflow: overflow}
		switch {
		case c.is(i, "get") && more >= 2:
			op.Action = db.BitfieldGet
		case c.is(i, "set") && more >= 3:
			op.Action = db.BitfieldSet
		case c.is(i, "incrby") && more >= 3:
			op.Action = db.BitfieldIncr
		case c.is(i, "overflow") && more >= 1:
			switch {
			case c.is(i+1, "wrap"):
				overflow = db.OverflowWrap
			case c.is(i+1, "sat"):
				overflow = db.OverflowSat
			case c.is(i+1, "fail"):
				overflow = db.OverflowFail
			default:
				return nil, false, replyError("ERR Invalid OVERFLOW type specified")
			}
			i += 2
			continue
		default:
			return nil, false, errSyntax
		}
		if op.Signed, op.Bits, err = parseBitfieldType(c.args[i+1]); err != nil {
			return nil, false, err
		}
		if op.Offset, err = c.parseBitOffset(i+2, int64(op.Bits)); err != nil {
			return nil, false, err
		}
		if op.Action != db.BitfieldGet {
			writes = true
			if op.Value, err = c.parseInt(i + 3); err != nil {
				return nil, false, err
			}
			i++
		}
		i += 3
		ops = append(ops, op)
	}
	return ops, writes, nil
}

// parseBitfieldType reads "i16" and its like. As in Redis a NUL ends it.
func parseBitfieldType(text []byte) (signed bool, width int, err error) {
	text, _, _ = bytes.Cut(text, []byte{0})
	if len(text) == 0 || text[0] != 'i' && text[0] != 'u' {
		return false, 0, structures.ErrBitfieldType
	}
	signed = text[0] == 'i'
	n, ok := parseInt(text[1:])
	if !ok || n < 1 || n > 64 || !signed && n > 63 {
		return false, 0, structures.ErrBitfieldType
	}
	return signed, int(n), nil
}

func bitfield(c *call, readOnly bool) error {
	ops, writes, err := c.bitfieldOps()
	if err != nil {
		return err
	}
	if readOnly && writes {
		return replyError("ERR BITFIELD_RO only supports the GET subcommand")
	}
	results, err := c.tx.Bitmap(c.key(1)).Field(ops...)
	if err != nil {
		return err
	}
	c.out.Array(len(results))
	for _, r := range results {
		if r.OK {
			c.out.Int(r.Value)
		} else {
			c.out.Null()
		}
	}
	return nil
}
