package socket

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPolling: a busy goroutine polls, unless it serves few connections, others need the processor, or there is only one.
// It stops when it is idle for more than a third of the time.
func TestPolling(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2} {
		runtime.GOMAXPROCS(processors)
		now := time.Now()
		p := polling{began: now, number: 1}
		for i, step := range []struct {
			connections int
			idle        time.Duration // of 10 us each time
			handover    bool
			on          bool
		}{
			{connections: pollConnections, on: true},
			{connections: pollConnections - 1},
			{connections: 1000, on: true},
			{connections: 1000, handover: true},
			{connections: 1000, idle: 3 * time.Microsecond, on: true},
			{connections: 1000, idle: 4 * time.Microsecond},
			{connections: 5, idle: 3 * time.Microsecond, on: true},
			{connections: 0, idle: 10 * time.Microsecond},
		} {
			for n := range 100 {
				now = now.Add(10 * time.Microsecond)
				var ready []unix.EpollEvent
				if step.connections > 0 { // some in turns, and the last one each time
					ready = append(ready, unix.EpollEvent{Fd: int32(n % min(step.connections, 50))}, unix.EpollEvent{Fd: int32(step.connections - 1)})
				}
				p.note(ready, now, step.idle, step.handover)
			}
			if want := step.on && processors > 1; p.on != want {
				t.Errorf("period %d, %d processors: polls %v", i, processors, p.on)
			}
		}
	}
}

// TestPollingInVain: a goroutine that polls in vain too often stops for a while.
func TestPollingInVain(t *testing.T) {
	p, now := polling{on: true}, time.Now()
	try := func(found, inVain int) {
		for range found {
			p.tried(true, now)
		}
		for range inVain {
			p.tried(false, now)
		}
	}
	busy := func() {
		for range 2 {
			now = now.Add(pollPeriod)
			p.note([]unix.EpollEvent{{Fd: 1}, {Fd: 2}, {Fd: 3}, {Fd: 4}}, now, 0, false)
		}
	}
	for range 10 {
		if try(pollInVain, 1); !p.on {
			t.Fatal("one poll in vain of many ends it")
		}
	}
	if try(1000*pollInVain, mostCredit/pollInVain); !p.on {
		t.Error("a few polls in vain in a row end it")
	}
	for range 10 {
		if try(pollInVain-1, 1); p.on {
			t.Fatal("goes on although more than one poll of so many is in vain")
		}
		if busy(); p.on {
			t.Fatal("begins again at once")
		}
		now = now.Add(pollLater)
		if busy(); !p.on && runtime.GOMAXPROCS(0) > 1 {
			t.Fatal("does not begin again")
		}
	}
}

// TestPollerPolls: a poller polls for a while before it sleeps, and then sleeps, whatever it is told to wait for.
func TestPollerPolls(t *testing.T) {
	p := newPollerOf(t, 0, 0)
	runtime.LockOSThread() // whose processor time is measured
	defer runtime.UnlockOSThread()
	const sleep = 20 * time.Millisecond
	took := func(on bool, milliseconds int) time.Duration {
		p.polling.on, p.polling.credit = on, mostCredit
		before := threadTime(t)
		if milliseconds < 0 {
			time.AfterFunc(sleep, p.Wake)
		}
		began := time.Now()
		for time.Since(began) < time.Duration(milliseconds)*time.Millisecond { // again after a signal
			p.Wait(milliseconds)
		}
		if milliseconds < 0 {
			for events, _ := p.Wait(-1); len(events) == 0; {
				events, _ = p.Wait(-1)
			}
			p.Drain()
		}
		if on && p.polling.credit == mostCredit {
			t.Error("polling in vain has no price")
		}
		return threadTime(t) - before
	}
	polls, endless := 0, 0
	for range 10 {
		for _, milliseconds := range []int{int(sleep / time.Millisecond), -1} {
			with, without := took(true, milliseconds), took(false, milliseconds)
			if with-without > pollFor/2 {
				polls++
			}
			if with > sleep/2 {
				endless++
			}
		}
	}
	if polls < 10 {
		t.Errorf("polling takes more processor time in %d of 20 times", polls)
	}
	if endless > 5 {
		t.Errorf("%d of 20 times it went on polling", endless)
	}
	shortest := time.Hour
	for range 100 {
		p.polling.on = true
		began := time.Now()
		p.Wait(0)
		shortest = min(shortest, time.Since(began))
	}
	if shortest >= pollFor {
		t.Errorf("a poller that must not wait polls for %v", shortest)
	}
}

