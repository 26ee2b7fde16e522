package scripts

import (
	"context"
	"time"
)

// Cooldown is what a client waits for whose scripts used up their memory or their stack, or were killed. They were for
// nothing: whoever repeats such scripts, by mistake or not, gets a twentieth of a processor for them, so that the others
// hardly notice. The zero value waits for nothing.
type Cooldown struct{ spent time.Duration }

// A client waits for so many times what the scripts have taken, mostCooldown at most.
const (
	cooldownTimes = 19
	mostCooldown  = time.Second
)

// cooldownStep is after how long a wait looks whether anybody waits for its end.
const cooldownStep = 20 * time.Millisecond

// Note adds what a script has taken.
func (c *Cooldown) Note(spent time.Duration) { c.spent += spent }

// Due reports whether there is something to wait for.
func (c *Cooldown) Due() bool { return c.spent > 0 }

// Wait waits for what has been noted since the last time, or until the context says that nobody waits for it.
func (c *Cooldown) Wait(ctx context.Context) {
	left := min(cooldownTimes*c.spent, mostCooldown)
	for c.spent = 0; left > 0 && ctx.Err() == nil; left -= cooldownStep {
		time.Sleep(min(left, cooldownStep))
	}
}
