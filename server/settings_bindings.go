package server

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
var setters = map[string]func(v *Live, value string){
	"tcp-keepalive":              setInt(func(v *Live, n int64) { v.state.tunables.keepAlive.Store(n) }),
	"timeout":                    setInt(func(v *Live, n int64) { v.state.tunables.idleTimeout.Store(n * int64(time.Second)) }),
	"maxclients":                 setInt(func(v *Live, n int64) { v.state.tunables.maxClients.Store(n) }),
	"client-output-buffer-limit": setBufferLimits,
	"maxmemory":                  setInt(setMaxMemory),
	"maxmemory-clients":          setClientMemory,
	"tracking-table-max-keys":    setInt(func(v *Live, n int64) { v.state.tracked.Limit(n) }),
	"loglevel":                   setLogLevel,
	"slowlog-log-slower-than":    setInt(func(v *Live, n int64) { v.state.tunables.slowerThan.Store(n) }),
	"slowlog-max-len":            setInt(func(v *Live, n int64) { v.state.slowLog.Limit(n) }),
	"latency-monitor-threshold":  setInt(func(v *Live, n int64) { v.state.tunables.spikeMs.Store(n) }),
	"latency-tracking":           func(v *Live, value string) { v.state.counters.NoLatency.Store(value == "no") },
	"notify-keyspace-events": func(v *Live, value string) {
		flags, _ := settings.ParseEvents(value) // checked
		v.state.setNotifyFlags(flags)
	},
	"busy-reply-threshold":      setInt(func(v *Live, n int64) { v.state.tunables.busyMs.Store(n) }),
	"hash-max-listpack-entries": setInt(func(v *Live, n int64) { v.state.encodings.HashEntries.Store(n) }),
	"hash-max-listpack-value":   setInt(func(v *Live, n int64) { v.state.encodings.HashValue.Store(n) }),
	"list-max-listpack-size":    setInt(func(v *Live, n int64) { v.state.encodings.ListSize.Store(n) }),
	"set-max-intset-entries":    setInt(func(v *Live, n int64) { v.state.encodings.SetIntegers.Store(n) }),
	"set-max-listpack-entries":  setInt(func(v *Live, n int64) { v.state.encodings.SetEntries.Store(n) }),
	"set-max-listpack-value":    setInt(func(v *Live, n int64) { v.state.encodings.SetValue.Store(n) }),
	"zset-max-listpack-entries": setInt(func(v *Live, n int64) { v.state.encodings.SortedSetEntries.Store(n) }),
	"zset-max-listpack-value":   setInt(func(v *Live, n int64) { v.state.encodings.SortedSetValue.Store(n) }),
	"requirepass":               setDefaultPassword,
	"acllog-max-len":            setInt(func(v *Live, n int64) { v.state.tunables.aclLogMaxLen.Store(min(n, math.MaxInt32)) }),
}

// changers are setters that may fail; then nothing has changed. They come before the others, and are called with the
// value of before if a later one fails.
var changers = map[string]func(v *Live, value string) error{
	"appendfsync": (*Live).setFsync,
}

// fsyncModes are the values of appendfsync.
var fsyncModes = map[string]db.SyncMode{"always": db.SyncAlways, "everysec": db.SyncInterval, "no": db.SyncNone}

// setFsync is appendfsync. When it has returned, all replies that have left keep the promise of the mode; it takes as
// long as a sync.
func (v *Live) setFsync(value string) error {
	if err := v.state.store.SetSync(fsyncModes[value]); err != nil {
		v.state.options.Logger.Error("appendfsync stays as it is", "error", err)
		return errors.New("the log could not be synced; the log of the server says why")
	}
	return nil
}

// fsync is appendfsync as the store has it, which may have been opened with another mode than the settings say.
func (v *Live) fsync() string {
	for value, mode := range fsyncModes {
		if mode == v.state.store.SyncMode() {
			return value
		}
	}
	panic("BUG: server: a sync mode without a name")
}

// getters return the value that holds, where that may be another one than the one that was set: Options give it, the
// system has reduced it, or the value must not be shown. Others are shown as they were set, in canonical form.
var getters = map[string]func(v *Live) string{
	"appendfsync":               (*Live).fsync,
	"bind":                      func(v *Live) string { host, _ := v.listening.Address(); return host },
	"port":                      func(v *Live) string { return v.listening.Port() },
	"tls-port":                  func(v *Live) string { return v.listening.TLSPort() },
	"timeout":                   func(v *Live) string { return itoa(v.state.tunables.idleTimeout.Load() / int64(time.Second)) },
	"maxclients":                func(v *Live) string { return itoa(v.state.tunables.maxClients.Load()) },
	"proto-max-bulk-len":        func(v *Live) string { return itoa(int64(v.state.options.MaxArgument)) },
	"client-query-buffer-limit": func(v *Live) string { return itoa(int64(v.state.options.MaxArgument)) },
	"transport":                 func(v *Live) string { return v.state.options.Transport },
	"databases":                 func(v *Live) string { return itoa(int64(v.state.databases())) },
	"enable-debug-command":      func(v *Live) string { return debug.Shown(v.state.options.Debug, v.state.options.DebugRemote) },
	"maxmemory-clients":         shownClientMemory,
	"dir":                       func(v *Live) string { return v.state.store.Stats().Dir },
	"notify-keyspace-events":    func(v *Live) string { return settings.Events(v.state.notifier.flags.Load()).String() },
	"requirepass":               (*Live).shownPassword,
	"aclfile":                   func(v *Live) string { return v.state.options.ACLFile },
	"protected-mode":            func(v *Live) string { return protectedMode(v.state.options.AllowPlainText) },
	"cluster-enabled":           func(v *Live) string { return yesIf(v.state.options.Cluster) },
}

// setInt makes a setter of one for a number.
func setInt(set func(*Live, int64)) func(*Live, string) {
	return func(v *Live, value string) {
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
