package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/socket"
	"github.com/stavedb/stave/server/internal/web"
)

// The settings of a running server. Package settings says which there are and where their values come from,
// config_bindings.go what they set here; what the server asks for often is kept in tunables.

// Config are settings by the names of redis.conf, before there is a server and while it runs. Where a setting
// comes from decides which holds: the default, then the file, then the environment, then a flag; CONFIG SET
// overrides all until the next start, unless CONFIG REWRITE writes it to the file.
//
// Its methods may be called from several goroutines.
type Config struct{ inner *settings.Config }

// NewConfig returns settings that are all at their defaults.
func NewConfig() *Config {
	inner := settings.New()
	inner.JudgeUser = judgeUser
	return &Config{inner}
}

// File is the path of the file that Load has read, or "".
func (c *Config) File() string { return c.inner.File() }

// Get returns the value of a setting that is in the table, as CONFIG GET shows it.
func (c *Config) Get(name string) string { return c.inner.Get(name) }

// IsSet reports whether a setting has been set, were it to its default.
func (c *Config) IsSet(name string) bool { return c.inner.IsSet(name) }

// Set sets a value as a flag of the command line does.
func (c *Config) Set(name, value string) error { return c.inner.Set(name, value) }

// Load reads a file and what it includes. All directives are checked; the error has a line for each that is wrong, with
// file and line number, and then nothing has changed. A warning is about directives that have no effect, or a password
// that others may read.
func (c *Config) Load(path string) (warnings []string, err error) { return c.inner.Load(path) }

// Environment takes settings from variables such as STAVE_MAXCLIENTS for maxclients. A variable with that
// prefix that is none of a setting is an error, but for those that the program reads itself.
func (c *Config) Environment(environ []string) (warnings []string, err error) {
	return c.inner.Environment(environ)
}

// tunables are settings that can change while the server runs.
type tunables struct {
	maxClients   atomic.Int64
	idleTimeout  atomic.Int64 // nanoseconds; 0: never
	keepAlive    atomic.Int64 // seconds; 0: no probes
	clientMemory atomic.Int64 // bytes; 0: no limit
	maxMemory    atomic.Int64 // bytes; 0: no limit
	slowerThan   atomic.Int64 // microseconds that make a command slow; negative: none is
	spikeMs      atomic.Int64 // milliseconds that make an execution a spike of LATENCY; 0: none is
	busyMs       atomic.Int64 // milliseconds after which a script makes others BUSY; 0: never

	outputHard, outputSoft, outputSeconds atomic.Int64 // of replies that wait for a client, as those for messages

	aclLogMaxLen atomic.Int64 // entries of ACL LOG
}

// init takes the values that the options give, and Redis's defaults for the others.
func (t *tunables) init(o *Options) {
	t.maxClients.Store(int64(o.MaxClients))
	t.idleTimeout.Store(int64(o.IdleTimeout))
	t.clientMemory.Store(o.ClientMemory)
	t.keepAlive.Store(int64(defaultKeepAlive / time.Second))
	t.slowerThan.Store(defaultSlowerThan)
	t.busyMs.Store(defaultBusyMs)
	t.aclLogMaxLen.Store(defaultACLLogMax)
}

// The settings of SLOWLOG are Redis's until CONFIG SET changes them.
const (
	defaultSlowerThan = 10_000 // microseconds
	defaultSlowMax    = 128
	defaultACLLogMax  = 128
	defaultBusyMs     = 5000
)

// initConfig applies what Options.Config has set. It holds against the other options.
func (v *Server) initConfig() error {
	v.encodings.Init()
	if v.options.Config == nil {
		v.options.Config = NewConfig()
	}
	v.config = v.options.Config.inner
	for _, name := range settings.Names {
		d := settings.Table[name]
		if value, isSet := v.config.Lookup(d); isSet && name == d.Name && (changers[name] == nil || value != v.setting(d)) {
			if err := v.apply(d, value); err != nil {
				return fmt.Errorf("server: %s: %w", name, err)
			}
		}
	}
	v.limitClients()
	return nil
}

