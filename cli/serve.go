package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
)

// The server's process: its options, its one line on the standard output once clients can connect
// (which a supervisor or a test waits for), and its end. Package server does the rest.

// serveCommand describes stave serve. There is no option for passwords or addresses of others:
// package server refuses what it cannot protect.
func serveCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "Serves a store to Redis clients",
		UsageText: "stave serve [--dir DIR] [--addr HOST:PORT] [--sync MODE]",
		Description: `Speaks RESP2 and RESP3 to any Redis client. One line on the standard output says
when the server is ready; what an operator should know goes to the standard
error. SIGINT and SIGTERM let running commands finish, flush everything to the
disk and end with status 0; a second signal ends at once.

It listens on loopback addresses and Unix sockets only: there are no passwords
yet, so whoever can connect owns the data.`,
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, Value: "127.0.0.1:6380", Usage: "listen on `HOST:PORT`, or on a socket at a path that starts with /"},
			syncFlag("interval"),
			&cli.StringFlag{Name: "transport", Value: string(server.TransportGoroutines), Usage: "serve connections by `MODE`: goroutines, or event-loop (Linux)"},
			&cli.BoolFlag{Name: "read-damaged", Usage: "serve what is left of a damaged store, for reading only: the keys that are damaged give errors"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("serve takes no arguments, only options")
			}
			return runServe(t, c)
		},
	}
}

// runServe serves until a signal ends it. The store is closed last, when no session can write to it
// any more; an error of that is an error of the server, for it means that something may not be on
// disk. The ready line is printed after the socket is open, and before the first client is served.
// The end by a signal is success, whatever error the closed socket gives.
func runServe(t *terminal, c *cli.Context) (err error) {
	mode, err := syncMode(c.String("sync"))
	if err != nil {
		return err
	}
	transport := server.Transport(c.String("transport"))
	if transport.Validate() != nil {
		return usagef("--transport must be goroutines, or event-loop on Linux, not %q", transport)
	}
	ctx, stop := t.interruptible()
	defer stop()
	logger := serveLogger(t.err, c.Bool("quiet"))
	dir := chosenDir(c)
	started := time.Now()
	store, err := db.Open(dir, &db.Options{Sync: mode, Logger: logger, ReadDamaged: c.Bool("read-damaged")})
	if err != nil {
		return openError(dir, err)
	}
	defer closeInto(&err, store.Close)
	// The store is opened first: a port without a store would let clients connect to nothing.
	listener, err := listen(ctx, c.String("addr"))
	if err != nil {
		return failed(exitOpen, err)
	}
	defer listener.Close()
	if !c.Bool("quiet") {
		if _, err := fmt.Fprintf(t.out, "stave %s ready on %s: %s, %s, sync %s, opened in %s\n", versionText(), listener.Addr(), dir,
			plural(store.Stats().Keys, "key"), mode, durationText(time.Since(started))); err != nil {
			return failed(exitCommand, err)
		}
	}
	o := sessionOptions(dir)
	o.Logger, o.Transport = logger, transport
	err = server.Serve(ctx, listener, store, o)
	// Serve ends with one of these when the signal closes its listener; anything else went wrong.
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	if errors.Is(err, server.ErrNotLoopback) {
		return usagef("%w", err)
	}
	return failed(exitCommand, err)
}

// serveLogger writes what an operator should know, a line each. Quiet hides what is only news;
// warnings and errors stay.
func serveLogger(w io.Writer, quiet bool) *slog.Logger {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// listen opens the socket. A socket file without a listener, left by a killed server, is replaced.
// A file at that path that is no socket is left alone: the error is then that of listening.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	if !strings.HasPrefix(addr, "/") {
		return config.Listen(ctx, "tcp", addr)
	}
	if conn, err := net.DialTimeout("unix", addr, time.Second); err == nil {
		return nil, errors.Join(fmt.Errorf("listen %s: another server listens there", addr), conn.Close())
	}
	if info, err := os.Lstat(addr); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(addr); err != nil {
			return nil, err
		}
	}
	return config.Listen(ctx, "unix", addr)
}
