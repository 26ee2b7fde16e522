// Package shield keeps a user's log handler from doing harm. Records are logged wherever something goes wrong, also with locks
// held: a handler that panics, or ends its goroutine, must not take these with it.
package shield

import (
	"context"
	"fmt"
	"log/slog"
)

// Logger returns a logger whose handler runs on goroutines of its own, one a call, and does no more than fail if it panics or
// ends its goroutine. nil discards everything.
func Logger(l *slog.Logger) *slog.Logger {
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

type handler struct{ user slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = apart(func() error { // a handler that fails wants nothing
		enabled = h.user.Enabled(ctx, level)
		return nil
	})
	return enabled
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	return apart(func() error { return h.user.Handle(ctx, r) })
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := h
	_ = apart(func() error { // a handler that fails stays as it is
		next.user = h.user.WithAttrs(attrs)
		return nil
	})
	return next
}

func (h handler) WithGroup(name string) slog.Handler {
	next := h
	_ = apart(func() error {
		next.user = h.user.WithGroup(name)
		return nil
	})
	return next
}

// apart runs fn on another goroutine and waits for it.
func apart(fn func() error) error {
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
