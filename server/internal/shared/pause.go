package shared

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/internal/clients"
)

// pause is the pause that CLIENT PAUSE or FAILOVER has set. That of a FAILOVER concerns writes only, and ends with the
// FAILOVER. A command that a pause concerns is postponed when it comes: the session goes back to it in its parser and waits,
// as one in BLPOP does, until the pause is over or CLIENT UNPAUSE ends it. Commands that run already are not stopped, and neither are expiry and merges.
type pause struct {
	Active atomic.Bool // cheap to ask, for every command does; the end may have passed

	mu    sync.Mutex // guards the rest
	until time.Time
	all   bool // every command, and not only those that may write
	held  bool // a FAILOVER runs
}

// heldFor is when a command that waits for a FAILOVER looks again whether it has to; it is woken before that.
const heldFor = time.Minute

// Begin begins a pause. One that is not over becomes longer and stricter, never the reverse, as in Redis.
func (p *pause) Begin(until time.Time, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		all = all || p.all
		if until.Before(p.until) {
			until = p.until
		}
	}
	p.until, p.all = until, all
	p.Active.Store(true)
}

// end ends the pause of CLIENT PAUSE. Who waits for it is to be woken after that: see EndPause.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
	p.Active.Store(p.held)
}

// hold begins or ends the pause of a FAILOVER.
func (p *pause) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	p.Active.Store(on || time.Now().Before(p.until))
}

// State says until when commands wait, and which; the zero time if there is no pause. Nothing happens at the end of a
// pause but this: the first who asks after it switches active off, and each session that waits has a deadline of its own.
func (p *pause) State() (until time.Time, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Active.Load() {
		return time.Time{}, false
	}
	now := time.Now()
	switch isSet := now.Before(p.until); {
	case isSet && p.held && !p.all:
		return now.Add(heldFor), false
	case isSet:
		return p.until, p.all
	case p.held:
		return now.Add(heldFor), false
	}
	p.Active.Store(false)
	return time.Time{}, false
}

// EndPause ends the pause and wakes who waits for that. No wake-up is lost: the pause ends before the sessions are looked
// at, and a session looks at the pause once more when it can be seen to wait.
func (v *State) EndPause() {
	v.Pause.end()
	v.wakePostponed()
}

// wakePostponed lets those go on who wait for the end of a pause; who still has to waits again.
func (v *State) wakePostponed() {
	for _, c := range v.Clients.All() {
		if c.IsPostponed() {
			c.EndWait(clients.TimedOut)
		}
	}
}
