package command

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// What replaces or deletes a value only if it is as expected: locks and optimistic updates without a script. IFEQ and IFNE
// compare the value, IFDEQ and IFDNE its digest, which DIGEST returns: a client need not send, or keep, a long value to
// compare it. A key that does not exist differs from every value, and one that holds no string is refused.

// stringCompareCommands are Redis 8.4's, and Valkey's DELIFEQ.
var stringCompareCommands = InGroup(GroupString, []*Command{
	{Name: "delex", Arity: -2, Flags: Write | Fast, Keys: []Keys{{Use: "RW access delete variable_flags", First: 1, Step: 1, vary: delexUse}}, Run: delexCommand},
	{Name: "delifeq", Arity: 3, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return c.Flag(c.Tx.Key(c.Key(1)).Delete(db.IfEqual(c.Arg(2)))) }},
	{Name: "digest", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: digestCommand},
})

// The refusals of conditions on a value.
const (
	errDigest        Error = "ERR digest must be exactly 16 hexadecimal characters"
	errDelexWord     Error = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	errDelexNoString Error = "ERR Key should be of string type if conditions are specified"
)

// isExistence reports whether a word is a condition on the key.
func isExistence(word []byte) bool { return equalFold(word, "nx") || equalFold(word, "xx") }

// isComparison reports whether a word introduces a condition on the value.
func isComparison(word []byte) bool {
	return equalFold(word, "ifeq") || equalFold(word, "ifne") || equalFold(word, "ifdeq") || equalFold(word, "ifdne")
}

// setCondition is the condition of SET, or of MSETEX, that argument i introduces.
func (c *Call) setCondition(i int) (db.WriteOption, error) {
	switch word := c.Args[i]; {
	case equalFold(word, "nx"):
		return db.IfAbsent, nil
	case equalFold(word, "xx"):
		return db.IfPresent, nil
	case equalFold(word, "ifeq"):
		return db.IfEqual(c.Arg(i + 1)), nil
	case equalFold(word, "ifne"):
		return db.IfNotEqual(c.Arg(i + 1)), nil
	}
	exists, holds, err := c.digestHolds(i)
	if exists == holds {
		return db.IfPresent, err
	}
	return db.IfAbsent, err
}

// digestHolds says whether the key exists, and whether IFDEQ or IFDNE, which is argument i, holds. It reads the value in
// the transaction that writes, so both stay true until then.
func (c *Call) digestHolds(i int) (exists, holds bool, err error) {
	want := c.Arg(i + 1)
	if !isDigest(want) {
		return false, false, errDigest
	}
	value, err := c.Tx.String(c.Key(1)).Get()
	exists = err == nil
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return false, false, err
	}
	equal := exists && sameKeyword(want, []byte(digestOf(value)))
	return exists, equal == equalFold(c.Args[i], "ifdeq"), nil
}

// isDigest reports whether b is what digestOf returns, in any case.
func isDigest(b []byte) bool {
	_, err := hex.DecodeString(string(b))
	return len(b) == 16 && err == nil
}

// digestOf is XXH3 of 64 bits, in hexadecimal. Clients compute it, too.
func digestOf(value []byte) string { return fmt.Sprintf("%016x", xxh3.Hash(value)) }

// digestCommand is DIGEST.
func digestCommand(c *Call) error {
	value, err := c.Tx.String(c.Key(1)).Get()
	if err != nil {
		return c.bulk(nil, err)
	}
	c.Out.BulkString(digestOf(value))
	return nil
}

// delexUse is what DELEX does with its key: without a condition it does not read it.
func delexUse(args [][]byte) string {
	if len(args) == 2 {
		return "RM delete"
	}
	return "RW access delete"
}

// delexCommand is DELEX. Without a condition it is DEL, for a key of any type.
func delexCommand(c *Call) error {
	key := c.Tx.Key(c.Key(1))
	switch {
	case len(c.Args) == 2:
		return c.Flag(key.Delete())
	case len(c.Args) != 4:
		return ArityError(c.Command.Name)
	case !isComparison(c.Args[2]):
		return errDelexWord
	}
	done, err := c.deleteIf(key)
	if errors.Is(err, structures.ErrWrongType) {
		err = errDelexNoString
	}
	return c.Flag(done, err)
}

// deleteIf deletes the key if the condition, which is argument 2, holds.
func (c *Call) deleteIf(key db.Key) (bool, error) {
	switch word := c.Args[2]; {
	case equalFold(word, "ifeq"):
		return key.Delete(db.IfEqual(c.Arg(3)))
	case equalFold(word, "ifne"):
		return key.Delete(db.IfNotEqual(c.Arg(3)))
	}
	exists, holds, err := c.digestHolds(2)
	if err != nil || !exists || !holds {
		return false, err
	}
	return key.Delete()
}
