package command

import (
	"errors"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// xinfoGroups is XINFO GROUPS.
func xinfoGroups(c *Call) error {
	s := c.Tx.Stream(c.Key(2))
	if _, err := s.Info(); err != nil {
		return noKeyOr(err)
	}
	groups, err := s.Groups()
	if err != nil {
		return err
	}
	c.Out.Array(len(groups))
	for _, g := range groups {
		c.Out.Map(6)
		c.Out.BulkString("name")
		c.Out.BulkString(g.Name)
		c.Out.BulkString("consumers")
		c.Out.Int(int64(g.Consumers))
		c.Out.BulkString("pending")
		c.Out.Int(int64(g.Pending))
		c.groupProgress(g)
	}
	return nil
}

// groupProgress replies with three facts: how far a group is.
func (c *Call) groupProgress(g db.StreamGroupInfo) {
	c.Out.BulkString("last-delivered-id")
	c.streamID(g.Last)
	c.Out.BulkString("entries-read")
	c.intOrNull(g.Read)
	c.Out.BulkString("lag")
	c.intOrNull(g.Lag)
}

// intOrNull replies with a number that is not known if it is negative.
func (c *Call) intOrNull(n int64) {
	if n < 0 {
		c.Out.Null()
		return
	}
	c.Out.Int(n)
}

// noKeyOr is the error of XINFO without a key.
func noKeyOr(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return ErrNoKey
	}
	return err
}

// xinfoConsumers is XINFO CONSUMERS.
func xinfoConsumers(c *Call) error {
	s := c.Tx.Stream(c.Key(2))
	if _, err := s.Info(); err != nil {
		return noKeyOr(err)
	}
	consumers, err := c.group().Consumers()
	if errors.Is(err, structures.ErrNoGroup) {
		return Errorf("NOGROUP No such consumer group '%s' for key name '%s'", cString(c.Args[3]), cString(c.Args[2]))
	}
	if err != nil {
		return err
	}
	now := c.now()
	c.Out.Array(len(consumers))
	for _, of := range consumers {
		c.Out.Map(4)
		c.Out.BulkString("name")
		c.Out.BulkString(of.Name)
		c.Out.BulkString("pending")
		c.Out.Int(int64(of.Pending))
		c.Out.BulkString("idle")
		c.Out.Int(max(now-of.Seen, 0))
		c.Out.BulkString("inactive")
		if of.Active < 0 {
			c.Out.Int(-1)
		} else {
			c.Out.Int(max(now-of.Active, 0))
		}
	}
	return nil
}

// fullGroups replies with all groups of a stream, and up to count pending entries of each group and each consumer, all if it is 0.
func (c *Call) fullGroups(s db.Stream, count int) error {
	groups, err := s.Groups()
	if err != nil {
		return err
	}
	c.Out.Array(len(groups))
	for _, info := range groups {
		g := s.Group(info.Name)
		pending, err := g.Pending(db.StreamPendingRange{To: db.MaxStreamID, Count: count})
		if err != nil {
			return err
		}
		c.Out.Map(7)
		c.Out.BulkString("name")
		c.Out.BulkString(info.Name)
		c.groupProgress(info)
		c.Out.BulkString("pel-count")
		c.Out.Int(int64(info.Pending))
		c.Out.BulkString("pending")
		c.Out.Array(len(pending))
		for _, p := range pending {
			c.Out.Array(4)
			c.streamID(p.ID)
			c.Out.BulkString(p.Consumer)
			c.Out.Int(p.Delivered)
			c.Out.Int(p.Deliveries)
		}
		c.Out.BulkString("consumers")
		if err := c.fullConsumers(g, count); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) fullConsumers(g db.StreamGroup, count int) error {
	consumers, err := g.Consumers()
	if err != nil {
		return err
	}
	c.Out.Array(len(consumers))
	for _, of := range consumers {
		pending, err := g.Pending(db.StreamPendingRange{To: db.MaxStreamID, Count: count, Only: true, Consumer: of.Name})
		if err != nil {
			return err
		}
		c.Out.Map(5)
		c.Out.BulkString("name")
		c.Out.BulkString(of.Name)
		c.Out.BulkString("seen-time")
		c.Out.Int(of.Seen)
		c.Out.BulkString("active-time")
		c.Out.Int(of.Active)
		c.Out.BulkString("pel-count")
		c.Out.Int(int64(of.Pending))
		c.Out.BulkString("pending")
		c.Out.Array(len(pending))
		for _, p := range pending {
			c.Out.Array(3)
			c.streamID(p.ID)
			c.Out.Int(p.Delivered)
			c.Out.Int(p.Deliveries)
		}
	}
	return nil
}
