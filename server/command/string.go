package command

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
)

// The handlers of SET, GET and the counters. How a string is stored is not seen here: one record up
// to 64 KiB, chunks of 8 KiB above that (structures/string_chunks.go). The complexity
// in docs/string.txt is what follows from it: an edit of a short string writes all of it, an edit of a long one only the
// chunks that it touches.
//
// Whatever replaces a value (SET, GETSET, MSET) removes its deadline, unless KEEPTTL says
// otherwise; what computes the new value from the old one (INCR, APPEND, SETRANGE) keeps it. A
// deadline arrives in seconds or milliseconds, from now or from 1970 on; parseDeadline makes
// absolute milliseconds of all four, since only those may go into the log: a replay has another
// "now".

// stringCommands are all on strings but those on their bits. GETEX, GETDEL and GETSET read a value and do something to
// its key in the same transaction, so no other client sees the state in between.
var stringCommands = InGroup(GroupString, []*Command{
	{Name: "get", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: getCommand},
	{Name: "set", Arity: -3, Flags: Write | DenyOOM, Keys: oneKeyVaried(setUse), Run: setCommand},
	{Name: "setnx", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("OW insert"), Run: setnxCommand},
	{Name: "setex", Arity: 4, Flags: Write | DenyOOM, Keys: OneKey("OW update"), Run: func(c *Call) error { return setWithTTL(c, 1000) }},
	{Name: "psetex", Arity: 4, Flags: Write | DenyOOM, Keys: OneKey("OW update"), Run: func(c *Call) error { return setWithTTL(c, 1) }},
	{Name: "mget", Arity: -2, Flags: ReadOnly | Fast, Keys: ManyKeys("RO access"), Run: mgetCommand},
	{Name: "mset", Arity: -3, Flags: Write | DenyOOM, Keys: []Keys{{Use: "OW update", First: 1, Last: -1, Step: 2}}, Run: msetCommand},
	{Name: "msetnx", Arity: -3, Flags: Write | DenyOOM, Keys: []Keys{{Use: "OW insert", First: 1, Last: -1, Step: 2}}, Run: msetnxCommand},
	{Name: "msetex", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: []Keys{{Use: "OW update", First: 1, Counted: true, Step: 2}}, Run: msetexCommand},
	{Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: func(c *Call) error { return incr(c, 1) }},
	{Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"),
		Run: func(c *Call) error { return incr(c, -1) }},
	{Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: withInt(2, incr)},
	{Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: withInt(2, decrbyCommand)},
	{Name: "append", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.Int(c.Tx.String(c.Key(1)).Append(c.Arg(2))) }},
	{Name: "strlen", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.String(c.Key(1)).Len()) }},
	{Name: "getrange", Arity: 4, Flags: ReadOnly, Keys: OneKey("RO access"), Run: getrangeCommand},
	{Name: "substr", Arity: 4, Flags: ReadOnly, Keys: OneKey("RO access"), Run: getrangeCommand},
	{Name: "getdel", Arity: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return c.bulk(c.Tx.String(c.Key(1)).GetAndDelete()) }},
	{Name: "getex", Arity: -2, Flags: Write | Fast, Keys: OneKey("RW access update"), Run: getexCommand},
	{Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: getsetCommand},
	{Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Keys: OneKey("RW update"), Run: withInt(2, setrangeCommand)},
	{Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"),
		Run: func(c *Call) error { return c.text(c.Tx.String(c.Key(1)).IncrDecimal(c.Key(2))) }},
	{Name: "lcs", Arity: -3, Flags: ReadOnly, Work: Unbounded, Keys: []Keys{{Use: "RO access", First: 1, Last: 1, Step: 1}}, Run: lcsCommand},
})

// getCommand is GET. The value is read into the output, without a copy in between. A key that does
// not exist is a null.
func getCommand(c *Call) error {
	return c.appendedBulk(c.Tx.String(c.Key(1)).AppendTo(c.Out.BeginBulk()))
}

// getrangeCommand is GETRANGE and SUBSTR. Ends beyond the string are no error; of a long string
// only the range is read. Both numbers are read before the key: a bad one is an error also for a
// key that does not exist.
func getrangeCommand(c *Call) error {
	start, end, err := c.Args.parseRange(2)
	if err != nil {
		return err
	}
	return c.appendedBulk(c.Tx.String(c.Key(1)).Range(c.Out.BeginBulk(), start, end))
}

