package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// The helpers take what a method of db returns, value and error, and pass the error on: most
// handlers end with one of them.

// OK replies OK.
func (c *Call) OK() error {
	c.Out.Simple("OK")
	return nil
}

// Done replies OK, unless err says that the command has failed.
func (c *Call) Done(err error) error {
	if err != nil {
		return err
	}
	return c.OK()
}

// Int replies with an integer, unless err says that there is none.
func (c *Call) Int(n int, err error) error {
	if err == nil {
		c.Out.Int(int64(n))
	}
	return err
}

// Int64 is int for the results of arithmetic.
func (c *Call) Int64(n int64, err error) error {
	if err == nil {
		c.Out.Int(n)
	}
	return err
}

// Flag replies 1 or 0.
func (c *Call) Flag(b bool, err error) error {
	if err != nil {
		return err
	}
	if b {
		c.Out.Int(1)
	} else {
		c.Out.Int(0)
	}
	return nil
}

// written replies 1, or 0 if there is nothing to write, or a condition of the write does not hold.
func (c *Call) written(err error) error {
	refused := errors.Is(err, db.ErrExists) || errors.Is(err, db.ErrNotFound)
	if refused {
		err = nil
	}
	return c.Flag(!refused, err)
}

// orElse replies with absent if err says that there is nothing, and passes any other error on.
func orElse(err error, absent func()) error {
	if errors.Is(err, db.ErrNotFound) {
		absent()
		return nil
	}
	return err
}

// bulk replies with a value, or a null if there is none.
func (c *Call) bulk(value []byte, err error) error {
	if err != nil {
		return orElse(err, c.Out.Null)
	}
	c.Out.Bulk(value)
	return nil
}

// appendedBulk is bulk for a value that has been appended to what BeginBulk gave. What was appended
// before an error is dropped: EndBulk is what makes it part of the output.
func (c *Call) appendedBulk(b []byte, err error) error {
	if err != nil {
		return c.bulk(nil, err)
	}
	c.Out.EndBulk(b)
	return nil
}

// text replies with a string, unless err says that there is none.
func (c *Call) text(s string, err error) error {
	if err == nil {
		c.Out.BulkString(s)
	}
	return err
}

// first replies with the first of some strings, or a null if there is none. The list has one at
// most; several would be an array.
func (c *Call) first(list []string, err error) error {
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		c.Out.Null()
	default:
		c.Out.BulkString(list[0])
	}
	return nil
}

// Names replies with an array of strings.
func (c *Call) Names(list []string) error {
	c.Out.Array(len(list))
	for i, name := range list {
		if err := c.GoesOn(i); err != nil || c.Out.Exceeded() {
			return err
		}
		c.Out.BulkString(name)
	}
	return nil
}

// bulks replies with an array of strings.
func (c *Call) bulks(values [][]byte) {
	c.Out.Array(len(values))
	for _, value := range values {
		c.Out.Bulk(value)
	}
}

// eachBulk writes one of several strings, and reports whether there is room for more.
func (c *Call) eachBulk(value []byte) bool {
	c.Out.Bulk(value)
	return !c.Out.Exceeded()
}

// eachPair is eachBulk for a name and its value.
func (c *Call) eachPair(name, value []byte) bool {
	c.Out.Bulk(name)
	return c.eachBulk(value)
}

// eachOrNull is eachBulk for the values of several names, nil being null.
func (c *Call) eachOrNull(_ int, value []byte) bool {
	c.bulkOrNull(value)
	return !c.Out.Exceeded()
}

// bulkOrNull writes a string, nil being null.
func (c *Call) bulkOrNull(value []byte) {
	if value == nil {
		c.Out.Null()
	} else {
		c.Out.Bulk(value)
	}
}

// Fact is a name and a value of a map reply.
type Fact struct {
	Name  string
	Value any
}

// BulkSet is a set of strings, which is an array in RESP2.
type BulkSet []string

// SimpleSet is a set of simple strings, which is an array in RESP2.
type SimpleSet []string

// Reply writes a value as what it is: null, a number, a bool or a string, a map of facts, a set, or an
// array of such values. It is for replies that describe; those with data are written directly,
// without boxing each element. A type that is not listed is a bug of the caller's, not of a
// user's, so it panics.
func (c *Call) Reply(value any) error {
	switch value := value.(type) {
	case nil:
		c.Out.Null()
	case int:
		c.Out.Int(int64(value))
	case int64:
		c.Out.Int(value)
	case uint64:
		c.Out.Int(int64(value))
	case float64:
		c.Out.Double(value)
	case bool:
		c.Out.Bool(value)
	case string:
		c.Out.BulkString(value)
	case []string:
		return c.Names(value)
	case BulkSet:
		c.Out.Set(len(value))
		for _, text := range value {
			c.Out.BulkString(text)
		}
	case SimpleSet:
		c.Out.Set(len(value))
		for _, name := range value {
			c.Out.Simple(name)
		}
	case []Fact:
		c.Out.Map(len(value))
		c.facts(value...)
	case []any:
		c.Out.Array(len(value))
		for _, v := range value {
			c.Reply(v)
		}
	default:
		panic(fmt.Sprintf("BUG: command: a reply of type %T", value))
	}
	return nil
}

// facts replies with facts of a map whose header has been written.
func (c *Call) facts(list ...Fact) {
	for _, f := range list {
		c.Out.BulkString(f.Name)
		c.Reply(f.Value)
	}
}

// scoredReply replies with members, alone or with their scores: those follow the members in
// RESP2, and in pairs with them in RESP3.
type scoredReply struct {
	out           *resp.Writer
	scores, pairs bool
}

func (r scoredReply) start(n int) {
	if r.scores && !r.pairs {
		n *= 2
	}
	r.out.Array(n)
}

// all replies with members that have been gathered.
func (r scoredReply) all(members []db.Scored) {
	r.start(len(members))
	for _, m := range members {
		r.add([]byte(m.Member), m.Score)
	}
}

// add adds a member and says whether there is room for more.
func (r scoredReply) add(member []byte, score float64) bool {
	if r.pairs {
		r.out.Array(2)
	}
	r.out.Bulk(member)
	if r.scores {
		r.out.Double(score)
	}
	return !r.out.Exceeded()
}

func (c *Call) scoredReply(scores bool) scoredReply {
	return scoredReply{out: c.Out, scores: scores, pairs: scores && c.Out.Version() == 3}
}

// scanHeader starts the reply of a scan whose page has n replies. The cursor is text, not an
// integer: it is unsigned, and a client is to pass it back as it is.
func (c *Call) scanHeader(next uint64, n int) {
	var digits [20]byte
	c.Out.Array(2)
	c.Out.Bulk(strconv.AppendUint(digits[:0], next, 10))
	c.Out.Array(n)
}

// The two forms of "there is nothing".
func noArray(c *Call) { c.Out.NullArray() }

func noString(c *Call) { c.Out.Null() }
