package socket

import "runtime"

// thread keeps a goroutine on one thread of the system while many connections are ready at a time. Go preempts a goroutine
// that runs for 10 ms, and may go on with it on another thread and another processor, where it displaces the clients and
// finds no caches. With one or two clients the goroutine mostly sleeps, and is better off if it can move to the processor
// of the client that wakes it. The zero value keeps none.
type thread struct {
	mean int // how many connections were ready, on average of some meanOver times; times meanOver
	kept bool
}

const (
	meanOver  = 32
	keepFrom  = 4 // connections
	leaveFrom = 2
)

// note notes that n connections were ready. Only the goroutine itself may call it.
func (t *thread) note(n int) {
	t.mean += n - t.mean/meanOver
	switch {
	case !t.kept && t.mean >= keepFrom*meanOver:
		t.kept = true
		runtime.LockOSThread()
	case t.mean < leaveFrom*meanOver:
		t.leave()
	}
}

// leave lets the goroutine move again. Before it ends it must do that, or the thread would end with it.
func (t *thread) leave() {
	if t.kept {
		t.kept = false
		runtime.UnlockOSThread()
	}
}
