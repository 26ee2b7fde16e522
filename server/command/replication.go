package command

// This server has no replicas. Tools that ask get Redis's answers for that.

var replicationCommands = []*Command{
	{Name: "failover", Arity: -1, Flags: Admin | NoScript | Stale, Group: GroupServer, Run: failoverCommand},
}

// failoverCommand is FAILOVER. The order of its refusals is Redis's.
func failoverCommand(c *Call) error {
	var abort, target, timeout, force bool
	for i := 1; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "abort") && len(c.Args) == 2:
			abort = true
		case c.Args.Is(i, "timeout") && i+1 < len(c.Args) && !timeout:
			if _, err := c.Args.parseFrom(i+1, 1, "ERR FAILOVER timeout must be greater than 0"); err != nil {
				return err
			}
			timeout = true
			i++
		case c.Args.Is(i, "to") && i+2 < len(c.Args) && !target:
			if _, err := c.Args.ParseInt(i + 2); err != nil {
				return err
			}
			target = true
			i += 2
		case c.Args.Is(i, "force") && !force:
			force = true
		default:
			return ErrSyntax
		}
	}
	if abort {
		return Error("ERR No failover in progress.")
	}
	return Error("ERR FAILOVER requires connected replicas.")
}
