package scripting

import (
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/script"
)

// mostWritten is how much memory a transaction may take for what a script writes, by estimate: a set of four million new
// members takes that. It is no memory of the script, and a script may write one key for ever.
const mostWritten = 2 << 30

// tooMuchWritten reports whether the transaction takes more memory than mostWritten, or than maxmemory if that is less;
// but what a script may take for itself it may write in any case.
func (r *execution) tooMuchWritten() bool {
	most := int64(mostWritten)
	if limit := r.session.State.Tunables.MaxMemory.Load(); limit > 0 {
		most = min(most, max(limit, script.DefaultMemory))
	}
	return int64(r.wrote()) > most
}

// wrote is for the memory limit of the run, to which what it writes does not count: that has a limit of its own.
func (r *execution) wrote() int {
	if r.tx == nil {
		return 0
	}
	return serverside.DB.Held(r.tx)
}
