// Package safelog protects the program from a user's log handler that panics. Records are logged wherever something
// goes wrong, also with locks held.
//
// [New] wraps a logger once; wrapping it again returns the same logger. The wrapper adds no lock: the handler decides
// how many goroutines may call it at a time, as without it. A handler that ends its goroutine (runtime.Goexit) is not
// caught: it ends the goroutine that has logged, which may be one of the store's.
package safelog

import (
	"context"
	"fmt"
	"log/slog"
)

// New returns a logger whose handler may panic: the call then fails with an error, and nothing else happens. nil
// discards everything.
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

// handler calls the user's handler.
type handler struct{ user slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() {
		if recover() != nil {
			enabled = false
		}
	}()
	return h.user.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("log handler panicked: %v", p)
		}
	}()
	return h.user.Handle(ctx, r)
}

// WithAttrs returns h if the handler panics.
func (h handler) WithAttrs(attrs []slog.Attr) (next slog.Handler) {
	defer func() {
		if recover() != nil {
			next = h
		}
	}()
	return handler{h.user.WithAttrs(attrs)}
}

// WithGroup returns h if the handler panics.
func (h handler) WithGroup(name string) (next slog.Handler) {
	defer func() {
		if recover() != nil {
			next = h
		}
	}()
	return handler{h.user.WithGroup(name)}
}
