// Package safelog protects the program from a user's log handler. Records are logged wherever something goes wrong,
// also with locks held: a handler that panics or ends its goroutine must not leave these locked.
//
// [New] wraps a logger once; wrapping it again returns the same logger. The wrapper adds no lock: the handler decides
// how many goroutines may call it at a time, as without it.
package safelog

import (
	"context"
	"fmt"
	"log/slog"
)

// New returns a logger whose handler runs on a goroutine of its own for each call: if it panics or ends its goroutine,
// the call fails with an error, and nothing else happens. nil discards everything.
func New(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	switch h := l.Handler(); h.(type) {
	case handler:
		return l
	default:
		if h == slog.DiscardHandler {
			return l
		}
		return slog.New(handler{h})
	}
}

// handler calls the user's handler by isolated.
type handler struct{ user slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = isolated(func() error { // a handler that fails is not enabled
		enabled = h.user.Enabled(ctx, level)
		return nil
	})
	return enabled
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	return isolated(func() error { return h.user.Handle(ctx, r) })
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := h
	_ = isolated(func() error { // a handler that fails stays as it is
		next.user = h.user.WithAttrs(attrs)
		return nil
	})
	return next
}

func (h handler) WithGroup(name string) slog.Handler {
	next := h
	_ = isolated(func() error {
		next.user = h.user.WithGroup(name)
		return nil
	})
	return next
}

// isolated runs fn on another goroutine and waits for it. It turns a panic, and the end of the goroutine, into an
// error.
func isolated(fn func() error) error {
	err := fmt.Errorf("log handler has ended its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("log handler panicked: %v", p)
			}
		}()
		err = fn()
	}()
	<-done
	return err
}
