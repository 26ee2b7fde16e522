package shared

import (
	"time"

	"github.com/stavedb/stave/server/internal/clients"
)

// LimitOutput ends the connection of a client that does not take its replies, as client-output-buffer-limit has it: at
// once if more than the hard limit waits for it, and after some seconds of more than the soft limit. Subscribers have
// limits of their own: see pubsub.Limits.
func (v *State) LimitOutput(c *clients.Client, bytes int) {
	t := &v.Tunables
	hard, soft := t.outputHard.Load(), t.outputSoft.Load()
	f := &c.Figures
	if hard == 0 && soft == 0 && f.TooMuch == nil {
		return
	}
	n := int64(bytes)
	switch {
	case c.Kind() != "normal":
		f.Forgive()
	case hard > 0 && n > hard:
		v.EndForOutput(c)
	case soft == 0 || n <= soft:
		f.Forgive()
	case f.TooMuch == nil:
		f.TooMuch = time.AfterFunc(time.Duration(t.outputSeconds.Load())*time.Second, func() { v.EndForOutput(c) })
	}
}

// EndForOutput ends the connection, unless it is being ended already, and counts that. It may be called from any
// goroutine: the driver's, or that of the timer. An embedded session has no kill: whoever drives it takes the replies.
func (v *State) EndForOutput(c *clients.Client) {
	if c.KillOnce(&v.Counters.Flooded) {
		v.Options.Logger.Warn("a client does not take its replies; connection closed", "client", c.ID())
	}
}

// RecentBuffers are the largest buffers that a client has had in the last seconds. Those of clients that have left
// meanwhile are kept in v.left.
func (v *State) RecentBuffers() (input, output int64) {
	now := time.Now()
	input, output = v.left.Recent(now)
	for _, c := range v.Clients.All() {
		in, out := c.Figures.Recent(now)
		input, output = max(input, in), max(output, out)
	}
	return input, output
}

// KeepPeaks keeps the peaks of a client that leaves.
func (v *State) KeepPeaks(f *clients.Figures) {
	f.Forgive()
	now := time.Now()
	input, output := f.Recent(now)
	v.left.Input.Note(int(input), now)
	v.left.Output.Note(int(output), now)
}
