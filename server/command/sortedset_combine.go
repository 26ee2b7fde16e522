package command

import (
	"math"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// ZUNION, ZINTER and ZDIFF with their STORE forms, ZRANGESTORE, ZMPOP and ZRANDMEMBER. Unlike the
// combinations of sets the result is built in memory, for it must be put in order before its first
// member is known.
//
// A sum of infinities of opposite signs counts as 0, and so does the weight 0 of an infinite score,
// as in Redis: a stored result has no NaN.

// aggregates are the words of AGGREGATE.
var aggregates = words[db.Aggregate]{{"sum", db.SumOf}, {"min", db.MinOf}, {"max", db.MaxOf}, {"count", db.CountOf}}

// sortedSetCombineCommands make a sorted set of several, or of sets, whose members have the score
// 1. Scores are multiplied by WEIGHTS and added up unless AGGREGATE says otherwise.
var sortedSetCombineCommands = InGroup(GroupSortedSet, []*Command{
	{Name: "zunion", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"),
		Run: func(c *Call) error { return zcombine(c, db.UnionOf) }},
	{Name: "zinter", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"),
		Run: func(c *Call) error { return zcombine(c, db.InterOf) }},
	{Name: "zdiff", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"),
		Run: func(c *Call) error { return zcombine(c, db.DiffOf) }},
	{Name: "zunionstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: destinationAnd(countedKeysFrom2()),
		Run: func(c *Call) error { return zcombineStore(c, db.UnionOf) }},
	{Name: "zinterstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: destinationAnd(countedKeysFrom2()),
		Run: func(c *Call) error { return zcombineStore(c, db.InterOf) }},
	{Name: "zdiffstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: destinationAnd(countedKeysFrom2()),
		Run: func(c *Call) error { return zcombineStore(c, db.DiffOf) }},
	{Name: "zintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"), Run: zintercardCommand},
	{Name: "zrangestore", Arity: -5, Flags: Write | DenyOOM, Keys: destinationAnd(Keys{Use: "RO access", First: 2, Step: 1}),
		Run: zrangestoreCommand},
	{Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, Keys: countedKeys("RW access delete"), Run: zmpopCommand},
	{Name: "zrandmember", Arity: -2, Flags: ReadOnly, Keys: OneKey("RO access"), Run: zrandmemberCommand},
})

// combination reads a combination of sorted sets from the number of keys, argument i, on. The keys
// are checked before the words after them, as Redis does.
func (c *Call) combination(i int, op db.SetOp, scores bool) (q db.Combination, withScores bool, err error) {
	q.Op = op
	if q.Keys, i, err = c.sortedKeys(i); err != nil {
		return q, false, err
	}
	for i < len(c.Args) {
		more := len(c.Args) - i - 1
		switch {
		case op != db.DiffOf && more >= len(q.Keys) && c.Args.Is(i, "weights"):
			q.Weights = make([]float64, len(q.Keys))
			for k := range q.Weights {
				if q.Weights[k], err = c.Args.ParseFloat(i + 1 + k); err != nil {
					return q, false, Error("ERR weight value is not a float")
				}
			}
			i += 1 + len(q.Keys)
		case op != db.DiffOf && more >= 1 && c.Args.Is(i, "aggregate"):
			var ok bool
			if q.Aggregate, ok = aggregates.find(c.Args[i+1]); !ok {
				return q, false, ErrSyntax
			}
			i += 2
		case scores && c.Args.Is(i, "withscores"):
			withScores = true
			i++
		default:
			return q, false, ErrSyntax
		}
	}
	return q, withScores, nil
}

