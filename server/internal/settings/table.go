package settings

import (
	_ "embed"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Directive is a row of the table of settings, which is the one place that knows a setting: the file, the
// environment, the flags, CONFIG, INFO and the documentation read it from here.
type Directive struct {
	Name    string
	alias   string // the older name
	Kind    kind
	def     string // as CONFIG GET shows it
	Mode    mode
	meaning string // what it does here, in one sentence: from meanings.txt or noeffect.txt

	// Refusal is why another value than the default is refused, of a fixed directive.
	Refusal string
	// tolerates says why a value of a file has no effect, of a fixed directive whose value stays the default all the same;
	// "" is for a value that would promise something. The file is warned of, not refused. nil tolerates none.
	tolerates func(value string) (why string)
	// each is set where several lines of a file make one value: how many words a line has.
	each int
	none []string // the words for an empty value in a file; nil: an empty word
}

// mode is when a directive can be set, and whether that has an effect.
type mode uint8

const (
	Live    mode = iota // at any time
	AtStart             // in the file, in the environment or by a flag; a change needs a restart
	kept                // at any time: it is shown and has no effect, because what it is about does not exist here
	Fixed               // never: another value would promise what this server does not do
)

func (m mode) String() string { return [...]string{"live", "at the start", "no effect", "fixed"}[m] }

// Table is the table, by name and by alias.
var Table = map[string]*Directive{}

// Names are the names in the table, aliases too, sorted.
var Names []string

// meanings has a line for each directive of this file: its name, and what it does here.
//
//go:embed meanings.txt
var meanings string

func init() {
	meaning := map[string]string{}
	for line := range strings.Lines(meanings) {
		name, text, _ := strings.Cut(line, ": ")
		meaning[name] = strings.TrimSpace(text)
	}
	for _, rows := range [][]Directive{
		networkDirectives, memoryDirectives, storageDirectives, observationDirectives, encodingDirectives, securityDirectives,
		replicationDirectives, processDirectives, noEffectDirectives,
	} {
		for i := range rows {
			d := &rows[i]
			if d.meaning == "" {
				d.meaning = meaning[d.Name]
			}
			for _, name := range d.Names() {
				if Table[name] != nil {
					panic("BUG: server: two directives called " + name)
				}
				Table[name] = d
				Names = append(Names, name)
			}
		}
	}
	slices.Sort(Names)
}

// Names are the name and, if there is one, the older name.
func (d *Directive) Names() []string {
	if d.alias == "" {
		return []string{d.Name}
	}
	return []string{d.Name, d.alias}
}

// lines are the arguments of the lines that a file has for a value.
func (d *Directive) lines(value string) (lines [][]string) {
	words := strings.Fields(value)
	switch {
	case value == "" && d.none != nil:
		return [][]string{d.none}
	case d.each == 0 || len(words) == 0:
		return [][]string{{value}}
	case d.each < 0: // one line for all
		return [][]string{words}
	}
	for ; len(words) >= d.each; words = words[d.each:] {
		lines = append(lines, words[:d.each])
	}
	return lines
}

// otherThan tolerates every other value than one.
func otherThan(value, why string) func(string) string {
	return func(other string) string {
		if other == value {
			return ""
		}
		return why
	}
}

// atLeast tolerates a number of bytes that is greater than one.
func atLeast(least int64, why string) func(string) string {
	return func(value string) string {
		if n, err := ParseMemory(value); err != nil || n <= least {
			return ""
		}
		return why
	}
}

// networkDirectives are about connections.
var networkDirectives = []Directive{
	{Name: "bind", def: "127.0.0.1", Kind: words(), Mode: Live, each: -1},
	{Name: "port", def: "6380", Kind: between(0, 65535), Mode: Live},
	{Name: "unixsocket", Kind: anyText(), Mode: AtStart},
	{Name: "unixsocketperm", def: "0", Kind: octal(), Mode: AtStart},
	{Name: "tcp-keepalive", def: "300", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "timeout", def: "0", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "maxclients", def: "10000", Kind: between(1, math.MaxUint32), Mode: Live},
	{Name: "proto-max-bulk-len", def: "67108864", Kind: bytesFrom(1 << 20), Mode: AtStart},
	{Name: "client-query-buffer-limit", def: "67108864", Kind: bytesFrom(1 << 20), Mode: Fixed, Refusal: "the limit follows proto-max-bulk-len, and cannot be lowered",
		tolerates: atLeast(67108864, "the limit follows proto-max-bulk-len")},
	{Name: "client-output-buffer-limit", def: "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60", Kind: bufferLimits(), Mode: Live, each: 4},
	{Name: "transport", def: ownTransport(), Kind: oneOf("goroutines", "event-loop"), Mode: AtStart},
	{Name: "io-threads", def: "0", Kind: between(0, 128), Mode: AtStart},
	{Name: "http-addr", Kind: anyText(), Mode: AtStart},
	{Name: "databases", def: "16", Kind: between(1, 65536), Mode: AtStart},
	{Name: "enable-debug-command", def: "no", Kind: oneOf("no", "yes", "local"), Mode: AtStart},
	{Name: "enable-module-command", def: "no", Kind: oneOf("no", "yes", "local"), Mode: Fixed, Refusal: "there are no modules",
		tolerates: otherThan("no", "there are no modules")},
	{Name: "enable-protected-configs", def: "no", Kind: oneOf("no", "yes", "local"), Mode: Fixed,
		Refusal: "paths are never changed while the server runs"},
}

// memoryDirectives are about memory.
var memoryDirectives = []Directive{
	{Name: "maxmemory", def: "0", Kind: bytesFrom(0), Mode: Live},
	{Name: "maxmemory-policy", def: "noeviction", Mode: Live,
		Kind: oneOf("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction")},
	{Name: "maxdisk", def: "0", Kind: bytesOrNone(16 << 20), Mode: Live},
	{Name: "maxmemory-clients", def: "1073741824", Kind: bytesOrPercent(), Mode: Live},
	{Name: "tracking-table-max-keys", def: "1000000", Kind: between(0, math.MaxInt64), Mode: Live},
}

// storageDirectives are about the log and the disk.
var storageDirectives = []Directive{
	{Name: "dir", def: "stave-data", Kind: anyText(), Mode: AtStart},
	{Name: "appendfsync", def: "everysec", Kind: oneOf("everysec", "always", "no"), Mode: Live},
	{Name: "save", Kind: savePoints(), Mode: kept, each: 2},
	{Name: "archive", Kind: anyText(), Mode: AtStart},
	{Name: "archive-keep", def: "604800", Kind: between(0, math.MaxInt32), Mode: AtStart},
	{Name: "archive-keep-bytes", def: "0", Kind: bytesFrom(0), Mode: AtStart},
	{Name: "segment-size", def: "268435456", Kind: bytesBetween(1<<16, 2<<30), Mode: AtStart},
	{Name: "merge-bytes-per-second", def: "67108864", Kind: bytesFrom(0), Mode: AtStart},
}

// observationDirectives are about what operators see.
var observationDirectives = []Directive{
	{Name: "loglevel", def: "notice", Kind: oneOf("debug", "verbose", "notice", "warning"), Mode: Live},
	{Name: "logfile", Kind: logFile(), Mode: AtStart},
	{Name: "slowlog-log-slower-than", alias: "commandlog-execution-slower-than", def: "10000", Kind: between(-1, math.MaxInt64), Mode: Live},
	{Name: "slowlog-max-len", alias: "commandlog-slow-execution-max-len", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "commandlog-request-larger-than", def: "1048576", Kind: between(-1, math.MaxInt64), Mode: Live},
	{Name: "commandlog-large-request-max-len", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "commandlog-reply-larger-than", def: "1048576", Kind: between(-1, math.MaxInt64), Mode: Live},
	{Name: "commandlog-large-reply-max-len", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "latency-monitor-threshold", def: "0", Kind: between(0, math.MaxInt64/int64(time.Millisecond)), Mode: Live},
	{Name: "latency-tracking", def: "yes", Kind: yesNo(), Mode: Live},
	{Name: "latency-tracking-info-percentiles", def: "50 99 99.9", Kind: percentages(), Mode: Live, each: -1},
	{Name: "notify-keyspace-events", Kind: eventFlags(), Mode: Live},
	{Name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", Kind: between(0, math.MaxInt64), Mode: Live},
}

// encodingDirectives are the limits of Redis's compact encodings, which OBJECT ENCODING obeys. The store keeps
// every value in one form.
var encodingDirectives = []Directive{
	{Name: "hash-max-listpack-entries", alias: "hash-max-ziplist-entries", def: "512", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "hash-max-listpack-value", alias: "hash-max-ziplist-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "list-max-listpack-size", alias: "list-max-ziplist-size", def: "-2", Kind: between(math.MinInt32, math.MaxInt32), Mode: Live},
	{Name: "set-max-intset-entries", def: "512", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "set-max-listpack-entries", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "set-max-listpack-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "zset-max-listpack-entries", alias: "zset-max-ziplist-entries", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "zset-max-listpack-value", alias: "zset-max-ziplist-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live},
}

// ownCiphers refuses settings that would promise a choice of ciphers.
const ownCiphers = "Go's TLS chooses the ciphers; tls-protocols TLSv1.3 leaves the newer ones only"

// securityDirectives are about who may do what.
var securityDirectives = []Directive{
	{Name: "requirepass", Kind: anyText(), Mode: Live},
	{Name: "aclfile", Kind: anyText(), Mode: AtStart},
	{Name: "acllog-max-len", def: "128", Kind: between(0, math.MaxInt64), Mode: Live},
	{Name: "acl-pubsub-default", def: "resetchannels", Kind: oneOf("allchannels", "resetchannels"), Mode: Fixed, Refusal: "give users their channels by rules"},
	{Name: "protected-mode", def: "yes", Kind: yesNo(), Mode: AtStart},
	{Name: "tls-port", def: "0", Kind: between(0, 65535), Mode: Live},
	{Name: "tls-cert-file", Kind: anyText(), Mode: AtStart},
	{Name: "tls-key-file", Kind: anyText(), Mode: AtStart},
	{Name: "tls-ca-cert-file", Kind: anyText(), Mode: AtStart},
	{Name: "tls-auth-clients", def: "yes", Kind: oneOf("yes", "no", "optional"), Mode: AtStart},
	{Name: "tls-protocols", Kind: anyText(), Mode: AtStart},
	{Name: "tls-ciphers", Kind: anyText(), Mode: Fixed, Refusal: ownCiphers},
	{Name: "tls-ciphersuites", Kind: anyText(), Mode: Fixed, Refusal: ownCiphers},
	{Name: "tls-key-file-pass", Kind: anyText(), Mode: Fixed, Refusal: "keys with a passphrase are not read"},
	{Name: "tls-ca-cert-dir", Kind: anyText(), Mode: Fixed, Refusal: "name one file, tls-ca-cert-file"},
	{Name: "tls-client-key-file-pass", Kind: anyText(), Mode: Fixed, Refusal: "keys with a passphrase are not read"},
}

// replicationDirectives are about masters, replicas and clusters.
var replicationDirectives = []Directive{
	{Name: "replicaof", alias: "slaveof", Kind: master(), Mode: AtStart, each: -1, none: []string{"no", "one"}},
	{Name: "masterauth", Kind: anyText(), Mode: Live},
	{Name: "masteruser", Kind: anyText(), Mode: Live},
	{Name: "tls-replication", def: "no", Kind: yesNo(), Mode: Live},
	{Name: "repl-timeout", def: "60", Kind: between(1, math.MaxInt32), Mode: Live},
	{Name: "replica-read-only", alias: "slave-read-only", def: "yes", Kind: yesNo(), Mode: Fixed, Refusal: "a replica is written to by its master alone"},
	{Name: "replica-serve-stale-data", alias: "slave-serve-stale-data", def: "yes", Kind: yesNo(), Mode: Live},
	{Name: "replica-ignore-errors", def: "no", Kind: yesNo(), Mode: Live},
	{Name: "replica-priority", alias: "slave-priority", def: "100", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "replica-announced", def: "yes", Kind: yesNo(), Mode: Live},
	{Name: "replica-announce-ip", alias: "slave-announce-ip", Kind: anyText(), Mode: Live},
	{Name: "replica-announce-port", alias: "slave-announce-port", def: "0", Kind: between(0, 65535), Mode: Live},
	{Name: "cluster-enabled", def: "no", Kind: yesNo(), Mode: AtStart},
	{Name: "min-replicas-to-write", alias: "min-slaves-to-write", def: "0", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "min-replicas-max-lag", alias: "min-slaves-max-lag", def: "10", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "repl-backlog-size", def: "16777216", Kind: bytesFrom(1), Mode: Live},
	{Name: "repl-backlog-ttl", def: "3600", Kind: between(0, math.MaxInt32), Mode: Live},
	{Name: "repl-ping-replica-period", alias: "repl-ping-slave-period", def: "10", Kind: between(1, math.MaxInt32), Mode: Live},
	{Name: "repl-compat", def: "7.0", Kind: oneOf("7.0", "7.4"), Mode: Live},
	{Name: "cluster-announce-ip", Kind: anyText(), Mode: Live},
	{Name: "cluster-announce-port", def: "0", Kind: between(0, 65535), Mode: Live},
	{Name: "cluster-announce-tls-port", def: "0", Kind: between(0, 65535), Mode: Fixed, Refusal: "clients are told cluster-announce-port, with TLS and without"},
	{Name: "cluster-announce-bus-port", def: "0", Kind: between(0, 65535), Mode: Live},
	{Name: "cluster-announce-hostname", Kind: anyText(), Mode: Live},
	{Name: "cluster-preferred-endpoint-type", def: "ip", Kind: oneOf("ip", "hostname", "unknown-endpoint"), Mode: Live},
}

// processDirectives are about the process.
var processDirectives = []Directive{
	{Name: "daemonize", def: "no", Kind: yesNo(), Mode: Fixed,
		Refusal:   "the server runs in the foreground; let a supervisor such as systemd run it",
		tolerates: otherThan("no", "the server stays in the foreground; let a supervisor such as systemd run it")},
	{Name: "shutdown-on-sigint", def: "default", Kind: someOf("default", "save", "nosave", "now", "force"), Mode: kept, each: -1},
	{Name: "shutdown-on-sigterm", def: "default", Kind: someOf("default", "save", "nosave", "now", "force"), Mode: kept, each: -1},
}

// ownTransport is the transport of this platform.
func ownTransport() string {
	if runtime.GOOS == "linux" {
		return "event-loop"
	}
	return "goroutines"
}
