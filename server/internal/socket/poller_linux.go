package socket

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Poller waits until descriptors are ready, on epoll. One goroutine uses it; others may call Wake.
type Poller struct {
	epoll, wakeup int // descriptors
	events        []unix.EpollEvent
}

// NewPoller makes a poller that takes so many events from the kernel at a time.
func NewPoller(events int) (*Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	wakeup, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wakeup, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wakeup)})
		if err != nil {
			_ = unix.Close(wakeup)
		}
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &Poller{epoll: epoll, wakeup: wakeup, events: make([]unix.EpollEvent, events)}, nil
}

// Wait returns the events that there are, which are valid until the next call: none if a signal has interrupted it. It
// waits until there is one, or for so many milliseconds; -1 stands for ever.
func (p *Poller) Wait(milliseconds int) []unix.EpollEvent {
	n, err := unix.EpollWait(p.epoll, p.events, milliseconds)
	if err != nil {
		return nil
	}
	return p.events[:n]
}

// Listen chooses the events that are reported of a descriptor. known is set if some are already. The kernel forgets a
// descriptor that is closed.
func (p *Poller) Listen(fd int, events uint32, known bool) error {
	op := unix.EPOLL_CTL_ADD
	if known {
		op = unix.EPOLL_CTL_MOD
	}
	return unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// Forget ends the reports of a descriptor, before another one of the same connection is used elsewhere.
func (p *Poller) Forget(fd int) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) // fails only if there are none
}

// Wake ends a sleep, or the next one.
func (p *Poller) Wake() {
	one := [8]byte{7: 1}                // any number but 0, in any byte order
	_, _ = unix.Write(p.wakeup, one[:]) // fails only if it is readable already
}

// IsWakeUp reports whether an event comes from Wake.
func (p *Poller) IsWakeUp(fd int32) bool { return int(fd) == p.wakeup }

// Drain ends what Wake has begun.
func (p *Poller) Drain() {
	var drained [8]byte
	_, _ = unix.Read(p.wakeup, drained[:])
}

// Close closes the poller. Nobody may call Wake any more: the number of its descriptor could be another file's by then.
func (p *Poller) Close() {
	_ = unix.Close(p.wakeup)
	_ = unix.Close(p.epoll)
}

// Conn returns a connection on a copy of a descriptor.
func Conn(fd int) (net.Conn, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	file := os.NewFile(uintptr(own), "connection")
	defer file.Close() // the connection has another one
	return net.FileConn(file)
}

// Descriptor returns a copy of the descriptor of a connection of TCP or a Unix socket, -1 for others.
func Descriptor(nc net.Conn) (fd int) {
	var raw interface {
		Control(func(uintptr)) error
	}
	var err error
	switch nc := nc.(type) {
	case *net.TCPConn:
		raw, err = nc.SyscallConn()
	case *net.UnixConn:
		raw, err = nc.SyscallConn()
	default:
		return -1
	}
	if err != nil {
		return -1
	}
	fd = -1
	if err := raw.Control(func(of uintptr) {
		if fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			fd = -1
		}
	}); err != nil {
		return -1
	}
	return fd
}
