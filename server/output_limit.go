package server

import "time"

// limitOutput ends the connection of a client that does not take its replies, as client-output-buffer-limit has it: at
// once if more than the hard limit waits for it, and after some seconds of more than the soft limit. Subscribers have
// limits of their own: see pubsub.Limits.
func (v *State) limitOutput(c *client, bytes int) {
	t := &v.tunables
	hard, soft := t.outputHard.Load(), t.outputSoft.Load()
	f := &c.figures
	if hard == 0 && soft == 0 && f.tooMuch == nil {
		return
	}
	n := int64(bytes)
	switch {
	case c.kind() != "normal":
		f.forgive()
	case hard > 0 && n > hard:
		v.endForOutput(c)
	case soft == 0 || n <= soft:
		f.forgive()
	case f.tooMuch == nil:
		f.tooMuch = time.AfterFunc(time.Duration(t.outputSeconds.Load())*time.Second, func() { v.endForOutput(c) })
	}
}

// endForOutput ends the connection, unless it is being ended already, and counts that. It may be called from any
// goroutine: the driver's, or that of the timer. An embedded session has no kill: whoever drives it takes the replies.
func (v *State) endForOutput(c *client) {
	if c.killOnce(&v.counters.Flooded) {
		v.options.Logger.Warn("a client does not take its replies; connection closed", "client", c.id())
	}
}

// recentBuffers are the largest buffers that a client has had in the last seconds. Those of clients that have left
// meanwhile are kept in v.left.
func (v *State) recentBuffers() (input, output int64) {
	now := time.Now()
	input, output = v.left.Recent(now)
	for _, c := range v.clients.all() {
		in, out := c.figures.Recent(now)
		input, output = max(input, in), max(output, out)
	}
	return input, output
}

// keepPeaks keeps the peaks of a client that leaves.
func (v *State) keepPeaks(f *figures) {
	f.forgive()
	now := time.Now()
	input, output := f.Recent(now)
	v.left.Input.Note(int(input), now)
	v.left.Output.Note(int(output), now)
}
