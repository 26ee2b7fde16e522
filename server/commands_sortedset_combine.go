package server

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// combineCost is what combinations of sorted sets cost.
const combineCost = "O(n*k)+O(m*log m), n being the size of the sorted sets, k their number and m the size of the result"

var sortedSetCombineCommands = []*Command{
	{
		Name: "zunion", Arity: -3, Flags: ReadOnly | MovableKeys, Group: GroupSortedSet, Keys: countedKeys("RO access"), Since: "6.2.0",
		Complexity: combineCost, Summary: "Returns the members of any of several sorted sets.",
		Syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
		run:    func(c *call) error { return zcombine(c, db.UnionOf) },
	},
	{
		Name: "zinter", Arity: -3, Flags: ReadOnly | MovableKeys, Group: GroupSortedSet, Keys: countedKeys("RO access"), Since: "6.2.0",
		Complexity: combineCost, Summary: "Returns the members that all of several sorted sets have.",
		Syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
		run:    func(c *call) error { return zcombine(c, db.InterOf) },
	},
	{
		Name: "zdiff", Arity: -3, Flags: ReadOnly | MovableKeys, Group: GroupSortedSet, Keys: countedKeys("RO access"), Since: "6.2.0",
		Complexity: combineCost, Summary: "Returns the members of the first sorted set that no other one has.",
		Syntax: "numkeys key [key ...] [WITHSCORES]", run: func(c *call) error { return zcombine(c, db.DiffOf) },
	},
	{
		Name: "zunionstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Group: GroupSortedSet, Keys: destinationAnd(countedFrom2()), Since: "2.0.0",
		Complexity: combineCost, Summary: "Stores the members of any of several sorted sets and returns how many they are.",
		Syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
		run:    func(c *call) error { return zcombineStore(c, db.UnionOf) },
	},
	{
		Name: "zinterstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Group: GroupSortedSet, Keys: destinationAnd(countedFrom2()), Since: "2.0.0",
		Complexity: combineCost, Summary: "Stores the members that all of several sorted sets have and returns how many they are.",
		Syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
		run:    func(c *call) error { return zcombineStore(c, db.InterOf) },
	},
	{
		Name: "zdiffstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Group: GroupSortedSet, Keys: destinationAnd(countedFrom2()), Since: "6.2.0",
		Complexity: combineCost, Summary: "Stores the members of the first sorted set that no other one has and returns how many they are.",
		Syntax: "destination numkeys key [key ...]", run: func(c *call) error { return zcombineStore(c, db.DiffOf) },
	},
	{
		Name: "zintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Group: GroupSortedSet, Keys: countedKeys("RO access"), Since: "7.0.0",
		Complexity: "O(n*k), n being the size of the smallest sorted set and k their number",
		Summary:    "Returns how many members all of several sorted sets have.", Syntax: "numkeys key [key ...] [LIMIT limit]", run: zintercardCommand,
	},
	{
		Name: "zrangestore", Arity: -5, Flags: Write | DenyOOM, Group: GroupSortedSet,
		Keys: destinationAnd(Keys{Use: "RO access", First: 2, Step: 1}), Since: "6.2.0",
		Complexity: "O(log n + m), m being the number of members stored", Summary: "Stores a range of the members of a sorted set and returns how many they are.",
		Syntax: "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", run: zrangestoreCommand,
	},
	{
		Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, Group: GroupSortedSet, Keys: countedKeys("RW access delete"), Since: "7.0.0",
		Complexity: "O(k)+O(m*log n), k being the number of keys and m that of the members returned",
		Summary:    "Removes and returns members of the first sorted set that exists.",
		Syntax:     "numkeys key [key ...] <MIN | MAX> [COUNT count]", run: zmpopCommand,
	},
	{
		Name: "zrandmember", Arity: -2, Flags: ReadOnly, Group: GroupSortedSet, Keys: oneKey("RO access"), Since: "6.2.0",
		Complexity: "O(log n) a member", Summary: "Returns members chosen at random.", Syntax: "key [count [WITHSCORES]]", run: zrandmemberCommand,
	},
}

func countedFrom2() Keys { return Keys{Use: "RO access", First: 2, Counted: true} }

