package command

import (
	"strconv"

	"github.com/stavedb/stave/db"
)

// pendingRequest is the arguments of XPENDING with a range.
type pendingRequest struct {
	db.StreamPendingRange
	none bool // a count of 0
}

// parsePending reads the arguments of XPENDING after the group. Without IDLE what follows the consumer is left unread,
// as in Redis.
func (a Args) parsePending() (r pendingRequest, err error) {
	first := 3
	if a.Is(3, "idle") {
		if r.MinIdle, err = a.ParseInt(4); err != nil {
			return r, err
		}
		if len(a) < 8 {
			return r, ErrSyntax
		}
		first = 5
	}
	count, err := a.ParseInt(first + 2)
	if err != nil {
		return r, err
	}
	r.Count, r.none = clampInt(max(count, 0)), count <= 0
	if r.From, r.To, err = streamInterval(a[first], a[first+1]); err != nil {
		return r, err
	}
	if first+3 < len(a) {
		r.Only, r.Consumer = true, string(a[first+3])
	}
	return r, nil
}

// xpendingCommand is XPENDING. The range is read before the key.
func xpendingCommand(c *Call) error {
	if len(c.Args) != 3 && (len(c.Args) < 6 || len(c.Args) > 9) {
		return ErrSyntax
	}
	g := c.Tx.Stream(c.Key(1)).Group(string(c.Args[2]))
	if len(c.Args) == 3 {
		return c.pendingSummary(g)
	}
	r, err := c.Args.parsePending()
	if err != nil {
		return err
	}
	var list []db.StreamPending
	if r.none {
		_, err = g.HasNew() // whether there is one
	} else {
		list, err = g.Pending(r.StreamPendingRange)
	}
	if err != nil {
		return groupOr(err, c.Args[1], c.Args[2])
	}
	c.pendingList(list, true, func(delivered int64) int64 { return max(c.now()-delivered, 0) })
	return nil
}

// pendingList replies with pending entries, each with its consumer if that is wanted, and what shown makes of the time
// of delivery.
func (c *Call) pendingList(list []db.StreamPending, consumer bool, shown func(delivered int64) int64) {
	c.Out.Array(len(list))
	for _, p := range list {
		if consumer {
			c.Out.Array(4)
		} else {
			c.Out.Array(3)
		}
		c.streamID(p.ID)
		if consumer {
			c.Out.BulkString(p.Consumer)
		}
		c.Out.Int(shown(p.Delivered))
		c.Out.Int(p.Deliveries)
	}
}

// pendingSummary is XPENDING without a range.
func (c *Call) pendingSummary(g db.StreamGroup) error {
	sum, err := g.PendingSummary()
	if err != nil {
		return groupOr(err, c.Args[1], c.Args[2])
	}
	c.Out.Array(4)
	c.Out.Int(int64(sum.Count))
	if sum.Count == 0 {
		c.Out.Null()
		c.Out.Null()
		c.Out.NullArray()
		return nil
	}
	c.streamID(sum.First)
	c.streamID(sum.Last)
	c.Out.Array(len(sum.Consumers))
	for _, of := range sum.Consumers {
		c.Out.Array(2)
		c.Out.BulkString(of.Consumer)
		c.Out.BulkString(strconv.Itoa(of.Count))
	}
	return nil
}
