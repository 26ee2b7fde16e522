package replication

import "time"

// Figures are what INFO says of a stream.
type Figures struct {
	ID, Former    string
	FormerEnd     int64 // -1: none
	Offset        int64
	Begun         bool
	Backlog, Kept int64 // bytes that it may keep, and that it does
	First         int64 // number of the first byte that is kept, from 1; 0 without a backlog
	Waiting       int64 // bytes that replicas have not been given and the backlog does not have
	Replicas      []State
}

// Figures returns them.
func (s *Stream) Figures(now time.Time) Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := Figures{ID: s.id, Former: s.former, FormerEnd: s.formerEnd, Offset: s.offset, Begun: s.begun, Backlog: s.limit}
	if s.begun {
		f.Kept, f.First = s.offset-s.blocks[0].start, s.blocks[0].start+1
	}
	for _, feeder := range s.feeders {
		f.Replicas = append(f.Replicas, feeder.stateAt(now))
		f.Waiting = max(f.Waiting, feeder.waits(s.offset)-f.Kept)
	}
	return f
}

// Count is how many replicas are connected.
func (m *Feeders) Count() int { return m.Stream.count() }

// count is how many replicas there are.
func (s *Stream) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeders)
}

// Acknowledged is how many replicas have acknowledged an offset.
func (s *Stream) Acknowledged(offset int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		if f.phase == online && f.acked >= offset {
			n++
		}
	}
	return n
}

// OnDisk is how many replicas have said that all up to an offset is on their disks.
func (s *Stream) OnDisk(offset int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		if f.phase == online && f.onDisk >= offset {
			n++
		}
	}
	return n
}

// good is how many replicas get the stream and have said something within lag; 0 is any time.
func (s *Stream) good(now time.Time, lag time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeders {
		if f.phase == online && (lag == 0 || now.Sub(f.heard) <= lag) {
			n++
		}
	}
	return n
}