// setWords are the words after the value of SET, or after the pairs of MSETEX: where the condition and the deadline stand, 0
// for none, and which of the others are there.
type setWords struct {
	condition, deadline int
	keep, get           bool
}

// setWords reads them from argument i on. The same word may stand twice; two words that contradict each other are a syntax
// error, whatever their order. Only SET knows GET, and conditions on the value.
func (c *Call) setWords(i int, isSet bool) (w setWords, err error) {
	for ; i < len(c.Args); i++ {
		word, more := c.Args[i], i+1 < len(c.Args)
		switch {
		case isExistence(word) && (w.condition == 0 || sameKeyword(word, c.Args[w.condition])):
			w.condition = i
		case isSet && isComparison(word) && more && (w.condition == 0 || sameKeyword(word, c.Args[w.condition])):
			w.condition = i
			i++
		case isSet && equalFold(word, "get"):
			w.get = true
		case equalFold(word, "keepttl") && w.deadline == 0:
			w.keep = true
		case isDeadline(word) && more && !w.keep && (w.deadline == 0 || sameKeyword(word, c.Args[w.deadline])):
			w.deadline = i
			i++
		default:
			return w, ErrSyntax
		}
	}
	return w, nil
}

// options appends what the words say. The deadline is checked before the condition, which may have to read the key.
func (w setWords) options(c *Call, to []db.WriteOption) ([]db.WriteOption, error) {
	if w.deadline > 0 {
		ms, err := c.parseDeadline(w.deadline, c.Arg(w.deadline+1), c.Command.Name)
		if err != nil {
			return to, err
		}
		to = append(to, db.ExpireAt(time.UnixMilli(ms)))
	}
	if w.keep {
		to = append(to, db.KeepTTL)
	}
	if w.get {
		to = append(to, db.ReturnOld)
	}
	if w.condition > 0 {
		condition, err := c.setCondition(w.condition)
		if err != nil {
			return to, err
		}
		to = append(to, condition)
	}
	return to, nil
}

// setCommand is SET. The order of the checks is Redis's: the words, the deadline, then what the key
// holds. GET replies with the old value, also if a condition prevents the write, and
// fails with WRONGTYPE if the key holds no string: only a SET without GET, and without a condition on the value,
// replaces a value of any type.
func setCommand(c *Call) error {
	w, err := c.setWords(3, true)
	if err != nil {
		return err
	}
	var room [4]db.WriteOption
	options, err := w.options(c, room[:0])
	if err != nil {
		return err
	}
	result, err := c.Tx.String(c.Key(1)).Set(c.Arg(2), options...)
	switch {
	case err != nil:
		return err
	case w.get && result.Existed:
		c.Out.Bulk(result.Old)
	case w.get || !result.Done:
		c.Out.Null()
	default:
		return c.OK()
	}
	return nil
}

// isDeadline reports whether a word introduces a deadline: EX, PX, EXAT or PXAT.
func isDeadline(word []byte) bool {
	return equalFold(word, "ex") || equalFold(word, "px") || equalFold(word, "exat") || equalFold(word, "pxat")
}

// sameKeyword compares two of those words without regard to case. Redis takes the same one twice,
// and no two different ones.
func sameKeyword(a, b []byte) bool { return bytes.EqualFold(a, b) }

// parseDeadline turns "EX 10" and its relatives into absolute Unix milliseconds. The four words
// differ in two letters: E in front means seconds, AT at the end means since 1970. now is the
// moment of the transaction, so that all commands of an EXEC count from the same one.
func (c *Call) parseDeadline(word int, digits []byte, cmd string) (ms int64, err error) {
	n, ok := number.ParseInt(digits)
	if !ok {
		return 0, ErrNotInteger
	}
	first := c.Args[word][0] | 0x20
	unit := int64(1)
	if first == 'e' {
		unit = 1000
	}
	base := c.now()
	if len(c.Args[word]) == 4 { // EXAT, PXAT
		base = 0
	}
	return deadlineOf(n, unit, base, cmd)
}

// deadlineOf is base + n units, in milliseconds. It refuses results that are not positive or
// overflow. The product and the sum are checked before they are computed: Redis refuses what does
// not fit into an int64, and zero. cmd is the name that the error repeats.
func deadlineOf(n, unit, base int64, cmd string) (ms int64, err error) {
	if n <= 0 || n > math.MaxInt64/unit || n*unit > math.MaxInt64-base {
		return 0, Errorf("ERR invalid expire time in '%s' command", cmd)
	}
	return n*unit + base, nil
}

