package socket

import (
	"runtime"
	"time"
)

// thread keeps a goroutine on one thread of the system while several connections are ready at a time. Go preempts a
// goroutine that runs for 10 ms, and may go on with it on another thread and another processor, where it displaces the
// clients and its data is in no cache. With one or two clients the goroutine mostly sleeps, and is better off if it can
// move to the processor of the client that wakes it. The zero value keeps none.
type thread struct {
	mean int // how many connections epoll has reported, on average of some meanOver times
	free int // so many times more it is not kept, and nothing is noted
	kept bool

	yielded time.Time // when it last let others run
}

const (
	connection = 1024 // the unit of means
	meanOver   = 32
	keepFrom   = connection * 5 / 2 // two connections never reach that
	leaveFrom  = connection * 5 / 4
	crowd      = 16  // connections: the most that count at a time
	freeFor    = 100 // times

	yieldAfter = 5 * time.Millisecond // Go preempts after 10
)

// note notes that n connections were ready. Only the goroutine itself may call it.
func (t *thread) note(n int) {
	if t.free > 0 {
		t.free--
		return
	}
	t.mean += (min(n, crowd)*connection - t.mean) / meanOver
	switch {
	case !t.kept && t.mean >= keepFrom:
		t.kept = true
		runtime.LockOSThread()
	case t.kept && t.mean < leaveFrom:
		t.leave(0)
	}
}

// yield lets other goroutines run, if a goroutine that is kept has not done that for yieldAfter, and reports whether it
// has. A goroutine that Go preempts in a system call, where an event loop mostly is, has to find another place when the
// call returns, and Go's monitor then looks every 20 us for a while whether there is more to do: up to 2,300 times a second, on
// a processor that the clients need. Who yields before has begun anew, on the same thread, at the price of two switches
// between threads.
func (t *thread) yield(now time.Time) bool {
	if now.Sub(t.yielded) < yieldAfter {
		return false
	}
	t.yielded = now
	runtime.Gosched()
	return true
}

// leave lets the goroutine move again, at least until so many more times have been noted. Before it ends it must do that,
// or the thread would end with it.
func (t *thread) leave(free int) {
	t.mean, t.free = 0, free
	if t.kept {
		t.kept = false
		runtime.UnlockOSThread()
	}
}
