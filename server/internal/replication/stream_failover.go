package replication

// CaughtUp returns a replica that has acknowledged all of the stream: the one at an address, or any where host is "". It can be
// the master in place of this server, which goes on as its replica without a full synchronization.
func (s *Stream) CaughtUp(host string, port int) (atHost string, atPort int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		address := f.address()
		if f.phase == online && f.acked >= s.offset && (host == "" || host == address && port == f.ask.Port) {
			return address, f.ask.Port, true
		}
	}
	return "", 0, false
}
