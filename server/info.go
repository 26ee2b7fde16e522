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
	w.field("redis_version", RedisVersion)
	w.field("redis_mode", "standalone")
	w.field("server_name", "stave")
	w.field("stave_version", v.options.Version)
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", 32<<(^uint(0)>>63))
	w.field("go_version", runtime.Version())
	w.field("process_id", os.Getpid())
	w.field("run_id", v.runID)
	w.field("tcp_port", port)
	w.field("server_time_usec", time.Now().UnixMicro())
	w.field("uptime_in_seconds", uptime)
	w.field("uptime_in_days", uptime/86400)
	w.field("hz", 10)
	w.field("executable", executable)
	w.field("config_file", "")
}

// infoClients counts connections.
func (v *Server) infoClients(w *infoWriter) {
	w.field("connected_clients", len(v.sessions()))
	w.field("cluster_connections", 0)
	w.field("maxclients", v.tunables.maxClients.Load())
	w.field("client_memory", v.counters.clientBytes.Load())
	w.field("blocked_clients", v.counters.blocked.Load())
	w.field("tracking_clients", 0)
}

// infoMemory has the memory of the process as the Go runtime knows it. There is no maxmemory:
// values are on disk.
func (v *Server) infoMemory(w *infoWriter) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	used := m.HeapAlloc + m.StackInuse
	held := m.Sys - m.HeapReleased
	w.field("used_memory", used)
	w.field("used_memory_human", human(used))
	w.field("used_memory_rss", held)
	w.field("used_memory_rss_human", human(held))
	w.field("used_memory_peak", m.Sys)
	w.field("used_memory_peak_human", human(m.Sys))
	w.field("used_memory_startup", 0)
	w.field("used_memory_dataset", used)
	w.field("maxmemory", 0)
	w.field("maxmemory_human", "0B")
	w.field("maxmemory_policy", "noeviction")
	w.field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(held)/float64(max(used, 1))))
	w.field("mem_clients_normal", v.counters.clientBytes.Load())
	w.field("mem_allocator", "go")
	w.field("lazyfree_pending_objects", 0)
}

// infoPersistence has the fields that tools check: that data is durable, that nothing is being loaded or
// rewritten.
func (v *Server) infoPersistence(w *infoWriter) {
	w.field("loading", 0)
	w.field("async_loading", 0)
	w.field("rdb_changes_since_last_save", 0)
	w.field("rdb_bgsave_in_progress", 0)
	w.field("rdb_last_save_time", v.started.Unix())
	w.field("rdb_last_bgsave_status", "ok")
	w.field("aof_enabled", 1)
	w.field("aof_rewrite_in_progress", 0)
	w.field("aof_rewrite_scheduled", 0)
	w.field("aof_last_bgrewrite_status", "ok")
	s := v.store.Stats()
	status := "ok"
	if s.State != db.StateOK {
		status = "err"
	}
	w.field("aof_last_write_status", status)
	w.field("store_state", s.State)
	w.field("store_reserve_bytes", s.Reserve)
	w.field("store_reserve_wanted_bytes", s.ReserveDue)
}

// infoStats has the counters since the start or CONFIG RESETSTAT.
func (v *Server) infoStats(w *infoWriter) {
	c := &v.counters
	store := v.store.Stats()
	w.field("total_connections_received", c.connections.Load())
	w.field("total_commands_processed", v.executed())
	w.field("instantaneous_ops_per_sec", v.rate())
	w.field("total_net_input_bytes", c.in.Load())
	w.field("total_net_output_bytes", c.out.Load())
	w.field("rejected_connections", c.rejected.Load())
	w.field("sync_full", 0)
	w.field("sync_partial_ok", 0)
	w.field("sync_partial_err", 0)
	w.field("expired_keys", store.Expired)
	w.field("expired_subkeys", store.ExpiredFields)
	w.field("evicted_keys", 0)
	w.field("evicted_clients", c.evicted.Load())
	w.field("keyspace_hits", c.hits.Load())
	w.field("keyspace_misses", c.misses.Load())
	w.field("client_output_buffer_limit_disconnections", c.flooded.Load())
	w.field("pubsub_channels", len(v.hub.names(toChannel)))
	w.field("pubsub_patterns", len(v.hub.names(toPattern)))
	w.field("pubsubshard_channels", len(v.hub.names(toShard)))
	w.field("latest_fork_usec", 0)
	w.field("total_forks", 0)
	w.field("unexpected_error_replies", c.panics.Load())
	w.field("total_error_replies", c.errors.Load())
	w.field("total_reads_processed", c.reads.Load())
	w.field("total_writes_processed", c.writes.Load())
}

// infoReplication says that there is none: a master without replicas.
func (v *Server) infoReplication(w *infoWriter) {
	w.field("role", "master")
	w.field("connected_slaves", 0)
	w.field("master_failover_state", "no-failover")
	w.field("master_replid", strings.Repeat("0", 40)) // there is no replication
	w.field("master_replid2", strings.Repeat("0", 40))
	w.field("master_repl_offset", 0)
	w.field("second_repl_offset", -1)
	w.field("repl_backlog_active", 0)
	w.field("repl_backlog_size", 0)
	w.field("repl_backlog_first_byte_offset", 0)
	w.field("repl_backlog_histlen", 0)
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
	w.field("storage_dir", s.Dir)
	w.field("storage_id", s.StoreID)
	w.field("storage_segments", s.Segments)
	w.field("storage_bytes", s.Bytes)
	w.field("storage_live_bytes", s.LiveBytes)
	w.field("storage_dead_bytes", s.Bytes-s.LiveBytes)
	w.field("storage_index_bytes", s.IndexBytes)
	w.field("storage_sequence", s.Sequence)
	w.field("storage_syncs", s.Syncs)
	w.field("storage_failed", s.Failed)
	w.field("merges", s.Merge.Merges)
	w.field("merge_failures", s.Merge.Failures)
	w.field("merge_running", s.Merge.Running)
	w.field("merge_read_bytes", s.Merge.Read)
	w.field("merge_to_read_bytes", s.Merge.ToRead)
}
