package listeners

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/stavedb/stave/server/internal/socket"
)

// Listener is an open socket and the address that it was opened for.
type Listener struct {
	net.Listener
	socket.Address
	retired chan struct{} // closed before the socket is, if its connections are to go on
}

// listen opens a socket. It is nil, without an error, for an optional address that this machine does not have.
func listen(ctx context.Context, a socket.Address) (*Listener, error) {
	ln, err := a.Listen(ctx)
	if ln == nil || err != nil {
		return nil, err
	}
	return &Listener{ln, a, make(chan struct{})}, nil
}

// Retired is closed before the socket is, if a change has closed it: then its connections go on. A socket that is
// closed without this has ended with its server, or has failed.
func (l *Listener) Retired() <-chan struct{} { return l.retired }

// IsRetired reports whether Retired is closed.
func (l *Listener) IsRetired() bool {
	select {
	case <-l.retired:
		return true
	default:
		return false
	}
}

// retire closes the socket; connections go on.
func (l *Listener) retire() {
	close(l.retired)
	_ = l.Close() // there is nothing that it could lose
}

// Set is the open sockets of a server.
type Set struct {
	changing sync.Mutex // held while it changes

	mu    sync.Mutex // guards those below
	place Place      // HostPort is empty: its port is in Port
	open  []Listener
	start func(Listener) // serves one; nil before Start and after Stop
}

// Open opens the sockets of a place, or none. An address that is missing, and may be, is left out.
func Open(ctx context.Context, p Place) (*Set, error) {
	s := &Set{place: p}
	s.place.HostPort, s.place.TLSPort = "", cmp.Or(p.TLSPort, "0")
	chosen := "" // the port that the system has chosen for the first of several
	for _, a := range p.Addresses() {
		if chosen != "" && !a.Encrypted {
			a.HostPort = net.JoinHostPort(a.Host(), chosen)
		}
		ln, err := listen(ctx, a)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if ln == nil {
			continue
		}
		if p.HostPort != "" && !a.Encrypted {
			_, chosen, _ = net.SplitHostPort(ln.Addr().String())
			ln.HostPort = net.JoinHostPort(a.Host(), chosen) // by which a change finds the socket again
			s.place.Port = chosen
		}
		s.open = append(s.open, *ln)
	}
	return s, nil
}

// Place is where the sockets are now.
func (s *Set) Place() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// Addrs are the addresses of the sockets, those that are not encrypted first until a change.
func (s *Set) Addrs() (list []net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ln := range s.open {
		list = append(list, ln.Addr())
	}
	return list
}

// Close closes the sockets of a set that is not served.
func (s *Set) Close() (err error) {
	for _, ln := range s.open {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// Start calls serve for each socket, and from then on for each that a change opens, in an order of its own. serve must
// return at once, for it is called with the state locked: the work is a goroutine's. begun is called before the first
// one; no change can happen until all are started.
func (s *Set) Start(begun func(), serve func(Listener)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = serve
	begun()
	for _, l := range s.open {
		s.start(l)
	}
}

// Stop waits for a change that is under way and makes later ones fail: serve is not called after it. It closes
// nothing, for that is what ends those who serve.
func (s *Set) Stop() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = nil
}

// Rules are what a change has to keep.
type Rules struct {
	// Judge says whether the server may listen on an address: refusal is the reply to the client, err says why it could
	// not be found out, and goes to the log.
	Judge   func(context.Context, socket.Address) (refusal, err error)
	Timeout time.Duration // of the whole change: looking up a host takes what it takes, but not for ever
	Logger  *slog.Logger
}

// Change is CONFIG SET of some of the settings. What is refused, or cannot be opened, changes nothing, but for the
// exception that the package's comment names. The error is for clients: it has no address but those that they gave.
func (s *Set) Change(values Values, rules *Rules) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	to, before, serving := s.place, slices.Clone(s.open), s.start != nil
	s.mu.Unlock()
	failure := to.set(values)
	switch {
	case failure == nil:
		return nil
	case to.TLSPort != "0" && !to.Encrypts:
		return errNoCertificate
	case !serving:
		return failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), rules.Timeout)
	defer cancel()
	// All addresses are judged, by the users of now, before the first is opened.
	for _, a := range to.Addresses() {
		refusal, err := rules.Judge(ctx, a)
		switch {
		case refusal != nil:
			return refusal
		case err != nil:
			rules.Logger.Error("bind and ports stay as they are", "error", err)
			return failure
		}
	}
	if err := s.move(ctx, before, to, rules.Logger); err != nil {
		rules.Logger.Error("bind and ports stay as they are", "error", err)
		return failure
	}
	return nil
}

// move opens what is not open yet and then closes what is not wanted any more. An address that is taken by an old
// socket, as 127.0.0.1 is by one of all addresses, is opened after that is closed, which is opened again if anything
// fails.
func (s *Set) move(ctx context.Context, before []Listener, to Place, log *slog.Logger) error {
	wanted := to.Addresses()
	var after, opened, closed []Listener
	old := slices.DeleteFunc(slices.Clone(before), func(l Listener) bool { return slices.ContainsFunc(wanted, l.Same) })
	for _, a := range wanted {
		if i := slices.IndexFunc(before, func(l Listener) bool { return l.Same(a) }); i >= 0 {
			after = append(after, before[i])
			continue
		}
		ln, err := listen(ctx, a)
		if errors.Is(err, syscall.EADDRINUSE) {
			old = slices.DeleteFunc(old, func(l Listener) bool {
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
			s.reopen(before, closed, log)
			return err
		}
		if ln != nil {
			after, opened = append(after, *ln), append(opened, *ln)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range opened {
		s.start(l)
	}
	for _, l := range old {
		l.retire()
	}
	s.place, s.open = to, after
	return nil
}

// reopen opens again what was closed for others that could not be opened. It goes on without what another process has
// taken meanwhile, and says so: the rest is served.
func (s *Set) reopen(before, closed []Listener, log *slog.Logger) {
	now := slices.DeleteFunc(slices.Clone(before), func(l Listener) bool { return l.IsRetired() })
	var again []Listener
	for _, l := range closed {
		ln, err := listen(context.Background(), l.Address)
		if err != nil || ln == nil {
			log.Error("a socket that was closed for a new one could not be opened again", "address", l.HostPort, "error", err)
			continue
		}
		again = append(again, *ln)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range again {
		s.start(l)
	}
	s.open = append(now, again...)
}
