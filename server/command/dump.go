package command

import (
	"errors"
	"time"

	"github.com/stavedb/stave/db"
)

// The payload is an RDB value with a version and a checksum at its end, as Redis 7.4 writes it.
// RESTORE takes those of every version up to 7.4, the old encodings included (package
// internal/rdb). A value is decoded completely before the key is touched: a payload that breaks
// off, or claims more elements than it has, changes nothing.

// dumpCommands carry a value in Redis's own serialization (package internal/rdb), in both
// directions.
var dumpCommands = []*Command{
	{Name: "dump", Arity: 2, Flags: ReadOnly, Group: GroupGeneric, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return c.bulk(c.Tx.Key(c.Key(1)).Dump()) }},
	{Name: "restore", Arity: -4, Flags: Write | DenyOOM | Dangerous, Group: GroupGeneric, Keys: OneKey("OW update"), Run: restoreCommand},
}

const (
	errBusyKey    Error = "BUSYKEY Target key name already exists."
	errPayload    Error = "ERR DUMP payload version or checksum are wrong"
	errBadPayload Error = "ERR Bad data format"
)

// restoreOptions reads the words after the payload of RESTORE. Idle times and frequencies are
// checked, and not kept. IDLETIME and FREQ exclude each other, as two policies of eviction do; the
// first one read makes the other a syntax error.
func (a Args) restoreOptions() (replace, absolute bool, err error) {
	idle, frequency := false, false
	for i := 4; i < len(a); i++ {
		more := i+1 < len(a)
		switch {
		case a.Is(i, "replace"):
			replace = true
		case a.Is(i, "absttl"):
			absolute = true
		case a.Is(i, "idletime") && more && !frequency, a.Is(i, "freq") && more && !idle:
			n, err := a.ParseInt(i + 1)
			frequency, idle = a.Is(i, "freq"), a.Is(i, "idletime")
			switch {
			case err != nil:
				return false, false, err
			case frequency && (n < 0 || n > 255):
				return false, false, Error("ERR Invalid FREQ value, must be >= 0 and <= 255")
			case idle && n < 0:
				return false, false, Error("ERR Invalid IDLETIME value, must be >= 0")
			}
			i++
		default:
			return false, false, ErrSyntax
		}
	}
	return replace, absolute, nil
}

// restoreCommand is RESTORE. The order of the checks is Redis's: the words, the key, the time to
// live, the payload. A time to live of 0 is none. One that has passed (ABSTTL) leaves no key, and
// deletes the old one with REPLACE. The checksum is checked before the value: the first has the
// error of version or checksum, the second that of the format.
func restoreCommand(c *Call) error {
	replace, absolute, err := c.Args.restoreOptions()
	if err != nil {
		return err
	}
	key := c.Tx.Key(c.Key(1))
	if !replace {
		if exists, err := key.Exists(); err != nil {
			return err
		} else if exists {
			return errBusyKey
		}
	}
	ttl, err := c.Args.parseFrom(2, 0, "ERR Invalid TTL value, must be >= 0")
	if err != nil {
		return err
	}
	var options []db.WriteOption
	if ttl > 0 {
		if !absolute {
			ttl += c.now()
		}
		options = append(options, db.ExpireAt(time.UnixMilli(ttl)))
	}
	switch err = key.Restore(c.Arg(3), options...); {
	case errors.Is(err, db.ErrPayload):
		return errPayload
	case errors.Is(err, db.ErrBadPayload):
		return errBadPayload
	}
	return c.Done(err)
}
