package socket

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestThread: a goroutine is kept on its thread while several connections are ready at a time. Two connections do not keep
// it, nor does a single crowd. It is free again when few are ready.
func TestThread(t *testing.T) {
	var at thread
	rounds := func(count, n int) {
		for range count {
			at.note(n)
		}
	}
	for _, step := range []struct {
		count, n int
		kept     bool
	}{{1000, 2, false}, {1000, 1, false}, {1, 50, false}, {1000, 1, false}, {200, 4, true}, {1000, 2, true}, {1, 1, true}, {200, 1, false}} {
		if rounds(step.count, step.n); at.kept != step.kept {
			t.Errorf("after %d times %d: kept %v", step.count, step.n, at.kept)
		}
	}
	rounds(200, 16)
	if at.leave(freeFor); at.kept {
		t.Error("kept after leave")
	}
	if rounds(freeFor, 16); at.kept {
		t.Error("kept again too soon")
	}
	rounds(200, 16)
	if !at.kept {
		t.Error("not kept again")
	}
	defer at.leave(0)
	var busy atomic.Bool
	busy.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for busy.Load() {
				runtime.Gosched()
			}
		}()
	}
	defer busy.Store(false)
	began := time.Now()
	for first := unix.Gettid(); time.Since(began) < 100*time.Millisecond; {
		if runtime.Gosched(); unix.Gettid() != first {
			t.Fatal("the goroutine is on another thread")
		}
	}
}

// TestThreadYields: that a goroutine that is kept yields after a while, and has its own thread afterwards.
func TestThreadYields(t *testing.T) {
	var at thread
	now := time.Now()
	at.kept = true
	runtime.LockOSThread()
	defer at.leave(0)
	for _, step := range []struct {
		after  time.Duration
		yields bool
	}{{0, true}, {yieldAfter - 1, false}, {1, true}, {yieldAfter / 2, false}, {time.Hour, true}} {
		if now = now.Add(step.after); at.yield(now) != step.yields {
			t.Errorf("after %v: yields %v", step.after, !step.yields)
		}
	}
	first, ran := unix.Gettid(), make(chan int)
	for range 100 {
		go func() { ran <- unix.Gettid() }()
		if <-ran == first {
			t.Fatal("another goroutine runs on the thread of one that keeps it")
		}
	}
}

// TestPollerKeepsItsThread: that the goroutine that waits is kept, until something comes back from another one, or it ends.
func TestPollerKeepsItsThread(t *testing.T) {
	p, err := NewPoller(8)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		if err := p.Listen(fd, unix.EPOLLIN, false); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(times int) {
		for range times {
			p.Wait(-1)
		}
	}
	if wait(1); p.thread.kept || !p.thread.yielded.IsZero() {
		t.Error("kept at once, or yields without a thread of its own")
	}
	if wait(200); !p.thread.kept || p.thread.yielded.IsZero() {
		t.Error("not kept by four that are ready, or does not yield")
	}
	if p.NoteHandover(); p.thread.kept {
		t.Error("kept after a handover")
	}
	if wait(freeFor + 200); !p.thread.kept {
		t.Error("not kept again")
	}
	if p.Close(); p.thread.kept {
		t.Error("kept at the end")
	}
}
