package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/structures"
)

// XREADGROUP CLAIM takes over what has been pending for long, the entry that was delivered first at first, and then reads
// what the group has not delivered, as far as COUNT allows. An entry has two more facts in its reply: how long ago and how
// often it had been delivered, both 0 for a new one. NOACK is about new ones: the others stay pending. An id other than >
// makes CLAIM mean nothing for its stream.

// claimedEntry is an entry that has been copied, as the reply has it.
type claimedEntry struct {
	db.StreamEntry
	idle, deliveries int64
}

// visitClaimed is called for an entry, and reports whether there shall be more.
type visitClaimed = func(id db.StreamID, fields [][]byte, idle, deliveries int64) bool

// readGroupClaim is XREADGROUP CLAIM. Everything is checked before the first stream is read.
func (c *Call) readGroupClaim(r readRequest) (err error) {
	reads := make([]groupRead, len(r.keys))
	for i := range reads {
		if reads[i], err = c.groupRead(r, i); err != nil {
			return err
		}
	}
	mark, n := c.Out.Begin(), 0
	for i, read := range reads {
		some := read.history
		if read.history {
			read.some = true
			how := structures.StreamGroupRead{Consumer: r.consumer, Count: r.count, NoAck: r.noAck}
			err = c.readGroup(r.keys[i], read, how)
		} else {
			some, err = c.claimStream(r, read.group, r.keys[i])
		}
		if err != nil {
			return err
		}
		if some {
			n++
		}
	}
	if n == 0 {
		return c.claimWait(r)
	}
	c.endStreamReplies(mark, n)
	return nil
}

// claimStream replies with what one stream has, and reports whether that is anything.
func (c *Call) claimStream(r readRequest, g db.StreamGroup, key string) (some bool, err error) {
	var mark resp.Mark
	n := 0
	err = r.claimAndRead(g, func(id db.StreamID, fields [][]byte, idle, deliveries int64) bool {
		if n++; n == 1 {
			c.streamReply(key)
			mark = c.Out.Begin()
		}
		c.Out.Array(4)
		c.streamID(id)
		c.bulks(fields)
		c.Out.Int(idle)
		c.Out.Int(deliveries)
		return !c.Out.Exceeded()
	})
	if n > 0 {
		c.Out.EndArray(mark, n)
	}
	return n > 0, err
}

// claimAndRead calls visit for what has been pending for long, and then for what is new.
func (r readRequest) claimAndRead(g db.StreamGroup, visit visitClaimed) error {
	claimed := 0
	how := structures.StreamIdleClaim{Consumer: r.consumer, MinIdle: r.minIdle, Count: r.count}
	err := g.VisitClaimIdle(how, func(id db.StreamID, fields [][]byte, idle, deliveries int64) bool {
		claimed++
		return visit(id, fields, idle, deliveries)
	})
	if err != nil || r.count > 0 && claimed == r.count {
		return err
	}
	if r.count > 0 {
		r.count -= claimed
	}
	return r.readNew(g, visit)
}

// readNew calls visit for what is new.
func (r readRequest) readNew(g db.StreamGroup, visit visitClaimed) error {
	how := structures.StreamGroupRead{Consumer: r.consumer, Count: r.count, NoAck: r.noAck}
	return g.VisitRead(how, func(id db.StreamID, fields [][]byte) bool { return visit(id, fields, 0, 0) })
}

// claimWait waits for what the groups have not delivered, or for what has been pending for long by then, if that was
// asked for.
func (c *Call) claimWait(r readRequest) error {
	if !r.block {
		c.Out.NullArray()
		return nil
	}
	if r.count == 0 {
		r.count = blockedCount
	}
	var key string
	var entries []claimedEntry
	w := c.Tx.Stream(r.keys[0]).Group(r.group).WaitIdle(r.keys, r.minIdle, func(tx *db.Tx, from string) error {
		key, entries = from, nil
		group := tx.Stream(from).Group(r.group)
		read := r.claimAndRead
		if some, err := group.HasNew(); some && err == nil {
			read = r.readNew // the writer of an entry does not look at all that is pending
		}
		err := read(group, func(id db.StreamID, fields [][]byte, idle, deliveries int64) bool {
			entries = append(entries, claimedEntry{db.CopyStreamEntry(id, fields), idle, deliveries})
			return true
		})
		return errReadGroup(err, from, r.group)
	})
	return c.Await(w, r.timeout, func(c *Call) { c.streamClaimed(key, entries) }, noArray)
}

// streamClaimed is the reply of a reader that has waited: entries of one stream.
func (c *Call) streamClaimed(key string, entries []claimedEntry) {
	c.streamReplies(1)
	c.streamReply(key)
	c.Out.Array(len(entries))
	for _, e := range entries {
		c.Out.Array(4)
		c.entryParts(e.StreamEntry)
		c.Out.Int(e.idle)
		c.Out.Int(e.deliveries)
	}
}
