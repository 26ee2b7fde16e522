package command

import (
	"math"
	"slices"

	"github.com/stavedb/stave/db"
)

// The sources and the destination are locked together, so a result is of one moment. It is
// not built in memory unless it is stored: union, intersection and difference look each member up
// in the other sets and stream the selected ones into the reply. A source of another type is
// WRONGTYPE, also where the result is settled before it is read (SINTER with an empty set).

// setCombineCommands make a set of several: union, intersection, difference. A key that does not
// exist is an empty set.
var setCombineCommands = InGroup(GroupSet, []*Command{
	{Name: "sunion", Arity: -2, Flags: ReadOnly, Keys: ManyKeys("RO access"), Run: func(c *Call) error { return combine(c, db.UnionOf) }},
	{Name: "sinter", Arity: -2, Flags: ReadOnly, Keys: ManyKeys("RO access"), Run: func(c *Call) error { return combine(c, db.InterOf) }},
	{Name: "sdiff", Arity: -2, Flags: ReadOnly, Keys: ManyKeys("RO access"), Run: func(c *Call) error { return combine(c, db.DiffOf) }},
	{Name: "sunionstore", Arity: -3, Flags: Write | DenyOOM, Keys: destinationAnd(keysFrom2("RO access")),
		Run: func(c *Call) error { return combineStore(c, db.UnionOf) }},
	{Name: "sinterstore", Arity: -3, Flags: Write | DenyOOM,
		Keys: []Keys{{Use: "RW update", First: 1, Step: 1}, keysFrom2("RO access")}, // as Redis has it
		Run:  func(c *Call) error { return combineStore(c, db.InterOf) }},
	{Name: "sdiffstore", Arity: -3, Flags: Write | DenyOOM, Keys: destinationAnd(keysFrom2("RO access")),
		Run: func(c *Call) error { return combineStore(c, db.DiffOf) }},
	{Name: "sintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"), Run: sintercardCommand},
	{Name: "sunioncard", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"),
		Run: func(c *Call) error { return combinedCard(c, db.UnionOf) }},
	{Name: "sdiffcard", Arity: -3, Flags: ReadOnly | MovableKeys, Keys: countedKeys("RO access"),
		Run: func(c *Call) error { return combinedCard(c, db.DiffOf) }},
})

// combine is SUNION, SINTER and SDIFF. The result is streamed into the reply. The number of members
// is known at the end only: EndSet fills it in where Begin left room, and Out.Exceeded ends a
// result that is too large to be sent.
func combine(c *Call, op db.SetOp) error {
	mark, n := c.Out.Begin(), 0
	err := c.Tx.Set(c.Key(1)).VisitCombined(op, c.Args.Strings(2), func(member []byte) bool {
		c.Out.Bulk(member)
		n++
		return !c.Out.Exceeded()
	})
	c.Out.EndSet(mark, n)
	return err
}

// combineStore is SUNIONSTORE and its relatives. The destination may be one of the sources; an
// empty result deletes it. The destination is replaced whatever it held, without a check of its
// type, and loses its deadline. The reply is the number of members in it.
func combineStore(c *Call, op db.SetOp) error {
	return c.Int(c.Tx.Set(c.Key(1)).PutCombined(op, c.Args.Strings(2)...))
}

// sintercardCommand is SINTERCARD.
func sintercardCommand(c *Call) error {
	keys, limit, err := c.keysAndLimit(false)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.Set(c.Key(2)).InterLen(limit, keys[1:]...))
}

// combinedCard is SUNIONCARD and SDIFFCARD, of Redis 8.10. APPROX allows SUNIONCARD to estimate, which it does not need to.
func combinedCard(c *Call, op db.SetOp) error {
	keys, limit, err := c.keysAndLimit(op == db.UnionOf)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.Set(c.Key(2)).CombinedLen(op, limit, keys[1:]...))
}

// keysAndLimit reads numkeys key [key ...] [APPROX] [LIMIT limit]. There is an error text of its own for too few keys, and
// LIMIT 0 is no limit.
func (c *Call) keysAndLimit(approx bool) (keys []string, limit int, err error) {
	n, err := c.Args.parseLeast(1, 1, errNumkeys)
	if err != nil {
		return nil, 0, err
	}
	if n > int64(len(c.Args)-2) {
		return nil, 0, Error("ERR Number of keys can't be greater than number of args")
	}
	rest := c.Args
	if approx { // wherever it stands
		rest = append(slices.Clone(c.Args[:2+n]), slices.DeleteFunc(slices.Clone(c.Args[2+n:]), func(arg []byte) bool { return equalFold(arg, "approx") })...)
	}
	limit, err = rest.parseLimit(2 + int(n))
	return stringsOf(c.Args[2 : 2+n]), limit, err
}

// parseLimit reads the LIMIT of SINTERCARD and ZINTERCARD from argument i on, 0 if there is none.
// LIMIT may stand more than once; the last one counts.
func (a Args) parseLimit(i int) (limit int, err error) {
	for ; i < len(a); i += 2 {
		if !a.Is(i, "limit") || i+1 == len(a) {
			return 0, ErrSyntax
		}
		n, err := a.parseLeast(i+1, 0, errLimitNegative)
		if err != nil {
			return 0, err
		}
		limit = int(min(n, math.MaxInt32))
	}
	return limit, nil
}