// reservedFiles are the descriptors that clients may not take: the store needs them for its segments and for
// merges, and the process for itself.
const reservedFiles = 64

// mostClients is how many clients there may be beside them, and beside the connections of HTTP.
func (v *Server) mostClients() (most int64, known bool) {
	files, known := socket.FileLimit()
	if v.servesHTTP.Load() {
		files -= web.MaxConnections
	}
	return max(files-reservedFiles, 1), known
}

// limitClients lowers maxclients to what the limit of open files allows. A server without listeners has no
// clients and is left alone by it.
func (v *Server) limitClients() {
	most, known := v.mostClients()
	if was := v.tunables.maxClients.Load(); known && was > most {
		v.options.Logger.Warn("maxclients is lowered to what the limit of open files allows", "maxclients", most, "was", was)
		v.tunables.maxClients.Store(most)
	}
}

// apply makes a checked value of a setting so. Only a changer fails, and then nothing has changed. The addresses are not
// among these: they change together, by changeBound.
func (v *Server) apply(d *settings.Directive, value string) error {
	if change := changers[d.Name]; change != nil {
		return change(v, value)
	}
	if set := setters[d.Name]; set != nil {
		set(v, value)
	}
	return nil
}

// setting returns the value of a setting as CONFIG GET shows it.
func (v *Server) setting(d *settings.Directive) string {
	for _, name := range d.Names() {
		if value, set := v.options.Settings[name]; set {
			return value
		}
	}
	if get := getters[d.Name]; get != nil {
		return get(v)
	}
	value := v.config.Get(d.Name)
	if value != "" && slices.Contains(redact.Settings, d.Name) {
		return redact.Text
	}
	return value
}

// settings are what CONFIG GET shows, by name and by older name. Options.Settings comes last, so that a
// program can correct any of them, and add others.
func (v *Server) settings() map[string]string {
	all := make(map[string]string, len(settings.Names))
	for name, d := range settings.Table {
		all[name] = v.setting(d)
	}
	maps.Copy(all, v.options.Settings)
	return all
}

// Config returns the settings of the server.
func (v *Server) Config() *Config { return v.options.Config }

// OnReload adds what a reload of the settings is to do besides: reading certificates again, for instance. The
// functions are called in order, by one goroutine at a time.
func (v *Server) OnReload(reload func() error) {
	v.reloadMu.Lock()
	defer v.reloadMu.Unlock()
	v.reloads = append(v.reloads, reload)
}

// WatchConfig calls Reload when the file of settings or one that it includes changes, until ctx ends. further are paths
// whose change means a reload too, such as certificates. A change that the system does not report is read at the next
// one, or when the program calls Reload, as stave does for SIGHUP.
func (v *Server) WatchConfig(ctx context.Context, further ...string) error {
	return conf.Watch(ctx, func() []string { return append(v.config.Watched(), further...) }, func() {
		if err := v.Reload(); err != nil {
			v.options.Logger.Error("reload failed", "error", err)
		}
	}, v.options.Logger)
}

