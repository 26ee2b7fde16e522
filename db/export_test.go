package db

import "time"

// ClockWas makes the store's clock one that has shown a later time and was set
// back since.
func (s *Store) ClockWas(later time.Duration) {
	s.clock.latest.Store(time.Now().Add(later).UnixMilli())
}