// TestPollerLosesNothing: each event that the kernel reports once is returned, whether the poller polls or sleeps.
func TestPollerLosesNothing(t *testing.T) {
	for _, on := range []bool{true, false} {
		p := newPollerOf(t, unix.EPOLLET, 1)
		fds := make(chan int)
		defer close(fds)
		go func() {
			for fd := range fds {
				for began := time.Now(); time.Since(began) < pollFor/2; { // the poller has begun by then
				}
				add(t, fd)
			}
		}()
		for i := range 1000 {
			p.polling.on, p.polling.credit = on, mostCredit
			fds <- p.fds[0]
			events, now := p.Wait(1000)
			for began := now; len(events) == 0; events, now = p.Wait(1000) { // interrupted by a signal, or the machine is busy
				if now.Sub(began) > 10*time.Second {
					t.Fatalf("polling %v: event %d is lost", on, i)
				}
			}
		}
	}
}

// TestPollerBeginsToPoll: a poller polls that serves four busy connections, but not one that serves three, that is idle,
// or whose goroutine has handed something over.
func TestPollerBeginsToPoll(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor")
	}
	begins := func(p poller, work, idle time.Duration, handover bool) bool {
		if idle > 0 {
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-time.After(idle):
						addAll(t, p.fds)
					case <-stop:
						return
					}
				}
			}()
			defer func() { close(stop); <-stopped }()
		}
		for began := time.Now(); time.Since(began) < 50*pollPeriod; {
			if handover {
				p.NoteHandover()
			}
			_, now := p.Wait(-1)
			if p.polling.on {
				return true
			}
			for time.Since(now) < work {
			}
		}
		return false
	}
	const work = 100 * time.Microsecond
	tries := func(p poller, idle time.Duration, handover bool) (n int) {
		for range 5 {
			p.polling.on = false
			if begins(p, work, idle, handover) {
				n++
			}
		}
		return n
	}
	if n := tries(newPollerOf(t, 0, pollConnections), 0, false); n == 0 {
		t.Error("busy connections: does not poll")
	}
	if n := tries(newPollerOf(t, 0, pollConnections-1), 0, false); n > 0 {
		t.Error("few connections: polls")
	}
	if n := tries(newPollerOf(t, 0, pollConnections), 0, true); n > 0 {
		t.Error("handovers: polls")
	}
	if n := tries(newPollerOf(t, unix.EPOLLET, pollConnections), 2*time.Millisecond, false); n > 1 {
		t.Errorf("idle: polls in %d of 5 tries", n)
	}
}

// poller is a Poller that listens to descriptors which are readable.
type poller struct {
	*Poller
	fds []int
}

// newPollerOf makes one, with so many descriptors.
func newPollerOf(t *testing.T, events uint32, descriptors int) poller {
	t.Helper()
	p, err := NewPoller(8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	var fds []int
	for range descriptors {
		fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := p.Listen(fd, unix.EPOLLIN|events, false); err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	if events&unix.EPOLLET != 0 {
		p.Wait(0) // they are readable now
	}
	return poller{p, fds}
}

// addAll makes eventfds readable once more, one right after another.
func addAll(t *testing.T, fds []int) {
	for _, fd := range fds {
		add(t, fd)
	}
}

// add makes an eventfd readable once more.
func add(t *testing.T, fd int) {
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Error(err)
	}
}

// threadTime is how long the thread has had a processor.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}
