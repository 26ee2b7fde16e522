package command

import (
	"errors"

	"github.com/stavedb/stave/db"
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
		c.facts(Fact{"name", g.Name}, Fact{"consumers", g.Consumers}, Fact{"pending", g.Pending})
		c.groupProgress(g)
	}
	return nil
}

// groupProgress replies with three facts: how far a group is.
func (c *Call) groupProgress(g db.StreamGroupInfo) {
	c.facts(Fact{"last-delivered-id", g.Last.String()}, Fact{"entries-read", known(g.Read)}, Fact{"lag", known(g.Lag)})
}

// known is a number that is not known if it is negative.
func known(n int64) any {
	if n < 0 {
		return nil
	}
	return n
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
	if err != nil {
		return c.xgroupError(err)
	}
	now := c.now()
	c.Out.Array(len(consumers))
	for _, of := range consumers {
		inactive := int64(-1)
		if of.Active >= 0 {
			inactive = max(now-of.Active, 0)
		}
		c.Reply([]Fact{{"name", of.Name}, {"pending", of.Pending}, {"idle", max(now-of.Seen, 0)}, {"inactive", inactive}})
	}
	return nil
}

// fullGroups replies with all groups of a stream, and up to count pending entries of each group and each consumer, all
// if it is 0.
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
		c.facts(Fact{"name", info.Name})
		c.groupProgress(info)
		c.facts(Fact{"pel-count", info.Pending})
		c.Out.BulkString("pending")
		c.pendingList(pending, true, func(delivered int64) int64 { return delivered })
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
		c.facts(Fact{"name", of.Name}, Fact{"seen-time", of.Seen}, Fact{"active-time", of.Active}, Fact{"pel-count", of.Pending})
		c.Out.BulkString("pending")
		c.pendingList(pending, false, func(delivered int64) int64 { return delivered })
	}
	return nil
}
