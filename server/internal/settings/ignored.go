package settings

import "strings"

// ignored are directives of files of Redis and Valkey that are no settings here: CONFIG GET does not show them, and CONFIG
// SET does not know them. Each would change nothing that a client of this server can see. A line that has another value
// than the stock files is warned of.
var ignored = map[string]struct{ stock, why string }{}

// oldRedis are directives that Redis 7 skips, or that Redis has no more. What replaced some has another name.
const oldRedis = `list-max-ziplist-entries 512
list-max-ziplist-value 64
hash-max-zipmap-entries 512
hash-max-zipmap-value 64
lua-replicate-commands yes
gopher-enabled no
glueoutputbuf yes
vm-enabled no
vm-swap-file /tmp/redis.swap
vm-max-memory 0
vm-page-size 32
vm-pages 134217728
vm-max-threads 4`

// newer are directives of Redis 7.4 and later, and of Valkey, that are about mechanisms that do not exist here.
const newer = `active-defrag-cycle-us 500
aof-rewrite-cpulist
availability-zone
bgsave-cpulist
bio-cpulist
cluster-announce-client-ipv4
cluster-announce-client-ipv6
cluster-announce-client-port 0
cluster-announce-client-tls-port 0
cluster-announce-human-nodename
cluster-blacklist-ttl 60
cluster-compatibility-sample-ratio 0
cluster-config-save-behavior sync
cluster-databases 1
cluster-manual-failover-timeout 5000
cluster-ping-interval 1000
cluster-slot-migration-log-max-len 1000
cluster-slot-stats-enabled no
dual-channel-replication-enabled no
events-per-io-thread 2
extended-redis-compatibility no
hash-seed
import-mode no
io-threads-always-active no
log-format legacy
log-timestamp-format legacy
lookahead 16
lua-enable-deprecated-api no
lua-enable-insecure-api no
max-new-connections-per-cycle 10
max-new-tls-connections-per-cycle 1
min-io-threads-avoid-copy-reply 7
mptcp no
prefetch-batch-max-size 16
primaryauth
primaryuser
rdb-version-check strict
rdma-bind
rdma-completion-vector 0
rdma-port 0
rdma-rx-size 1048576
repl-mptcp no
replica-full-sync-buffer-limit 0
server-cpulist
slot-migration-max-failover-repl-bytes 0
tls-auth-clients-user off
tls-auto-reload-interval 0
unixsocketgroup`

func init() {
	for list, why := range map[string]string{oldRedis: "Redis 7 has it no more, or skips it", newer: "what it is about does not exist here"} {
		for line := range strings.Lines(list) {
			name, stock, _ := strings.Cut(strings.TrimSpace(line), " ")
			ignored[name] = struct{ stock, why string }{stock, why}
		}
	}
}
