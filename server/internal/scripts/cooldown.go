package scripts

import "time"

// Cooldown is how long the next command of a client waits after scripts that exhausted their memory or their stack, or
// were killed. A client that repeats such scripts, by mistake or not, gets a twentieth of a processor for them, so that
// other clients hardly notice. The zero value waits for nothing. One goroutine at a time may use it.
type Cooldown struct{ until time.Time }

// The wait is cooldownTimes as long as the scripts lasted, mostCooldown at most.
const (
	cooldownTimes = 19
	mostCooldown  = time.Second
)

// Note adds the wait for a script that has just ended and lasted so long; 0 adds none.
func (c *Cooldown) Note(lasted time.Duration) {
	if lasted == 0 {
		return
	}
	now := time.Now()
	wait := max(c.until.Sub(now), 0) + cooldownTimes*lasted
	c.until = now.Add(min(wait, mostCooldown))
}

// Active reports whether there may be a wait. Unlike Until it does not look at the clock.
func (c *Cooldown) Active() bool { return !c.until.IsZero() }

// Until is the end of the wait. When that has come, it is the zero time, and the Cooldown is no longer active.
func (c *Cooldown) Until() time.Time {
	if c.Active() && !c.until.After(time.Now()) {
		c.until = time.Time{}
	}
	return c.until
}
