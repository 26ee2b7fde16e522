package shared

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/debug"
	"github.com/stavedb/stave/server/internal/settings"
)

// setters make a checked value so, of a live directive or at the start, by name. The value of one that is not here is
// read where it is needed, or has no effect. A setter cannot fail, takes no lock that is held for long, and may be called
// from several goroutines: by CONFIG SET of any session and by a reload. At the start it is called before there are
// users and sessions.
var setters = map[string]func(v *Settings, value string){
	"tcp-keepalive":                    setInt(func(v *Settings, n int64) { v.State.Tunables.KeepAlive.Store(n) }),
	"timeout":                          setInt(func(v *Settings, n int64) { v.State.Tunables.IdleTimeout.Store(n * int64(time.Second)) }),
	"maxclients":                       setInt(func(v *Settings, n int64) { v.State.Tunables.MaxClients.Store(n) }),
	"client-output-buffer-limit":       setBufferLimits,
	"maxmemory":                        setInt(setMaxMemory),
	"maxmemory-policy":                 setPolicy,
	"maxdisk":                          setInt(func(v *Settings, n int64) { v.setEvict(func(e *db.Evict) { e.Disk = n }) }),
	"maxmemory-clients":                setClientMemory,
	"tracking-table-max-keys":          setInt(func(v *Settings, n int64) { v.State.Tracked.Limit(n) }),
	"loglevel":                         setLogLevel,
	"slowlog-log-slower-than":          setInt(func(v *Settings, n int64) { v.State.Tunables.slowerThan.Store(n) }),
	"slowlog-max-len":                  setInt(func(v *Settings, n int64) { v.State.SlowLog.Limit(n) }),
	"commandlog-request-larger-than":   setInt(func(v *Settings, n int64) { v.State.Tunables.largeRequest.Store(n) }),
	"commandlog-large-request-max-len": setInt(func(v *Settings, n int64) { v.State.LargeRequests.Limit(n) }),
	"commandlog-reply-larger-than":     setInt(func(v *Settings, n int64) { v.State.Tunables.largeReply.Store(n) }),
	"commandlog-large-reply-max-len":   setInt(func(v *Settings, n int64) { v.State.LargeReplies.Limit(n) }),
	"latency-monitor-threshold":        setInt(func(v *Settings, n int64) { v.State.Tunables.SpikeMs.Store(n) }),
	"latency-tracking":                 func(v *Settings, value string) { v.State.Counters.NoLatency.Store(value == "no") },
	"notify-keyspace-events": func(v *Settings, value string) {
		flags, _ := settings.ParseEvents(value) // checked
		v.State.setNotifyFlags(flags)
	},
	"min-replicas-to-write":    setInt(func(v *Settings, n int64) { v.State.Replicas.Settings.MinReplicas.Store(n) }),
	"min-replicas-max-lag":     setInt(func(v *Settings, n int64) { v.State.Replicas.Settings.MaxLag.Store(n) }),
	"repl-backlog-size":        setInt(func(v *Settings, n int64) { v.State.Replicas.Stream.SetLimit(n) }),
	"repl-backlog-ttl":         setInt(func(v *Settings, n int64) { v.State.Replicas.Settings.BacklogTTL.Store(n) }),
	"repl-ping-replica-period": setInt(func(v *Settings, n int64) { v.State.Replicas.Settings.PingPeriod.Store(n) }),
	"repl-timeout": setInt(func(v *Settings, n int64) {
		v.State.Replicas.Settings.Timeout.Store(n)
		v.State.Tunables.ReplTimeout.Store(n)
	}),
	"repl-compat":               func(v *Settings, value string) { v.State.Replicas.Settings.FieldDeadline.Store(value == "7.4") },
	"busy-reply-threshold":      setInt(func(v *Settings, n int64) { v.State.Tunables.BusyMs.Store(n) }),
	"hash-max-listpack-entries": setInt(func(v *Settings, n int64) { v.State.Encodings.HashEntries.Store(n) }),
	"hash-max-listpack-value":   setInt(func(v *Settings, n int64) { v.State.Encodings.HashValue.Store(n) }),
	"list-max-listpack-size":    setInt(func(v *Settings, n int64) { v.State.Encodings.ListSize.Store(n) }),
	"set-max-intset-entries":    setInt(func(v *Settings, n int64) { v.State.Encodings.SetIntegers.Store(n) }),
	"set-max-listpack-entries":  setInt(func(v *Settings, n int64) { v.State.Encodings.SetEntries.Store(n) }),
	"set-max-listpack-value":    setInt(func(v *Settings, n int64) { v.State.Encodings.SetValue.Store(n) }),
	"zset-max-listpack-entries": setInt(func(v *Settings, n int64) { v.State.Encodings.SortedSetEntries.Store(n) }),
	"zset-max-listpack-value":   setInt(func(v *Settings, n int64) { v.State.Encodings.SortedSetValue.Store(n) }),
	"requirepass":               setDefaultPassword,
	"replica-serve-stale-data":  func(v *Settings, value string) { v.State.Tunables.NoStaleData.Store(value == "no") },
	"replica-ignore-errors":     func(v *Settings, value string) { v.State.Tunables.IgnoreErrors.Store(value == "yes") },
	"acllog-max-len":            setInt(func(v *Settings, n int64) { v.State.Tunables.ACLLogMaxLen.Store(min(n, math.MaxInt32)) }),
}

