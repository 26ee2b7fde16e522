package dispatch

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
)

// Multi is what is known of the requests that MULTI has gathered.
type Multi struct {
	Keys       []string // all that the requests name, for the locks of EXEC
	Len        int      // requests
	Bytes      int      // of them, as MaxQueue counts
	Writes     bool     // one may write
	Replicates bool     // one is of those that a pause of writes concerns
	Grows      bool     // one may add data
	WholeStore bool     // one looks at the keyspace as a whole
	IsLong     bool     // one may take long: not for an event loop
	Aborted    bool     // one was refused: EXEC will be
}

// Add adds a request, which counts as so many bytes, and returns its keys. The arguments must stay as they are.
func (m *Multi) Add(r *Request, s *Situation, bytes int) (keys []string) {
	cmd := r.Command
	m.Len++
	m.Bytes += bytes
	others := len(m.Keys)
	m.Keys = cmd.AppendKeys(m.Keys, r.Args)
	none := len(cmd.Keys) > 0 && len(m.Keys) == others // such as LMPOP 0: it will be refused, but within a transaction
	runsScript := cmd.Flags&command.RunsScript != 0    // which may touch any key
	m.Writes = m.Writes || cmd.IsWrite() || runsScript && cmd.Flags&command.ReadOnly == 0
	m.Replicates = m.Replicates || Replicates(r, s)
	m.Grows = m.Grows || cmd.Flags&command.DenyOOM != 0
	m.IsLong = m.IsLong || !IsShared(r)
	m.WholeStore = m.WholeStore || none || runsScript || cmd.IsWrite() && len(cmd.Keys) == 0 || cmd.Flags&command.WholeKeyspace != 0 || cmd.ReadsUnknownKeys(r.Args)
	return m.Keys[others:]
}

// isShort reports whether EXEC takes little time. What MONITOR shows must not be repeated, and EXEC is if it has to read from the disk.
func (m *Multi) isShort(s *Situation) bool {
	return !m.IsLong && !m.WholeStore && (!m.Writes || s.Store.Waiters(m.Keys...) <= maxWoken) &&
		m.Len <= MaxBatch && m.Bytes <= 2*MaxBatchBytes && s.Watched <= MaxBatch && s.State.NotifiesQuickly(m.Bytes, m.Len) && !s.State.Hub.Monitored()
}

// hasOneSlot reports whether all keys of an EXEC have one slot; so have none. It hashes every key, so EXEC of a long queue
// takes that time once more in cluster mode.
func (m *Multi) hasOneSlot() bool {
	for _, key := range m.Keys {
		if cluster.SlotOf(key) != cluster.SlotOf(m.Keys[0]) {
			return false
		}
	}
	return true
}
