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
		Name: "latency", Arity: -2, Group: command.GroupServer,
		Subcommands: []*command.Command{
			{Name: "latency|latest", Arity: 2, Flags: command.Describes | command.OfOperator, Run: on((*Spikes).Latest)},
			{Name: "latency|history", Arity: 3, Flags: command.Describes | command.OfOperator, Run: on((*Spikes).History)},
			{Name: "latency|histogram", Arity: -2, Flags: command.Describes | command.OfOperator,
				Run: func(c *command.Call) error { return histogram(host(c), c) }},
			{Name: "latency|reset", Arity: -2, Flags: command.OfOperator,
				Run: on(func(l *Spikes, c *command.Call) error { return c.Int(l.Reset(c.Args.Strings(2)...), nil) })},
			{Name: "latency|graph", Arity: 3, Flags: command.Describes | command.OfOperator, Run: on((*Spikes).Graph)},
			{Name: "latency|doctor", Arity: 2, Flags: command.Describes | command.OfOperator,
				Run: func(c *command.Call) error { h := host(c); return h.Spikes.Doctor(c, h.Threshold) }},
			command.HelpRow("latency"),
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
	for i, cmd := range wanted {
		if err := c.GoesOn(i); err != nil || c.Out.Exceeded() {
			return err
		}
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
