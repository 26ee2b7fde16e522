package command

import (
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/structures"
)

// XREAD reads what is there into the reply. A reader that waits is served in the transaction of the XADD that it waited
// for, and what it reads stays for the others.

// readRequest is the arguments of XREAD and XREADGROUP.
type readRequest struct {
	grouped  bool // GROUP is there
	group    string
	consumer string
	noAck    bool
	claim    bool
	minIdle  int64 // milliseconds that an entry has been pending which CLAIM takes over
	count    int   // 0: all
	block    bool
	timeout  time.Duration
	keys     []string
	ids      [][]byte
}

// blockedCount is how many entries a reader gets that has waited and has not said how many.
const blockedCount = 1000

// parseRead reads the arguments of XREAD, or of XREADGROUP.
func (c *Call) parseRead(group bool) (r readRequest, err error) {
	for i := 1; i < len(c.Args); i++ {
		switch more := len(c.Args) - i - 1; {
		case c.Args.Is(i, "block") && more > 0:
			i++
			if r.timeout, err = c.Args.parseMilliseconds(i); err != nil {
				return r, err
			}
			r.block = true
		case c.Args.Is(i, "count") && more > 0:
			i++
			n, err := c.Args.ParseInt(i)
			if err != nil {
				return r, err
			}
			r.count = clampInt(max(n, 0))
		case group && c.Args.Is(i, "claim") && more > 0:
			i++
			if r.minIdle, err = c.Args.ParseInt(i); err != nil {
				return r, Error("ERR min-idle-time is not an integer")
			}
			if r.minIdle < 0 {
				return r, Error("ERR min-idle-time must be a positive integer")
			}
			r.claim = true
		case c.Args.Is(i, "streams") && more > 0:
			if more%2 != 0 {
				symbol := "$"
				if group {
					symbol = ">"
				}
				return r, Errorf("ERR Unbalanced '%s' list of streams: for each stream key an ID or '%s' must be specified.", c.Command.Name, symbol)
			}
			r.keys = stringsOf(c.Args[i+1 : i+1+more/2])
			r.ids = c.Args[i+1+more/2:]
			return r, nil
		case group && c.Args.Is(i, "group") && more > 1:
			r.grouped, r.group, r.consumer = true, string(c.Args[i+1]), string(c.Args[i+2])
			i += 2
		case group && c.Args.Is(i, "noack"):
			r.noAck = true
		case c.Args.Is(i, "group") && more > 1:
			return r, Error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
		case c.Args.Is(i, "claim") && more > 0:
			return r, Error("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.")
		case c.Args.Is(i, "noack"):
			return r, Error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
		default:
			return r, ErrSyntax
		}
	}
	return r, ErrSyntax
}

// readsFew says whether an XREAD or XREADGROUP asks for few entries, and whether it may wait. Without COUNT it asks for
// all, and with CLAIM it looks at all that is pending.
func readsFew(args [][]byte) (few, waits bool) {
	count := int64(0)
	for i := 1; i+1 < len(args); i++ {
		switch {
		case equalFold(args[i], "streams"):
			keys := int64(len(args)-i-1) / 2
			return 0 < count && count <= maxTaken && count*keys <= maxTaken, waits
		case equalFold(args[i], "count"):
			i++
			count, _ = resp.ParseInt(args[i]) // what is no number is refused at once
		case equalFold(args[i], "group"):
			i += 2
		case equalFold(args[i], "claim"):
			return false, waits
		case equalFold(args[i], "block"):
			i++
			waits = true
		}
	}
	return false, waits
}

// parseMilliseconds reads a timeout in milliseconds, 0 for no end.
func (a Args) parseMilliseconds(i int) (time.Duration, error) {
	n, err := a.ParseInt(i)
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	switch {
	case err != nil:
		return 0, Error("ERR timeout is not an integer or out of range")
	case n < 0:
		return 0, Error("ERR timeout is negative")
	case n > 1<<63-1-time.Now().UnixMilli():
		return 0, Error("ERR timeout is out of range")
	case n > longest:
		return 0, nil
	}
	return time.Duration(n) * time.Millisecond, nil
}

// xreadCommand is XREAD. What is there is read into the reply; a reader that waits is given the entries of one stream.
func xreadCommand(c *Call) error {
	r, err := c.parseRead(false)
	if err != nil {
		return err
	}
	if len(r.keys) == 1 {
		return c.readOne(r)
	}
	after := make([]db.StreamID, len(r.keys))
	var there []int
	for i, key := range r.keys {
		if after[i], err = c.readAfter(key, r.ids[i]); err != nil {
			return err
		}
		some, err := c.Tx.Stream(key).HasAfter(after[i])
		if err != nil {
			return err
		}
		if some {
			there = append(there, i)
		}
	}
	if len(there) == 0 {
		return c.readWait(r, after)
	}
	c.streamReplies(len(there))
	for _, i := range there {
		c.streamReply(r.keys[i])
		all := structures.StreamRange{From: after[i].Next(), To: db.MaxStreamID, Count: r.count}
		if err := c.entries(c.Tx.Stream(r.keys[i]), all); err != nil {
			return err
		}
	}
	return nil
}