// Reload reads the file of settings again and applies what has changed in it and may change while the server runs, all
// or nothing of what can be checked; what has changed is logged, what needs a restart, and what fails. Then it does what
// OnReload and ReloadTLS have added.
func (v *Server) Reload() error {
	v.reloadMu.Lock()
	defer v.reloadMu.Unlock()
	users := -1 // how many lines of users there are, if they have changed
	changed, err := v.config.Changed(func(list []conf.Directive) error {
		users = len(list)
		return v.reloadFileUsers(list)
	})
	switch {
	case err != nil:
		err = fmt.Errorf("the settings stay as they are: %w", err)
	case users >= 0:
		v.options.Logger.Info("the users of the file of settings were loaded", "users", users)
	}
	names := make([]string, 0, len(changed))
	for name := range changed {
		names = append(names, name)
	}
	slices.Sort(names)
	var rows []*settings.Directive
	var values []string
	for _, name := range names {
		rows, values = append(rows, settings.Table[name]), append(values, changed[name])
	}
	var failedBound error
	if to, at := listeners.Among(rows, values); at >= 0 {
		failedBound = v.changeBound(to)
	}
	for _, name := range names {
		d := settings.Table[name]
		switch {
		case errors.Is(failedBound, errNotBound) && listeners.IsSetting(d):
			v.options.Logger.Warn("setting changed in the file; it needs a restart", "name", name)
		case failedBound != nil && listeners.IsSetting(d):
			v.config.Keep(d, v.setting(d))
			err = errors.Join(err, fmt.Errorf("%s stays as it is: %w", name, failedBound))
		case name == "requirepass" && slices.ContainsFunc(v.fileUsers(), func(l conf.Directive) bool { return l.Args[0] == acl.DefaultName }):
			// the line of that user holds, as at the start
		case d.Mode == settings.Live:
			if failed := v.apply(d, changed[name]); failed != nil {
				v.config.Keep(d, v.setting(d))
				err = errors.Join(err, fmt.Errorf("%s stays as it is: %w", name, failed))
				continue
			}
			v.options.Logger.Info("setting changed", "name", name, "value", settings.ShownValue(d, changed[name]))
		case d.Mode == settings.AtStart:
			v.options.Logger.Warn("setting changed in the file; it needs a restart", "name", name)
		}
	}
	v.limitClients()
	v.reloaded = users >= 0 || len(names) > 0
	for _, reload := range v.reloads {
		err = errors.Join(err, reload())
	}
	if err == nil && !v.reloaded {
		v.options.Logger.Info("reloaded: neither settings nor certificates have changed")
	}
	return err
}

// setLogLevel sets what the log has, if the program has lent the server its level.
func setLogLevel(v *Server, value string) {
	if v.options.LogLevel == nil {
		return
	}
	level := slog.LevelInfo
	switch value {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	}
	v.options.LogLevel.Set(level)
}

// setMaxMemory sets maxmemory in bytes, and maxmemory-clients if that is a share of it, in whatever order the two are set.
func setMaxMemory(v *Server, n int64) {
	v.tunables.maxMemory.Store(n)
	if clients := v.config.Get("maxmemory-clients"); strings.HasSuffix(clients, "%") {
		setClientMemory(v, clients)
	}
}

// setClientMemory sets maxmemory-clients. A share of no limit is no limit.
func setClientMemory(v *Server, value string) {
	digits, percent := strings.CutSuffix(value, "%")
	n, _ := strconv.ParseInt(digits, 10, 64) // checked
	if percent {
		n = v.tunables.maxMemory.Load() / 100 * n
	}
	v.tunables.clientMemory.Store(n)
	v.replies.setClientMemory(n)
}

// shownClientMemory is maxmemory-clients as it was set.
func shownClientMemory(v *Server) string {
	if value := v.config.Get("maxmemory-clients"); strings.HasSuffix(value, "%") {
		return value
	}
	return itoa(v.tunables.clientMemory.Load())
}

// setBufferLimits sets the limits of what waits for clients and subscribers: words in fours, a class, two sizes in bytes
// and seconds. The class of replicas is taken and ignored. Three atomics are not set at one moment, so a client that is
// judged meanwhile may be judged by an old size and a new one.
func setBufferLimits(v *Server, value string) {
	words := strings.Fields(value)
	for i := 0; i+3 < len(words); i += 4 {
		t := &v.tunables
		limits := map[string][]*atomic.Int64{
			"normal": {&t.outputHard, &t.outputSoft, &t.outputSeconds}, "pubsub": {&v.hub.Limits.Hard, &v.hub.Limits.Soft, &v.hub.Limits.Seconds},
		}
		for j, to := range limits[words[i]] {
			n, _ := strconv.ParseInt(words[i+1+j], 10, 64) // checked
			to.Store(n)
		}
	}
}
