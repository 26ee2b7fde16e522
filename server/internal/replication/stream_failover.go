package replication

import "errors"

// ErrNoStream is returned where there is no stream, and so no replica.
var ErrNoStream = errors.New("there is no stream for replicas")

// CaughtUp returns a replica that has acknowledged every commit: the one at an address, or any where host is "".
func (s *Stream) CaughtUp(host string, port int) (atHost string, atPort int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		address := f.address()
		if f.phase == online && f.acked >= s.committed && (host == "" || host == address && port == f.ask.Port) {
			return address, f.ask.Port, true
		}
	}
	return "", 0, false
}

// At is where the newest commit ends, after which the stream has nothing for the store.
func (s *Stream) At() (at Origin, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := parseReplID(s.id)
	return Origin{ReplID: id, Offset: s.committed, Database: max(s.database, 0)}, err == nil && s.begun
}
