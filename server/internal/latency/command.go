package latency

import "github.com/stavedb/stave/server/command"

// Host is what LATENCY works with.
type Host struct {
	Spikes    *Spikes
	Threshold int64 // milliseconds that make an execution a spike; 0: none is
	Commands  *command.Table
	Histogram func(*command.Command) *Histogram // nil of one that was never called
}

// Command is LATENCY. host is asked at each call.
func Command(host func(*command.Call) Host) *command.Command {
	on := func(run func(*Spikes, *command.Call) error) func(*command.Call) error {
		return func(c *command.Call) error { return run(host(c).Spikes, c) }
	}
	return &command.Command{
		Name: "latency", Arity: -2, Group: command.GroupServer, Since: "2.8.13", Complexity: "Depends on the subcommand",
		Summary: "A container for commands about what took long.",
		Subcommands: []*command.Command{
			{Name: "latency|latest", Arity: 2, Flags: command.OfOperator, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Returns the last spike of each event, and the worst.", Run: on((*Spikes).Latest)},
			{Name: "latency|history", Arity: 3, Flags: command.OfOperator, Since: "2.8.13", Complexity: "O(1): up to 160 spikes are kept",
				Summary: "Returns the spikes of an event.", Syntax: "event", Run: on((*Spikes).History)},
			{Name: "latency|histogram", Arity: -2, Flags: command.OfOperator, Since: "7.0.0", Complexity: "O(n), n being the number of commands",
				Summary: "Returns how many executions of commands took how long, as sums up to powers of two of microseconds.",
				Syntax:  "[command [command ...]]", Run: func(c *command.Call) error { return histogram(host(c), c) }},
			{Name: "latency|reset", Arity: -2, Flags: command.OfOperator, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Forgets the spikes of some events, or of all, and returns of how many.", Syntax: "[event [event ...]]",
				Run: on(func(l *Spikes, c *command.Call) error { return c.Int(l.Reset(c.Strings(2)...), nil) })},
			{Name: "latency|graph", Arity: 3, Flags: command.OfOperator, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Draws the spikes of an event.", Syntax: "event", Run: on((*Spikes).Graph)},
			{Name: "latency|doctor", Arity: 2, Flags: command.OfOperator, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Says in words what the spikes are, and where to look next.",
				Run:     func(c *command.Call) error { h := host(c); return h.Spikes.Doctor(c, h.Threshold) }},
			command.HelpRow("latency", "2.8.13"),
		},
	}
}

// histogram is LATENCY HISTOGRAM. A container stands for its subcommands; what is no command, or
// was never called, is left out.
func histogram(host Host, c *command.Call) error {
	var wanted []*command.Command
	add := func(cmd *command.Command) {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			if host.Histogram(one) != nil {
				wanted = append(wanted, one)
			}
		}
	}
	if len(c.Args) == 2 {
		for _, cmd := range host.Commands.Commands {
			add(cmd)
		}
	}
	for _, name := range c.Args[2:] {
		if cmd := host.Commands.Lookup(string(name)); cmd != nil {
			add(cmd)
		}
	}
	c.Out.Map(len(wanted))
	for _, cmd := range wanted {
		h := host.Histogram(cmd)
		if h == nil { // CONFIG RESETSTAT came in between
			h = new(Histogram)
		}
		micros, sums := h.Octaves()
		c.Out.BulkString(cmd.Name)
		c.Out.Map(2)
		c.Out.BulkString("calls")
		var calls int64
		if n := len(sums); n > 0 {
			calls = sums[n-1]
		}
		c.Out.Int(calls)
		c.Out.BulkString("histogram_usec")
		c.Out.Map(len(micros))
		for i := range micros {
			c.Out.Int(micros[i])
			c.Out.Int(sums[i])
		}
	}
	return nil
}
