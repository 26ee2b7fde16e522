package command

import (
	"time"

	"github.com/stavedb/stave/db"
)

// INCREX is Redis 8.8's: a counter with bounds and a deadline in one command, which a rate limiter otherwise needs a script
// for. The reply is the value, and what was added to it.

var stringIncrexCommands = InGroup(GroupString, []*Command{
	{Name: "increx", Arity: -2, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: increxCommand},
})

// increxWords are the words of INCREX: the index of each value among the arguments, 0 for none.
type increxWords struct {
	byInt, byFloat, least, most, deadline int
	saturate, persist, ifNone             bool
}

// increxWords reads them. They may stand in any order, each of them once.
func (c *Call) increxWords() (w increxWords, err error) {
	for i := 2; i < len(c.Args); i++ {
		word, more := c.Args[i], i+1 < len(c.Args)
		at := func(place *int) bool {
			if *place != 0 || !more {
				return false
			}
			i++
			*place = i
			return true
		}
		ok := false
		switch {
		case equalFold(word, "byint"):
			ok = w.byFloat == 0 && at(&w.byInt)
		case equalFold(word, "byfloat"):
			ok = w.byInt == 0 && at(&w.byFloat)
		case equalFold(word, "lbound"):
			ok = at(&w.least)
		case equalFold(word, "ubound"):
			ok = at(&w.most)
		case isDeadline(word):
			ok = !w.persist && at(&w.deadline)
		case equalFold(word, "persist"):
			ok, w.persist = !w.persist && w.deadline == 0, true
		case equalFold(word, "saturate"):
			ok, w.saturate = !w.saturate, true
		case equalFold(word, "enx"):
			ok, w.ifNone = !w.ifNone, true
		}
		if !ok {
			return w, ErrSyntax
		}
	}
	if w.ifNone && w.deadline == 0 {
		return w, ErrSyntax
	}
	return w, nil
}

// increxCommand is INCREX. If a bound forbids the increment, and SATURATE does not stand there, nothing changes, the
// deadline included, and 0 was added. Otherwise the deadline stays unless a word says what becomes of it.
func increxCommand(c *Call) error {
	w, err := c.increxWords()
	if err != nil {
		return err
	}
	var at int64
	if w.deadline > 0 {
		if at, err = c.parseDeadline(w.deadline-1, c.Args[w.deadline], c.Command.Name); err != nil {
			return err
		}
	}
	done, err := c.incrementWithin(w)
	if err != nil || !done {
		return err
	}
	key := c.Tx.Key(c.Key(1))
	switch {
	case w.persist:
		_, err = key.Persist()
	case w.ifNone:
		_, err = key.ExpireAt(time.UnixMilli(at), db.IfAbsent)
	case w.deadline > 0:
		_, err = key.ExpireAt(time.UnixMilli(at))
	}
	return err
}

// incrementWithin adds, replies, and says whether something was written.
func (c *Call) incrementWithin(w increxWords) (bool, error) {
	s := c.Tx.String(c.Key(1))
	if w.byFloat > 0 {
		least, err := c.decimalBound(w.least)
		if err != nil {
			return false, err
		}
		most, err := c.decimalBound(w.most)
		if err != nil {
			return false, err
		}
		res, err := s.IncrDecimalWithin(c.Key(w.byFloat), db.DecimalBounds{Least: least, Most: most, Saturate: w.saturate})
		if err != nil {
			return false, err
		}
		c.Out.Array(2)
		c.Out.BulkString(res.Value)
		c.Out.BulkString(res.Added)
		return res.Done, nil
	}
	delta, b := int64(1), db.Bounds{Saturate: w.saturate}
	var err error
	if w.byInt > 0 {
		delta, err = c.Args.ParseInt(w.byInt)
	}
	if err == nil {
		b.Least, err = c.bound(w.least)
	}
	if err == nil {
		b.Most, err = c.bound(w.most)
	}
	if err != nil {
		return false, err
	}
	res, err := s.IncrWithin(delta, b)
	if err != nil {
		return false, err
	}
	c.Out.Array(2)
	c.Out.Int(res.Value)
	c.Out.Int(res.Added)
	return res.Done, nil
}

// bound is the integer that is argument i; nil if i is 0.
func (c *Call) bound(i int) (*int64, error) {
	if i == 0 {
		return nil, nil
	}
	n, err := c.Args.ParseInt(i)
	return &n, err
}

// decimalBound is the float that is argument i; "" if i is 0.
func (c *Call) decimalBound(i int) (string, error) {
	if i > 0 && len(c.Args[i]) == 0 {
		return "", errNotFloat
	}
	if i == 0 {
		return "", nil
	}
	return c.Key(i), nil
}
