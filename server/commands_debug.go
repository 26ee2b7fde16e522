package server

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// DEBUG is for tests of clients: a command that takes as long as one says, and a description of how
// a value is stored. It is off by default, for SLEEP keeps a connection and its goroutine busy.

var debugCommand = &command.Command{
	Name: "debug", Arity: -2, Flags: operatorFlags, Group: command.GroupServer, Since: "1.0.0",
	Complexity: "Depends on the subcommand", Summary: "Does what only tests want, if Options.Debug allows it: SLEEP seconds, OBJECT key.",
	Syntax: "subcommand [arg [arg ...]]", Run: onSession(debugRun),
}

const errNoDebug command.Error = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a " +
	"local connection, otherwise you need to set this option in the configuration file, and then restart the server."

// maxSleep bounds how long DEBUG SLEEP keeps its own connection waiting; others are not held up.
const maxSleep = time.Minute

// debugRun is DEBUG SLEEP and DEBUG OBJECT, if Options.Debug allows them.
func debugRun(s *Session, c *command.Call) error {
	switch {
	case !s.server.options.Debug:
		return errNoDebug
	case c.Queued: // the keys may be locked already
		return errInMulti
	case len(c.Args) == 3 && c.Is(1, "sleep"):
		seconds, err := c.ParseFloat(2)
		if err != nil {
			return err
		}
		timer := time.NewTimer(min(time.Duration(min(max(seconds, 0), maxSleep.Seconds())*float64(time.Second)), maxSleep))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.Host.Context.Done():
		}
		return c.OK()
	case len(c.Args) == 3 && c.Is(1, "object"):
		return debugObject(c, c.Key(2))
	}
	return command.Errorf("ERR unknown subcommand or wrong number of arguments for '%s'. Try DEBUG HELP.", command.Quoted(c.Arg(1)))
}

// debugObject describes how a key is stored. Only the type and the length of the DUMP are given:
// the other fields of Redis are about its memory.
func debugObject(c *command.Call, key string) error {
	return c.Host.Store.ViewKeys([]string{key}, func(tx *db.Tx) error {
		typ, err := tx.Key(key).Type()
		if err != nil {
			return err
		}
		if typ == db.TypeNone {
			return command.ErrNoKey
		}
		payload, err := tx.Key(key).Dump()
		if err != nil {
			return err
		}
		c.Out.Simple(fmt.Sprintf("Value type:%s serializedlength:%d", typ, len(payload)))
		return nil
	})
}
