package db

import "time"

// Waiting is the number of keys with waiters.
func (s *Store) Waiting() int {
	o := &s.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queues)
}

// ClockWas makes the store one that has shown what is due at a later time as expired.
func (s *Store) ClockWas(later time.Duration) {
	s.show(time.Now().Add(later).UnixMilli())
}