// readOne is XREAD of one stream, as most readers send it: the stream is looked up once.
func (c *Call) readOne(r readRequest) error {
	key := r.keys[0]
	after, err := c.readAfter(key, r.ids[0])
	if err != nil {
		return err
	}
	all := structures.StreamRange{From: after.Next(), To: db.MaxStreamID, Count: r.count}
	if after == db.MaxStreamID { // nothing comes after it
		all.From, all.To = after, after.Previous()
	}
	n, err := c.oneStream(key, func(visit visitEntry) error { return c.Tx.Stream(key).VisitRange(all, visit) })
	if err != nil || n > 0 {
		return err
	}
	return c.readWait(r, []db.StreamID{after})
}

// visitEntry is called for an entry, and reports whether there shall be more.
type visitEntry = func(id db.StreamID, fields [][]byte) bool

// oneStream replies with the entries of one stream that read finds, if there are any, and returns how many there are.
func (c *Call) oneStream(key string, read func(visit visitEntry) error) (n int, err error) {
	var mark resp.Mark
	err = read(func(id db.StreamID, fields [][]byte) bool {
		if n++; n == 1 {
			c.streamReplies(1)
			c.streamReply(key)
			mark = c.Out.Begin()
		}
		return c.visitedEntry(id, fields)
	})
	if n > 0 {
		c.Out.EndArray(mark, n)
	}
	return n, err
}

// readAfter is the id that an argument of XREAD says to read after.
func (c *Call) readAfter(key string, arg []byte) (db.StreamID, error) {
	after, err := streamID(arg, 0)
	if err == nil {
		return after, nil
	}
	last, wrong := c.Tx.Stream(key).LastID() // a key of another type is the first thing to say
	if wrong != nil {
		return last, wrong
	}
	switch string(arg) {
	case "$":
		return last, nil
	case "+":
		return c.beforeLastEntry(key, last)
	case ">":
		return last, Error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
	}
	return last, err
}

// beforeLastEntry is the id after which the last entry of a stream comes, which XREAD calls +; of a stream without
// entries its last id.
func (c *Call) beforeLastEntry(key string, last db.StreamID) (db.StreamID, error) {
	entries, err := c.Tx.Stream(key).RangeReverse(db.StreamID{}, db.MaxStreamID, 1)
	if err != nil || len(entries) == 0 {
		return last, err
	}
	return entries[0].ID.Previous(), nil
}

// streamReplies begins the reply of n streams, and streamReply that of one: a map, which RESP2 has as pairs.
func (c *Call) streamReplies(n int) {
	if c.Out.Version() == 3 {
		c.Out.Map(n)
	} else {
		c.Out.Array(n)
	}
}

// endStreamReplies ends the reply of n streams that began at m.
func (c *Call) endStreamReplies(m resp.Mark, n int) {
	if c.Out.Version() == 3 {
		c.Out.EndMap(m, n)
	} else {
		c.Out.EndArray(m, n)
	}
}

func (c *Call) streamReply(key string) {
	if c.Out.Version() == 2 {
		c.Out.Array(2)
	}
	c.Out.BulkString(key)
}

// readWait waits for an entry after the ids, if that was asked for.
func (c *Call) readWait(r readRequest, after []db.StreamID) error {
	if !r.block {
		c.Out.NullArray()
		return nil
	}
	if r.count == 0 {
		r.count = blockedCount
	}
	ids := make(map[string]db.StreamID, len(r.keys))
	for i, key := range r.keys {
		if _, twice := ids[key]; !twice {
			ids[key] = after[i]
		}
	}
	var key string
	var entries []db.StreamEntry
	w := db.Wait{Keys: r.keys, Type: db.TypeStream}
	w.Ready = func(tx *db.Tx, from string) bool {
		some, err := tx.Stream(from).HasAfter(ids[from])
		return some || err != nil
	}
	w.Do = func(tx *db.Tx, from string) (err error) {
		key = from
		entries, err = tx.Stream(from).Range(ids[from].Next(), db.MaxStreamID, r.count)
		return err
	}
	return c.Await(w, r.timeout, func(c *Call) { c.streamRead(key, entries) }, noArray)
}

// streamRead is the reply of a reader that has waited: entries of one stream.
func (c *Call) streamRead(key string, entries []db.StreamEntry) {
	c.streamReplies(1)
	c.streamReply(key)
	c.entryList(entries)
}
