package command

import (
	"errors"
	"math"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// A deadline belongs to the key and not to its value. It is kept by commands that change a value,
// removed by those that replace it, and carried along by RENAME and COPY. A key whose deadline has
// passed does not exist for any command, whether or not the cycle in the background has deleted it
// already.

// keyExpireCommands set, read and remove the deadlines of keys. On disk and in the log a deadline
// is always absolute.
var keyExpireCommands = []*Command{
	expireRow("expire", "seconds", "1.0.0", "Lets a key expire after some seconds.", time.Second, true),
	expireRow("pexpire", "milliseconds", "2.6.0", "Lets a key expire after some milliseconds.", time.Millisecond, true),
	expireRow("expireat", "unix-time-seconds", "1.2.0", "Lets a key expire at a moment given in seconds.", time.Second, false),
	expireRow("pexpireat", "unix-time-milliseconds", "2.6.0", "Lets a key expire at a moment given in milliseconds.", time.Millisecond, false),
	ttlRow("ttl", "1.0.0", "Returns how many seconds a key has left to live.", time.Second, true),
	ttlRow("pttl", "2.6.0", "Returns how many milliseconds a key has left to live.", time.Millisecond, true),
	ttlRow("expiretime", "7.0.0", "Returns when a key expires, in seconds.", time.Second, false),
	ttlRow("pexpiretime", "7.0.0", "Returns when a key expires, in milliseconds.", time.Millisecond, false),
	{Name: "persist", Arity: 2, Flags: Write | Fast, Group: GroupGeneric, Keys: OneKey("RW update"),
		Run: func(c *Call) error { return c.Flag(c.Tx.Key(c.Key(1)).Persist()) }},
}

// expireRow is the row of EXPIRE and its relatives, which differ in the unit and in what the number
// counts from.
func expireRow(name, unitName, since, summary string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: -3, Flags: Write | Fast, Group: GroupGeneric, Keys: OneKey("RW update"),
		Run: func(c *Call) error { return expire(c, unit.Milliseconds(), relative) },
	}
}

// ttlRow is the row of TTL and its relatives.
func ttlRow(name, since, summary string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: 2, Flags: ReadOnly | Fast, Group: GroupGeneric, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return ttl(c, unit.Milliseconds(), relative) },
	}
}

// expireConditions reads the words after EXPIRE's number. NX with any other word, and GT with LT,
// contradict each other; XX goes with GT and LT. The same word may stand twice.
func (a Args) expireConditions(i int) ([]db.WriteOption, error) {
	var options []db.WriteOption
	var nx, xx, gt, lt bool
	for ; i < len(a); i++ {
		switch {
		case a.Is(i, "nx"):
			nx, options = true, append(options, db.IfAbsent)
		case a.Is(i, "xx"):
			xx, options = true, append(options, db.IfPresent)
		case a.Is(i, "gt"):
			gt, options = true, append(options, db.IfGreater)
		case a.Is(i, "lt"):
			lt, options = true, append(options, db.IfLess)
		default:
			return nil, Errorf("ERR Unsupported option %s", Clip(a[i], len(a[i])))
		}
	}
	switch {
	case nx && (xx || gt || lt):
		return nil, structures.ErrExpireNX
	case gt && lt:
		return nil, structures.ErrExpireGTLT
	}
	return options, nil
}

// expire is EXPIRE and its relatives. The conditions are checked before the number, the number
// before the key. The reply is 0 if the key does not exist or the condition does not hold, also if
// the moment is in the past; then nothing is deleted. A key without a deadline counts as one that
// never expires: GT leaves it, LT gives it one.
func expire(c *Call, unit int64, relative bool) error {
	conditions, err := c.Args.expireConditions(3)
	if err != nil {
		return err
	}
	n, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	base := int64(0)
	if relative {
		base = c.now()
	}
	// A moment in the past is allowed: it deletes the key.
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
		return Errorf("ERR invalid expire time in '%s' command", c.Command.Name)
	}
	return c.Flag(c.Tx.Key(c.Key(1)).ExpireAt(time.UnixMilli(n*unit+base), conditions...))
}

// ttl replies -2 for a key that does not exist and -1 for one without a deadline. Seconds are
// rounded to the nearest, so a key with 400 ms left replies 0 and is not gone yet.
func ttl(c *Call, unit int64, relative bool) error {
	deadline, err := c.Tx.Key(c.Key(1)).Deadline()
	switch {
	case errors.Is(err, db.ErrNotFound):
		return c.Int(-2, nil)
	case err != nil:
		return err
	case deadline.IsZero():
		return c.Int(-1, nil)
	}
	ms := deadline.UnixMilli()
	if relative {
		ms = max(ms-c.now(), 0)
	}
	if unit > 1 {
		ms = ms/unit + (ms%unit+unit/2)/unit // to the nearest second, as in Redis
	}
	return c.Int64(ms, nil)
}
