package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/conf"
	"github.com/urfave/cli/v2"
)

// A setting of the server comes from its default, the file, the environment or a flag; the last of these that
// has it holds. Package server has the table of settings; here is what the process makes of those that
// concern its start. What a setting means while the server runs is in server/config_bindings.go.

// serveSettings gathers them. A warning is about settings that have no effect. The error names all that is wrong, and is
// one of usage: nothing has been opened but the file of settings and what it includes.
func serveSettings(c *cli.Context) (config *server.Config, warnings []string, err error) {
	if c.IsSet("check-config") && c.IsSet("config") {
		return nil, nil, usagef("--check-config and --config both name the file: leave one out")
	}
	config = server.NewConfig()
	var wrongFile error
	if path := cmp.Or(c.String("check-config"), c.String("config"), os.Getenv("STAVE_CONFIG")); path != "" {
		warnings, wrongFile = config.Load(path)
	}
	more, wrongVariables := config.Environment(os.Environ())
	if err := errors.Join(wrongFile, wrongVariables, flagSettings(c, config)); err != nil {
		return nil, nil, failed(exitUsage, mistakes(err))
	}
	return config, append(warnings, more...), nil
}

// judgeServe says what is wrong with settings that are right each for itself: users, files of TLS, addresses that would
// leave the data open. It makes and opens nothing that stays. All that it finds is in one error, which is one of usage
// unless nothing is wrong but that a host is not found.
func judgeServe(ctx context.Context, c *cli.Context, config *server.Config, options *server.Options) (l listening, err error) {
	l, wrongPlace := readListening(c, config)
	wrongOptions := options.Check()
	if wrongPlace == nil && wrongOptions == nil {
		wrongPlace = l.judge(ctx, options)
	}
	var wrongWeb error
	if addr := config.Get("http-addr"); addr != "" {
		wrongWeb = judged(server.CheckHTTPAddress(ctx, addr))
	}
	status := exitOpen
	for _, one := range []error{wrongPlace, wrongWeb} {
		var known *exitError
		if errors.As(one, &known) && known.status == exitUsage {
			status = exitUsage
		}
	}
	if wrongOptions != nil {
		status = exitUsage
	}
	return l, failed(status, mistakes(wrongPlace, wrongOptions, wrongWeb))
}

// mistakes are errors that are joined, each by itself; nil if there are none.
func mistakes(list ...error) error {
	if all := terminal.Mistakes(conf.Errors(errors.Join(list...))); len(all) > 0 {
		return all
	}
	return nil
}

// judged gives the error of an address its status: usage, but for a host that is not found.
func judged(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) {
		return failed(exitOpen, err)
	}
	return failed(exitUsage, err)
}

// checkConfig is --check-config: it reports what serveSettings and judgeServe have found.
func checkConfig(t *terminal.Streams, path string, warnings []string) error {
	for _, warning := range warnings {
		if _, err := fmt.Fprintf(t.Err, "warning: %s\n", warning); err != nil {
			return failed(exitCommand, err)
		}
	}
	_, err := fmt.Fprintf(t.Out, "%s: right, stave serve starts with it\n", path)
	return failed(exitCommand, err)
}

