package db

// Waiting is the number of keys with waiters.
func (s *Store) Waiting() int {
	o := &s.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queues)
}
