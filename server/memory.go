package server

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
)

// counted is what maxmemory is compared with: the index of the keys, the buffers of clients, and the table of
// what they may have cached. Values are on disk; what the collector has not freed yet is none of a client's doing.
type counted struct {
	bytes atomic.Int64
	at    atomic.Int64 // Unix nanoseconds when it was counted
}

// countEvery is how old the figure may be. A writer can exceed the limit by what is written meanwhile.
const countEvery = 20 * time.Millisecond

// countedMemory returns the figure, counted anew if it is old. Of several callers one counts.
func (v *Server) countedMemory(now time.Time) int64 {
	at := v.counted.at.Load()
	if now.UnixNano()-at >= int64(countEvery) && v.counted.at.CompareAndSwap(at, now.UnixNano()) {
		v.counted.bytes.Store(v.store.Log().IndexBytes() + v.counters.ClientBytes.Load() + v.tracked.Held())
	}
	return v.counted.bytes.Load()
}

// errOutOfMemory is Redis's text. Clients know it by its first word.
const errOutOfMemory command.Error = "OOM command not allowed when used memory > 'maxmemory'."

// refusesGrowth reports whether a command must be refused because it may add data, and memory is short. An EXEC
// is, if one of its commands would be.
func (v *Server) refusesGrowth(cmd *command.Command, q *queue) bool {
	if v.tunables.maxMemory.Load() == 0 || cmd == nil {
		return false
	}
	grows := cmd.Flags&command.DenyOOM != 0 || q != nil && cmd.Name == "exec" && q.grows
	return grows && v.memoryIsShort(true)
}

// memoryIsShort reports whether maxmemory is exceeded. Counting locks parts of the index: who holds locks takes the
// last figure.
func (v *Server) memoryIsShort(count bool) bool {
	most := v.tunables.maxMemory.Load()
	if most == 0 {
		return false
	}
	if count {
		return v.countedMemory(time.Now()) > most
	}
	return v.counted.bytes.Load() > most
}

// Held returns the memory of what the session holds in bytes: buffers, messages, what MULTI has queued, what a command
// that waits has kept, subscriptions, watched keys and names. The sum over all sessions is what Options.ClientMemory
// bounds. Whatever text of a client a field of a session keeps after its command counts here or has a bound:
// TestWhatOutlivesACommand has the list.
func (s *Session) Held() int {
	n := s.parser.Held() + s.out.Held() + s.subscriber.Held() + s.client.tracking.Mode().Size() + s.client.texts()
	if s.queue != nil {
		n += s.queue.held
	}
	if s.watch != nil {
		n += s.watchedBytes
	}
	if s.blocked != nil {
		n += s.blocked.held
	}
	return n
}

// What the session keeps takes in memory besides the bytes of names and arguments, about: slices, maps, and what
// growing them leaves unused.
const (
	heldByRequest  = 48 // a queued command
	heldByArgument = 24 // an argument of it
	heldByKey      = 56 // a key that it names
	heldByWatch    = 330
	heldByWait     = 220 // a key that a command waits for
)

// release frees what commands that have ended have left of large arguments, unless the session goes back to one of them.
func (s *Session) release() {
	if len(s.batch.requests) == 0 {
		s.parser.Release()
	}
	clear(s.keys[:cap(s.keys)])
	s.keys = kept(s.keys)
}

// kept is an empty slice of the same memory, or of none if that is much. What it held must have been cleared.
func kept[T any](list []T) []T {
	if cap(list) > keepItems {
		return nil
	}
	return list[:0]
}

// keepItems is how many items a session's slices have room for between commands.
const keepItems = 1024

// accountMemory notes what a client holds in memory, and reports whether that is too much for all
// clients together.
func (v *Server) accountMemory(s *Session, held int) (tooMuch bool) {
	s.client.unread.Note(s.out.Taken(), 0)
	s.noteFigures()
	s.limitOutput()
	total := v.counters.ClientBytes.Add(int64(held) - s.client.bufferBytes.Swap(int64(held)))
	most := v.tunables.clientMemory.Load()
	return most > 0 && total > most
}

// evictLargestClients closes the clients with the largest buffers, as many as it takes: those that stay may say nothing
// for hours, and nobody would look at the sum again. A client that is closed gives its buffers back by itself, a moment
// later; until then they are counted as given back. All clients are looked at, but only while the limit is exceeded.
func (v *Server) evictLargestClients() {
	most := v.tunables.clientMemory.Load()
	if most <= 0 {
		return
	}
	type holder struct {
		client *client
		id     int64
		bytes  int64
	}
	excess := v.counters.ClientBytes.Load() - most
	var holders []holder
	for _, s := range v.sessions() {
		h := holder{&s.client, s.id, s.client.bufferBytes.Load()}
		switch {
		case s.client.killed.Load():
			excess -= h.bytes
		case !s.client.noEvict.Load():
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, h := range holders {
		if excess <= 0 {
			return
		}
		excess -= h.bytes
		if h.client.killOnce(&v.counters.Evicted) {
			v.options.Logger.Warn("clients hold too much memory; closed the largest", "client", h.id, "bytes", h.bytes)
		}
	}
}
