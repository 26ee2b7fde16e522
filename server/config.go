package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// settings are what CONFIG GET shows: by Redis's names, so that tools find them. Mechanisms that
// Stave does not have are shown as off. A value that can change is read when it is asked for.
// Options.Settings comes last, so that a program can correct any of them.
func (v *Server) settings() map[string]string {
	o := &v.options
	host, port := v.listenAddress()
	settings := map[string]string{
		"activedefrag":               "no",
		"appendfsync":                "everysec",
		"appendonly":                 "yes", // the log is append-only, and it is all there is
		"bind":                       host,
		"busy-reply-threshold":       "5000",
		"client-output-buffer-limit": fmt.Sprintf("normal 0 0 0 slave 0 0 0 pubsub %d %d %d", maxMailBytes, softMailBytes, int(softMailPeriod.Seconds())),
		"client-query-buffer-limit":  strconv.Itoa(o.MaxArgument),
		"cluster-enabled":            "no",
		"daemonize":                  "no",
		"databases":                  strconv.Itoa(v.databases()),
		"dbfilename":                 "",
		"dir":                        v.store.Stats().Dir,
		"hz":                         "10",
		"io-threads":                 "1",
		"latency-monitor-threshold":  "0",
		"lazyfree-lazy-user-del":     "yes",
		"loglevel":                   "notice",
		"maxclients":                 strconv.FormatInt(v.tunables.maxClients.Load(), 10),
		"maxmemory":                  "0",
		"maxmemory-clients":          strconv.FormatInt(v.tunables.clientMemory.Load(), 10),
		"maxmemory-policy":           "noeviction",
		"maxmemory-samples":          "5",
		"min-replicas-to-write":      "0",
		"notify-keyspace-events":     notifyFlags(v.notifier.flags.Load()).String(),
		"port":                       port,
		"proto-max-bulk-len":         strconv.Itoa(o.MaxArgument),
		"protected-mode":             "yes",
		"rdbcompression":             "no",
		"replica-read-only":          "yes",
		"replicaof":                  "",
		"requirepass":                "",
		"save":                       "",
		"slave-read-only":            "yes",
		"slowlog-log-slower-than":    strconv.FormatInt(v.tunables.slowerThan.Load(), 10),
		"slowlog-max-len":            strconv.FormatInt(v.tunables.slowMaxLen.Load(), 10),
		"tcp-keepalive":              strconv.Itoa(int(keepAlive.Seconds())),
		"timeout":                    strconv.Itoa(int(time.Duration(v.tunables.idleTimeout.Load()).Seconds())),
		"tls-port":                   "0",
		"unixsocket":                 "",
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	return settings
}

// tunables are the options that CONFIG SET can change.
type tunables struct {
	maxClients   atomic.Int64
	idleTimeout  atomic.Int64 // nanoseconds; 0: never
	clientMemory atomic.Int64 // bytes; 0: no limit
	slowerThan   atomic.Int64 // microseconds that make a command slow; negative: none is
	slowMaxLen   atomic.Int64 // entries of SLOWLOG
}

// init takes the values that the options give.
func (t *tunables) init(o *Options) {
	t.maxClients.Store(int64(o.MaxClients))
	t.idleTimeout.Store(int64(o.IdleTimeout))
	t.clientMemory.Store(o.ClientMemory)
	t.slowerThan.Store(defaultSlowerThan)
	t.slowMaxLen.Store(defaultSlowMax)
}

// The settings of SLOWLOG are Redis's until CONFIG SET changes them.
const (
	defaultSlowerThan = 10_000 // microseconds
	defaultSlowMax    = 128
)

// CONFIG SET is all or nothing, as in Redis: each value is parsed, and only when all are right are
// they applied.
//
// settingParsers read the value of a setting and return what makes it so. Whatever a value may
// break is not among them: where the data is, what clients may reach, how long a write may take.
var settingParsers = map[string]func(v *Server, text string) (apply func(), err error){
	"notify-keyspace-events": func(v *Server, text string) (func(), error) {
		flags, err := parseNotifyFlags(text)
		return func() { v.setNotifyFlags(flags) }, err
	},
	"maxclients": func(v *Server, text string) (func(), error) {
		n, err := parseSetting(text, 1, math.MaxUint32)
		return func() { v.tunables.maxClients.Store(n) }, err
	},
	"timeout": func(v *Server, text string) (func(), error) {
		n, err := parseSetting(text, 0, math.MaxInt32)
		return func() { v.tunables.idleTimeout.Store(n * int64(time.Second)) }, err
	},
	"slowlog-log-slower-than": func(v *Server, text string) (func(), error) {
		n, err := parseSetting(text, -1, math.MaxInt64)
		return func() { v.tunables.slowerThan.Store(n) }, err
	},
	"slowlog-max-len": func(v *Server, text string) (func(), error) {
		n, err := parseSetting(text, 0, math.MaxInt32)
		return func() {
			v.slowLog.mu.Lock()
			defer v.slowLog.mu.Unlock()
			v.tunables.slowMaxLen.Store(n)
			v.slowLog.trim(int(n))
		}, err
	},
	"maxmemory-clients": func(v *Server, text string) (func(), error) {
		n, err := parseMemory(text)
		return func() { v.tunables.clientMemory.Store(n) }, err
	},
}

// parseSetting reads an integer within bounds.
func parseSetting(text string, least, most int64) (int64, error) {
	n, ok := number.ParseInt([]byte(text))
	switch {
	case !ok:
		return 0, command.Error("argument couldn't be parsed into an integer")
	case n < least || n > most:
		return 0, command.Errorf("argument must be between %d and %d inclusive", least, most)
	}
	return n, nil
}

// parseMemory reads a number of bytes with Redis's units: 1k is 1000, 1kb is 1024. The units are
// those of redis.conf, in any case.
func parseMemory(text string) (int64, error) {
	lower := strings.ToLower(text)
	digits := strings.TrimRight(lower, "bkmg")
	factor, known := map[string]int64{
		"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
	}[lower[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, command.Error("argument must be a memory or percent value")
	}
	return n * factor, nil
}
