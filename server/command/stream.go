package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// An entry of a stream is one record, and its id is in memory: XLEN reads nothing from disk, XRANGE one record an
// entry. XADD writes one record, also with MAXLEN ~ for 99 calls of 100; XTRIM writes one, however many entries go.

// streamCommands work on streams. A stream without entries exists until its key is deleted.
var streamCommands = InGroup(GroupStream, []*Command{
	{Name: "xadd", Arity: -5, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: xaddCommand},
	{Name: "xlen", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.Stream(c.Key(1)).Len()) }},
	{Name: "xrange", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"), Run: func(c *Call) error { return c.xrange(false) }},
	{Name: "xrevrange", Arity: -4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"), Run: func(c *Call) error { return c.xrange(true) }},
	{Name: "xread", Arity: -4, Flags: ReadOnly | Blocking | MovableKeys, Work: ByReply,
		Keys: []Keys{{Use: "RO access", First: 1, Keyword: "STREAMS", Half: true}}, Run: xreadCommand},
	{Name: "xreadgroup", Arity: -7, Flags: Write | Blocking | MovableKeys,
		Keys: []Keys{{Use: "RO access", First: 4, Keyword: "STREAMS", Half: true}}, Run: xreadgroupCommand},
	{Name: "xack", Arity: -4, Flags: Write | Fast, Keys: OneKey("RW update"), Run: xackCommand},
	{Name: "xpending", Arity: -3, Flags: ReadOnly, Keys: OneKey("RO access"), Run: xpendingCommand},
	{Name: "xclaim", Arity: -6, Flags: Write | Fast, Keys: OneKey("RW update"), Run: xclaimCommand},
	{Name: "xautoclaim", Arity: -6, Flags: Write | Fast, Work: Unbounded, Keys: OneKey("RW delete"), Run: xautoclaimCommand},
	{Name: "xdel", Arity: -3, Flags: Write | Fast, Keys: OneKey("RW delete"), Run: xdelCommand},
	{Name: "xdelex", Arity: -5, Flags: Write | Fast, Keys: OneKey("RW delete"), Run: xdelexCommand},
	{Name: "xackdel", Arity: -6, Flags: Write | Fast, Keys: OneKey("RW update delete"), Run: xackdelCommand},
	{Name: "xtrim", Arity: -4, Flags: Write, Keys: OneKey("RW delete"), Run: xtrimCommand},
	{Name: "xsetid", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: xsetidCommand},
})

const (
	errStreamID    Error = "ERR Invalid stream ID specified as stream command argument"
	errTrimTwice   Error = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
	errTrimLimit   Error = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
	errTrimExact   Error = "ERR syntax error, LIMIT cannot be used without the special ~ option"
	errTrimMissing Error = "ERR syntax error, XTRIM must be called with either MAXLEN or MINID trimming strategies"
)

// maxStreamID is the longest text of an id, in bytes.
const maxStreamID = 127

// streamID reads an id; one without a number gets that one.
func streamID(arg []byte, number uint64) (db.StreamID, error) {
	if len(arg) <= maxStreamID {
		if id, ok := structures.ParseStreamID(Clip(arg, maxStreamID), number); ok {
			return id, nil
		}
	}
	return db.StreamID{}, errStreamID
}

