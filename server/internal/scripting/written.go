package scripting

import (
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/script"
)

const (
	// mostWritten is how much memory the transactions of all scripts that run may take for what these write, by estimate:
	// a set of four million new members takes that. It is no memory of the scripts, and a script may write one key for ever.
	mostWritten = 2 << 30
	// writtenInAnyCase is what one script may write however much others have written.
	writtenInAnyCase = 1 << 20
)

// tooMuchWritten reports whether the transactions of all scripts that run take more memory than mostWritten, or than
// maxmemory if that is less; but what a script may take for itself they may write in any case.
func (r *execution) tooMuchWritten() bool {
	most := int64(mostWritten)
	if limit := r.session.State.Tunables.MaxMemory.Load(); limit > 0 {
		most = min(most, max(limit, script.DefaultMemory))
	}
	return r.countWritten(int64(r.wrote())) > most && r.written > writtenInAnyCase
}

// countWritten counts n bytes as what the run has written, and returns what all have that run.
func (r *execution) countWritten(n int64) (all int64) {
	more := n - r.written
	r.written = n
	return r.session.Written.Add(more)
}

// wrote is for the memory limit of the run, to which what it writes does not count: that has a limit of its own.
func (r *execution) wrote() int {
	if r.tx == nil {
		return 0
	}
	return serverside.DB.Held(r.tx)
}
