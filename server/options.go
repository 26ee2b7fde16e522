package server

import (
	"log/slog"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// Options are the settings of a server. The zero value works. They must not be changed once a server has them.
type Options struct {
	// Limits of one request. Default: see resp.Limits; 16 KiB inline, 1,048,576 arguments, 64 MiB an argument.
	Limits resp.Limits
	// Databases is the number of namespaces that SELECT reaches, if the store has so many. Default: all of the store's.
	Databases int
	// MaxClients is how many connections are served at a time; one more is told so and closed. Default: 10,000.
	MaxClients int
	// PauseOutput is how many bytes of replies may wait for a client before the session stops executing its commands.
	// Default: 1 MiB.
	PauseOutput int
	// MaxReply is the largest reply to one command (or one EXEC) in bytes; a larger one becomes an error. Default: 512 MiB.
	MaxReply int
	// MaxQueue is how many bytes of commands MULTI may queue. Default: 64 MiB.
	MaxQueue int
	// ClientMemory is how many bytes the buffers of all clients may take together. Above it the largest client is closed.
	// Default: 1 GiB.
	ClientMemory int64
	// IdleTimeout closes a connection that sends nothing for so long. Default: 0, never.
	IdleTimeout time.Duration
	// PartialTimeout closes a connection that began a command and did not finish it within this time, plus the time
	// that its bytes take at 64 KiB/s. Default: 30 s.
	PartialTimeout time.Duration
	// WriteTimeout closes a connection that takes none of its replies for so long. Default: 30 s.
	WriteTimeout time.Duration
	// ShutdownGrace is how long Serve waits for replies on their way when its context ends. Default: 10 s.
	ShutdownGrace time.Duration
	// Logger takes what an operator should know: connections refused or broken off, panics. Default: nothing is logged.
	Logger *slog.Logger
	// Settings are further names and values that CONFIG GET shows, such as dir. They override the built-in ones.
	Settings map[string]string
	// Debug allows DEBUG, which is for tests. Default: it is refused.
	Debug bool
	// Version is Stave's own version for INFO and HELLO. Default: "dev".
	Version string
}

// The defaults of Options.
const (
	defaultMaxClients     = 10_000
	defaultPauseOutput    = 1 << 20
	defaultMaxReply       = 512 << 20
	defaultMaxQueue       = 64 << 20
	defaultClientMemory   = 1 << 30
	defaultPartialTimeout = 30 * time.Second
	defaultWriteTimeout   = 30 * time.Second
	defaultShutdownGrace  = 10 * time.Second
)

// RedisVersion is the version of Redis that clients may take the server for. Some refuse to work below 7.0, and none asks
// for more than 7.2.
const RedisVersion = "7.2.4"

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.MaxClients = orDefault(out.MaxClients, defaultMaxClients)
	out.PauseOutput = orDefault(out.PauseOutput, defaultPauseOutput)
	out.MaxReply = orDefault(out.MaxReply, defaultMaxReply)
	out.MaxQueue = orDefault(out.MaxQueue, defaultMaxQueue)
	out.ClientMemory = orDefault(out.ClientMemory, defaultClientMemory)
	out.PartialTimeout = orDefault(out.PartialTimeout, defaultPartialTimeout)
	out.WriteTimeout = orDefault(out.WriteTimeout, defaultWriteTimeout)
	out.ShutdownGrace = orDefault(out.ShutdownGrace, defaultShutdownGrace)
	out.Version = orDefault(out.Version, "dev")
	if out.Limits.Bulk == 0 {
		out.Limits.Bulk = resp.DefaultBulk
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}
