package command

import (
	"bytes"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// Eight commands that read and three that remove are one parser and three handlers: a row says in a
// rangeQuery what its name implies, and the arguments say the rest. The bounds become a db.Range,
// which finds its first member in O(log n); LIMIT's offset is skipped by rank and not by a walk, so
// a page far down costs what the first page costs.
//
// Ranges by name are meaningful only where all scores are equal, as in Redis. A range whose ends
// are in the wrong order is empty, and so is one that lies beyond the members: no error.

// sortedSetRangeCommands read, count and remove ranges by rank, score or name. ZRANGE has all
// orders in one command; the others, which Redis had before it, name order and direction.
var sortedSetRangeCommands = InGroup(GroupSortedSet, []*Command{
	{Name: "zrange", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{}) }},
	{Name: "zrevrange", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{named: true, reverse: true}) }},
	{Name: "zrangebyscore", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{named: true, by: byScore}) }},
	{Name: "zrevrangebyscore", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{named: true, by: byScore, reverse: true}) }},
	{Name: "zrangebylex", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{named: true, by: byLex}) }},
	{Name: "zrevrangebylex", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return zrange(c, rangeQuery{named: true, by: byLex, reverse: true}) }},
	{Name: "zcount", Arity: 4, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: func(c *Call) error { return zcount(c, byScore) }},
	{Name: "zlexcount", Arity: 4, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: func(c *Call) error { return zcount(c, byLex) }},
	{Name: "zremrangebyrank", Arity: 4, Flags: Write, Work: InSteps, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return zremrange(c, byRank) }},
	{Name: "zremrangebyscore", Arity: 4, Flags: Write, Work: InSteps, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return zremrange(c, byScore) }},
	{Name: "zremrangebylex", Arity: 4, Flags: Write, Work: InSteps, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return zremrange(c, byLex) }},
})

// order is what a range goes by.
type order int

const (
	byRank order = iota
	byScore
	byLex
)

// rangeQuery is a parsed range command.
type rangeQuery struct {
	named         bool // one of the commands that have order and direction in their name
	store         bool // ZRANGESTORE, which has no scores to show
	by            order
	reverse       bool
	withScores    bool
	limited       bool  // LIMIT is there
	offset, count int64 // of LIMIT; a negative count is no bound
}

// limit is the count as package db has it: there 0 is no bound, and a negative one nothing.
func (q *rangeQuery) limit() int64 {
	switch {
	case !q.limited || q.count < 0:
		return 0
	case q.count == 0:
		return -1
	}
	return q.count
}

// options reads the words from argument i on. The commands with a direction in their name know
// neither REV nor BYSCORE and BYLEX. What contradicts each other is found after all words, so a
// misspelt word is reported first.
func (q *rangeQuery) options(c *Call, i int) (err error) {
	free := !q.named // the words that a name does not imply, each of them once
	for ; i < len(c.Args); i++ {
		more := len(c.Args) - i - 1
		switch {
		case !q.store && c.Args.Is(i, "withscores"):
			q.withScores = true
		case c.Args.Is(i, "limit") && more >= 2:
			q.limited = true
			if q.offset, q.count, err = c.Args.parseRange(i + 1); err != nil {
				return err
			}
			i += 2
		case free && q.by == byRank && c.Args.Is(i, "byscore"):
			q.by = byScore
		case free && q.by == byRank && c.Args.Is(i, "bylex"):
			q.by = byLex
		case free && !q.reverse && c.Args.Is(i, "rev"):
			q.reverse = true
		default:
			return ErrSyntax
		}
	}
	switch {
	case q.limited && q.count != -1 && q.by == byRank: // Redis takes a count of -1 for no LIMIT
		return Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case q.withScores && q.by == byLex:
		return Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	return nil
}

// bounds reads the two ends of the range, arguments i and i+1. A reversed range by score or name is
// written with its higher end first; one by rank is not, since its positions count from the other
// end.
func (q *rangeQuery) bounds(c *Call, i int) (db.Range, error) {
	lower, upper := c.Args[i], c.Args[i+1]
	if q.reverse && q.by != byRank {
		lower, upper = upper, lower
	}
	switch q.by {
	case byRank:
		start, stop, err := c.Args.parseRange(i)
		return db.RankRange{Start: start, Stop: stop, Reverse: q.reverse}, err
	case byScore:
		lower, _, _ = bytes.Cut(lower, []byte{0}) // Redis reads C strings
		upper, _, _ = bytes.Cut(upper, []byte{0})
		r, err := structures.ParseScoreRange(lower, upper)
		r.Reverse, r.Offset, r.Count = q.reverse, q.offset, q.limit()
		return r, err
	default:
		r, err := structures.ParseLexRange(lower, upper)
		r.Reverse, r.Offset, r.Count = q.reverse, q.offset, q.limit()
		return r, err
	}
}

// zrange is ZRANGE and the commands that it replaces. q says what the command's name implies.
// Members are written to the reply as they are visited; the sorted set is locked until the last
// one.
func zrange(c *Call, q rangeQuery) error {
	if err := q.options(c, 4); err != nil {
		return err
	}
	r, err := q.bounds(c, 2)
	if err != nil {
		return err
	}
	reply := c.scoredReply(q.withScores)
	return c.Tx.SortedSet(c.Key(1)).Visit(r, reply.start, reply.add)
}

// zcount is ZCOUNT and ZLEXCOUNT. It costs two searches, not a walk: O(log n) however many members
// there are.
func zcount(c *Call, by order) error {
	q := rangeQuery{by: by}
	r, err := q.bounds(c, 2)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.SortedSet(c.Key(1)).Count(r))
}

// zremrange is ZREMRANGEBYRANK and its relatives. The members are removed in one commit. With the
// last one the key goes.
func zremrange(c *Call, by order) error {
	q := rangeQuery{by: by}
	r, err := q.bounds(c, 2)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.SortedSet(c.Key(1)).RemoveRange(r))
}
