package shared

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// counted is what maxmemory is compared with, where no keys are evicted: the index of the keys, the buffers of clients, and the table of
// what they may have cached. Values are on disk; what the collector has not freed yet is none of a client's doing.
type counted struct {
	bytes atomic.Int64
	at    atomic.Int64 // Unix nanoseconds when it was counted
}

// countEvery is how old the figure may be. A writer can exceed the limit by what is written meanwhile.
const countEvery = 20 * time.Millisecond

// CountedMemory returns the figure, counted anew if it is old. Of several callers one counts.
func (v *State) CountedMemory(now time.Time) int64 {
	at := v.counted.at.Load()
	if now.UnixNano()-at >= int64(countEvery) && v.counted.at.CompareAndSwap(at, now.UnixNano()) {
		v.counted.bytes.Store(v.Store.Log().IndexBytes() + v.Counters.ClientBytes.Load() + v.Tracked.Held())
	}
	return v.counted.bytes.Load()
}

// ErrOutOfMemory is Redis's text. Clients know it by its first word.
const ErrOutOfMemory command.Error = "OOM command not allowed when used memory > 'maxmemory'."

// ErrOutOfDisk is ErrOutOfMemory of the other bound.
const ErrOutOfDisk command.Error = "OOM command not allowed when used disk > 'maxdisk'. Delete keys, raise maxdisk, or set a maxmemory-policy that evicts."

// ErrNoReplicas is Redis's text.
const ErrNoReplicas command.Error = "NOREPLICAS Not enough good replicas to write."

// RefusesGrowth returns why a command must be refused because it may add data, and memory or disk are short; nil if it is not. An EXEC
// is, if one of its commands would be: execGrows. evict is that of Shortage.
func (v *State) RefusesGrowth(cmd *command.Command, execGrows, evict bool) error {
	if cmd == nil {
		return nil
	}
	if grows := cmd.Flags&command.DenyOOM != 0 || execGrows && cmd.Name == "exec"; !grows {
		return nil
	}
	return v.Shortage(true, evict)
}

// Evicts reports whether keys are evicted for maxmemory. Then it bounds the index alone: evicted keys make no room for
// clients, whom maxmemory-clients bounds.
func (v *State) Evicts() bool { return v.Store.Evict().Policy != db.EvictNone }

// IsOverBound reports whether keys are to be evicted before something is added, or whether that is to wait for room on the disk.
func (v *State) IsOverBound() bool { return serverside.DB.IsOverBound(v.Store) }

// Shortage returns why nothing may be added: maxmemory or maxdisk is exceeded, and nothing is left that may be evicted or merged. Counting
// locks parts of the index: who holds locks takes the last figure, and evicts nothing; nor does an event loop, for that may
// need the disk.
func (v *State) Shortage(count, evict bool) error {
	if v.memoryIsShort(count, evict) {
		return ErrOutOfMemory
	}
	if serverside.DB.DiskIsShort(v.Store) {
		return ErrOutOfDisk
	}
	return nil
}

func (v *State) memoryIsShort(count, evict bool) bool {
	most := v.Tunables.MaxMemory.Load()
	switch {
	case most == 0:
		return false
	case v.Evicts():
		return !serverside.DB.MakeRoom(v.Store, evict)
	case count:
		return v.CountedMemory(time.Now()) > most
	}
	return v.counted.bytes.Load() > most
}

// AccountMemory notes what a client holds in memory, and reports whether that is too much for all
// clients together.
func (v *State) AccountMemory(c *clients.Client, held int) (tooMuch bool) {
	total := v.Counters.ClientBytes.Add(int64(held) - c.BufferBytes.Swap(int64(held)))
	most := v.Tunables.ClientMemory.Load()
	return most > 0 && total > most
}

// AddHeld notes that a client with a connection holds so many bytes more, until AccountMemory is told what it holds in all.
// Whoever accounts for its own memory next finds the sum too high, if it is.
func (v *State) AddHeld(c *clients.Client, bytes int) {
	if c.IsDriven() {
		c.BufferBytes.Add(int64(bytes))
		v.Counters.ClientBytes.Add(int64(bytes))
	}
}

// EvictLargestClients closes the clients with the largest buffers, as many as it takes: those that stay may say nothing
// for hours, and nobody would look at the sum again. A client that is closed gives its buffers back by itself, a moment
// later; until then they are counted as given back. All clients are looked at, but only while the limit is exceeded. The
// sum is of what they are seen to hold: one that leaves meanwhile may be in Counters.ClientBytes, and no longer among them.
func (v *State) EvictLargestClients() {
	most := v.Tunables.ClientMemory.Load()
	if most <= 0 {
		return
	}
	v.evicting.Lock() // two at once would not choose the same clients
	defer v.evicting.Unlock()
	type holder struct {
		client *clients.Client
		bytes  int64
	}
	excess := -most
	var holders []holder
	for _, c := range v.Clients.All() {
		h := holder{c, c.BufferBytes.Load()}
		if c.Killed.Load() {
			continue
		}
		excess += h.bytes
		if !c.NoEvict.Load() {
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, h := range holders {
		if excess <= 0 {
			return
		}
		excess -= h.bytes
		if h.client.KillOnce(&v.Counters.Evicted) {
			v.Options.Logger.Warn("clients hold too much memory; closed the largest", "client", h.client.ID(), "bytes", h.bytes)
		}
	}
}