// flagSettings sets what flags say. An empty value is as none, so a flag cannot take a setting of the file away. Flags
// that have other words than the settings (--sync, --http, --dir) are translated here.
func flagSettings(c *cli.Context, config *server.Config) error {
	set := func(name, value string) error {
		if value == "" {
			return nil
		}
		return config.Set(name, value)
	}
	// --sync has a default for the help alone: only one that was given wins over the file.
	fsync := ""
	if c.IsSet("sync") {
		mode, err := syncMode(c.String("sync"))
		if err != nil {
			return err
		}
		fsync = map[db.SyncMode]string{db.SyncAlways: "always", db.SyncInterval: "everysec", db.SyncNone: "no"}[mode]
	}
	var wrong error
	if transport := server.Transport(c.String("transport")); c.IsSet("transport") && transport.Validate() != nil {
		wrong = fmt.Errorf("--transport must be goroutines, or event-loop on Linux, not %q", transport)
	}
	if err := set("io-threads", c.String("loops")); err != nil {
		wrong = errors.Join(wrong, fmt.Errorf("--loops is %w", err))
	}
	for _, name := range []string{
		"port", "bind", "archive", "replicaof", "unixsocketperm", "aclfile", "protected-mode", "tls-port", "tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-auth-clients", "tls-protocols",
	} {
		if err := set(name, c.String(name)); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("--%w", err))
		}
	}
	if wrong != nil {
		return wrong
	}
	err := errors.Join(set("dir", c.String("dir")), set("appendfsync", fsync), set("transport", transportFlag(c)), set("http-addr", c.String("http")))
	if c.Bool("quiet") {
		err = errors.Join(err, config.Set("loglevel", "warning"))
	}
	return err
}

// serveLogger writes what an operator should know, a line each: to the standard error, or to a file that it appends to.
// closing is to be called at the end. CONFIG SET loglevel changes the level that is returned.
func serveLogger(t *terminal.Streams, config *server.Config) (logger *slog.Logger, level *slog.LevelVar, closing func() error, err error) {
	w, closing := t.Err, func() error { return nil }
	if path := config.Get("logfile"); path != "" {
		file, err := openLogFile(path)
		if err != nil {
			return nil, nil, nil, failed(exitOpen, fmt.Errorf("logfile: %w", err))
		}
		w, closing = file, file.Close
	}
	level = new(slog.LevelVar)
	switch config.Get("loglevel") {
	case "debug":
		level.Set(slog.LevelDebug)
	case "warning":
		level.Set(slog.LevelWarn)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), level, closing, nil
}

// storeOptionsOf are the options of the store that settings give. A merge-bytes-per-second of 0 means no limit in the
// file, and -1 does in the options, where 0 is the default.
func storeOptionsOf(config *server.Config) (*db.Options, error) {
	o := &db.Options{}
	switch config.Get("appendfsync") {
	case "always":
		o.Sync = db.SyncAlways
	case "no":
		o.Sync = db.SyncNone
	default:
		o.Sync = db.SyncInterval
	}
	var err, err2, err3 error
	if config.IsSet("segment-size") {
		o.SegmentSize, err = strconv.ParseInt(config.Get("segment-size"), 10, 64)
	}
	if config.IsSet("merge-bytes-per-second") {
		if o.Merge.BytesPerSecond, err2 = strconv.ParseInt(config.Get("merge-bytes-per-second"), 10, 64); o.Merge.BytesPerSecond == 0 {
			o.Merge.BytesPerSecond = -1
		}
	}
	if config.IsSet("databases") {
		o.Namespaces, err3 = strconv.Atoi(config.Get("databases"))
	}
	return o, errors.Join(err, err2, err3)
}

// socketPaths are the Unix sockets to listen on, by the flag or the settings. --addr replaces all that the settings
// name, whether it is a path or HOST:PORT. A server without any place to listen is an error of usage.
func socketPaths(addr string, config *server.Config) ([]string, error) {
	if strings.HasPrefix(addr, "/") {
		return []string{addr}, nil
	}
	path, tcp := config.Get("unixsocket"), config.Get("port") != "0" && config.Get("bind") != ""
	switch {
	case addr != "":
		return nil, nil
	case path != "":
		return []string{absolute(path)}, nil
	case !tcp && config.Get("tls-port") == "0":
		return nil, usagef("there is nothing to listen on: port is 0 and unixsocket is empty")
	}
	return nil, nil
}

// transportFlag is what the flag says, if it was given.
func transportFlag(c *cli.Context) string {
	if c.IsSet("transport") {
		return c.String("transport")
	}
	return ""
}