// Changers are setters that may fail; then nothing has changed. They come before the others, and are called with the
// value of before if a later one fails.
var Changers = map[string]func(v *Settings, value string) error{
	"appendfsync": (*Settings).setFsync,
}

// fsyncModes are the values of appendfsync.
var fsyncModes = map[string]db.SyncMode{"always": db.SyncAlways, "everysec": db.SyncInterval, "no": db.SyncNone}

// setFsync is appendfsync. When it has returned, all replies that have left keep the promise of the mode; it takes as
// long as a sync.
func (v *Settings) setFsync(value string) error {
	if v.State.Member != nil && fsyncModes[value] != v.State.Store.SyncMode() {
		return errors.New("the other members of the server's group count on it: start the server with another one")
	}
	if err := v.State.Store.SetSync(fsyncModes[value]); err != nil {
		v.State.Options.Logger.Error("appendfsync stays as it is", "error", err)
		return errors.New("the log could not be synced; the log of the server says why")
	}
	return nil
}

// fsync is appendfsync as the store has it, which may have been opened with another mode than the settings say.
func (v *Settings) fsync() string {
	for value, mode := range fsyncModes {
		if mode == v.State.Store.SyncMode() {
			return value
		}
	}
	panic("BUG: server: a sync mode without a name")
}

// getters return the value that holds, where that may be another one than the one that was set: Options give it, the
// system has reduced it, or the value must not be shown. Others are shown as they were set, in canonical form.
var getters = map[string]func(v *Settings) string{
	"appendfsync":               (*Settings).fsync,
	"bind":                      func(v *Settings) string { host, _ := v.Listening.Address(); return host },
	"port":                      func(v *Settings) string { return v.Listening.Port() },
	"tls-port":                  func(v *Settings) string { return v.Listening.TLSPort() },
	"timeout":                   func(v *Settings) string { return itoa(v.State.Tunables.IdleTimeout.Load() / int64(time.Second)) },
	"maxclients":                func(v *Settings) string { return itoa(v.State.Tunables.MaxClients.Load()) },
	"proto-max-bulk-len":        func(v *Settings) string { return itoa(int64(v.State.Options.MaxArgument)) },
	"client-query-buffer-limit": func(v *Settings) string { return itoa(int64(v.State.Options.MaxArgument)) },
	"transport":                 func(v *Settings) string { return v.State.Options.Transport },
	"io-threads":                func(v *Settings) string { return itoa(int64(v.State.Options.Loops)) },
	"databases":                 func(v *Settings) string { return itoa(int64(v.State.Databases())) },
	"enable-debug-command":      func(v *Settings) string { return debug.Shown(v.State.Options.Debug, v.State.Options.DebugRemote) },
	"maxmemory":                 func(v *Settings) string { return itoa(v.State.Tunables.MaxMemory.Load()) },
	"maxmemory-policy":          func(v *Settings) string { return string(v.State.Store.Evict().Policy) },
	"maxdisk":                   func(v *Settings) string { return itoa(v.State.Store.Evict().Disk) },
	"maxmemory-clients":         shownClientMemory,
	"dir":                       func(v *Settings) string { return v.State.Store.Stats().Dir },
	"notify-keyspace-events":    func(v *Settings) string { return settings.Events(v.State.Notifier.flags.Load()).String() },
	"requirepass":               (*Settings).shownPassword,
	"replicaof":                 func(v *Settings) string { return v.State.Following.Setting() },
	"aclfile":                   func(v *Settings) string { return v.State.Options.ACLFile },
	"protected-mode":            func(v *Settings) string { return protectedMode(v.State.Options.AllowPlainText) },
	"cluster-enabled":           func(v *Settings) string { return yesIf(v.State.Options.Cluster) },
}

// setInt makes a setter of one for a number.
func setInt(set func(*Settings, int64)) func(*Settings, string) {
	return func(v *Settings, value string) {
		n, _ := settings.ParseMemory(value) // checked, and canonical: digits, perhaps with a sign
		if len(value) > 1 && value[0] == '-' {
			n, _ = settings.ParseMemory(value[1:])
			n = -n
		}
		set(v, n)
	}
}

// itoa is n as CONFIG GET shows it: decimal, without a unit.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// yesIf is the value of a setting of kind yesNo.
func yesIf(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
