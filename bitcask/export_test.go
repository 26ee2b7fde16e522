package bitcask

// Lockless tells tests whether gets of strings take no lock in this build.
const Lockless = lockless

// LimitIndex lowers what a family may take; to be called while nobody writes.
func (s *Store) LimitIndex(bytes int) {
	for _, sp := range s.spaces.now.Load().byID {
		sp.dir.Limit(bytes)
	}
}
