package replication

// CaughtUp returns a replica that has acknowledged all of the stream: the one at an address, or any where host is "". It can be
// the master in place of this server, which goes on as its replica without a full synchronization. One that has not said where it
// listens, a tool, cannot.
func (s *Stream) CaughtUp(host string, port int) (atHost string, atPort int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caughtUp(host, port)
}

// Hold lets the stream stay where it is, if the replica at an address has all of it, until Release: it takes no PING, no question
// and no message. Otherwise the server would be ahead of that replica when it becomes its successor. No commit comes, for
// writes are refused.
func (s *Stream) Hold(host string, port int) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, s.held = s.caughtUp(host, port)
	s.offerMessages()
	return s.held
}

// Release undoes Hold.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.offerMessages()
}

func (s *Stream) caughtUp(host string, port int) (atHost string, atPort int, ok bool) {
	for _, f := range s.feeders {
		address := f.address()
		if f.phase == online && f.ask.Port != 0 && f.acked >= s.offset && (host == "" || host == address && port == f.ask.Port) {
			return address, f.ask.Port, true
		}
	}
	return "", 0, false
}
