package scripts

import (
	"log/slog"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/script"
)

// Shared is what the sessions of a server share.
type Shared struct {
	Engine    *script.Engine
	Cache     Cache
	Libraries Libraries
	Runs      Runs
	Line      Line
	Turns     Turns
	Written   atomic.Int64 // bytes that the transactions of all runs take for what they have written
}

// Init begins without a script. Scripts see the version as that of Redis; the libraries are those of the store, and the
// logger is told which cannot be loaded.
func (a *Shared) Init(version string, commands *command.Table, store *db.Store, logger *slog.Logger) {
	a.Engine = script.NewEngine(version)
	a.Cache.Init(func(word string) bool { cmd := commands.Lookup(word); return cmd != nil && cmd.IsWrite() })
	a.Libraries.Init(store, a.Engine, logger)
}
