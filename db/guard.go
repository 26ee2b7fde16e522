package db

import (
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/stavedb/stave/internal/safelog"
)

// guard notices a store that is used within its own closure, or within a callback that runs with
// keys locked: such a call would wait for itself.
//
// The goroutine's own stack shows it. The closures of a store run below frames that spell the
// store's number in binary, digit by digit, and a call that begins while closures run searches the
// frames above it for them. That costs an atomic add for a closure and an atomic load for a call
// that meets none; asking the runtime for the number of the goroutine would cost each of them
// microseconds.
//
// A coroutine (iter.Pull) has a stack of its own. Within a closure a call on it is met by no frame, and a closure that is
// suspended on it is on nobody's stack: such a call waits for ever, as one does on another goroutine that the closure
// waits for. Store.View says so.
type guard struct {
	number uint32 // of the store in this process, from 1
	inside atomic.Int32
}

// stores counts the stores that this process has opened.
var stores atomic.Uint32

func (g *guard) init() { g.number = stores.Add(1) }

// call runs a closure of the store.
func (g *guard) call(fn func(*Tx) error, t *Tx) error {
	g.inside.Add(1)
	defer g.inside.Add(-1)
	return enclose(g.number, fn, t)
}

// run is call for a function of another kind.
func (g *guard) run(fn func()) {
	_ = g.call(func(*Tx) error { // which returns nil
		fn()
		return nil
	}, nil)
}

// logTo sends the store's records to a user's handler, which cannot use the store: a record may be
// logged with keys locked. nil discards them. A snapshot gets the handler of its store, so that it can use neither.
func (c *core) logTo(handler slog.Handler) {
	if handler == nil {
		c.opts.Logger = safelog.New(nil)
		return
	}
	c.handler = guardedHandler{handler, &c.guard}
	c.opts.Logger = safelog.New(slog.New(c.handler))
}

type guardedHandler struct {
	slog.Handler
	guard *guard
}

func (h guardedHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	h.guard.run(func() { enabled = h.Handler.Enabled(ctx, level) })
	return enabled
}

func (h guardedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	h.guard.run(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

func (h guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guardedHandler{h.Handler.WithAttrs(attrs), h.guard}
}

func (h guardedHandler) WithGroup(name string) slog.Handler {
	return guardedHandler{h.Handler.WithGroup(name), h.guard}
}

// check fails if this goroutine is within a closure of the store.
func (g *guard) check() error {
	if g.inside.Load() > 0 && within(g.number) {
		return ErrNested
	}
	return nil
}

// The frames. Each calls the next at one place only, so a frame is known by one
// program counter.

//go:noinline
func enclose(number uint32, fn func(*Tx) error, t *Tx) error { return spell(number, fn, t) }

//go:noinline
func digitZero(rest uint32, fn func(*Tx) error, t *Tx) error { return spell(rest, fn, t) }

//go:noinline
func digitOne(rest uint32, fn func(*Tx) error, t *Tx) error { return spell(rest, fn, t) }

// spell adds a frame for the lowest digit of number, and below it the others.
//
//go:noinline
func spell(number uint32, fn func(*Tx) error, t *Tx) error {
	switch {
	case number == 0:
		return fn(t)
	case number&1 == 0:
		return digitZero(number>>1, fn, t)
	}
	return digitOne(number>>1, fn, t)
}

// frames are the program counters of calls in enclose, digitZero and digitOne.
var frames = learnFrames()

type framePCs struct{ enclose, zero, one uintptr }

// learnFrames reads the frames of a number that has both digits.
func learnFrames() (f framePCs) {
	err := enclose(0b10, func(*Tx) error {
		var pcs [16]uintptr
		for _, pc := range pcs[:runtime.Callers(1, pcs[:])] {
			switch runtime.FuncForPC(pc - 1).Entry() {
			case reflect.ValueOf(enclose).Pointer():
				f.enclose = pc
			case reflect.ValueOf(digitZero).Pointer():
				f.zero = pc
			case reflect.ValueOf(digitOne).Pointer():
				f.one = pc
			}
		}
		return nil
	}, nil)
	if err != nil || f.enclose == 0 || f.zero == 0 || f.one == 0 {
		panic("BUG: the frames that mark a closure are not on its stack")
	}
	return f
}

// within reports whether this goroutine is below the frames of that number.
func within(number uint32) bool {
	var pcs [64]uintptr
	var spelt uint32
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] { // innermost first, so the highest digit first
			switch pc {
			case frames.zero:
				spelt <<= 1
			case frames.one:
				spelt = spelt<<1 | 1
			case frames.enclose:
				if spelt == number {
					return true
				}
				spelt = 0
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
