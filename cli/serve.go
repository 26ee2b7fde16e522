package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/server"
)

// The server's process: its options, its one line on the standard output once clients can connect
// (which a supervisor or a test waits for), and its end. Package server does the rest. The files
// serve_* have what surrounds it: settings and the log, sockets, notifying systemd, memory that
// is given back.

// serveCommand describes stave serve. There is no option for a password: every user of the machine sees the options of
// a process.
func serveCommand(t *terminal.Streams, p *Program) *cli.Command {
	return &cli.Command{
		Name: "serve",
		Flags: slices.Concat([]cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "config", Aliases: []string{"c"}, DefaultText: "$STAVE_CONFIG", Usage: "read settings from `FILE`"},
			&cli.StringFlag{Name: "check-config", Usage: "say what is wrong with the settings in `FILE`, and with other options; open nothing"},
			&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, DefaultText: "127.0.0.1:6380", Usage: "listen on `HOST:PORT`, or on a socket at a path that starts with /"},
			syncFlag("interval"),
			&cli.StringFlag{Name: "http", Usage: "serve a dashboard, /metrics, /healthz and /readyz on `HOST:PORT`"},
			&cli.StringFlag{Name: "loops", Usage: "serve the connections of a listener by `N` event loops (default: half of the processors, 8 at most)"},
			&cli.StringFlag{Name: "transport", Usage: "serve connections by `MODE`: event-loop (the default on Linux) or goroutines"},
			&cli.BoolFlag{Name: "read-damaged", Usage: "serve what is left of a damaged store, for reading only: the keys that are damaged give errors"},
			&cli.BoolFlag{Name: "follow", Usage: "serve a store that another process has open, for reading only, and go on with what that writes"},
			quietFlag(),
			&cli.StringFlag{Name: "archive", Usage: "archive all commits in `DIR`, for stave restore --archive"},
			&cli.StringFlag{Name: "replicaof", Usage: "be a replica of the Redis server at `HOST:PORT`: its data replace what the store has"},
			&cli.StringFlag{Name: "port", Usage: "listen on port `N`, 0 for none; --addr has precedence"},
			&cli.StringFlag{Name: "bind", Usage: "listen on these `HOSTS`"},
			&cli.StringFlag{Name: "unixsocketperm", Usage: "give the socket's file the permissions `MODE`"},
			&cli.StringFlag{Name: "aclfile", Usage: "read users from `FILE`: lines as ACL SAVE writes them"},
			&cli.StringFlag{Name: "protected-mode", Usage: "no: other machines may connect without TLS, but not without a password"},
			&cli.StringFlag{Name: "tls-port", Usage: "listen with TLS on port `N` too"},
			&cli.StringFlag{Name: "tls-cert-file", Usage: "the server's certificate is in `FILE`"},
			&cli.StringFlag{Name: "tls-key-file", Usage: "its key is in `FILE`"},
			&cli.StringFlag{Name: "tls-ca-cert-file", Usage: "certificates of clients are verified by those in `FILE`"},
			&cli.StringFlag{Name: "tls-auth-clients", Usage: "ask clients for certificates: yes, no or optional"},
			&cli.StringFlag{Name: "tls-protocols", Usage: "speak these `VERSIONS`, of TLSv1.2 and TLSv1.3"},
		}, p.ServeFlags),
		Action: func(c *cli.Context) error {
			if err := takeDir(c, c.NArg()); err != nil {
				return err
			}
			if c.Bool("follow") && (c.IsSet("sync") || c.Bool("read-damaged")) {
				return usagef("--follow only reads an intact store: leave --sync and --read-damaged out")
			}
			if c.IsSet("archive") && (c.Bool("follow") || c.Bool("read-damaged")) {
				return usagef("a store that is only read is not archived: leave --archive out")
			}
			return runServe(t, p, c)
		},
	}
}

// runServe serves until a signal or SHUTDOWN ends it. The store is closed last, when no session can write to it
// any more; an error of that is an error of the server, for it means that something may not be on
// disk. The ready line is printed after the socket is open, and before the first client is served.
// The end by a signal is success, whatever error the closed socket gives.
//
// The order of the beginning is: settings, addresses and users judged, log, store, sockets, ready line. What the operator
// got wrong is reported before anything is opened, and no client is connected before there is a store. The log is
// closed after the store, which may have something to say when it ends.
func runServe(t *terminal.Streams, p *Program, c *cli.Context) (err error) {
	config, warnings, err := serveSettings(c)
	if err != nil {
		return err
	}
	o, err := storeOptionsOf(config)
	if err != nil {
		return usagef("%w", err)
	}
	ctx, stop := t.Interruptible()
	defer stop()
	dir := config.Get("dir")
	options := &server.Options{Version: versionText(), Settings: map[string]string{"dir": absolute(dir)}, Config: config}
	l, err := judgeServe(ctx, c, config, options)
	if err != nil {
		return err
	}
	if o.Archive, err = p.archiveOptions(config); err != nil {
		return err
	}
	join, err := p.serves(c, config)
	if err != nil {
		return err
	}
	if c.IsSet("check-config") {
		return checkConfig(t, config.File(), warnings)
	}
	logger, level, closeLog, err := serveLogger(t, config)
	if err != nil {
		return err
	}
	defer closeInto(&err, closeLog)
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	o.Logger, o.ReadDamaged = logger, c.Bool("read-damaged")
	options.Logger, options.LogLevel = logger, level
	nap.Shift(rand.N(time.Second))
	started := time.Now()
	store, durability, err := openServed(ctx, t, dir, o, c.Bool("follow"))
	if err != nil {
		return err
	}
	defer closeInto(&err, func() error { return closeServed(store) })
	// The store is opened first: a port without a store would let clients connect to nothing.
	sockets, err := l.openSockets(ctx, config)
	if err != nil {
		return failed(exitOpen, err)
	}
	// From here on every way out closes the sockets, until serveAll has them: those who serve a socket close it.
	web, err := listenHTTP(ctx, config)
	if err != nil {
		return failed(exitOpen, sockets.close(err, nil))
	}
	v, alongside, err := newServer(store, options, &l, &sockets, join)
	if err == nil && !c.Bool("quiet") {
		_, err = fmt.Fprintf(t.Out, "stave %s ready on %s: %s, %s, %s, opened in %s\n", versionText(), &sockets, dir,
			humanize.Plural(store.Stats().Keys, "key"), durability, humanize.Duration(time.Since(started)))
	}
	if err != nil {
		stop()
		return failed(exitCommand, errors.Join(sockets.close(err, web), alongside(ctx)))
	}
	err = serveAll(ctx, v, &sockets, web, alongside, logger)
	// Serve ends with one of these when the signal closes its listener; anything else went wrong.
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	return failed(exitCommand, err)
}

