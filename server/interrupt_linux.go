package server

import "golang.org/x/sys/unix"

// probeDescriptor looks at a connection without reading from it.
func probeDescriptor(fd int) linkState {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(p, 0); n == 0 || err != nil {
		return linkUp
	}
	switch {
	case p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
		return linkBroken
	case p[0].Revents&unix.POLLRDHUP != 0:
		return linkHalf
	}
	return linkUp
}
