package server

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// The text of INFO is read by people and by exporters of metrics. The latter look for Redis's field
// names, so a fact has Redis's name where Redis has it, and fields that a monitor divides
// by or alerts on are there as constants: no replicas, no evictions, no fork. Sizes are bytes and
// times seconds, unless the name says otherwise. Nothing is computed ahead: a call reads the
// counters one by one, so the fields are of slightly different moments.

// infoSection is one section of INFO. Field names are Redis's wherever the fact is the same, for
// tools understand those.
type infoSection struct {
	name  string
	extra bool // only with "all", "everything" or its name
	write func(*Server, *infoWriter)
}

var infoSections = []infoSection{
	{"Server", false, (*Server).infoServer},
	{"Clients", false, (*Server).infoClients},
	{"Memory", false, (*Server).infoMemory},
	{"Persistence", false, (*Server).infoPersistence},
	{"Stats", false, (*Server).infoStats},
	{"Replication", false, (*Server).infoReplication},
	{"CPU", false, (*Server).infoCPU},
	{"Modules", false, func(*Server, *infoWriter) {}},
	{"Commandstats", true, (*Server).infoCommands},
	{"Errorstats", false, (*Server).infoErrors},
	{"Cluster", false, func(_ *Server, w *infoWriter) { w.field("cluster_enabled", 0) }},
	{"Keyspace", false, (*Server).infoKeyspace},
	{"Storage", false, (*Server).infoStorage},
}

// infoWriter builds the text of INFO.
type infoWriter struct{ strings.Builder }

// field writes a line. Lines end as in Redis, with CR and LF.
func (w *infoWriter) field(name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

// fields writes several lines: names and values in turn.
func (w *infoWriter) fields(namesAndValues ...any) {
	for i := 0; i < len(namesAndValues); i += 2 {
		w.field(namesAndValues[i].(string), namesAndValues[i+1])
	}
}

// human is a number of bytes as Redis prints it for people. The unit is a power of 1024, as Redis
// has it, where the command line of Stave uses powers of ten.
func human(n uint64) string {
	units := []string{"B", "K", "M", "G", "T", "P"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.2f%s", f, units[i])
}

// Info returns the text of INFO: the named sections, or those that INFO shows without a name.
// Unknown names are skipped, as in Redis. The sections have Redis's order.
func (v *Server) Info(sections ...string) string {
	wanted := func(s infoSection) bool { return !s.extra }
	if len(sections) > 0 {
		wanted = func(s infoSection) bool {
			return slices.ContainsFunc(sections, func(name string) bool {
				switch name = strings.ToLower(name); name {
				case "all", "everything":
					return true
				case "default":
					return !s.extra
				default:
					return name == strings.ToLower(s.name)
				}
			})
		}
	}
	var w infoWriter
	for _, section := range infoSections {
		if !wanted(section) {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		fmt.Fprintf(&w, "# %s\r\n", section.name)
		section.write(v, &w)
	}
	return w.String()
}

// infoServer identifies the server. Clients look at redis_version and redis_mode.
func (v *Server) infoServer(w *infoWriter) {
	_, port := v.listenAddress()
	uptime := int64(time.Since(v.started).Seconds())
	executable, _ := os.Executable() // unknown is shown as nothing
	w.fields(
		"redis_version", RedisVersion, "redis_mode", "standalone", "server_name", "stave",
		"stave_version", v.options.Version, "os", runtime.GOOS+" "+runtime.GOARCH, "arch_bits", 32<<(^uint(0)>>63),
		"go_version", runtime.Version(), "process_id", os.Getpid(), "run_id", v.runID, "tcp_port", port,
		"server_time_usec", time.Now().UnixMicro(), "uptime_in_seconds", uptime, "uptime_in_days", uptime/86400,
		"hz", 10, "executable", executable, "config_file", "",
	)
}

// infoClients counts connections.
func (v *Server) infoClients(w *infoWriter) {
	w.fields(
		"connected_clients", len(v.sessions()), "cluster_connections", 0,
		"maxclients", v.tunables.maxClients.Load(), "client_memory", v.counters.clientBytes.Load(),
		"blocked_clients", v.counters.blocked.Load(), "tracking_clients", 0,
	)
}

// infoMemory has the memory of the process as the Go runtime knows it. There is no maxmemory:
// values are on disk.
func (v *Server) infoMemory(w *infoWriter) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	used := m.HeapAlloc + m.StackInuse
	held := m.Sys - m.HeapReleased
	w.fields(
		"used_memory", used, "used_memory_human", human(used), "used_memory_rss", held,
		"used_memory_rss_human", human(held), "used_memory_peak", m.Sys, "used_memory_peak_human", human(m.Sys),
		"used_memory_startup", 0, "used_memory_dataset", used, "maxmemory", 0, "maxmemory_human", "0B",
		"maxmemory_policy", "noeviction",
		"mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(held)/float64(max(used, 1))),
		"mem_clients_normal", v.counters.clientBytes.Load(), "mem_allocator", "go", "lazyfree_pending_objects", 0,
	)
}

// infoPersistence has the fields that tools check: that data is durable, that nothing is being loaded or
// rewritten.
func (v *Server) infoPersistence(w *infoWriter) {
	w.fields(
		"loading", 0, "async_loading", 0, "rdb_changes_since_last_save", 0, "rdb_bgsave_in_progress", 0,
		"rdb_last_save_time", v.started.Unix(), "rdb_last_bgsave_status", "ok", "aof_enabled", 1,
		"aof_rewrite_in_progress", 0, "aof_rewrite_scheduled", 0, "aof_last_bgrewrite_status", "ok",
	)
	s := v.store.Stats()
	status := "ok"
	if s.State != db.StateOK {
		status = "err"
	}
	w.fields(
		"aof_last_write_status", status, "store_state", s.State, "store_reserve_bytes", s.Reserve,
		"store_reserve_wanted_bytes", s.ReserveDue,
	)
}

// infoStats has the counters since the start or CONFIG RESETSTAT.
func (v *Server) infoStats(w *infoWriter) {
	c := &v.counters
	store := v.store.Stats()
	w.fields(
		"total_connections_received", c.connections.Load(), "total_commands_processed", v.executed(),
		"instantaneous_ops_per_sec", v.rate(), "total_net_input_bytes", c.in.Load(),
		"total_net_output_bytes", c.out.Load(), "rejected_connections", c.rejected.Load(), "sync_full", 0,
		"sync_partial_ok", 0, "sync_partial_err", 0, "expired_keys", store.Expired,
		"expired_subkeys", store.ExpiredFields, "evicted_keys", 0, "evicted_clients", c.evicted.Load(),
		"keyspace_hits", c.hits.Load(), "keyspace_misses", c.misses.Load(),
		"client_output_buffer_limit_disconnections", c.flooded.Load(),
		"pubsub_channels", len(v.hub.names(toChannel)), "pubsub_patterns", len(v.hub.names(toPattern)),
		"pubsubshard_channels", len(v.hub.names(toShard)), "latest_fork_usec", 0, "total_forks", 0,
		"unexpected_error_replies", c.panics.Load(), "total_error_replies", c.errors.Load(),
		"total_reads_processed", c.reads.Load(), "total_writes_processed", c.writes.Load(),
	)
}

// infoReplication says that there is none: a master without replicas.
func (v *Server) infoReplication(w *infoWriter) {
	w.fields(
		"role", "master", "connected_slaves", 0, "master_failover_state", "no-failover",
	)
	w.field("master_replid", strings.Repeat("0", 40)) // there is no replication
	w.fields(
		"master_replid2", strings.Repeat("0", 40), "master_repl_offset", 0, "second_repl_offset", -1,
		"repl_backlog_active", 0, "repl_backlog_size", 0, "repl_backlog_first_byte_offset", 0,
		"repl_backlog_histlen", 0,
	)
}

// infoCommands has a line for each command that has been called or rejected.
func (v *Server) infoCommands(w *infoWriter) {
	for _, cmd := range Commands {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			s := &v.commands[one.Index]
			calls, rejected := s.calls.Load(), s.rejected.Load()
			if calls == 0 && rejected == 0 {
				continue
			}
			usec := s.nanoseconds.Load() / 1000
			w.field("cmdstat_"+one.Name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
				calls, usec, float64(usec)/float64(max(calls, 1)), rejected, s.failed.Load()))
		}
	}
}

