package server

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/socket"
)

// CONFIG SET bind, port and tls-port, and a reload of the file, move the server to other addresses while it runs.
// Package listeners opens and closes the sockets; here is who may be served there, and the serving.

// Listen says what Bind opens, in the words of the settings. An address of IPv4 takes connections of IPv4 only, one of
// IPv6 those of IPv6: * and 0.0.0.0 are all of the former, ::* and :: all of the latter.
type Listen struct {
	Bind, Port string
	// Addr is HOST:PORT, instead of Bind and Port for what is not encrypted. Without a host it stands for all addresses of
	// IPv4, and of IPv6 if there are any; port 0 is one that the system chooses.
	Addr    string
	TLSPort string
	Secure  *TLS // nil: TLSPort is not opened
}

// Bound is what a server listens on by ServeBound.
type Bound struct {
	secure *TLS
	set    *listeners.Set
}

// place is l for package listeners.
func (l *Listen) place() listeners.Place {
	return listeners.Place{Bind: l.Bind, Port: l.Port, TLSPort: l.TLSPort, HostPort: l.Addr, Encrypts: l.Secure != nil}
}

// Check refuses addresses that would leave the data open, before they are opened.
func (l *Listen) Check(ctx context.Context, o *Options) error {
	p := l.place()
	for _, a := range p.Addresses() {
		if err := o.CheckAddress(ctx, a.HostPort, a.Encrypted); err != nil && !a.MayMiss(err) {
			return err
		}
	}
	return nil
}

// Open opens the sockets, or none. ServeBound closes them.
func (l *Listen) Open(ctx context.Context) (*Bound, error) {
	set, err := listeners.Open(ctx, l.place())
	if err != nil {
		return nil, err
	}
	return &Bound{l.Secure, set}, nil
}

// Addrs are the addresses of the sockets.
func (b *Bound) Addrs() []net.Addr { return b.set.Addrs() }

// Close closes the sockets of one that is not served.
func (b *Bound) Close() error { return b.set.Close() }

// ServeBound is Serve for all listeners of b, which CONFIG SET bind, port and tls-port may replace meanwhile. It ends
// when ctx does, or when one of them fails.
func (v *Server) ServeBound(ctx context.Context, b *Bound) error {
	ctx, stop := context.WithCancel(ctx)
	defer v.endedBy(stop)()
	v.state.AddServing(1) // also while there is no listener
	defer v.state.AddServing(-1)
	defer v.takePart()()
	var work sync.WaitGroup
	var mu sync.Mutex // guards failed
	var failed error
	follow := sync.OnceValue(func() (end func()) { return sync.OnceFunc(v.follow()) })
	b.set.Start(func() { v.bound.Store(b) }, func(l listeners.Listener) {
		work.Go(func() {
			ln := b.served(&l)
			err := v.admit(ln)
			if err == nil {
				err = v.serve(ctx, ln, l.Retired(), func() { follow()() })
			}
			if l.IsRetired() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			stop()
		})
	})
	defer follow()() // after the sockets are known: the master is told the port
	<-ctx.Done()
	v.bound.CompareAndSwap(b, nil)
	b.set.Stop() // before Wait, for a change may still start something
	work.Wait()
	return errors.Join(failed, v.refusal())
}

// served is the listener as Serve takes it.
func (b *Bound) served(l *listeners.Listener) net.Listener {
	if l.Encrypted {
		return b.secure.Listener(l.Listener)
	}
	return l.Listener
}

// changeBound is CONFIG SET of some of the settings that say where the server listens. What is refused, or cannot be
// opened, changes nothing.
func (v *Server) changeBound(values listeners.Values) error {
	b := v.bound.Load()
	if b == nil {
		return shared.ErrNotBound
	}
	return b.set.Change(values, &listeners.Rules{Judge: v.judgeAddress, Timeout: v.options.WriteTimeout, Logger: v.options.Logger})
}

// judgeAddress is checkAddress for package listeners. That an address would leave the data open is for the client to
// know; a host that is not found is for the log.
func (v *Server) judgeAddress(ctx context.Context, a socket.Address) (refusal, err error) {
	err = v.checkAddress(ctx, a.HostPort, a.Encrypted)
	if errors.Is(err, ErrNoPassword) || errors.Is(err, ErrPlainText) {
		return err, nil
	}
	if err != nil && a.MayMiss(err) {
		return nil, nil
	}
	return nil, err
}
