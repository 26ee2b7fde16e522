package server

import "github.com/stavedb/stave/db"

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
	commandIndex["boomkey"] = &Command{Name: "boomkey", Arity: 2, Flags: Write | Fast, Keys: oneKey("RW"), run: boom}
	// Two that wait for a list: one panics when it is given an element, one when it replies with it.
	blocking := func(name string, give func(*db.Tx, string), reply func(*call)) {
		commandIndex[name] = &Command{Name: name, Arity: 2, Flags: Write | Blocking, Keys: oneKey("RW"), run: func(c *call) error {
			w := db.Wait{Keys: []string{c.key(1)}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
				_, err := tx.List(key).PopFront()
				give(tx, key)
				return err
			}}
			return c.await(w, 0, reply, noArray)
		}}
	}
	blocking("boompop", func(*db.Tx, string) { panic("boom") }, noString)
	blocking("boomreply", func(*db.Tx, string) {}, func(*call) { panic("boom") })
	return func() {
		for _, name := range []string{"boom", "boomkey", "boompop", "boomreply"} {
			delete(commandIndex, name)
		}
	}
}

// ListensToStore says whether the server hears of what happens to keys.
func (v *Server) ListensToStore() bool {
	v.notifier.mu.Lock()
	defer v.notifier.mu.Unlock()
	return v.notifier.stop != nil
}
