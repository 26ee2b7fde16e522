package stats

import (
	"sync/atomic"
	"time"
)

// Client are the bytes that a client's buffers take, as CLIENT LIST shows them to others. The session notes them before
// it sends replies and afterwards; most often nothing has changed then, and nothing is written.
type Client struct {
	Query, QueryFree  atomic.Int64 // what has arrived and was not executed, and the room after it
	Arguments, Queued atomic.Int64 // what the parser and MULTI have taken apart
	Reply             atomic.Int64 // size of the buffer of replies
	Pending           atomic.Int64 // bytes in it
	Parts, PartBytes  atomic.Int64 // buffers of long replies, and their size
	Input, Output     Peak         // of the buffers
}

// Recent are the largest buffers of the last seconds.
func (c *Client) Recent(now time.Time) (input, output int64) {
	return c.Input.Recent(c.Query.Load()+c.QueryFree.Load(), now), c.Output.Recent(c.Reply.Load()+c.PartBytes.Load(), now)
}

// peakPeriod is how long CLIENT LIST and INFO remember the largest size of a buffer.
const peakPeriod = 5 * time.Second

// Peak is the largest size of something in the last seconds.
type Peak struct{ bytes, at atomic.Int64 }

// Note takes the size that is the present one.
func (p *Peak) Note(n int, now time.Time) {
	if bytes := p.bytes.Load(); int64(n) > bytes || int64(n) < bytes && now.UnixNano()-p.at.Load() > int64(peakPeriod) {
		p.bytes.Store(int64(n))
		p.at.Store(now.UnixNano())
	}
}

// Recent is the peak, or what is known to be there now if it is long ago.
func (p *Peak) Recent(present int64, now time.Time) int64 {
	if bytes := p.bytes.Load(); now.UnixNano()-p.at.Load() <= int64(peakPeriod) {
		return max(bytes, present)
	}
	return present
}

// Set stores a figure, if it has changed.
func Set(to *atomic.Int64, n int) {
	if to.Load() != int64(n) {
		to.Store(int64(n))
	}
}

// Unread is what other sessions see of a client's long reply, so that they can tell whether it takes any of it.
type Unread struct {
	held  atomic.Int64 // bytes of the budget of replies
	since atomic.Int64 // Unix nanoseconds when the client took some of it for the last time, or the reply began
}

// Held is how much of the budget the session has.
func (u *Unread) Held() int64 { return u.held.Load() }

// Note notes how much of the budget the session has, and that the client has taken so many bytes of its replies.
func (u *Unread) Note(held, taken int) {
	before := u.held.Load()
	if int64(held) != before {
		u.held.Store(int64(held))
	}
	if held > 0 && (taken > 0 || before == 0) {
		u.since.Store(time.Now().UnixNano())
	}
}

// IsSilent reports whether the client has something to take, and has taken nothing for so long.
func (u *Unread) IsSilent(now time.Time, d time.Duration) bool {
	return u.held.Load() > 0 && now.UnixNano()-u.since.Load() >= int64(d)
}
