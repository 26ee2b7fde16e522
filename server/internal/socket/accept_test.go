package socket

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// script is a listener that returns these errors, one after the other, then a connection, and is closed then.
type script struct {
	errors []error
	given  bool
}

func (l *script) Accept() (net.Conn, error) {
	if len(l.errors) > 0 {
		err := l.errors[0]
		l.errors = l.errors[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	if l.given {
		return nil, net.ErrClosed
	}
	l.given = true
	here, there := net.Pipe()
	_ = there.Close()
	return here, nil
}

func (l *script) Close() error   { return nil }
func (l *script) Addr() net.Addr { return &net.TCPAddr{} }

// TestSteady: whatever accept returns, the next connection is accepted; only a closed listener and the end of the
// context end it. The log has a line every ten seconds.
func TestSteady(t *testing.T) {
	var all []error
	for errno := syscall.Errno(1); errno < 134; errno++ {
		all = append(all, errno)
	}
	all = append(all, errors.New("an error of some other listener"))
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		began, n := time.Now(), len(all)
		ln := Steady(t.Context(), &script{errors: all}, slog.New(slog.NewTextHandler(&text, nil)))
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
		if took, most := time.Since(began), time.Duration(n)*longestPause; took > most {
			t.Errorf("%d errors took %v, more than %v", n, took, most)
		}
		if lines := strings.Count(text.String(), "\n"); lines == 0 || lines > 1+int(time.Since(began)/acceptLogTime) {
			t.Errorf("%d lines in %v:\n%s", lines, time.Since(began), &text)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		forever := make([]error, 1000)
		for i := range forever {
			forever[i] = syscall.EMFILE
		}
		began := time.Now()
		_, err := Steady(ctx, &script{errors: forever}, slog.New(slog.DiscardHandler)).Accept()
		if !errors.Is(err, net.ErrClosed) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
