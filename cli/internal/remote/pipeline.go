package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/stavedb/stave/internal/resp"
)

// maxUnsent is how many bytes of commands are collected before they are sent.
const maxUnsent = 1 << 20

// Pipeline sends n commands, and calls reply with the reply to each, in order. Replies are read while commands are
// sent: neither side waits for a buffer of the other one. command is called by another goroutine than reply, which has
// ended when Pipeline returns. An error of either ends it, and then the connection is closed and must not be used
// again: the caller calls Close. Each command must have one reply.
func (r *Conn) Pipeline(ctx context.Context, n int, command func(dst []byte, i int) ([]byte, error), reply func(i int, r resp.Reply) error) error {
	if r.conn == nil {
		if err := r.Connect(ctx); err != nil {
			return err
		}
	}
	defer r.guard(ctx)()
	sent := make(chan error, 1)
	go func() {
		buf := r.out[:0]
		var err error
		for i := 0; i < n && err == nil; i++ {
			if buf, err = command(buf, i); err == nil && (len(buf) >= maxUnsent || i == n-1) {
				_, err = r.conn.Write(buf)
				buf = buf[:0]
			}
		}
		if err != nil {
			err = errors.Join(err, r.conn.Close()) // nobody answers what was not sent
		}
		r.out = buf[:0]
		if cap(r.out) > 8*maxUnsent { // one long value is no reason to keep so much
			r.out = nil
		}
		sent <- err
	}()
	var failure error
	for i := range n {
		got, err := r.dec.Read()
		if err == nil {
			err = reply(i, got)
		}
		if err != nil {
			failure = err
			r.conn.Close() // ends the sender; its error is the same
			break
		}
	}
	if err := <-sent; err != nil && (failure == nil || !errors.Is(err, net.ErrClosed)) {
		failure = errors.Join(err, failure)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(failure, io.EOF):
		return &LostError{errors.New("the server closed the connection")}
	}
	return failure
}

// Call runs one command; an error reply is an error.
func (r *Conn) Call(ctx context.Context, args ...string) (resp.Reply, error) {
	got, err := r.Ask(ctx, args...)
	switch {
	case ctx.Err() != nil:
		return got, ctx.Err()
	case err != nil:
		return got, &LostError{err}
	case got.IsError():
		return got, fmt.Errorf("%s: %w", args[0], got.Err())
	}
	return got, nil
}

// ParseInfo reads the lines of INFO.
func ParseInfo(text []byte) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(line, "#") {
			info[name] = value
		}
	}
	return info
}
