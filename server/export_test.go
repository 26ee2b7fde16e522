package server

import "github.com/stavedb/stave/db"

// AddPanics adds commands that panic, one outside of and one within a transaction, and returns how to take them away. Servers
// are to be made after it and used before that.
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
	one := []Keys{{Use: "RW", First: 1, Step: 1}}
	// Two wait for a list: one panics when it is given an element, one when it replies with it.
	blocking := func(name string, give func(*db.Tx, string), reply func(*call)) *Command {
		return &Command{Name: name, Arity: 2, Flags: Write | Blocking, Keys: one, run: func(c *call) error {
			w := db.Wait{Keys: []string{c.key(1)}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
				_, err := tx.List(key).PopFront()
				give(tx, key)
				return err
			}}
			return c.await(w, 0, reply, func(c *call) { c.out.Null() })
		}}
	}
	before := table
	table = NewTable(before.Commands, []*Command{
		{Name: "boom", Arity: 1, run: boom},
		{Name: "boomkey", Arity: 2, Flags: Write | Fast, Keys: one, run: boom},
		blocking("boompop", func(*db.Tx, string) { panic("boom") }, func(c *call) { c.out.Null() }),
		blocking("boomreply", func(*db.Tx, string) {}, func(*call) { panic("boom") }),
	})
	return func() { table = NewTable(before.Commands) }
}

// ListensToStore says whether the server hears of what happens to keys.
func (v *Server) ListensToStore() bool {
	v.notifier.mu.Lock()
	defer v.notifier.mu.Unlock()
	return v.notifier.stop != nil
}