// infoErrors counts error replies by their code.
func (v *Server) infoErrors(w *infoWriter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	codes := make([]string, 0, len(v.errors))
	for code := range v.errors {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		w.field("errorstat_"+code, fmt.Sprintf("count=%d", v.errors[code]))
	}
}

// infoKeyspace has a line for each database that has keys. Keys that have expired are counted until
// they are deleted.
func (v *Server) infoKeyspace(w *infoWriter) {
	for _, ns := range v.store.Stats().Namespaces {
		if ns.Keys > 0 {
			w.field(fmt.Sprintf("db%d", ns.Namespace), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d", ns.Keys, ns.Deadlines, ns.AverageTTLms, ns.TimedHashes))
		}
	}
}

// infoStorage is Stave's own section: the log under the keys.
func (v *Server) infoStorage(w *infoWriter) {
	s := v.store.Stats()
	w.fields(
		"storage_dir", s.Dir, "storage_id", s.StoreID, "storage_segments", s.Segments, "storage_bytes", s.Bytes,
		"storage_live_bytes", s.LiveBytes, "storage_dead_bytes", s.Bytes-s.LiveBytes,
		"storage_index_bytes", s.IndexBytes, "storage_sequence", s.Sequence, "storage_syncs", s.Syncs,
		"storage_failed", s.Failed, "merges", s.Merge.Merges, "merge_failures", s.Merge.Failures,
		"merge_running", s.Merge.Running, "merge_read_bytes", s.Merge.Read, "merge_to_read_bytes", s.Merge.ToRead,
	)
}