// sortedKeys reads a number of keys and the keys, which must hold sets or sorted sets, and returns
// where the next argument is. The types are checked here, before the words after the keys, because
// that is Redis's order. The keys are locked already: they are those that Command.Keys has found.
func (c *Call) sortedKeys(i int) ([]string, int, error) {
	n, err := c.Args.ParseInt(i)
	switch {
	case err != nil:
		return nil, 0, err
	case n < 1:
		return nil, 0, Errorf("ERR at least 1 input key is needed for '%s' command", c.Command.Name)
	case n > int64(len(c.Args)-i-1):
		return nil, 0, ErrSyntax
	}
	next := i + 1 + int(n)
	keys := stringsOf(c.Args[i+1 : next])
	for _, key := range keys {
		t, err := c.Tx.Key(key).Type()
		if err != nil {
			return nil, 0, err
		}
		if t != db.TypeNone && t != db.TypeSet && t != db.TypeSortedSet {
			return nil, 0, structures.ErrWrongType
		}
	}
	return keys, next, nil
}

// zcombine is ZUNION, ZINTER and ZDIFF. Without WITHSCORES the scores are computed all the same,
// since they are the order.
func zcombine(c *Call, op db.SetOp) error {
	q, withScores, err := c.combination(1, op, true)
	if err != nil {
		return err
	}
	members, err := c.Tx.Keyspace().Combine(q)
	if err != nil {
		return err
	}
	c.scoredReply(withScores).all(members)
	return nil
}

// zcombineStore is ZUNIONSTORE and its relatives. The destination may be one of the sources; an
// empty result deletes it. The destination loses what it held, of any type, and its deadline.
func zcombineStore(c *Call, op db.SetOp) error {
	q, _, err := c.combination(2, op, false)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.SortedSet(c.Key(1)).PutCombined(q))
}

// zintercardCommand is ZINTERCARD: it counts no further than LIMIT.
func zintercardCommand(c *Call) error {
	keys, next, err := c.sortedKeys(1)
	if err != nil {
		return err
	}
	limit, err := c.Args.parseLimit(next)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.Keyspace().InterLen(limit, keys...))
}

// zrangestoreCommand is ZRANGESTORE: ZRANGE into a key. An empty range deletes it. The source is
// read and the destination replaced in one transaction; they may be the same key.
func zrangestoreCommand(c *Call) error {
	q := rangeQuery{store: true}
	if err := q.options(c, 5); err != nil {
		return err
	}
	r, err := q.bounds(c, 3)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.SortedSet(c.Key(1)).PutRange(c.Key(2), r))
}

// zmpopCommand is ZMPOP: a null array if none of the sorted sets exists. The keys after the first
// one that exists are not read. MIN and MAX say from which end.
func zmpopCommand(c *Call) error {
	p, err := c.Args.parseMultiPop(1, "min", "max")
	if err != nil {
		return err
	}
	key, members, err := c.Tx.Keyspace().PopFirstScored(p.fromBack, p.count, p.keys...)
	if err != nil {
		return orElse(err, c.Out.NullArray)
	}
	c.popped(key, members)
	return nil
}

// popped is the reply of ZMPOP: the key, and the members with their scores in pairs.
func (c *Call) popped(key string, members []db.Scored) {
	c.Out.Array(2)
	c.Out.BulkString(key)
	scoredReply{out: c.Out, scores: true, pairs: true}.all(members)
}

// zrandmemberCommand is ZRANDMEMBER. A positive count gives distinct members, a negative one as
// many as it says, with repetitions; without a count the reply is one member or null.
func zrandmemberCommand(c *Call) error {
	set := c.Tx.SortedSet(c.Key(1))
	if len(c.Args) == 2 {
		members, err := set.Random(1)
		if err != nil || len(members) == 0 {
			return c.first(nil, err)
		}
		c.Out.BulkString(members[0].Member)
		return nil
	}
	count, err := c.Args.parseSigned(2)
	withScores := len(c.Args) == 4
	switch {
	case err != nil:
		return err
	case len(c.Args) > 4 || withScores && !c.Args.Is(3, "withscores"):
		return ErrSyntax
	case withScores && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		return Error("ERR value is out of range")
	}
	reply := c.scoredReply(withScores)
	// A negative count may be any number: the limit of a reply stops it long before memory does.
	return set.VisitRandom(clampInt(count), reply.start, reply.add)
}
