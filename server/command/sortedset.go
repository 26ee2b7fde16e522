package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/structures"
)

// ZADD, ZSCORE, ZRANK and the pops; sortedset_range.go has the ranges, sortedset_combine.go what
// takes several sorted sets. All members are in memory, in two orders with counts, so nothing here
// reads the disk, and a rank is O(log n).
//
// A score is a double: infinities are scores, NaN is refused, and -0 is kept as 0. In RESP2 a score
// is text with as few digits as give the same double again, in RESP3 a double.

// sortedSetCommands work on single members. Members are ordered by score, and by name where scores
// are equal.
var sortedSetCommands = InGroup(GroupSortedSet, []*Command{
	{Name: "zadd", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: zaddCommand},
	{Name: "zincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: zincrbyCommand},
	{Name: "zrem", Arity: -3, Flags: Write | Fast, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return c.Int(c.Tx.SortedSet(c.Key(1)).Remove(c.Args.Strings(2)...)) }},
	{Name: "zcard", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.SortedSet(c.Key(1)).Len()) }},
	{Name: "zscore", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: zscoreCommand},
	{Name: "zmscore", Arity: -3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: zmscoreCommand},
	{Name: "zrank", Arity: -3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: func(c *Call) error { return rank(c, false) }},
	{Name: "zrevrank", Arity: -3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: func(c *Call) error { return rank(c, true) }},
	{Name: "zpopmin", Arity: -2, Count: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return zpop(c, db.SortedSet.PopMin) }},
	{Name: "zpopmax", Arity: -2, Count: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return zpop(c, db.SortedSet.PopMax) }},
	{Name: "zscan", Arity: -3, Flags: ReadOnly, Keys: OneKey("RO access"), Run: zscanCommand},
})

// zaddCommand is ZADD. The order of the checks is Redis's: the words, the number of arguments,
// contradictions, the scores, then what the key holds. All scores are parsed before the first
// member is added. Of a member that is named twice the conditions see the first score when they
// judge the second.
func zaddCommand(c *Call) error {
	o, i := c.Args.addWords(true)
	rest := c.Args[i:]
	switch {
	case len(rest) == 0 || len(rest)%2 != 0:
		return ErrSyntax
	case o.nx && o.xx:
		return structures.ErrAddNXXX
	case o.nx && (o.gt || o.lt) || o.gt && o.lt:
		return structures.ErrAddNXGTLT
	case o.increment && len(rest) > 2:
		return Error("ERR INCR option supports a single increment-element pair")
	}
	members := make([]db.Scored, 0, len(rest)/2)
	for ; i < len(c.Args); i += 2 {
		score, err := c.Args.ParseFloat(i)
		if err != nil {
			return err
		}
		members = append(members, db.Scored{Member: c.Key(i + 1), Score: score})
	}
	set := c.Tx.SortedSet(c.Key(1))
	if o.increment {
		return c.increment(set, members[0], o.conditions...)
	}
	result, err := set.AddWith(members, o.conditions...)
	return o.replyAdded(c, result, err)
}

// addWords are the words between the key and the members of ZADD and GEOADD.
type addWords struct {
	conditions     []db.WriteOption
	nx, xx, gt, lt bool // which these are
	changed        bool // CH: the reply counts the members whose score changed, too
	increment      bool // INCR
}

// addWords reads them, of which GEOADD knows three, and returns where the members begin.
func (a Args) addWords(all bool) (w addWords, next int) {
	for i := 2; i < len(a); i++ {
		switch {
		case a.Is(i, "nx"):
			w.nx, w.conditions = true, append(w.conditions, db.IfAbsent)
		case a.Is(i, "xx"):
			w.xx, w.conditions = true, append(w.conditions, db.IfPresent)
		case a.Is(i, "ch"):
			w.changed = true
		case all && a.Is(i, "gt"):
			w.gt, w.conditions = true, append(w.conditions, db.IfGreater)
		case all && a.Is(i, "lt"):
			w.lt, w.conditions = true, append(w.conditions, db.IfLess)
		case all && a.Is(i, "incr"):
			w.increment = true
		default:
			return w, i
		}
	}
	return w, len(a)
}

// replyAdded replies with how many members were added, or changed if CH asked for that.
func (w *addWords) replyAdded(c *Call, result db.AddResult, err error) error {
	if w.changed {
		result.Added += result.Changed
	}
	return c.Int(result.Added, err)
}

