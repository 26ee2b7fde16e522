package server

import (
	"context"

	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/shared"
)

// Config are settings by the names of redis.conf, before there is a server and while it runs. Where a setting
// comes from decides which holds: the default, then the file, then the environment, then a flag; CONFIG SET
// overrides all until the next start, unless CONFIG REWRITE writes it to the file.
//
// Its methods may be called from several goroutines.
type Config struct{ inner *settings.Config }

// NewConfig returns settings that are all at their defaults.
func NewConfig() *Config {
	inner := settings.New()
	inner.JudgeUser = shared.JudgeUser(table)
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

// Config returns the settings of the server.
func (v *Server) Config() *Config { return v.options.Config }

// OnReload adds what a reload of the settings is to do besides: reading certificates again, for instance. The
// functions are called in order, by one goroutine at a time.
func (v *Server) OnReload(reload func() error) {
	v.state.Settings.OnReload(func() (changed bool, err error) { return false, reload() })
}

// WatchConfig calls Reload when the file of settings or one that it includes changes, until ctx ends. further are paths
// whose change means a reload too, such as certificates. A change that the system does not report is read at the next
// one, or when the program calls Reload, as stave does for SIGHUP.
func (v *Server) WatchConfig(ctx context.Context, further ...string) error {
	return conf.Watch(ctx, func() []string { return append(v.options.Config.inner.Watched(), further...) }, func() {
		if err := v.Reload(); err != nil {
			v.options.Logger.Error("reload failed", "error", err)
		}
	}, v.options.Logger)
}

// Reload reads the file of settings again and applies what has changed in it and may change while the server runs, all
// or nothing of what can be checked; what has changed is logged, what needs a restart, and what fails. Then it does what
// OnReload and ReloadTLS have added.
func (v *Server) Reload() error { return v.state.Settings.Reload() }