// newServer makes the server, and the function that runs alongside it. That is to be called after an error, too: it closes what Join has
// opened.
func newServer(store *db.Store, o *server.Options, l *listening, sockets *sockets, join Join) (v *server.Server, alongside func(context.Context) error, err error) {
	if alongside, err = join(o, sockets.bound.Addrs()); err != nil {
		return nil, untilDone, err
	}
	// An error in the settings that New alone can find, such as in a file of users, closes all again.
	v, err = server.New(store, o)
	if err == nil && l.tcp.Secure != nil {
		v.ReloadTLS(l.tcp.Secure)
	}
	return v, alongside, err
}

// serves is what the program adds to the server.
func (p *Program) serves(c *cli.Context, config *server.Config) (Join, error) {
	if p.Serve == nil {
		return func(*server.Options, []net.Addr) (func(context.Context) error, error) { return untilDone, nil }, nil
	}
	join, err := p.Serve(c, config)
	return join, failed(exitUsage, err)
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// openServed opens the store that is to be served, and says what becomes of what is written. One that is followed must
// be there already: its writer makes it.
func openServed(ctx context.Context, t *terminal.Streams, dir string, o *db.Options, follow bool) (store *db.Store, durability string, err error) {
	if follow {
		o.ReadOnly, o.Follow = true, true
		store, err = openExisting(ctx, t, dir, o)
		return store, "following its writer", err
	}
	store, err = openOrMake(ctx, t, dir, o)
	return store, fmt.Sprint("sync ", o.Sync), err
}

// idleWithin is how long closeServed waits for commands that go on after the server's end.
const idleWithin = 5 * time.Second

// closeServed closes the store. A command that cannot be interrupted would keep Close waiting for as long as it likes,
// if it is within a transaction: then what has been committed is made durable, and the process ends as after a crash,
// which the next start finds in order.
func closeServed(store *db.Store) error {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		_ = store.Update(func(*db.Tx) error { return nil }) // runs alone; whether it may does not matter
	}()
	select {
	case <-idle:
		return store.Close()
	case <-time.After(idleWithin):
		return errors.Join(errors.New("a command goes on and cannot be interrupted: the store was left as after a crash; what was acknowledged is durable"), store.Sync())
	}
}

// closeAll closes listeners and returns err with what that gives.
func closeAll(err error, listeners []net.Listener) error {
	for _, ln := range listeners {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// serveAll serves all listeners, serves web by HTTP, and calls alongside. When ctx ends, or one of these returns, the others end too.
// Meanwhile it reloads settings and certificates when their files change, and at SIGHUP, and gives back memory that it
// does not need any more.
func serveAll(ctx context.Context, v *server.Server, sockets *sockets, web net.Listener, alongside func(context.Context) error, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() {
		if err := v.WatchConfig(ctx, certificates(v.Config())...); err != nil {
			logger.Warn("the files of settings and certificates are not watched; use SIGHUP", "error", err)
		}
	})
	work.Go(func() { tellSupervisor(ctx, logger) })
	work.Go(func() { reloadOnHangup(ctx, v, logger) })
	work.Go(func() { releaseMemory(ctx, releaseEvery) })
	// Each that serves reports once, and the channel has room for all, so none of them waits for a reader.
	ended := make(chan error, len(sockets.unix)+3)
	waiting := len(sockets.unix) + 2
	if web != nil {
		waiting++
		work.Go(func() { ended <- v.ServeHTTP(ctx, web) })
	}
	work.Go(func() { ended <- alongside(ctx) })
	work.Go(func() { ended <- v.ServeBound(ctx, sockets.bound) })
	for _, ln := range sockets.unix {
		work.Go(func() { ended <- v.Serve(ctx, ln) })
	}
	// The first that ends, for whatever reason, ends the others: half a server would look like a whole one.
	var err error
	for range waiting {
		err = errors.Join(err, <-ended)
		stop()
	}
	return err
}

// certificates are the files that hold them, and the key. A change of one is a reason to reload: programs that renew
// certificates replace the files and say nothing.
func certificates(config *server.Config) (files []string) {
	for _, name := range []string{"tls-cert-file", "tls-key-file", "tls-ca-cert-file"} {
		if file := config.Get(name); file != "" {
			files = append(files, file)
		}
	}
	return files
}

// reloadOnHangup reloads the settings at each SIGHUP. A terminal that is closed does not end the server. Signals that
// come while one reload runs are one more reload. On systems without SIGHUP it waits for nothing.
func reloadOnHangup(ctx context.Context, v *server.Server, logger *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			logger.Info("SIGHUP: reloading")
			if err := v.Reload(); err != nil {
				logger.Error("reload failed", "error", err)
			}
		}
	}
}
