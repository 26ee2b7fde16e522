package socket

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// How a listener that fails is tried again.
const (
	firstPause    = 5 * time.Millisecond // after the first error in a row; each further one doubles it
	longestPause  = 200 * time.Millisecond
	acceptLogTime = 10 * time.Second // between two lines of the log
)

// Steady returns a listener whose Accept goes on after every error, until ln is closed or ctx ends; then it fails with
// net.ErrClosed. The system reports through accept what concerns one connection or one moment: errors of the network,
// a firewall, memory or descriptors that are short. None of them says that the listener has ended, and which of them
// there are differs from system to system. A line in the log counts them, every ten seconds at most.
func Steady(ctx context.Context, ln net.Listener, log *slog.Logger) net.Listener {
	return &steady{Listener: ln, ctx: ctx, log: log}
}

// steady belongs to the goroutine that calls Accept.
type steady struct {
	net.Listener
	ctx    context.Context
	log    *slog.Logger
	failed int       // errors since the last line of the log
	logged time.Time // when that was written
}

func (s *steady) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		nc, err := s.Listener.Accept()
		switch {
		case err == nil:
			return nc, nil
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil, net.ErrClosed
		}
		s.note(err)
		select {
		case <-s.ctx.Done():
			return nil, net.ErrClosed
		case <-time.After(pause): // connections may end meanwhile, if it was for want of descriptors
		}
	}
}

// note logs an error, unless another one has been logged a moment ago.
func (s *steady) note(err error) {
	s.failed++
	if now := time.Now(); now.Sub(s.logged) >= acceptLogTime {
		s.log.Warn("accepting a connection failed; the server goes on", "address", s.Addr(), "error", err, "failures", s.failed)
		s.failed, s.logged = 0, now
	}
}
