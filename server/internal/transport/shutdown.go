package transport

import "time"

// forcedGrace is how long shutdown waits for what it has ended by force: it asks every probeEvery whether to go on.
const forcedGrace = 2 * time.Second

// Shutdown ends the connections: those that wait for a command at once, those in one when its reply
// has left, and what is left after the grace period by force. It returns when all are gone, or when a command goes on
// although it was told to end: one that asks nobody. The store bears that: to close it waits for the transactions that
// have begun, and refuses those that come later.
func (t *Connections) Shutdown() {
	t.mu.Lock()
	t.stopping.Store(true)
	for c := range t.conns {
		_ = c.SetReadDeadline(past) // wakes its read; a closed connection needs no waking
	}
	t.mu.Unlock()
	for _, l := range t.loops {
		l.shutdown(false)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.connections.Wait()
	}()
	if endsWithin(ended, t.server.Options.ShutdownGrace) {
		return
	}
	if g := t.server.Gate; g != nil && t.server.ServesOnce() {
		g.End() // those end that wait for other members. With another listener the server stays their primary
	}
	for _, l := range t.loops {
		l.shutdown(true)
	}
	t.mu.Lock()
	for c := range t.conns {
		c.session.Client().Abort() // to close one of TLS would wait to say goodbye
	}
	t.mu.Unlock()
	if !endsWithin(ended, forcedGrace) {
		t.log.Error("a command goes on after its connection was closed; the server ends without waiting for it")
	}
}

// endsWithin waits for the end of something, but not longer.
func endsWithin(ended <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
