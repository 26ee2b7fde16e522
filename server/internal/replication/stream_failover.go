package replication

// CaughtUp returns a replica that has acknowledged all of the stream: the one at an address, or any where host is "". It can be
// the master in place of this server, which goes on as its replica without a full synchronization. One that has not said where it
// listens, a tool, cannot.
//
// With hold the stream stays where it is until Release: it takes no PING, no question and no message. Otherwise the server would be
// ahead of its successor. No commit comes, for writes are refused.
func (s *Stream) CaughtUp(host string, port int, hold bool) (atHost string, atPort int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		address := f.address()
		if f.phase == online && f.ask.Port != 0 && f.acked >= s.offset && (host == "" || host == address && port == f.ask.Port) {
			s.held = hold
			s.offerMessages()
			return address, f.ask.Port, true
		}
	}
	return "", 0, false
}

// Release lets a stream go on that CaughtUp holds.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.offerMessages()
}