// increment replies with the new score, or a null if the conditions did not hold. A sum that is
// NaN, of two infinities, is an error and changes nothing.
func (c *Call) increment(set db.SortedSet, m db.Scored, conditions ...db.WriteOption) error {
	score, done, err := set.IncrWith(m.Member, m.Score, conditions...)
	switch {
	case err != nil:
		return err
	case done:
		c.Out.Double(score)
	default:
		c.Out.Null()
	}
	return nil
}

// zincrbyCommand is ZINCRBY: a member that does not exist counts from 0. A sum that is not a number
// is refused.
func zincrbyCommand(c *Call) error {
	delta, err := c.Args.ParseFloat(2)
	if err != nil {
		return err
	}
	return c.increment(c.Tx.SortedSet(c.Key(1)), db.Scored{Member: c.Key(3), Score: delta})
}

// score replies with the score of a member, or a null. The key's type is checked for each member of
// ZMSCORE; the first one ends the command.
func (c *Call) score(set db.SortedSet, member string) error {
	score, err := set.Score(member)
	if err != nil {
		return orElse(err, c.Out.Null)
	}
	c.Out.Double(score)
	return nil
}

// zscoreCommand is ZSCORE.
func zscoreCommand(c *Call) error { return c.score(c.Tx.SortedSet(c.Key(1)), c.Key(2)) }

// zmscoreCommand is ZMSCORE: a null for each member that does not exist.
func zmscoreCommand(c *Call) error {
	set := c.Tx.SortedSet(c.Key(1))
	c.Out.Array(len(c.Args) - 2)
	for _, member := range c.Args.Strings(2) {
		if err := c.score(set, member); err != nil {
			return err
		}
	}
	return nil
}

// rank is ZRANK and ZREVRANK: null, or with WITHSCORE a null array, for a member that does not
// exist. The word is checked before the key. Of members with equal scores the one whose name is
// smaller, byte by byte, has the lower rank.
func rank(c *Call, reverse bool) error {
	withScore := false
	switch {
	case len(c.Args) > 4:
		return ArityError(c.Command.Name)
	case len(c.Args) == 4:
		if !c.Args.Is(3, "withscore") {
			return ErrSyntax
		}
		withScore = true
	}
	position, score, err := c.Tx.SortedSet(c.Key(1)).RankScore(c.Key(2), reverse)
	if err != nil {
		if withScore {
			return orElse(err, c.Out.NullArray)
		}
		return orElse(err, c.Out.Null)
	}
	if withScore {
		c.Out.Array(2)
	}
	c.Out.Int(int64(position))
	if withScore {
		c.Out.Double(score)
	}
	return nil
}

// zpop replies with one member and its score, flat, or with a count all of them: flat in RESP2, in
// pairs in RESP3.
func zpop(c *Call, take func(db.SortedSet, int) ([]db.Scored, error)) error {
	if len(c.Args) > 3 {
		return ErrSyntax
	}
	count := 1
	if len(c.Args) == 3 {
		var err error
		if count, err = c.Args.parseCount(2); err != nil {
			return err
		}
	}
	members, err := take(c.Tx.SortedSet(c.Key(1)), count)
	if err != nil {
		return err
	}
	reply := scoredReply{out: c.Out, scores: true, pairs: len(c.Args) == 3 && c.Out.Version() == 3}
	reply.all(members)
	return nil
}

// zscanCommand is ZSCAN. Scores are text in both versions of the protocol, as in Redis. NOSCORES, of Valkey 9, replies
// members only.
func zscanCommand(c *Call) error {
	noScores := false
	cursor, o, done, err := c.scanCursor(db.TypeSortedSet, func(i int) (int, error) {
		if !c.Args.Is(i, "noscores") {
			return 0, nil
		}
		noScores = true
		return 1, nil
	})
	if err != nil || done {
		return err
	}
	page := scanned(c.Tx.SortedSet(c.Key(1)).Scan(cursor, o.ScanOptions))
	page.name = func(m db.Scored) string { return m.Member }
	if !noScores {
		page.value = func(m db.Scored) {
			var digits [32]byte
			c.Out.Bulk(resp.AppendDouble(digits[:0], m.Score))
		}
	}
	return page.reply(c, o)
}
