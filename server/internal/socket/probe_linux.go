package socket

import "golang.org/x/sys/unix"

// Probe looks at a connection without reading from it.
func Probe(fd int) State {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(p, 0); n == 0 || err != nil {
		return Up
	}
	switch {
	case p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
		return Broken
	case p[0].Revents&unix.POLLRDHUP != 0:
		return Half
	}
	return Up
}
