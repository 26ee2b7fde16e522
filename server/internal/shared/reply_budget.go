package shared

import (
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/clients"
)

// A reply is built whole before it is sent, for it shows one moment, and nobody must hold locks while a client reads.
// So long replies need memory, and all clients together must not take more of it than there is: beyond its allowance a
// session takes memory from one budget before it has it, and gives it back part by part as the client reads.
//
// A command that finds no room is given up: what it has done is rolled back, its memory is free again, and the session
// goes back to the command in its parser and waits, as for the end of a CLIENT PAUSE. Of the sessions that wait the one that
// needs the least is served first, so that a few enormous replies do not keep out all others. The room comes from
// clients that read. While one waits, the client that holds the most and has taken nothing for ten seconds is
// disconnected: else one silent client could deny long replies to all.

// replyBudget is the memory for long replies, and the sessions that wait for some.
type replyBudget struct {
	resp.Budget
	SilentAfter time.Duration // how long a client may take nothing of a long reply when others wait for its memory

	mu      sync.Mutex // guards the rest, and the waits
	waiting []*RoomWait
}

// RoomWait is a session's place among those that wait for room.
type RoomWait struct {
	client  *clients.Client
	Since   time.Time
	need    int64 // bytes of the budget that its reply takes, about
	granted bool  // there is room for another attempt
}

const (
	// replyShare is which part of the memory for clients long replies may take: one in so many.
	replyShare = 2
)

func (b *replyBudget) Init(clientMemory int64) {
	b.Allowance = defaultPauseOutput + resp.PartSize
	b.Given = b.WakeNext
	b.SilentAfter = 10 * time.Second
	b.setClientMemory(clientMemory)
}

// setClientMemory follows maxmemory-clients, of which long replies have a share. There may be room now for a session that
// waits.
func (b *replyBudget) setClientMemory(n int64) {
	b.SetLimit(n / replyShare)
	b.WakeNext()
}

// most is the longest reply that there can be room for, MaxReply at most.
func (v *State) MostReply() int {
	most := v.Options.MaxReply
	if limit := v.Replies.Limit(); limit > 0 {
		most = min(most, int(limit)+v.Replies.Allowance)
	}
	return most
}

// Pass serves the next in line after one that is done, or that others do not wait for because it lasts.
func (b *replyBudget) Pass(done *RoomWait) {
	b.mu.Lock()
	b.waiting = slices.DeleteFunc(b.waiting, func(r *RoomWait) bool { return r == done })
	b.mu.Unlock()
	b.WakeNext()
}

// WakeNext ends the wait of the session that needs the least, if there is room for it, unless another one has been
// woken and is not done. It may be called from any goroutine that holds no lock of the transport.
func (b *replyBudget) WakeNext() {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next *RoomWait
	for _, r := range b.waiting {
		switch {
		case r.granted:
			return
		case next == nil || r.need < next.need:
			next = r
		}
	}
	if next != nil && b.HasRoom(next.need) && next.client.EndWait(clients.TimedOut) {
		next.granted = true
	}
}

// Await puts a client into the line of those that wait for room, or its place back into it: its reply needs so many bytes,
// and has found no room. It returns the place.
func (b *replyBudget) Await(place *RoomWait, c *clients.Client, need int64) *RoomWait {
	b.mu.Lock()
	defer b.mu.Unlock()
	if place == nil {
		place = &RoomWait{client: c, Since: time.Now()}
	}
	if !slices.Contains(b.waiting, place) {
		b.waiting = append(b.waiting, place)
	}
	place.granted, place.need = false, need
	if limit := b.Limit(); limit > 0 {
		place.need = min(need+need/8, limit) // parts are not quite full
	}
	return place
}

// IsGranted reports whether there is room for another attempt.
func (b *replyBudget) IsGranted(place *RoomWait) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return place.granted
}

// InLine is how many clients wait for room.
func (b *replyBudget) InLine() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// CloseSilent disconnects the client that holds the most memory for a reply of which it has taken nothing for long. It
// does nothing while one holds some that is being disconnected.
func (v *State) CloseSilent() {
	now := time.Now()
	var silent *clients.Client
	for _, c := range v.Clients.All() {
		switch {
		case !c.Unread.IsSilent(now, v.Replies.SilentAfter) || c.NoEvict.Load():
		case c.Killed.Load():
			return
		case silent == nil || c.Unread.Held() > silent.Unread.Held():
			silent = c
		}
	}
	if silent == nil {
		return
	}
	if held := silent.Unread.Held(); silent.KillOnce(&v.Counters.Evicted) {
		v.Options.Logger.Warn("a client takes nothing of its reply, and others wait for the memory; connection closed", "client", silent.ID(), "bytes", held)
	}
}
