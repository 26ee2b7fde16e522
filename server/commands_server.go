package server

// Commands that tools ask any Redis for.

var operatorCommands = []*Command{slowlogCommand, monitorCommand, roleCommand, lolwutCommand, latencyCommand, debugCommand}

var roleCommand = &Command{
	Name: "role", Arity: 1, Flags: NoScript | Loading | Stale | Fast | dangerous | adminCategory, Group: GroupServer, Since: "2.8.12", Complexity: "O(1)",
	Summary: "Returns what the server is in a replication: a master without replicas.",
	run: func(c *call) error {
		c.out.Array(3)
		c.out.BulkString("master")
		c.out.Int(0)
		c.out.Array(0)
		return nil
	},
}

var lolwutCommand = &Command{
	Name: "lolwut", Arity: -1, Flags: ReadOnly | Fast, Group: GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Draws a barrel, and says which version this is.", Syntax: "[VERSION version]", run: onSession(lolwut),
}

const barrel = `   ________
  /\      /\
 |==\====/==|
 |  | || |  |
 |==|=||=|==|
 |  | || |  |
  \_|_||_|_/
`

func lolwut(s *Session, c *call) error {
	if len(c.args) >= 3 && c.is(1, "version") {
		if _, ok := parseInt(c.arg(2)); !ok {
			return errNotInteger
		}
	}
	c.out.Verbatim("txt", barrel+"\nStave ver. "+s.server.options.Version+"\n")
	return nil
}

// latencyNone is what there is to say about spikes of latency: nothing samples them.
const latencyNone = "Spikes of latency are not sampled here. SLOWLOG shows commands that took long, INFO commandstats how long each takes."

var latencyCommand = &Command{
	Name: "latency", Arity: -2, Group: GroupServer, Since: "2.8.13", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about spikes of latency.",
	Subcommands: []*Command{
		{
			Name: "latency|latest", Arity: 2, Flags: Admin | NoScript | Loading | Stale, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns nothing: spikes of latency are not sampled.", run: func(c *call) error { c.out.Array(0); return nil },
		},
		{
			Name: "latency|history", Arity: 3, Flags: Admin | NoScript | Loading | Stale, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns nothing: spikes of latency are not sampled.", Syntax: "event", run: func(c *call) error { c.out.Array(0); return nil },
		},
		{
			Name: "latency|reset", Arity: -2, Flags: Admin | NoScript | Loading | Stale, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns 0: there is nothing to forget.", Syntax: "[event [event ...]]", run: func(c *call) error { return c.int(0, nil) },
		},
		{
			Name: "latency|graph", Arity: 3, Flags: Admin | NoScript | Loading | Stale, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Is refused: there are no samples.", Syntax: "event",
			run: func(c *call) error {
				return errorf("ERR No samples available for event '%s'", clip(c.arg(2), maxQuoted))
			},
		},
		{
			Name: "latency|doctor", Arity: 2, Flags: Admin | NoScript | Loading | Stale, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Says where to look instead.", run: func(c *call) error { c.out.Verbatim("txt", latencyNone+"\n"); return nil },
		},
		{
			Name: "latency|help", Arity: 2, Flags: Loading | Stale, Since: "2.8.13", Complexity: "O(1)", Summary: "Lists the subcommands.",
			run: containerHelp,
		},
	},
}
