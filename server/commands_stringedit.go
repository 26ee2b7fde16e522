package server

import (
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

var stringEditCommands = []*Command{
	{
		Name: "getdel", Arity: 2, Flags: Write | Fast, Group: GroupString, Keys: oneKey("RW access delete"), Since: "6.2.0",
		Complexity: "O(1)", Summary: "Returns the string at a key and deletes the key.", Syntax: "key",
		run: func(c *call) error { return c.bulk(c.tx.String(c.key(1)).GetAndDelete()) },
	},
	{
		Name: "getex", Arity: -2, Flags: Write | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "6.2.0",
		Complexity: "O(1)", Summary: "Returns the string at a key and changes the key's deadline.",
		Syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]", run: getexCommand,
	},
	{
		Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Makes a key hold a string and returns the one before.", Syntax: "key value", run: getsetCommand,
	},
	{
		Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Group: GroupString, Keys: oneKey("RW update"), Since: "2.2.0",
		Complexity: stringEdit,
		Summary:    "Overwrites a part of the string at a key and returns its new length.", Syntax: "key offset value", run: setrangeCommand,
	},
	{
		Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "2.6.0",
		Complexity: "O(1)", Summary: "Adds to the float at a key.", Syntax: "key increment",
		run: func(c *call) error { return c.text(c.tx.String(c.key(1)).IncrDecimal(c.key(2))) },
	},
	{
		Name: "lcs", Arity: -3, Flags: ReadOnly, Group: GroupString, Keys: []Keys{{Use: "RO access", First: 1, Last: 1, Step: 1}}, Since: "7.0.0",
		Complexity: "O(n*m), n and m being the lengths of the strings", Summary: "Finds the longest common subsequence of two strings.",
		Syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]", run: lcsCommand,
	},
}

// text replies with a string, unless err says that there is none.
func (c *call) text(s string, err error) error {
	if err == nil {
		c.out.BulkString(s)
	}
	return err
}

// getexCommand is GETEX. As in Redis the deadline is looked at only if the key exists.
func getexCommand(c *call) error {
	deadline, persist := 0, false
	for i := 2; i < len(c.args); i++ {
		word := c.args[i]
		switch {
		case equalFold(word, "persist") && deadline == 0:
			persist = true
		case isDeadline(word) && i+1 < len(c.args) && !persist && (deadline == 0 || sameKeyword(word, c.args[deadline])):
			deadline = i
			i++
		default:
			return errSyntax
		}
	}
	s := c.tx.String(c.key(1))
	switch {
	case persist:
		return c.bulk(s.GetAndPersist())
	case deadline == 0:
		return getCommand(c)
	}
	if _, err := s.Len(); err != nil {
		return err
	}
	if exists, err := c.tx.Key(c.key(1)).Exists(); err != nil || !exists {
		return c.bulk(nil, orNotFound(err))
	}
	ms, err := c.parseDeadline(deadline, c.arg(deadline+1), "getex")
	if err != nil {
		return err
	}
	return c.bulk(s.GetAndExpireAt(time.UnixMilli(ms)))
}

// orNotFound is err, or else that there is nothing.
func orNotFound(err error) error {
	if err != nil {
		return err
	}
	return db.ErrNotFound
}

func getsetCommand(c *call) error {
	result, err := c.tx.String(c.key(1)).Set(c.arg(2), db.SetOptions{Get: true})
	if err == nil && !result.Existed {
		err = db.ErrNotFound
	}
	return c.bulk(result.Old, err)
}

func setrangeCommand(c *call) error {
	offset, err := c.parseInt(2)
	if err != nil {
		return err
	}
	return c.int(c.tx.String(c.key(1)).SetRange(offset, c.arg(3)))
}

// lcsCommand is LCS. The order of the checks is Redis's: what the keys hold, the words, their lengths.
func lcsCommand(c *call) error {
	lcs, failed := c.tx.Keyspace().LongestCommonSubsequence(c.key(1), c.key(2))
	if failed == structures.ErrLCSType {
		return failed
	}
	onlyLength, runs, withLength, least := false, false, false, int64(0)
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "len"):
			onlyLength = true
		case c.is(i, "idx"):
			runs = true
		case c.is(i, "withmatchlen"):
			withLength = true
		case c.is(i, "minmatchlen") && i+1 < len(c.args):
			var err error
			if least, err = c.parseInt(i + 1); err != nil {
				return err
			}
			i++
		default:
			return errSyntax
		}
	}
	switch {
	case runs && onlyLength:
		return replyError("ERR If you want both the length and indexes, please just use IDX.")
	case failed != nil:
		return failed
	case onlyLength:
		c.out.Int(int64(len(lcs.Text)))
	case runs:
		c.lcsRuns(lcs, least, withLength)
	default:
		c.out.Bulk(lcs.Text)
	}
	return nil
}

// lcsRuns replies with the runs of at least a length.
func (c *call) lcsRuns(lcs db.LCS, least int64, withLength bool) {
	c.out.Map(2)
	c.out.BulkString("matches")
	mark, n := c.out.Begin(), 0
	for _, m := range lcs.Matches {
		if int64(m.Length) < least {
			continue
		}
		n++
		if withLength {
			c.out.Array(3)
		} else {
			c.out.Array(2)
		}
		for _, start := range []int{m.A, m.B} {
			c.out.Array(2)
			c.out.Int(int64(start))
			c.out.Int(int64(start + m.Length - 1))
		}
		if withLength {
			c.out.Int(int64(m.Length))
		}
	}
	c.out.EndArray(mark, n)
	c.out.BulkString("len")
	c.out.Int(int64(len(lcs.Text)))
}
