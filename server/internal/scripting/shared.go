package scripting

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/script"
)

// Shared is what the sessions of a server share about scripts.
type Shared struct {
	State     *shared.State
	Engine    *script.Engine
	Cache     Cache
	Libraries Libraries
	Runs      Runs
	Line      Line
	Turns     Turns
	Written   atomic.Int64 // bytes that the transactions of all runs take for what they have written
}

// Init begins without a script. Scripts see the version of Redis; the libraries are those of the store, and the logger is
// told which cannot be loaded.
func (a *Shared) Init(state *shared.State) {
	a.State = state
	a.Engine = script.NewEngine(shared.RedisVersion)
	a.Cache.Init(func(word string) bool { cmd := state.Table.Lookup(word); return cmd != nil && cmd.IsWrite() })
	a.Libraries.Init(state.Store, a.Engine, state.Options.Logger)
}

// patience is how long a session tries before it takes a script that lasts for what holds the locks, and not one of the
// commands that come and go meanwhile.
const patience = 250 * time.Millisecond

// BeginAlongside is Store.Begin while scripts run: see begin. isScript is set for the transaction of one. interrupted is
// asked now and then whether anybody waits for it. It is never called in an event loop, for it waits.
func (a *Shared) BeginAlongside(store *db.Store, write bool, keys []string, isScript bool, interrupted func() error) (*db.Tx, error) {
	start := time.Now()
	return a.begin(store, write, keys, isScript, func() error {
		if err := a.overdue(time.Since(start)); err != nil {
			return err
		}
		return interrupted()
	})
}

// overdue is why a session that has waited for locks should not wait any longer: a script holds some for too long.
func (a *Shared) overdue(waited time.Duration) error {
	threshold := time.Duration(min(a.State.Tunables.BusyMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
	if threshold <= 0 || waited < patience {
		return nil
	}
	return a.Runs.Overdue(threshold)
}
