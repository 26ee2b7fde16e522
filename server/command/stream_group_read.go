package command

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// groupRead is one stream of an XREADGROUP: what the group has not delivered, or the history of the consumer after an
// id.
type groupRead struct {
	group   db.StreamGroup
	history bool
	after   db.StreamID
	hasNew  bool // the group has not delivered everything
	some    bool // there is something to reply with
}

// xreadgroupCommand is XREADGROUP. Everything is checked before the first stream is read. History is always there, if
// only as an empty list.
func xreadgroupCommand(c *Call) error {
	r, err := c.parseRead(true)
	if err != nil {
		return err
	}
	if !r.grouped {
		return Error("ERR Missing GROUP option for XREADGROUP")
	}
	if r.claim {
		return c.readGroupClaim(r)
	}
	if len(r.keys) == 1 && string(r.ids[0]) == ">" {
		return c.readGroupNew(r)
	}
	reads := make([]groupRead, len(r.keys))
	for i := range reads {
		if reads[i], err = c.groupRead(r, i); err != nil {
			return err
		}
	}
	there := 0
	before := make(map[string]int) // by key: how many of the reads take what is new
	for i := range reads {
		if reads[i].some, err = reads[i].hasMore(r.count, before[r.keys[i]]); err != nil {
			return err
		}
		if reads[i].some {
			there++
		}
		if !reads[i].history {
			before[r.keys[i]]++
		}
	}
	if there > 0 {
		c.streamReplies(there)
	}
	how := structures.StreamGroupRead{Consumer: r.consumer, Count: r.count, NoAck: r.noAck}
	for i, read := range reads {
		if err := c.readGroup(r.keys[i], read, how); err != nil {
			return err
		}
	}
	if there > 0 {
		return nil
	}
	return c.readGroupWait(r)
}

// readGroupNew is XREADGROUP of what the group of one stream has not delivered, as most consumers send it: the group is
// looked up once.
func (c *Call) readGroupNew(r readRequest) error {
	key := r.keys[0]
	how := structures.StreamGroupRead{Consumer: r.consumer, Count: r.count, NoAck: r.noAck}
	n, err := c.oneStream(key, func(visit visitEntry) error { return c.Tx.Stream(key).Group(r.group).VisitRead(how, visit) })
	if err != nil {
		return errReadGroup(err, key, r.group)
	}
	if n == 0 {
		return c.readGroupWait(r)
	}
	return nil
}

// hasMore reports whether there is something to reply with after so many reads of the same stream, of count entries
// each, 0 being all.
func (r *groupRead) hasMore(count, before int) (bool, error) {
	switch {
	case r.history:
		return true, nil
	case before == 0:
		return r.hasNew, nil
	case count == 0 || count > math.MaxInt32:
		return false, nil
	}
	return r.group.HasNewBeyond(before * count)
}

// groupRead checks what is to be read of one stream.
func (c *Call) groupRead(r readRequest, i int) (read groupRead, err error) {
	read.group = c.Tx.Stream(r.keys[i]).Group(r.group)
	if read.hasNew, err = read.group.HasNew(); err != nil {
		return read, errReadGroup(err, r.keys[i], r.group)
	}
	switch string(r.ids[i]) {
	case "$":
		return read, Error("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by " +
			"specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.")
	case ">":
		return read, nil
	}
	read.after, err = streamID(r.ids[i], 0)
	read.history = read.after != db.MaxStreamID // which is >
	return read, err
}

func errReadGroup(err error, key, group string) error {
	if errors.Is(err, structures.ErrNoGroup) {
		return Errorf("NOGROUP No such key '%s' or consumer group '%s' in XREADGROUP with GROUP option", cString([]byte(key)), cString([]byte(group)))
	}
	return err
}

// readGroup reads one stream into the reply, if there is something. In any case the consumer has been seen.
func (c *Call) readGroup(key string, read groupRead, how structures.StreamGroupRead) error {
	if !read.some || !read.history {
		if read.some {
			c.streamReply(key)
		}
		return c.groupEntries(read.some, func(visit func(db.StreamID, [][]byte) bool) error { return read.group.VisitRead(how, visit) })
	}
	c.streamReply(key)
	return c.groupEntries(true, func(visit func(db.StreamID, [][]byte) bool) error {
		return read.group.VisitHistory(how, read.after, visit)
	})
}

// groupEntries replies with the entries that fn visits, as far as reply wants that.
func (c *Call) groupEntries(reply bool, fn func(visit func(db.StreamID, [][]byte) bool) error) error {
	if !reply {
		return fn(func(db.StreamID, [][]byte) bool { return true })
	}
	mark, n := c.Out.Begin(), 0
	err := fn(func(id db.StreamID, fields [][]byte) bool {
		n++
		c.Out.Array(2)
		c.streamID(id)
		if fields == nil {
			c.Out.NullArray() // it is pending, and gone
		} else {
			c.bulks(fields)
		}
		return !c.Out.Exceeded()
	})
	c.Out.EndArray(mark, n)
	return err
}

// readGroupWait waits for what the groups have not delivered, if that was asked for, or for the end of one of them.
func (c *Call) readGroupWait(r readRequest) error {
	if !r.block {
		c.Out.NullArray()
		return nil
	}
	if r.count == 0 {
		r.count = blockedCount
	}
	var key string
	var entries []db.StreamEntry
	w := c.Tx.Stream(r.keys[0]).Group(r.group).Wait(r.keys, func(tx *db.Tx, from string) error {
		key, entries = from, nil
		how := structures.StreamGroupRead{Consumer: r.consumer, Count: r.count, NoAck: r.noAck}
		err := tx.Stream(from).Group(r.group).VisitRead(how, func(id db.StreamID, fields [][]byte) bool {
			entries = append(entries, db.CopyStreamEntry(id, fields))
			return true
		})
		return errReadGroup(err, from, r.group)
	})
	return c.Await(w, r.timeout, func(c *Call) { c.streamRead(key, entries) }, noArray)
}
