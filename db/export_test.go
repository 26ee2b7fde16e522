package db

import "time"

// Waiting is the number of keys with waiters.
func (s *Store) Waiting() int {
	o := &s.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queues)
}

// ClockWas makes the store's clock one that has shown a later time and was set
// back since.
func (s *Store) ClockWas(later time.Duration) {
	s.clock.latest.Store(time.Now().Add(later).UnixMilli())
}
