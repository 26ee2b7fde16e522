package server

import (
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/debug"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/transport"
)

// Options are the settings of a server. The zero value works, and so does nil. New copies them and
// refuses a negative number.
type Options struct {
	// Transport is how connections are served. Default: TransportEventLoop on Linux,
	// TransportGoroutines elsewhere.
	Transport Transport
	// Loops is how many event loops serve the connections of a listener, each those that it was given; a new connection goes
	// to the loop with the fewest. Transactions of several loops go on together if they
	// only read; one that writes is alone until its commit. Default: half of GOMAXPROCS, and 8 at most.
	Loops int
	// Databases is the number of namespaces that SELECT reaches, if the store has so many. Default:
	// all of the store's.
	Databases int
	// MaxClients is how many connections are served at a time; one more gets an error and is
	// closed. CONFIG SET maxclients changes it. Default: 10,000.
	MaxClients int
	// MaxArgument is the size of the largest argument of a command in bytes. A larger one is a
	// protocol error, which closes the connection, as in Redis (proto-max-bulk-len). Default: 64
	// MiB.
	MaxArgument int
	// MaxReply is the largest reply to one command (or one EXEC) in bytes; a larger one becomes an
	// error. Default: 512 MiB.
	MaxReply int
	// MaxQueue is how many bytes of commands MULTI may queue. Default: 64 MiB.
	MaxQueue int
	// ClientMemory is how many bytes the buffers of all clients may take together. Above it the
	// largest client is closed. CONFIG SET maxmemory-clients changes it. Default: 1 GiB.
	ClientMemory int64
	// RequirePass is the password of the default user, which a client has to give by AUTH. Default: none is needed.
	RequirePass string
	// Users are further users, or other rules of the default user: each a line "NAME RULE ..." with the rules of ACL
	// SETUSER. Default:
	// the default user alone, who may do everything.
	Users []string
	// ACLFile is the path of a file with such lines, each after the word "user", which ACL LOAD and ACL SAVE read and
	// write. It must exist. It excludes Users. Default: none.
	ACLFile string
	// AllowPlainText lets Serve listen without TLS on addresses that other machines can reach; a password is needed all
	// the same. It is redis.conf's "protected-mode no". Default: Serve refuses.
	AllowPlainText bool
	// IdleTimeout closes a connection that sends nothing for so long, unless it has subscribed to
	// something. CONFIG SET timeout changes it. Default: 0, never.
	IdleTimeout time.Duration
	// PartialTimeout closes a connection that began a command and did not finish it within this
	// time, plus the time that its bytes take at 64 KiB/s. Default: 30 s.
	PartialTimeout time.Duration
	// WriteTimeout closes a connection that takes none of its replies for so long. Default: 30 s.
	WriteTimeout time.Duration
	// ShutdownGrace is how long Serve waits for commands and for replies on their way when its context ends. Then
	// connections are closed, and commands that take long are given up; what goes on even so is not waited for longer
	// than two seconds. Default: 10 s.
	ShutdownGrace time.Duration
	// Logger takes what an operator should know: connections refused or broken off, panics.
	// Default: nothing is logged.
	Logger *slog.Logger
	// Config are settings by the names of redis.conf, as a file has them. They hold against the other fields. CONFIG
	// REWRITE and Server.Reload need the file that they were loaded from. Default: NewConfig().
	Config *Config
	// LogLevel is the level of Logger, for CONFIG SET loglevel to change. Default: that has no effect.
	LogLevel *slog.LevelVar
	// Settings are further names, in lower case, and values that CONFIG GET shows, such as dir.
	// They override the built-in ones. Default: none.
	Settings map[string]string
	// Cluster makes the server a cluster of one node, which owns all slots, for clients that speak to clusters only.
	// Default:
	// there is no cluster.
	Cluster bool
	// Group makes the server a member of a group. Default: it is none.
	Group *Group
	// Debug allows DEBUG, which is for tests of clients, to those of this machine, DebugRemote to all. Default: it is refused.
	Debug, DebugRemote bool
	// Version is Stave's own version for INFO and HELLO. Default: "dev".
	Version string
}

// Transport is how connections are served.
type Transport string

const (
	// TransportGoroutines serves each connection by a goroutine of its own. It works everywhere.
	TransportGoroutines Transport = "goroutines"
	// TransportEventLoop serves connections by event loops (Options.Loops), a goroutine each: what clients of a loop send at
	// the same time is executed together, and written to the log at once; with one loop in the order in which it arrived.
	// Commands that may take long run apart. A quick command takes less processor time than with goroutines; those that run
	// apart, such as SORT or an LRANGE with a long reply, cost some microseconds more. It exists on Linux; connections other than TCP and Unix sockets, such as
	// those of TLS, are served by goroutines all the same.
	TransportEventLoop Transport = "event-loop"
)

// defaultTransport is the transport of this platform unless the options choose one: the one whose commands take the least
// processor time.
func defaultTransport() Transport {
	if transport.EventLoopSupported {
		return TransportEventLoop
	}
	return TransportGoroutines
}

// ownLoops leaves half of the processors to what runs aside, to merges, to the kernel's part of the network and to clients of
// the same machine: where those have none to spare, two loops take more processor time for a command than they gain.
func ownLoops() int { return max(1, min(runtime.GOMAXPROCS(0)/2, 8)) }

// Validate fails for a transport that does not exist, or not on this platform.
func (t Transport) Validate() error {
	switch {
	case t == "" || t == TransportGoroutines || t == TransportEventLoop && transport.EventLoopSupported:
		return nil
	case t == TransportEventLoop:
		return fmt.Errorf("server: Options.Transport is %q, which exists on Linux only", t)
	}
	return fmt.Errorf("server: Options.Transport must be %q or %q, and is %q", TransportGoroutines, TransportEventLoop, t)
}