// combination reads a combination of sorted sets from the number of keys, argument i, on. The keys are looked at before the
// words behind them, as Redis does.
func (c *call) combination(i int, op db.SetOp, scores bool) (q db.Combination, withScores bool, err error) {
	q.Op = op
	if q.Keys, i, err = c.sortedKeys(i); err != nil {
		return q, false, err
	}
	for i < len(c.args) {
		more := len(c.args) - i - 1
		switch {
		case op != db.DiffOf && more >= len(q.Keys) && c.is(i, "weights"):
			q.Weights = make([]float64, len(q.Keys))
			for k := range q.Weights {
				if q.Weights[k], err = c.parseFloat(i + 1 + k); err != nil {
					return q, false, replyError("ERR weight value is not a float")
				}
			}
			i += 1 + len(q.Keys)
		case op != db.DiffOf && more >= 1 && c.is(i, "aggregate"):
			switch {
			case c.is(i+1, "sum"):
				q.Aggregate = db.SumOf
			case c.is(i+1, "min"):
				q.Aggregate = db.MinOf
			case c.is(i+1, "max"):
				q.Aggregate = db.MaxOf
			default:
				return q, false, errSyntax
			}
			i += 2
		case scores && c.is(i, "withscores"):
			withScores = true
			i++
		default:
			return q, false, errSyntax
		}
	}
	return q, withScores, nil
}

// sortedKeys reads a number of keys and the keys, which must hold sets or sorted sets, and returns where the next argument is.
func (c *call) sortedKeys(i int) ([]string, int, error) {
	n, err := c.parseInt(i)
	switch {
	case err != nil:
		return nil, 0, err
	case n < 1:
		return nil, 0, errorf("ERR at least 1 input key is needed for '%s' command", c.command.Name)
	case n > int64(len(c.args)-i-1):
		return nil, 0, errSyntax
	}
	next := i + 1 + int(n)
	keys := stringsOf(c.args[i+1 : next])
	for _, key := range keys {
		t, err := c.tx.Key(key).Type()
		if err != nil {
			return nil, 0, err
		}
		if t != db.TypeNone && t != db.TypeSet && t != db.TypeSortedSet {
			return nil, 0, structures.ErrWrongType
		}
	}
	return keys, next, nil
}

func zcombine(c *call, op db.SetOp) error {
	q, withScores, err := c.combination(1, op, true)
	if err != nil {
		return err
	}
	members, err := c.tx.Keyspace().Combine(q)
	if err != nil {
		return err
	}
	reply := c.scoredReply(withScores)
	reply.start(len(members))
	for _, m := range members {
		reply.add([]byte(m.Member), m.Score)
	}
	return nil
}

func zcombineStore(c *call, op db.SetOp) error {
	q, _, err := c.combination(2, op, false)
	if err != nil {
		return err
	}
	return c.int(c.tx.SortedSet(c.key(1)).PutCombined(q))
}

func zintercardCommand(c *call) error {
	keys, next, err := c.sortedKeys(1)
	if err != nil {
		return err
	}
	limit, err := c.parseLimit(next)
	if err != nil {
		return err
	}
	return c.int(c.tx.Keyspace().InterLen(limit, keys...))
}

func zrangestoreCommand(c *call) error {
	q := rangeQuery{store: true}
	if err := q.options(c, 5); err != nil {
		return err
	}
	r, err := q.bounds(c, 3)
	if err != nil {
		return err
	}
	return c.int(c.tx.SortedSet(c.key(1)).PutRange(c.key(2), r))
}

func zmpopCommand(c *call) error {
	p, err := c.parseMultiPop(1, "min", "max")
	if err != nil {
		return err
	}
	key, members, err := c.tx.Keyspace().PopFirstScored(p.fromBack, p.count, p.keys...)
	if errors.Is(err, db.ErrNotFound) {
		c.out.NullArray()
		return nil
	}
	if err != nil {
		return err
	}
	c.popped(key, members)
	return nil
}

// popped is the reply of ZMPOP: the key, and the members with their scores in pairs.
func (c *call) popped(key string, members []db.Scored) {
	c.out.Array(2)
	c.out.BulkString(key)
	c.out.Array(len(members))
	for _, m := range members {
		c.out.Array(2)
		c.out.BulkString(m.Member)
		c.out.Double(m.Score)
	}
}

func zrandmemberCommand(c *call) error {
	set := c.tx.SortedSet(c.key(1))
	if len(c.args) == 2 {
		members, err := set.Random(1)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			c.out.Null()
		} else {
			c.out.BulkString(members[0].Member)
		}
		return nil
	}
	count, err := c.parseInt(2)
	withScores := len(c.args) == 4
	switch {
	case err != nil:
		return err
	case count == math.MinInt64:
		return errBetween(-math.MaxInt64, math.MaxInt64)
	case len(c.args) > 4 || withScores && !c.is(3, "withscores"):
		return errSyntax
	case withScores && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		return replyError("ERR value is out of range")
	}
	reply := c.scoredReply(withScores)
	// A negative count may be any number: the limit of a reply stops it long before memory does.
	return set.VisitRandom(clampInt(count), reply.start, reply.add)
}

// clampInt is n cut to what an int holds, which is 32 bits on some machines.
func clampInt(n int64) int { return int(min(max(n, -math.MaxInt), math.MaxInt)) }
