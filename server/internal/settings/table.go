package settings

import (
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
	meaning string // what it does here, in one sentence

	// Refusal is why another value than the default is refused, of a fixed directive.
	Refusal string
	// each is set where several lines of a file make one value: how many words a line has.
	each int
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

func init() {
	for _, rows := range [][]Directive{
		networkDirectives, memoryDirectives, storageDirectives, observationDirectives, encodingDirectives, securityDirectives,
		replicationDirectives, keptDirectives,
	} {
		for i := range rows {
			d := &rows[i]
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

// networkDirectives are about connections.
var networkDirectives = []Directive{
	{Name: "bind", def: "127.0.0.1", Kind: words(), Mode: Live, each: -1,
		meaning: "The addresses to listen on, with `port`. Those that other machines can reach need a password, and TLS or `protected-mode no`."},
	{Name: "port", def: "6380", Kind: between(0, 65535), Mode: Live, meaning: "The TCP port; 0 for none."},
	{Name: "unixsocket", Kind: anyText(), Mode: AtStart, meaning: "The path of a Unix socket to listen on."},
	{Name: "unixsocketperm", def: "0", Kind: octal(), Mode: AtStart, meaning: "The permissions of the socket file; 0 for 700, which is its owner alone."},
	{Name: "tcp-keepalive", def: "300", Kind: between(0, math.MaxInt32), Mode: Live,
		meaning: "Seconds between probes of an idle connection; 0 for none. It holds for new connections."},
	{Name: "timeout", def: "0", Kind: between(0, math.MaxInt32), Mode: Live,
		meaning: "Seconds after which a connection that sends nothing is closed; 0 for never. Subscribers are not."},
	{Name: "maxclients", def: "10000", Kind: between(1, math.MaxUint32), Mode: Live,
		meaning: "How many connections are served at a time. It is lowered to what the limit of open files allows, with 64 files reserved for the store."},
	{Name: "proto-max-bulk-len", def: "67108864", Kind: bytesFrom(1 << 20), Mode: AtStart,
		meaning: "The size of the largest argument of a command."},
	{Name: "client-query-buffer-limit", def: "67108864", Kind: bytesFrom(1 << 20), Mode: Fixed, meaning: "Is proto-max-bulk-len.", Refusal: "the limit follows proto-max-bulk-len"},
	{Name: "client-output-buffer-limit", def: "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60", Kind: bufferLimits(), Mode: Live, each: 4,
		meaning: "How many bytes of replies may wait for a client (class `normal`), and of messages for a subscriber (`pubsub`): at once, and for so many seconds. A client beyond that is disconnected."},
	{Name: "transport", def: ownTransport(), Kind: oneOf("goroutines", "event-loop"), Mode: AtStart,
		meaning: "(own) How connections are served: one event loop for all, which exists on Linux and is the default there, or a goroutine each."},
	{Name: "http-addr", Kind: anyText(), Mode: AtStart, meaning: "(own) HOST:PORT of the dashboard, `/metrics` and `/healthz`; none if empty. Only addresses of this machine are allowed."},
	{Name: "databases", def: "16", Kind: between(1, 65536), Mode: AtStart, meaning: "How many databases SELECT reaches."},
	{Name: "enable-debug-command", def: "no", Kind: oneOf("no", "yes", "local"), Mode: AtStart,
		meaning: "Allows DEBUG, which is for tests of clients: `local` to clients of this machine, `yes` to all."},
	{Name: "enable-module-command", def: "no", Kind: oneOf("no", "yes", "local"), Mode: Fixed, Refusal: "there are no modules", meaning: "There are no modules."},
	{Name: "enable-protected-configs", def: "no", Kind: oneOf("no", "yes", "local"), Mode: Fixed,
		Refusal: "paths are never changed while the server runs", meaning: "Paths are never changed while the server runs."},
}

// memoryDirectives are about memory.
var memoryDirectives = []Directive{
	{Name: "maxmemory", def: "0", Kind: bytesFrom(0), Mode: Live,
		meaning: "Bytes of index and buffers in memory above which commands that may add data are refused; 0 for no limit. Values are on disk and do not count."},
	{Name: "maxmemory-policy", def: "noeviction", Mode: Fixed,
		Kind:    oneOf("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"),
		Refusal: "Stave evicts no keys: values are on disk, and access times are not kept. Use noeviction, and give keys that may go a time to live",
		meaning: "Keys are never evicted."},
	{Name: "maxmemory-clients", def: "1073741824", Kind: bytesOrPercent(), Mode: Live,
		meaning: "Bytes of the buffers of all clients above which the largest client is closed; 0 for no limit. `5%` is a share of maxmemory."},
	{Name: "maxmemory-samples", def: "5", Kind: between(1, math.MaxInt32), Mode: kept, meaning: "Keys are never evicted."},
	{Name: "maxmemory-eviction-tenacity", def: "10", Kind: between(0, 100), Mode: kept, meaning: "Keys are never evicted."},
	{Name: "lfu-log-factor", def: "10", Kind: between(0, math.MaxInt32), Mode: kept, meaning: "Keys are never evicted."},
	{Name: "lfu-decay-time", def: "1", Kind: between(0, math.MaxInt32), Mode: kept, meaning: "Keys are never evicted."},
	{Name: "tracking-table-max-keys", def: "1000000", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "How many keys the table has that clients may have cached; those that make room for others are reported as if they had changed. 0 for no limit."},
}

// storageDirectives are about the log and the disk.
var storageDirectives = []Directive{
	{Name: "dir", def: "stave-data", Kind: anyText(), Mode: AtStart,
		meaning: "The directory of the store. A relative path is relative to the working directory."},
	{Name: "appendfsync", def: "everysec", Kind: oneOf("everysec", "always", "no"), Mode: Live,
		meaning: "When the log is synced: each second, before each reply that acknowledges a write, or when the system likes. A change to `always` syncs what was written before."},
	{Name: "appendonly", def: "yes", Kind: yesNo(), Mode: kept, meaning: "The log is append-only, and it is all there is: `no` changes nothing."},
	{Name: "save", Kind: savePoints(), Mode: kept, each: 2, meaning: "Every commit is written to the log at once; there is nothing to save at intervals."},
	{Name: "segment-size", def: "268435456", Kind: bytesFrom(1 << 16), Mode: AtStart, meaning: "(own) Bytes from which a segment of the log is sealed."},
	{Name: "merge-bytes-per-second", def: "67108864", Kind: bytesFrom(0), Mode: AtStart, meaning: "(own) How fast merges read and write; 0 for no limit."},
	{Name: "auto-aof-rewrite-percentage", def: "100", Kind: between(0, math.MaxInt32), Mode: kept, meaning: "The merge policy decides what is rewritten."},
	{Name: "auto-aof-rewrite-min-size", def: "67108864", Kind: bytesFrom(0), Mode: kept, meaning: "The merge policy decides what is rewritten."},
	{Name: "appendfilename", def: "appendonly.aof", Kind: anyText(), Mode: kept, meaning: "The files of the log have names of their own."},
	{Name: "appenddirname", def: "appendonlydir", Kind: anyText(), Mode: kept, meaning: "The files of the log have names of their own."},
	{Name: "dbfilename", Kind: anyText(), Mode: kept, meaning: "There is no RDB file."},
	{Name: "stop-writes-on-bgsave-error", def: "yes", Kind: yesNo(), Mode: kept, meaning: "After a failed write or sync the store refuses writes, always."},
}

// observationDirectives are about what operators see.
var observationDirectives = []Directive{
	{Name: "loglevel", def: "notice", Kind: oneOf("debug", "verbose", "notice", "warning"), Mode: Live,
		meaning: "What the log has: `warning` leaves out what is only news; `verbose` is the same as `notice`."},
	{Name: "logfile", Kind: anyText(), Mode: AtStart, meaning: "The file that the log is appended to; the standard error if empty."},
	{Name: "slowlog-log-slower-than", def: "10000", Kind: between(-1, math.MaxInt64), Mode: Live,
		meaning: "Microseconds from which SLOWLOG has a command; 0 for all, -1 for none."},
	{Name: "slowlog-max-len", def: "128", Kind: between(0, math.MaxInt64), Mode: Live, meaning: "How many commands SLOWLOG keeps."},
	{Name: "latency-monitor-threshold", def: "0", Kind: between(0, math.MaxInt64/int64(time.Millisecond)), Mode: Live,
		meaning: "Milliseconds from which LATENCY has a command; 0 for none."},
	{Name: "latency-tracking", def: "yes", Kind: yesNo(), Mode: Live,
		meaning: "Counts for LATENCY HISTOGRAM and INFO latencystats how long commands take."},
	{Name: "latency-tracking-info-percentiles", def: "50 99 99.9", Kind: percentages(), Mode: Live, each: -1,
		meaning: "The percentiles that INFO latencystats has."},
	{Name: "notify-keyspace-events", Kind: eventFlags(), Mode: Live, meaning: "Which events of keys are published."},
	{Name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "Milliseconds of a script after which who needs its locks is told BUSY; 0 for never."},
	{Name: "hz", def: "10", Kind: between(1, 500), Mode: kept, meaning: "Expiry runs ten times a second, and longer while much is due."},
	{Name: "dynamic-hz", def: "yes", Kind: yesNo(), Mode: kept, meaning: "Expiry runs ten times a second, and longer while much is due."},
	{Name: "active-expire-effort", def: "1", Kind: between(1, 10), Mode: kept, meaning: "Expiry takes up to a quarter of a core while keys are due."},
}

// encodingDirectives are the limits of Redis's compact encodings, which OBJECT ENCODING obeys. The store keeps
// every value in one form.
var encodingDirectives = []Directive{
	{Name: "hash-max-listpack-entries", alias: "hash-max-ziplist-entries", def: "512", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for hashes of up to so many fields."},
	{Name: "hash-max-listpack-value", alias: "hash-max-ziplist-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for hashes with fields and values of up to so many bytes."},
	{Name: "list-max-listpack-size", alias: "list-max-ziplist-size", def: "-2", Kind: between(math.MinInt32, math.MaxInt32), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for lists of up to so many elements; -1 to -5 are 4, 8, 16, 32 and 64 KiB."},
	{Name: "list-compress-depth", def: "0", Kind: between(0, math.MaxInt32), Mode: kept, meaning: "Lists are not compressed."},
	{Name: "set-max-intset-entries", def: "512", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says intset for sets of up to so many integers."},
	{Name: "set-max-listpack-entries", def: "128", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for sets of up to so many members."},
	{Name: "set-max-listpack-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for sets of members of up to so many bytes."},
	{Name: "zset-max-listpack-entries", alias: "zset-max-ziplist-entries", def: "128", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for sorted sets of up to so many members."},
	{Name: "zset-max-listpack-value", alias: "zset-max-ziplist-value", def: "64", Kind: between(0, math.MaxInt64), Mode: Live,
		meaning: "OBJECT ENCODING says listpack for sorted sets of members of up to so many bytes."},
	{Name: "stream-node-max-bytes", def: "4096", Kind: bytesFrom(0), Mode: kept, meaning: "The store keeps every value in a form of its own."},
	{Name: "stream-node-max-entries", def: "100", Kind: between(0, math.MaxInt64), Mode: kept, meaning: "The store keeps every value in a form of its own."},
	{Name: "hll-sparse-max-bytes", def: "3000", Kind: between(0, math.MaxInt64), Mode: kept, meaning: "A HyperLogLog becomes dense at 3000 bytes."},
}

// ownTransport is the transport of this platform.
func ownTransport() string {
	if runtime.GOOS == "linux" {
		return "event-loop"
	}
	return "goroutines"
}
