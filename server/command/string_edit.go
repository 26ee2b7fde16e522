package command

import (
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// SETRANGE and INCRBYFLOAT change a part of a value and keep the key's deadline. GETEX, GETDEL and
// GETSET read a value and do something to its key in the same transaction, so no other client sees
// the state in between. LCS, the odd one out, only reads: it takes time in the product of two
// lengths, so it is the one command on strings that is never batched (see Command.CanBatch).

// stringEditCommands change parts of a string, or read one and do something to it besides.
var stringEditCommands = InGroup(GroupString, []*Command{
	{Name: "getdel", Arity: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return c.bulk(c.Tx.String(c.Key(1)).GetAndDelete()) }},
	{Name: "getex", Arity: -2, Flags: Write | Fast, Keys: OneKey("RW access update"), Run: getexCommand},
	{Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: getsetCommand},
	{Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Keys: OneKey("RW update"), Run: withInt(2, setrangeCommand)},
	{Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"),
		Run: func(c *Call) error { return c.text(c.Tx.String(c.Key(1)).IncrDecimal(c.Key(2))) }},
	{Name: "lcs", Arity: -3, Flags: ReadOnly | slow, Keys: []Keys{{Use: "RO access", First: 1, Last: 1, Step: 1}}, Run: lcsCommand},
})

// getexCommand is GETEX. As in Redis the deadline is parsed only if the key exists. Without
// words it is GET, and writes nothing. A deadline in the past deletes the key, after the value was
// read. The type is checked before existence, since a list at the key must be WRONGTYPE and not
// null.
func getexCommand(c *Call) error {
	deadline, persist := 0, false
	for i := 2; i < len(c.Args); i++ {
		word := c.Args[i]
		switch {
		case equalFold(word, "persist") && deadline == 0:
			persist = true
		case isDeadline(word) && i+1 < len(c.Args) && !persist && (deadline == 0 || sameKeyword(word, c.Args[deadline])):
			deadline = i
			i++
		default:
			return ErrSyntax
		}
	}
	s := c.Tx.String(c.Key(1))
	switch {
	case persist:
		return c.bulk(s.GetAndPersist())
	case deadline == 0:
		return getCommand(c)
	}
	if _, err := s.Len(); err != nil {
		return err
	}
	if exists, err := c.Tx.Key(c.Key(1)).Exists(); err != nil || !exists {
		return c.bulk(nil, orNotFound(err))
	}
	ms, err := c.parseDeadline(deadline, c.Arg(deadline+1), "getex")
	if err != nil {
		return err
	}
	return c.bulk(s.GetAndExpireAt(time.UnixMilli(ms)))
}

// orNotFound is err, or else that there is nothing. It is for handlers that find out by reading
// the key, and pass the outcome to bulk.
func orNotFound(err error) error {
	if err != nil {
		return err
	}
	return db.ErrNotFound
}

// getsetCommand is GETSET: the old value, or null. The deadline goes.
func getsetCommand(c *Call) error {
	result, err := c.Tx.String(c.Key(1)).Set(c.Arg(2), db.ReturnOld)
	if err == nil && !result.Existed {
		err = db.ErrNotFound
	}
	return c.bulk(result.Old, err)
}

// setrangeCommand is SETRANGE. The string grows with zeros; an empty value at any offset changes
// nothing. The limit of 512 MiB is checked by package structures, with Redis's text for it. The
// reply is the length in bytes, also if nothing was written.
func setrangeCommand(c *Call, offset int64) error {
	return c.Int(c.Tx.String(c.Key(1)).SetRange(offset, c.Arg(3)))
}

// lcsCommand is LCS. The order of the checks is Redis's: what the keys hold, the words, their
// lengths. So the subsequence is computed before the words are checked. The error of a length
// comes last: LCS of two long strings with a misspelt word is a syntax error, as it is in Redis.
func lcsCommand(c *Call) error {
	lcs, failed := c.Tx.Keyspace().LongestCommonSubsequence(c.Key(1), c.Key(2))
	if failed == structures.ErrLCSType {
		return failed
	}
	onlyLength, runs, withLength, least := false, false, false, int64(0)
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "len"):
			onlyLength = true
		case c.Args.Is(i, "idx"):
			runs = true
		case c.Args.Is(i, "withmatchlen"):
			withLength = true
		case c.Args.Is(i, "minmatchlen") && i+1 < len(c.Args):
			var err error
			if least, err = c.Args.ParseInt(i + 1); err != nil {
				return err
			}
			i++
		default:
			return ErrSyntax
		}
	}
	switch {
	case runs && onlyLength:
		return Error("ERR If you want both the length and indexes, please just use IDX.")
	case failed != nil:
		return failed
	case onlyLength:
		c.Out.Int(int64(len(lcs.Text)))
	case runs:
		c.lcsRuns(lcs, least, withLength)
	default:
		c.Out.Bulk(lcs.Text)
	}
	return nil
}

// lcsRuns replies with the runs of at least a length.
func (c *Call) lcsRuns(lcs db.LCS, least int64, withLength bool) {
	c.Out.Map(2)
	c.Out.BulkString("matches")
	mark, n := c.Out.Begin(), 0
	for _, m := range lcs.Matches {
		if int64(m.Length) < least {
			continue
		}
		n++
		if withLength {
			c.Out.Array(3)
		} else {
			c.Out.Array(2)
		}
		for _, start := range []int{m.A, m.B} {
			c.Out.Array(2)
			c.Out.Int(int64(start))
			c.Out.Int(int64(start + m.Length - 1))
		}
		if withLength {
			c.Out.Int(int64(m.Length))
		}
	}
	c.Out.EndArray(mark, n)
	c.Out.BulkString("len")
	c.Out.Int(int64(len(lcs.Text)))
}
