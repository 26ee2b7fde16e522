package safelog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/safelog"
)

// failing is a handler that does in every method what fail does.
type failing struct{ fail func() }

func (f failing) Enabled(context.Context, slog.Level) bool  { f.fail(); return true }
func (f failing) Handle(context.Context, slog.Record) error { f.fail(); return nil }
func (f failing) WithAttrs([]slog.Attr) slog.Handler        { f.fail(); return f }
func (f failing) WithGroup(string) slog.Handler             { f.fail(); return f }

func TestHandlerThatFails(t *testing.T) {
	l := safelog.New(slog.New(failing{func() { panic("mine") }}))
	l.Info("a")
	l.With("k", "v").WithGroup("g").Error("b")
	if l.Enabled(t.Context(), slog.LevelError) {
		t.Error("a handler that panics is enabled")
	}
	if err := l.Handler().Handle(t.Context(), slog.Record{}); err == nil {
		t.Error("no error")
	}
}

func TestHandlerThatWorks(t *testing.T) {
	var b bytes.Buffer
	l := safelog.New(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if safelog.New(l) != l {
		t.Error("shielded twice")
	}
	l.Info("hidden")
	l.With("k", "v").WithGroup("g").Error("shown", "n", 1)
	if s := b.String(); !strings.Contains(s, "msg=shown k=v g.n=1") || strings.Contains(s, "hidden") {
		t.Error(s)
	}
	safelog.New(nil).Error("nobody")
}
