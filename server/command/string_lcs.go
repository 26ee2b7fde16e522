package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// LCS takes time in the product of two lengths, so it is the one command on strings that is never batched (see
// Cost).

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