// setWithTTL is SETEX and PSETEX, whose unit is in milliseconds.
func setWithTTL(c *Call, unit int64) error {
	n, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	deadline, err := deadlineOf(n, unit, c.now(), c.Command.Name)
	if err != nil {
		return err
	}
	return c.Done(c.Tx.String(c.Key(1)).Put(c.Arg(3), db.ExpireAt(time.UnixMilli(deadline))))
}

// setnxCommand is SETNX. It is SET NX with a number for a reply: 1 if the value was written, and 0
// for a key of any type that exists.
func setnxCommand(c *Call) error {
	result, err := c.Tx.String(c.Key(1)).Set(c.Arg(2), db.IfAbsent)
	return c.Flag(result.Done, err)
}

// mgetCommand is MGET: a null for a key that holds no string, also for one that holds something
// else. MGET never fails with WRONGTYPE. All keys are locked together, so the values are of one
// moment; they are written to the reply one after the other, and nothing of them is copied in
// between.
func mgetCommand(c *Call) error {
	keys := c.Args.Strings(1)
	c.Out.Array(len(keys))
	return c.Tx.Keyspace().Visit(keys, c.eachOrNull)
}

// pairs reads key value key value ... An odd number of arguments after the name is an error of
// arity, which the table cannot express.
func (c *Call) pairs() ([]db.Pair, error) {
	if len(c.Args)%2 == 0 {
		return nil, ArityError(c.Command.Name)
	}
	pairs := make([]db.Pair, 0, len(c.Args)/2)
	for i := 1; i < len(c.Args); i += 2 {
		pairs = append(pairs, db.Pair{Key: c.Key(i), Value: c.Arg(i + 1)})
	}
	return pairs, nil
}

// msetCommand is MSET. Of a key that is named twice the last value counts. It never fails because
// of what a key holds, and all values are one commit.
func msetCommand(c *Call) error {
	pairs, err := c.pairs()
	if err != nil {
		return err
	}
	return c.Done(c.Tx.Keyspace().Put(pairs...))
}

// msetnxCommand is MSETNX: all or none. It reads all keys before it writes the first.
func msetnxCommand(c *Call) error {
	pairs, err := c.pairs()
	if err != nil {
		return err
	}
	return c.written(c.Tx.Keyspace().PutWith(pairs, db.IfAbsent))
}

// msetexCommand is MSETEX: all or none, with one condition and one deadline for all keys.
func msetexCommand(c *Call) error {
	n, ok := number.ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		return errPairCount
	case n > int64(len(c.Args)-2)/2:
		return errPairsMissing
	}
	end := 2 + 2*int(n)
	w, err := c.setWords(end, false)
	if err != nil {
		return err
	}
	options, err := w.options(c, nil)
	if err != nil {
		return err
	}
	pairs := make([]db.Pair, 0, n)
	for i := 2; i < end; i += 2 {
		pairs = append(pairs, db.Pair{Key: string(c.Arg(i)), Value: c.Arg(i + 1)})
	}
	return c.written(c.Tx.Keyspace().PutWith(pairs, options...))
}

// The refusals of MSETEX.
const (
	errPairCount    Error = "ERR invalid numkeys value"
	errPairsMissing Error = "ERR wrong number of key-value pairs"
)

// incr is INCR and its relatives. An overflow is refused; the value keeps its deadline. The sum is
// written as decimal text: a string that holds a number is not stored in another way.
func incr(c *Call, delta int64) error {
	n, err := c.Tx.String(c.Key(1)).Incr(delta)
	return c.Int64(n, err)
}

// decrbyCommand is DECRBY. The lowest integer has no opposite, and is refused before the key is
// read.
func decrbyCommand(c *Call, n int64) error {
	if n == math.MinInt64 {
		return Error("ERR decrement would overflow")
	}
	return incr(c, -n)
}

// setUse is what SET does with its key: it reads it with the word GET, or with a condition on the value, only.
func setUse(args [][]byte) string {
	if slices.ContainsFunc(args[min(3, len(args)):], func(arg []byte) bool { return equalFold(arg, "get") || isComparison(arg) }) {
		return "RW access update"
	}
	return "OW update"
}

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
