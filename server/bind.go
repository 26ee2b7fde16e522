package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/socket"
)

// CONFIG SET bind, port and tls-port, and a reload of the file, move the server to other addresses while it runs: the
// new sockets are open before the old ones are closed, and the connections that those have accepted go on. A failure
// leaves everything as it was.

// Listen says what Bind opens, in the words of the settings.
type Listen struct {
	Bind, Port string
	Addr       string // HOST:PORT, instead of Bind and Port for what is not encrypted; port 0 is one that the system chooses
	TLSPort    string
	Secure     *TLS // nil: TLSPort is not opened
}

// Bound is what a server listens on by ServeBound.
type Bound struct {
	changing sync.Mutex // held while it changes
	secure   *TLS

	mu                  sync.Mutex // guards those below
	bind, port, tlsPort string
	open                []boundListener
	start               func(boundListener) // serves one; nil outside ServeBound
}

// boundListener is a listener and the address that it was opened for.
type boundListener struct {
	net.Listener
	socket.Address
	retired chan struct{} // closed before the listener is, if its connections are to go on
}

// The errors of Redis.
const (
	errBind          command.Error = "Failed to bind to specified addresses."
	errPort          command.Error = "Unable to listen on this port. Check server logs."
	errNotBound      command.Error = "can't set immutable config"
	errNoCertificate command.Error = "Unable to update TLS configuration. Check server logs."
)

// listen opens a socket. It is nil, without an error, if this machine has not the address, and it may be missing.
func listen(ctx context.Context, a socket.Address) (*boundListener, error) {
	ln, err := a.Listen(ctx)
	if ln == nil || err != nil {
		return nil, err
	}
	return &boundListener{ln, a, make(chan struct{})}, nil
}

// addresses are all that it is to listen on.
func (l *Listen) addresses() []socket.Address {
	list := socket.Addresses(l.Bind, l.Port, false)
	if l.Addr != "" {
		list = []socket.Address{{HostPort: l.Addr}}
	}
	if l.Secure != nil {
		list = append(list, socket.Addresses(l.Bind, l.TLSPort, true)...)
	}
	return list
}

// Check refuses addresses that would leave the data open, before they are opened.
func (l *Listen) Check(ctx context.Context, o *Options) error {
	for _, a := range l.addresses() {
		if err := o.CheckAddress(ctx, a.HostPort, a.Encrypted); err != nil {
			return err
		}
	}
	return nil
}

// Open opens the sockets, or none. ServeBound closes them.
func (l *Listen) Open(ctx context.Context) (*Bound, error) {
	b := &Bound{secure: l.Secure, bind: l.Bind, port: l.Port, tlsPort: cmp.Or(l.TLSPort, "0")}
	for _, a := range l.addresses() {
		ln, err := listen(ctx, a)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		if ln == nil {
			continue
		}
		if l.Addr != "" && !a.Encrypted {
			_, b.port, _ = net.SplitHostPort(ln.Addr().String()) // the one that the system chose
		}
		b.open = append(b.open, *ln)
	}
	return b, nil
}

// Addrs are the addresses of the sockets.
func (b *Bound) Addrs() (list []net.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ln := range b.open {
		list = append(list, ln.Addr())
	}
	return list
}

