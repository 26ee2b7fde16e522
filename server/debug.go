package server

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/db"
)

var debugCommand = &Command{
	Name: "debug", Arity: -2, Flags: Admin | NoScript | Loading | Stale, Group: GroupServer, Since: "1.0.0",
	Complexity: "Depends on the subcommand", Summary: "Does what only tests want, if Options.Debug allows it: SLEEP seconds, OBJECT key.",
	Syntax: "subcommand [arg [arg ...]]", run: onSession(debugRun),
}

const errNoDebug replyError = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a " +
	"local connection, otherwise you need to set this option in the configuration file, and then restart the server."

// maxSleep bounds how long DEBUG SLEEP keeps its own connection waiting; others are not held up.
const maxSleep = time.Minute

func debugRun(s *Session, c *call) error {
	switch {
	case !s.server.options.Debug:
		return errNoDebug
	case c.queued: // the keys may be locked already
		return errInMulti
	case len(c.args) == 3 && c.is(1, "sleep"):
		seconds, err := c.parseFloat(2)
		if err != nil {
			return err
		}
		timer := time.NewTimer(min(time.Duration(min(max(seconds, 0), maxSleep.Seconds())*float64(time.Second)), maxSleep))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.host.Context.Done():
		}
		return c.ok()
	case len(c.args) == 3 && c.is(1, "object"):
		return debugObject(c, c.key(2))
	}
	return errorf("ERR unknown subcommand or wrong number of arguments for '%s'. Try DEBUG HELP.", clip(c.arg(1), maxQuoted))
}

// debugObject describes how a key is stored.
func debugObject(c *call, key string) error {
	return c.host.Store.ViewKeys([]string{key}, func(tx *db.Tx) error {
		typ, err := tx.Key(key).Type()
		if err != nil {
			return err
		}
		if typ == db.TypeNone {
			return errNoKey
		}
		payload, err := tx.Key(key).Dump()
		if err != nil {
			return err
		}
		c.out.Simple(fmt.Sprintf("Value type:%s serializedlength:%d", typ, len(payload)))
		return nil
	})
}