// The defaults of Options.
const (
	defaultMaxClients     = 10_000
	defaultMaxReply       = 512 << 20
	defaultMaxQueue       = 64 << 20
	defaultClientMemory   = 1 << 30
	defaultPartialTimeout = 30 * time.Second
	defaultWriteTimeout   = 30 * time.Second
	defaultShutdownGrace  = 10 * time.Second
)

// RedisVersion is the version of Redis that clients may take the server for: docs/COMMANDS.md says what it means.
const RedisVersion = shared.RedisVersion

// validate names the first field whose value makes no sense.
func (o *Options) validate() error {
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Loops", int64(o.Loops)}, {"Databases", int64(o.Databases)}, {"MaxClients", int64(o.MaxClients)}, {"MaxArgument", int64(o.MaxArgument)},
		{"MaxReply", int64(o.MaxReply)}, {"MaxQueue", int64(o.MaxQueue)}, {"ClientMemory", o.ClientMemory},
		{"IdleTimeout", int64(o.IdleTimeout)}, {"PartialTimeout", int64(o.PartialTimeout)},
		{"WriteTimeout", int64(o.WriteTimeout)}, {"ShutdownGrace", int64(o.ShutdownGrace)},
	} {
		if field.value < 0 {
			return fmt.Errorf("server: Options.%s must not be negative, and is %d", field.name, field.value)
		}
	}
	if err := o.Transport.Validate(); err != nil {
		return err
	}
	for name := range o.Settings {
		// CONFIG GET and CONFIG SET compare lower case: another name would never be found.
		if name != strings.ToLower(name) {
			return fmt.Errorf("server: Options.Settings has the name %q, which is not in lower case", name)
		}
	}
	// INFO has a field a line.
	if strings.ContainsAny(o.Version, "\r\n") {
		return fmt.Errorf("server: Options.Version must be one line, and is %q", o.Version)
	}
	return nil
}

// A zero that a user means is therefore the default: every option whose zero has a meaning of its
// own has that as its default.
func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// takeConfig takes the options that the settings give, and that do not change while the server runs. What may change is
// applied by shared.Settings.Start, in the same way as by CONFIG SET. The values have been checked when they were set.
func (o *Options) takeConfig() {
	if o.Config == nil {
		return
	}
	number := func(name string, to *int) {
		if o.Config.IsSet(name) {
			*to, _ = strconv.Atoi(o.Config.Get(name)) // checked
		}
	}
	number("databases", &o.Databases)
	number("io-threads", &o.Loops)
	number("proto-max-bulk-len", &o.MaxArgument)
	if o.Config.IsSet("transport") {
		o.Transport = Transport(o.Config.Get("transport"))
	}
	if o.Config.IsSet("cluster-enabled") {
		o.Cluster = o.Config.Get("cluster-enabled") == "yes"
	}
	o.RequirePass = orDefault(o.Config.Get("requirepass"), o.RequirePass)
	o.ACLFile = orDefault(o.Config.Get("aclfile"), o.ACLFile)
	o.AllowPlainText = o.AllowPlainText || o.Config.Get("protected-mode") == "no"
	if o.Config.IsSet("enable-debug-command") {
		o.Debug, o.DebugRemote = debug.Setting(o.Config.Get("enable-debug-command"))
	}
}

// withDefaults returns the options with a value in every field, or an error that names the field
// that is wrong.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	out.takeConfig()
	if err := out.validate(); err != nil {
		return Options{}, err
	}
	out.Transport = orDefault(out.Transport, defaultTransport())
	out.Loops = orDefault(out.Loops, ownLoops())
	out.MaxClients = orDefault(out.MaxClients, defaultMaxClients)
	out.MaxArgument = orDefault(out.MaxArgument, resp.DefaultBulk)
	out.MaxReply = orDefault(out.MaxReply, defaultMaxReply)
	out.MaxQueue = orDefault(out.MaxQueue, defaultMaxQueue)
	out.ClientMemory = orDefault(out.ClientMemory, defaultClientMemory)
	out.PartialTimeout = orDefault(out.PartialTimeout, defaultPartialTimeout)
	out.WriteTimeout = orDefault(out.WriteTimeout, defaultWriteTimeout)
	out.ShutdownGrace = orDefault(out.ShutdownGrace, defaultShutdownGrace)
	out.Version = orDefault(out.Version, "dev")
	out.Logger = orDefault(out.Logger, slog.New(slog.DiscardHandler))
	return out, nil
}

// fixed are the options that do not change while the server runs, in the form that its rooms know.
func (o *Options) fixed() shared.Options {
	return shared.Options{
		Databases: o.Databases, MaxArgument: o.MaxArgument, MaxReply: o.MaxReply, MaxQueue: o.MaxQueue,
		PartialTimeout: o.PartialTimeout, WriteTimeout: o.WriteTimeout, ShutdownGrace: o.ShutdownGrace,
		Cluster: o.Cluster, Debug: o.Debug, DebugRemote: o.DebugRemote, AllowPlainText: o.AllowPlainText,
		EventLoop: o.Transport == TransportEventLoop, Loops: o.Loops, Transport: string(o.Transport), ACLFile: o.ACLFile, Version: o.Version,
		Dir: o.Settings["dir"], Logger: o.Logger,
	}
}

// userSource is where the options have the users.
func (o *Options) userSource(users *acl.Users) *shared.UserSource {
	source := &shared.UserSource{Users: users, ACLFile: o.ACLFile, Lines: o.Users}
	if o.Config != nil {
		source.File = o.Config.inner
	}
	return source
}
