package command

import (
	"cmp"
	"errors"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// A group, a consumer and a pending entry are a record each: XREADGROUP writes one for each entry that it delivers, one
// for the consumer and one for the group, XACK one for each id.

var streamGroupCommands = []*Command{
	{
		Name: "xgroup", Arity: -2, Flags: 0, Group: GroupStream,
		Subcommands: []*Command{
			{Name: "xgroup|create", Arity: -5, Flags: Write | DenyOOM, Keys: keyOfGroup("RW insert"), Run: xgroupCreate},
			{Name: "xgroup|createconsumer", Arity: 5, Flags: Write | DenyOOM, Keys: keyOfGroup("RW insert"), Run: xgroupCreateConsumer},
			{Name: "xgroup|delconsumer", Arity: 5, Flags: Write, Keys: keyOfGroup("RW delete"), Run: xgroupDelConsumer},
			{Name: "xgroup|destroy", Arity: 4, Flags: Write, Keys: keyOfGroup("RW delete"), Run: xgroupDestroy},
			HelpRow("xgroup"),
			{Name: "xgroup|setid", Arity: -5, Flags: Write, Keys: keyOfGroup("RW update"), Run: xgroupSetID},
		},
	},
}

// keyOfGroup is the key of a subcommand.
func keyOfGroup(use string) []Keys { return []Keys{{Use: use, First: 2, Step: 1}} }

const errGroupKey Error = "ERR The XGROUP subcommand requires the key to exist. " +
	"Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."

// cString is C's "%s": up to the first NUL.
func cString(b []byte) string { return Clip(b, len(b)) }

// groupOr replies with an error of a group: without one, with that of most commands.
func groupOr(err error, key, group []byte) error {
	if errors.Is(err, structures.ErrNoGroup) {
		return Errorf("NOGROUP No such key '%s' or consumer group '%s'", cString(key), cString(group))
	}
	return err
}

// xgroupError is that of XGROUP and XINFO, which look for the key first.
func (c *Call) xgroupError(err error) error {
	switch {
	case errors.Is(err, structures.ErrNoGroup):
		if exists, missing := c.Tx.Key(c.Key(2)).Exists(); missing != nil || !exists {
			return cmp.Or[error](missing, errGroupKey)
		}
		return Errorf("NOGROUP No such consumer group '%s' for key name '%s'", cString(c.Args[3]), cString(c.Args[2]))
	case errors.Is(err, db.ErrNotFound):
		return errGroupKey
	case errors.Is(err, db.ErrExists):
		return structures.ErrGroupExists
	}
	return err
}

// group is the group that arguments 2 and 3 name.
func (c *Call) group() db.StreamGroup { return c.Tx.Stream(c.Key(2)).Group(string(c.Args[3])) }

// parseGroupStart reads the options of XGROUP CREATE and SETID, from argument 5 on.
func (c *Call) parseGroupStart(create bool) (start db.StreamGroupStart, err error) {
	for i := 5; i < len(c.Args); i++ {
		switch {
		case create && c.Args.Is(i, "mkstream"):
			start.Make = true
		case c.Args.Is(i, "entriesread") && i+1 < len(c.Args):
			i++
			n, err := c.Args.parseFrom(i, -1, "ERR value for ENTRIESREAD must be positive or -1")
			if err != nil {
				return start, err
			}
			if start.Read = nil; n >= 0 {
				read := uint64(n)
				start.Read = &read
			}
		default:
			return start, ErrUnknownOrArity(c)
		}
	}
	return start, nil
}

// xgroupCreate is XGROUP CREATE. The key is looked up after the options and before the id.
func xgroupCreate(c *Call) error {
	start, err := c.parseGroupStart(true)
	if err != nil {
		return err
	}
	s := c.Tx.Stream(c.Key(2))
	if _, err := s.Info(); errors.Is(err, db.ErrNotFound) && !start.Make {
		return errGroupKey
	} else if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	if len(c.Args) > 8 {
		return ErrUnknownOrArity(c)
	}
	if start.Last = string(c.Args[4]) == "$"; !start.Last {
		if start.ID, err = streamID(c.Args[4], 0); err != nil {
			return err
		}
	}
	return c.Done(c.xgroupError(c.group().Create(start)))
}

// xgroupSetID is XGROUP SETID, which takes - and + as well.
func xgroupSetID(c *Call) error {
	start, err := c.parseGroupStart(false)
	if err != nil {
		return err
	}
	if _, err := c.group().Info(); err != nil {
		return c.xgroupError(err)
	}
	if len(c.Args) > 7 {
		return ErrUnknownOrArity(c)
	}
	if start.Last = string(c.Args[4]) == "$"; !start.Last {
		if start.ID, err = streamBound(c.Args[4], 0); err != nil {
			return err
		}
	}
	return c.Done(c.xgroupError(c.group().Set(start)))
}

func xgroupDestroy(c *Call) error {
	did, err := c.group().Destroy()
	return c.Flag(did, c.xgroupError(err))
}

func xgroupCreateConsumer(c *Call) error {
	made, err := c.group().CreateConsumer(string(c.Args[4]))
	return c.Flag(made, c.xgroupError(err))
}

func xgroupDelConsumer(c *Call) error {
	n, err := c.group().DeleteConsumer(string(c.Args[4]))
	return c.Int(n, c.xgroupError(err))
}

// xackCommand is XACK. The key and the group are looked up before the ids are read.
func xackCommand(c *Call) error {
	g := c.Tx.Stream(c.Key(1)).Group(string(c.Args[2]))
	ids, err := c.Args.streamIDs(3)
	if err != nil {
		// Without a group ids do not matter.
		switch _, noGroup := g.HasNew(); {
		case errors.Is(noGroup, structures.ErrNoGroup):
			return c.Int(0, nil)
		case noGroup != nil:
			return noGroup
		}
		return err
	}
	return c.Int(g.Ack(ids...))
}