// Close closes the sockets of one that is not served.
func (b *Bound) Close() (err error) {
	for _, ln := range b.open {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// ServeBound is Serve for all listeners of b, which CONFIG SET bind, port and tls-port may replace meanwhile. It ends
// when ctx does, or when one of them fails.
func (v *Server) ServeBound(ctx context.Context, b *Bound) error {
	ctx, stop := context.WithCancel(ctx)
	defer v.endedBy(stop)()
	v.addServing(1) // also while there is no listener
	defer v.addServing(-1)
	var work sync.WaitGroup
	var failed error // guarded by b.mu
	b.mu.Lock()
	b.start = func(l boundListener) {
		work.Go(func() {
			err := v.serve(ctx, l.served(b.secure), l.retired)
			if l.isRetired() {
				return
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			failed = errors.Join(failed, err)
			stop()
		})
	}
	v.bound.Store(b) // before the first client
	for _, l := range b.open {
		b.start(l)
	}
	b.mu.Unlock()
	<-ctx.Done()
	v.bound.CompareAndSwap(b, nil)
	b.changing.Lock() // the last change is over
	b.mu.Lock()
	b.start = nil
	b.mu.Unlock()
	b.changing.Unlock()
	work.Wait()
	return failed
}

// served is the listener as Serve takes it.
func (l *boundListener) served(secure *TLS) net.Listener {
	if l.Encrypted {
		return secure.Listener(l.Listener)
	}
	return l.Listener
}

func (l *boundListener) isRetired() bool {
	select {
	case <-l.retired:
		return true
	default:
		return false
	}
}

// retire closes the socket; connections go on.
func (l *boundListener) retire() {
	close(l.retired)
	_ = l.Close() // there is nothing that it could lose
}

// boundSettings are new values of the settings that say where the server listens, by name. One that is missing stays as
// it is.
type boundSettings map[string]string

// changeBound is CONFIG SET of some of them. What is refused, or cannot be opened, changes nothing.
func (v *Server) changeBound(values boundSettings) error {
	b := v.bound.Load()
	if b == nil {
		return errNotBound
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	to := Listen{Bind: b.bind, Port: b.port, TLSPort: b.tlsPort, Secure: b.secure}
	before, serving := slices.Clone(b.open), b.start != nil
	b.mu.Unlock()
	failure := to.set(values)
	switch {
	case failure == nil:
		return nil
	case to.TLSPort != "0" && to.Secure == nil:
		return errNoCertificate
	case !serving:
		return failure
	}
	// An address is judged by the users of now. Looking up a host takes what it takes, but not for ever.
	ctx, cancel := context.WithTimeout(context.Background(), v.options.WriteTimeout)
	defer cancel()
	for _, a := range to.addresses() {
		err := v.checkAddress(ctx, a.HostPort, a.Encrypted)
		switch {
		case errors.Is(err, ErrNoPassword), errors.Is(err, ErrPlainText):
			return err
		case err != nil:
			v.options.Logger.Error("bind and ports stay as they are", "error", err)
			return failure
		}
	}
	if err := v.move(ctx, b, before, &to); err != nil {
		v.options.Logger.Error("bind and ports stay as they are", "error", err)
		return failure
	}
	return nil
}

// set takes new values, and returns the error if they cannot be; nil if nothing changes.
func (l *Listen) set(values boundSettings) (failure error) {
	for _, s := range []struct {
		name    string
		at      *string
		failure error
	}{{"tls-port", &l.TLSPort, errPort}, {"port", &l.Port, errPort}, {"bind", &l.Bind, errBind}} {
		if value, is := values[s.name]; is && value != *s.at {
			*s.at, failure = value, s.failure
		}
	}
	return failure
}

// move opens what is not open yet and then closes what is not wanted any more. An address that is taken by an old
// socket, as 127.0.0.1 is by one of all addresses, is opened after that is closed, which is opened again if anything
// fails.
func (v *Server) move(ctx context.Context, b *Bound, before []boundListener, to *Listen) error {
	wanted := to.addresses()
	var after, opened, closed []boundListener
	old := slices.DeleteFunc(slices.Clone(before), func(l boundListener) bool { return slices.ContainsFunc(wanted, l.Same) })
	for _, a := range wanted {
		if i := slices.IndexFunc(before, func(l boundListener) bool { return l.Same(a) }); i >= 0 {
			after = append(after, before[i])
			continue
		}
		ln, err := listen(ctx, a)
		if errors.Is(err, syscall.EADDRINUSE) {
			old = slices.DeleteFunc(old, func(l boundListener) bool {
				if l.Port() != a.Port() {
					return false
				}
				l.retire()
				closed = append(closed, l)
				return true
			})
			ln, err = listen(ctx, a)
		}
		if err != nil {
			for _, l := range opened {
				_ = l.Close() // nobody has used it
			}
			v.reopen(b, before, closed)
			return err
		}
		if ln != nil {
			after, opened = append(after, *ln), append(opened, *ln)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range opened {
		b.start(l)
	}
	for _, l := range old {
		l.retire()
	}
	b.bind, b.port, b.tlsPort, b.open = to.Bind, to.Port, to.TLSPort, after
	return nil
}

// reopen opens again what was closed for others that could not be opened.
func (v *Server) reopen(b *Bound, before, closed []boundListener) {
	now := slices.DeleteFunc(slices.Clone(before), func(l boundListener) bool { return l.isRetired() })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range closed {
		ln, err := listen(context.Background(), l.Address)
		if err != nil || ln == nil {
			v.options.Logger.Error("a socket that was closed for a new one could not be opened again", "address", l.HostPort, "error", err)
			continue
		}
		b.start(*ln)
		now = append(now, *ln)
	}
	b.open = now
}

// settingsBound finds those that say where the server listens among settings; an index of -1 says that there are none.
func settingsBound(rows []*settings.Directive, values []string) (to boundSettings, at int) {
	to, at = boundSettings{}, -1
	for i, d := range rows {
		if isBound(d) {
			to[d.Name], at = values[i], i
		}
	}
	return to, at
}

// isBound reports whether a setting says where the server listens.
func isBound(d *settings.Directive) bool {
	return d.Name == "bind" || d.Name == "port" || d.Name == "tls-port"
}
