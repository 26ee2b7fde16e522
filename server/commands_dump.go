package server

import (
	"errors"
	"time"

	"github.com/stavedb/stave/db"
)

var dumpCommands = []*Command{
	{
		Name: "dump", Arity: 2, Flags: ReadOnly, Group: GroupGeneric, Keys: oneKey("RO access"), Since: "2.6.0",
		Complexity: "O(n), n being the size of the value", Summary: "Returns what a key holds in a form that RESTORE reads, also Redis's.",
		Syntax: "key", run: func(c *call) error { return c.bulk(c.tx.Key(c.key(1)).Dump()) },
	},
	{
		Name: "restore", Arity: -4, Flags: Write | DenyOOM | dangerous, Group: GroupGeneric, Keys: oneKey("OW update"), Since: "2.6.0",
		Complexity: "O(n), n being the size of the value", Summary: "Makes a key hold what DUMP returned, here or by Redis.",
		Syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]", run: restoreCommand,
	},
}

const (
	errBusyKey    replyError = "BUSYKEY Target key name already exists."
	errPayload    replyError = "ERR DUMP payload version or checksum are wrong"
	errBadPayload replyError = "ERR Bad data format"
)

// restoreOptions reads the words behind the payload of RESTORE. Idle times and frequencies are checked, and not kept.
func (c *call) restoreOptions() (replace, absolute bool, err error) {
	idle, frequency := false, false
	for i := 4; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "replace"):
			replace = true
		case c.is(i, "absttl"):
			absolute = true
		case c.is(i, "idletime") && more && !frequency, c.is(i, "freq") && more && !idle:
			n, err := c.parseInt(i + 1)
			if err != nil {
				return false, false, err
			}
			if c.is(i, "freq") {
				if n < 0 || n > 255 {
					return false, false, replyError("ERR Invalid FREQ value, must be >= 0 and <= 255")
				}
				frequency = true
			} else {
				if n < 0 {
					return false, false, replyError("ERR Invalid IDLETIME value, must be >= 0")
				}
				idle = true
			}
			i++
		default:
			return false, false, errSyntax
		}
	}
	return replace, absolute, nil
}

// restoreCommand is RESTORE. The order of the checks is Redis's: the words, the key, the time to live, the payload.
func restoreCommand(c *call) error {
	replace, absolute, err := c.restoreOptions()
	if err != nil {
		return err
	}
	key := c.tx.Key(c.key(1))
	if !replace {
		if exists, err := key.Exists(); err != nil {
			return err
		} else if exists {
			return errBusyKey
		}
	}
	ttl, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if ttl < 0 {
		return replyError("ERR Invalid TTL value, must be >= 0")
	}
	o := db.RestoreOptions{Replace: replace}
	if ttl > 0 {
		if !absolute {
			ttl += c.now()
		}
		o.Deadline = time.UnixMilli(ttl)
	}
	switch err = key.Restore(c.arg(3), o); {
	case errors.Is(err, db.ErrPayload):
		return errPayload
	case errors.Is(err, db.ErrBadPayload):
		return errBadPayload
	case err != nil:
		return err
	}
	return c.ok()
}
