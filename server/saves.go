package server

import "time"

// save makes every commit so far durable. The log is all there is to save, and it is written at every commit: SAVE and BGSAVE make what it
// has durable at once, whatever the store's sync mode.
func (v *Server) save() error {
	start := time.Now()
	sequence := v.store.Log().Sequence() // before the sync: what comes meanwhile may not be part of it
	err := v.store.Sync()
	v.counters.Saves.Note(start, sequence, err)
	if err != nil {
		v.options.Logger.Error("a save failed", "error", err)
	}
	return err
}

// endedBy notes what ends a call of Serve, for SHUTDOWN. forget is to be called when Serve returns.
func (v *Server) endedBy(end func()) (forget func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.servings++
	id := v.servings
	v.serving[id] = end
	return func() {
		end()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.serving, id)
	}
}

// shutDown ends every call of Serve, and reports whether there is one.
func (v *Server) shutDown() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, end := range v.serving {
		end()
	}
	return len(v.serving) > 0
}
