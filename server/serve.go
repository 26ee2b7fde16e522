package server

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/socket"
	"github.com/stavedb/stave/server/internal/transport"
)

// Serve answers the clients that connect to ln until ctx ends or ln is closed. An error of Accept is logged, and
// accepting goes on: the listener has to fail with net.ErrClosed when it is closed. Serve closes ln, lets
// commands on their way finish and their replies leave (within Options.ShutdownGrace), closes the
// connections and waits for all its goroutines, but not for a command that goes on two seconds after it was told to end.
// It returns nil when ctx ended it, and an error when the server cannot be a member of its group. The store stays open.
func Serve(ctx context.Context, ln net.Listener, store *db.Store, o *Options) error {
	v, err := New(store, o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return v.Serve(ctx, ln)
}

// Serve is what the function Serve calls. A server may serve several listeners; when the
// last has ended, it reports to nobody what happens to keys any more.
func (v *Server) Serve(ctx context.Context, ln net.Listener) error {
	v.state.AddServing(1) // before the link begins, until it has ended; also of a listener that is refused, so that a stream ends
	defer v.state.AddServing(-1)
	if err := v.admit(ln); err != nil {
		return err
	}
	defer v.takePart()()
	unfollow := sync.OnceFunc(v.follow())
	defer unfollow()
	return errors.Join(v.serve(ctx, ln, nil, unfollow), v.refusal())
}

// admit closes a listener that would leave the data open. The address of another one is what the master is told.
func (v *Server) admit(ln net.Listener) error {
	if err := v.checkListener(ln); err != nil {
		return errors.Join(err, ln.Close())
	}
	v.mu.Lock()
	v.address = ln.Addr()
	v.mu.Unlock()
	return nil
}

// serve is Serve of a listener that was admitted. When ctx has ended, unfollow is called before the server's own replicas
// get the rest: so they have all that it has. A listener that is closed after retired leaves its connections alone; it
// returns when the last of them has ended.
func (v *Server) serve(ctx context.Context, ln net.Listener, retired <-chan struct{}, unfollow func()) error {
	ctx, shutDown := context.WithCancel(ctx)
	defer v.endedBy(shutDown)()
	if v.refused.Load() != nil { // before it could be ended
		shutDown()
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	t := transport.New(work, v.state, v.newSession, socket.IsLocal(ln.Addr()))
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Accept; its error is not news
	defer stop()
	err := t.Accept(ctx, ln)
	_ = ln.Close() // closed already, unless accepting failed
	select {
	case <-retired:
		err = nil
		t.Linger(ctx)
	default:
	}
	if ctx.Err() != nil {
		unfollow()
	}
	t.Shutdown()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// endedBy notes what ends a call of Serve, for SHUTDOWN. forget is to be called when Serve returns. end is called with
// v.mu held, so it must only cancel a context.
func (v *Server) endedBy(end func()) (forget func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.servings++
	id := v.servings
	v.serving[id] = end
	return func() {
		end()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.serving, id)
	}
}

// shutDown ends every call of Serve, and reports whether there is one. It does not wait: the caller is a command, which
// Serve waits for.
func (v *Server) shutDown() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, end := range v.serving {
		end()
	}
	return len(v.serving) > 0
}