// streamIDs reads the ids from argument i on, up to one that is wrong.
func (a Args) streamIDs(i int) (ids []db.StreamID, err error) {
	ids = make([]db.StreamID, 0, len(a)-i)
	for _, arg := range a[i:] {
		id, err := streamID(arg, 0)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// streamBound reads an id that may be - or +, the least and the greatest one.
func streamBound(arg []byte, number uint64) (db.StreamID, error) {
	switch {
	case len(arg) == 1 && arg[0] == '-':
		return db.StreamID{}, nil
	case len(arg) == 1 && arg[0] == '+':
		return db.MaxStreamID, nil
	}
	return streamID(arg, number)
}

// addOrTrim is what XADD and XTRIM have in common.
type addOrTrim struct {
	trim  *db.StreamTrim
	refs  db.StreamReferences
	only  bool // NOMKSTREAM
	id    structures.StreamNewID
	after int // the first argument after the id
}

// parseAddOrTrim reads the arguments after the key; those of XADD end with the id.
func (a Args) parseAddOrTrim(add bool) (p addOrTrim, err error) {
	limit, limited, referred := int64(0), false, 0
	i := 2
loop:
	for ; i < len(a); i++ {
		more := len(a) - i - 1
		refs, isRefs := referenceWords.find(a[i])
		switch {
		case isRefs && (referred == 0 || sameKeyword(a[i], a[referred])):
			p.refs, referred = refs, i
		case isRefs:
			return p, ErrSyntax
		case add && string(a[i]) == "*":
			break loop
		case (a.Is(i, "maxlen") || a.Is(i, "minid")) && more > 0:
			if i, err = a.parseThreshold(i, &p); err != nil {
				return p, err
			}
		case a.Is(i, "limit") && more > 0:
			i++
			if limit, err = a.parseFrom(i, 0, "ERR The LIMIT argument must be >= 0."); err != nil {
				return p, err
			}
			limited = true
		case add && a.Is(i, "nomkstream"):
			p.only = true
		case add:
			if p.id, err = newStreamID(a[i]); err != nil {
				return p, err
			}
			break loop
		default:
			return p, ErrSyntax
		}
	}
	p.after = i + 1
	switch {
	case limit != 0 && p.trim == nil:
		return p, errTrimLimit
	case p.trim == nil && !add:
		return p, errTrimMissing
	case limited && (p.trim == nil || !p.trim.Approximate):
		return p, errTrimExact
	case limited:
		p.trim.Limit = clampInt(limit)
	case p.trim != nil && p.trim.Approximate:
		p.trim.Limit = structures.DefaultTrimLimit
	}
	if p.trim != nil {
		p.trim.References = p.refs
	}
	return p, nil
}

// parseThreshold reads MAXLEN or MINID, which is argument i, and returns its last argument.
func (a Args) parseThreshold(i int, p *addOrTrim) (int, error) {
	if p.trim != nil {
		return i, errTrimTwice
	}
	p.trim = &db.StreamTrim{ByID: a.Is(i, "minid")}
	i++
	if sign := string(a[i]); i+1 < len(a) && (sign == "~" || sign == "=") {
		p.trim.Approximate = sign == "~"
		i++
	}
	if p.trim.ByID {
		id, err := streamID(a[i], 0)
		p.trim.MinID = id
		return i, err
	}
	n, err := a.parseFrom(i, 0, "ERR The MAXLEN argument must be >= 0.")
	p.trim.MaxLen = clampInt(n)
	return i, err
}

// newStreamID reads the id of a new entry: "time-number", a time, or "time-*".
func newStreamID(arg []byte) (n structures.StreamNewID, err error) {
	if k := len(arg) - 2; k >= 0 && string(arg[k:]) == "-*" && k < maxStreamID {
		id, ok := structures.ParseStreamID(Clip(arg[:k], maxStreamID)+"-0", 0)
		if !ok {
			return n, errStreamID
		}
		return structures.StreamNewID{NextInMs: true, ID: id}, nil
	}
	n.Given = true
	n.ID, err = streamID(arg, 0)
	return n, err
}

// xaddCommand is XADD. The id is checked before the key, and the number of arguments after the options.
func xaddCommand(c *Call) error {
	p, err := c.Args.parseAddOrTrim(true)
	if err != nil {
		return err
	}
	if rest := len(c.Args) - p.after; rest < 2 || rest%2 == 1 {
		return ArityError(c.Command.Name)
	}
	id, err := c.Tx.Stream(c.Key(1)).Append(c.Args[p.after:], p.id, p.only, p.trim)
	if err != nil {
		return orElse(err, c.Out.Null)
	}
	c.streamID(id)
	return nil
}

func xtrimCommand(c *Call) error {
	p, err := c.Args.parseAddOrTrim(false)
	if err != nil {
		return err
	}
	return c.Int(c.Tx.Stream(c.Key(1)).Trim(*p.trim))
}

// xdelCommand looks for the key before it reads the ids, as Redis does.
func xdelCommand(c *Call) error {
	s := c.Tx.Stream(c.Key(1))
	if _, err := s.LastID(); err != nil { // of another type
		return err
	}
	if exists, err := c.Tx.Key(c.Key(1)).Exists(); err != nil || !exists {
		return c.Int(0, err)
	}
	ids, err := c.Args.streamIDs(2)
	if err != nil {
		return err
	}
	return c.Int(s.Delete(ids...))
}

// xsetidCommand is XSETID.
func xsetidCommand(c *Call) error {
	last, err := streamID(c.Args[2], 0)
	if err != nil {
		return err
	}
	var o db.StreamSetID
	for i := 3; i < len(c.Args); i++ {
		switch more := i+1 < len(c.Args); {
		case more && c.Args.Is(i, "entriesadded"):
			i++
			n, err := c.Args.parseFrom(i, 0, "ERR entries_added must be positive")
			if err != nil {
				return err
			}
			added := uint64(n)
			o.Added = &added
		case more && c.Args.Is(i, "maxdeletedid"):
			i++
			id, err := streamID(c.Args[i], 0)
			if err != nil {
				return err
			}
			if last.Less(id) {
				return structures.ErrStreamSetDeleted
			}
			o.Deleted = &id
		default:
			return ErrSyntax
		}
	}
	err = c.Tx.Stream(c.Key(1)).SetID(last, o)
	return c.Done(noKeyOr(err))
}

// xrange is XRANGE and XREVRANGE. The ids and the count are read before the key. A count of 0 is a null array.
func (c *Call) xrange(reverse bool) error {
	first, last := 2, 3
	if reverse {
		first, last = 3, 2
	}
	from, to, err := streamInterval(c.Args[first], c.Args[last])
	if err != nil {
		return err
	}
	count, err := c.Args.xrangeCount()
	if err != nil {
		return err
	}
	s := c.Tx.Stream(c.Key(1))
	if count == 0 {
		if _, err := s.Info(); err != nil {
			return orElse(err, func() { c.Out.Array(0) })
		}
		c.Out.NullArray()
		return nil
	}
	return c.entries(s, structures.StreamRange{From: from, To: to, Reverse: reverse, Count: max(count, 0)})
}

// xrangeCount reads the words after a range: -1 is no limit.
func (a Args) xrangeCount() (int, error) {
	count := int64(-1)
	for i := 4; i < len(a); i++ {
		if !a.Is(i, "count") || i+1 == len(a) {
			return 0, ErrSyntax
		}
		i++
		n, err := a.ParseInt(i)
		if err != nil {
			return 0, err
		}
		count = max(n, 0)
	}
	return clampInt(count), nil
}

// streamInterval reads the ends of a range.
func streamInterval(first, last []byte) (from, to db.StreamID, err error) {
	if from, err = intervalStart(first); err != nil {
		return from, to, err
	}
	to, open, err := rangeEnd(last, db.MaxStreamID.Seq)
	if err != nil || !open {
		return from, to, err
	}
	if to == (db.StreamID{}) {
		return from, to, Error("ERR invalid end ID for the interval")
	}
	return from, to.Previous(), nil
}

// intervalStart reads the beginning of a range.
func intervalStart(arg []byte) (db.StreamID, error) {
	from, open, err := rangeEnd(arg, 0)
	if err != nil || !open {
		return from, err
	}
	if from == db.MaxStreamID {
		return from, Error("ERR invalid start ID for the interval")
	}
	return from.Next(), nil
}

// rangeEnd reads an end of a range; open says that the id itself is not in it.
func rangeEnd(arg []byte, number uint64) (id db.StreamID, open bool, err error) {
	if len(arg) > 1 && arg[0] == '(' {
		id, err = streamID(arg[1:], number)
		return id, true, err
	}
	id, err = streamBound(arg, number)
	return id, false, err
}

// entries replies with the entries of a range.
func (c *Call) entries(s db.Stream, r structures.StreamRange) error {
	mark, n := c.Out.Begin(), 0
	err := s.VisitRange(r, func(id db.StreamID, fields [][]byte) bool {
		n++
		return c.visitedEntry(id, fields)
	})
	c.Out.EndArray(mark, n)
	return err
}

// visitedEntry replies with an entry that is not copied, and reports whether there is room for more.
func (c *Call) visitedEntry(id db.StreamID, fields [][]byte) bool {
	c.Out.Array(2)
	c.streamID(id)
	c.bulks(fields)
	return !c.Out.Exceeded()
}

func (c *Call) streamID(id db.StreamID) {
	c.Out.EndBulk(id.Append(c.Out.BeginBulk()))
}

// entryList replies with entries that have been copied.
func (c *Call) entryList(list []db.StreamEntry) {
	c.Out.Array(len(list))
	for _, e := range list {
		c.entry(e)
	}
}

// entry replies with an entry that has been copied.
func (c *Call) entry(e db.StreamEntry) {
	c.Out.Array(2)
	c.entryParts(e)
}

// entryParts are the id of an entry and its fields.
func (c *Call) entryParts(e db.StreamEntry) {
	c.streamID(e.ID)
	c.Out.Array(2 * len(e.Fields))
	for _, f := range e.Fields {
		c.Out.BulkString(f.Name)
		c.Out.Bulk(f.Value)
	}
}
