package command

import (
	"math"

	"github.com/stavedb/stave/db"
)

// parseClaim reads the ids and the options of XCLAIM: the first argument that is no id is an option.
func (c *Call) parseClaim() (how db.StreamClaim, ids []db.StreamID, err error) {
	ids, _ = c.Args.streamIDs(5)
	for i := 5 + len(ids); i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Args.Is(i, "force"):
			how.Force = true
		case c.Args.Is(i, "justid"):
			how.JustID = true
		case c.Args.Is(i, "idle") && more:
			i++
			n, err := c.Args.ParseInt(i)
			if err != nil {
				return how, nil, Error("ERR Invalid IDLE option argument for XCLAIM")
			}
			how.Delivered = deliveredAt(c.now() - n)
		case c.Args.Is(i, "time") && more:
			i++
			n, err := c.Args.ParseInt(i)
			if err != nil {
				return how, nil, Error("ERR Invalid TIME option argument for XCLAIM")
			}
			how.Delivered = deliveredAt(n)
		case c.Args.Is(i, "retrycount") && more:
			i++
			n, err := c.Args.ParseInt(i)
			if err != nil {
				return how, nil, Error("ERR Invalid RETRYCOUNT option argument for XCLAIM")
			}
			if how.Deliveries = nil; n >= 0 {
				how.Deliveries = &n
			}
		case c.Args.Is(i, "lastid") && more:
			i++
			if how.Last, err = streamID(c.Args[i], 0); err != nil {
				return how, nil, err
			}
		default:
			return how, nil, Errorf("ERR Unrecognized XCLAIM option '%s'", cString(c.Args[i]))
		}
	}
	return how, ids, nil
}

// deliveredAt is a time of delivery; -1 is none.
func deliveredAt(ms int64) *int64 {
	if ms == -1 {
		return nil
	}
	return &ms
}

// parseMinIdle reads argument 4.
func (c *Call) parseMinIdle() (int64, error) {
	n, err := c.Args.ParseInt(4)
	if err != nil {
		return 0, Errorf("ERR Invalid min-idle-time argument for %s", map[string]string{"xclaim": "XCLAIM", "xautoclaim": "XAUTOCLAIM"}[c.Command.Name])
	}
	return max(n, 0), nil
}

// xclaimCommand is XCLAIM. The group is looked up before the options are read.
func xclaimCommand(c *Call) error {
	g := c.Tx.Stream(c.Key(1)).Group(string(c.Args[2]))
	if _, err := g.HasNew(); err != nil {
		return groupOr(err, c.Args[1], c.Args[2])
	}
	idle, err := c.parseMinIdle()
	if err != nil {
		return err
	}
	how, ids, err := c.parseClaim()
	if err != nil {
		return err
	}
	how.Consumer, how.MinIdle = string(c.Args[3]), idle
	return c.claimed(how.JustID, func(visit func(db.StreamID, [][]byte) bool) error { return g.VisitClaim(how, ids, visit) })
}

// claimed replies with the entries that fn visits, or with their ids alone.
func (c *Call) claimed(justID bool, fn func(visit func(db.StreamID, [][]byte) bool) error) error {
	if !justID {
		return c.groupEntries(true, fn)
	}
	mark, n := c.Out.Begin(), 0
	err := fn(func(id db.StreamID, _ [][]byte) bool {
		n++
		c.streamID(id)
		return !c.Out.Exceeded()
	})
	c.Out.EndArray(mark, n)
	return err
}

// maxAutoClaim is the greatest COUNT of XAUTOCLAIM.
const maxAutoClaim = math.MaxInt64 / 16

// xautoclaimCommand is XAUTOCLAIM. The arguments are read before the group is looked up.
func xautoclaimCommand(c *Call) error {
	idle, err := c.parseMinIdle()
	if err != nil {
		return err
	}
	how := db.StreamAutoClaim{Consumer: string(c.Args[3]), MinIdle: idle, Count: 100}
	if how.From, err = intervalStart(c.Args[5]); err != nil {
		return err
	}
	for i := 6; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "count") && i+1 < len(c.Args):
			i++
			n, err := c.Args.ParseInt(i)
			if err != nil || n < 1 || n > maxAutoClaim {
				return Error("ERR COUNT must be > 0")
			}
			how.Count = clampInt(n)
		case c.Args.Is(i, "justid"):
			how.JustID = true
		default:
			return ErrSyntax
		}
	}
	g := c.Tx.Stream(c.Key(1)).Group(string(c.Args[2]))
	if _, err := g.HasNew(); err != nil {
		return groupOr(err, c.Args[1], c.Args[2])
	}
	return c.autoClaimed(g, how)
}

// autoClaimed claims, and replies. Where to go on, which comes first, is known at the end.
func (c *Call) autoClaimed(g db.StreamGroup, how db.StreamAutoClaim) error {
	var list []db.StreamEntry
	next, gone, err := g.VisitAutoClaim(how, func(id db.StreamID, fields [][]byte) bool {
		list = append(list, db.CopyStreamEntry(id, fields))
		return true
	})
	if err != nil {
		return err
	}
	c.Out.Array(3)
	c.streamID(next)
	c.Out.Array(len(list))
	for _, e := range list {
		if how.JustID {
			c.streamID(e.ID)
		} else {
			c.entry(e)
		}
	}
	c.Out.Array(len(gone))
	for _, id := range gone {
		c.streamID(id)
	}
	return nil
}
