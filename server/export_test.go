package server

// AddPanics adds commands that panic, one outside of and one within a transaction, and returns how to take them away.
func AddPanics() (remove func()) {
	boom := func(c *call) error {
		if c.tx != nil {
			if _, err := c.tx.String(c.key(1)).Append([]byte("half")); err != nil {
				return err
			}
		}
		c.out.Simple("half a reply")
		panic("boom")
	}
	commandIndex["boom"] = &Command{Name: "boom", Arity: 1, run: boom}
	commandIndex["boomkey"] = &Command{Name: "boomkey", Arity: 2, Flags: Write | Fast, Keys: one("RW"), run: boom}
	return func() {
		delete(commandIndex, "boom")
		delete(commandIndex, "boomkey")
	}
}

// ListensToStore says whether the server hears of what happens to keys.
func (v *Server) ListensToStore() bool {
	v.notifier.mu.Lock()
	defer v.notifier.mu.Unlock()
	return v.notifier.stop != nil
}
