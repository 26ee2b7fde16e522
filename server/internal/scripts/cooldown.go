package scripts

import "time"

// Cooldown is what a client waits for whose scripts used up their memory or their stack, or were killed, before anything
// else of it is executed. They were for nothing: whoever repeats such scripts, by mistake or not, gets a twentieth of a
// processor for them, so that the others hardly notice. The zero value waits for nothing.
type Cooldown struct{ until time.Time }

// A client waits for so many times what the scripts have taken, mostCooldown at most.
const (
	cooldownTimes = 19
	mostCooldown  = time.Second
)

// Note notes, at the end of a script, what it has taken for nothing; 0 if it has not.
func (c *Cooldown) Note(spent time.Duration) {
	if spent == 0 {
		return
	}
	now := time.Now()
	wait := max(c.until.Sub(now), 0) + cooldownTimes*spent
	c.until = now.Add(min(wait, mostCooldown))
}

// Active reports whether there may be something to wait for.
func (c *Cooldown) Active() bool { return !c.until.IsZero() }

// Until is the end of the wait; zero if there is none, or it is over.
func (c *Cooldown) Until() time.Time {
	if c.Active() && !c.until.After(time.Now()) {
		c.until = time.Time{}
	}
	return c.until
}
