package stats

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
)

// The text of INFO is read by people and by exporters of metrics. The latter look for Redis's field
// names, so a fact has Redis's name where Redis has it, and fields that a monitor divides
// by or alerts on are there as constants: no evictions, no fork. Sizes are bytes and
// times seconds, unless the name says otherwise. Nothing is computed ahead: a call reads the
// counters one by one, so the fields are of slightly different moments.

// infoSection is one section of INFO. Field names are Redis's wherever the fact is the same, for
// tools understand those.
type infoSection struct {
	name  string
	extra bool // only with "all", "everything" or its name
	write func(*Figures, *infoWriter)
}

var infoSections = []infoSection{
	{"Server", false, (*Figures).infoServer},
	{"Clients", false, (*Figures).infoClients},
	{"Memory", false, (*Figures).infoMemory},
	{"Persistence", false, (*Figures).infoPersistence},
	{"Stats", false, (*Figures).infoStats},
	{"Replication", false, (*Figures).infoReplication},
	{"CPU", false, (*Figures).infoCPU},
	{"Modules", false, func(*Figures, *infoWriter) {}},
	{"Commandstats", true, (*Figures).infoCommands},
	{"Errorstats", false, (*Figures).infoErrors},
	{"Latencystats", true, (*Figures).infoLatency},
	{"Cluster", false, func(f *Figures, w *infoWriter) { w.field("cluster_enabled", oneIf(f.Mode == "cluster")) }},
	{"Keyspace", false, (*Figures).infoKeyspace},
	{"Storage", false, (*Figures).infoStorage},
}

// infoWriter builds the text of INFO.
type infoWriter struct{ strings.Builder }

// field writes a line. Lines end as in Redis, with CR and LF; nothing within a name or a value does.
func (w *infoWriter) field(name string, value any) {
	fmt.Fprintf(w, "%s:%s\r\n", fieldName(name), lineEnds.Replace(fmt.Sprint(value)))
}

var lineEnds = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ")

// fieldName is a text as it may stand in the name of a field: without what ends a name, begins a section, or cannot be
// printed.
func fieldName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '#' || r == ':' || r < '!' || r > '~' {
			return '_'
		}
		return r
	}, text)
}

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
func (f *Figures) Info(sections ...string) string {
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
		section.write(f, &w)
	}
	return w.String()
}

// infoServer identifies the server. Clients look at redis_version and redis_mode.
func (f *Figures) infoServer(w *infoWriter) {
	uptime := int64(time.Since(f.Started).Seconds())
	executable, _ := os.Executable() // unknown is shown as nothing
	w.fields(
		"redis_version", f.RedisVersion, "redis_git_sha1", "00000000", "redis_git_dirty", 0, "redis_build_id", "0", "redis_mode", f.Mode, "server_name", "stave",
		"stave_version", f.Version, "os", runtime.GOOS+" "+runtime.GOARCH, "arch_bits", 32<<(^uint(0)>>63),
		"go_version", runtime.Version(), "process_id", os.Getpid(), "run_id", f.RunID, "tcp_port", f.Port,
		"server_time_usec", time.Now().UnixMicro(), "uptime_in_seconds", uptime, "uptime_in_days", uptime/86400,
		"hz", 10, "configured_hz", f.Hz, "lru_clock", time.Now().Unix()&(1<<24-1), "executable", executable,
		"config_file", f.ConfigFile, "io_threads_active", 0, "multiplexing_api", f.Multiplexing,
		"atomicvar_api", "go", "gcc_version", "0.0.0", "process_supervised", "no", "monotonic_clock", "go",
	)
}

// infoClients counts connections.
func (f *Figures) infoClients(w *infoWriter) {
	w.fields(
		"connected_clients", f.Clients, "cluster_connections", 0,
		"maxclients", f.MaxClients, "client_memory", f.Counters.ClientBytes.Load(),
		"client_recent_max_input_buffer", f.InputPeak, "client_recent_max_output_buffer", f.OutputPeak,
		"blocked_clients", f.Counters.Blocked.Load(), "tracking_clients", f.Tracking.Clients, "clients_in_timeout_table", f.Counters.Blocked.Load(),
		"total_blocking_keys", f.WaitedKeys, "total_blocking_keys_on_nokey", f.WaitedMissing,
	)
}

// infoMemory has the memory of the process as the Go runtime knows it. Values are on disk: the index of the keys is
// the overhead, and what else is in use counts as data.
func (f *Figures) infoMemory(w *infoWriter) {
	m := f.Counters.memory()
	index := uint64(f.Store.IndexBytes)
	used, held := m.used, m.held
	ratio := func(a, b uint64) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(b, 1))) }
	w.fields(
		"used_memory", used, "used_memory_human", human(used), "used_memory_rss", held, "used_memory_rss_human", human(held),
		"used_memory_peak", m.peak, "used_memory_peak_human", human(m.peak), "used_memory_peak_perc", percent(used, m.peak),
		"used_memory_overhead", min(index, used), "used_memory_startup", 0, "used_memory_dataset", used-min(index, used),
		"used_memory_dataset_perc", percent(used-min(index, used), used),
		"allocator_allocated", used, "allocator_active", m.heap, "allocator_resident", held,
		"total_system_memory", systemMemory(), "total_system_memory_human", human(systemMemory()),
		"used_memory_lua", 0, "used_memory_vm_eval", 0, "used_memory_lua_human", "0B", "used_memory_scripts_eval", f.ScriptBytes,
		"number_of_cached_scripts", f.Scripts, "number_of_functions", f.Functions, "number_of_libraries", f.Libraries, "used_memory_vm_functions", 0,
		"used_memory_vm_total", 0, "used_memory_vm_total_human", "0B", "used_memory_functions", f.LibraryBytes, "used_memory_scripts", f.ScriptBytes+f.LibraryBytes,
		"used_memory_scripts_human", human(uint64(f.ScriptBytes+f.LibraryBytes)),
		"maxmemory", f.MaxMemory, "maxmemory_human", human(uint64(f.MaxMemory)), "maxmemory_policy", f.Policy, "maxmemory_counted", f.CountedMemory,
		"allocator_frag_ratio", ratio(m.heap, used), "allocator_frag_bytes", int64(m.heap)-int64(used), "allocator_rss_ratio", ratio(held, m.heap),
		"allocator_rss_bytes", int64(held)-int64(m.heap), "rss_overhead_ratio", "1.00", "rss_overhead_bytes", 0,
		"mem_fragmentation_ratio", ratio(held, used), "mem_fragmentation_bytes", int64(held)-int64(used), "mem_not_counted_for_evict", 0,
		"mem_replication_backlog", f.Replication.Kept, "mem_total_replication_buffers", f.Replication.Kept+f.Replication.Waiting, "mem_clients_slaves", 0,
		"mem_clients_normal", f.Counters.ClientBytes.Load(), "mem_cluster_links", 0, "mem_aof_buffer", 0,
		"mem_allocator", "go", "active_defrag_running", 0, "lazyfree_pending_objects", 0, "lazyfreed_objects", 0,
	)
}

// percent is how INFO shows a share.
func percent(part, of uint64) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(max(of, 1)))
}

// infoPersistence has the fields that tools check: that data is durable, that nothing is being loaded or
// rewritten.
func (f *Figures) infoPersistence(w *infoWriter) {
	s, saves, merge := &f.Store, &f.Counters.Saves, &f.Store.Merge
	w.fields(
		"loading", 0, "async_loading", 0, "current_cow_peak", 0, "current_cow_size", 0, "current_cow_size_age", 0,
		"current_fork_perc", "0.00", "current_save_keys_processed", 0, "current_save_keys_total", 0,
		"rdb_changes_since_last_save", saves.changes(s.Sequence), "rdb_bgsave_in_progress", 0,
		"rdb_last_save_time", saves.At.Load(), "rdb_last_bgsave_status", okOrErr(!saves.failed.Load()),
		"rdb_last_bgsave_time_sec", int64(time.Duration(saves.took.Load()).Seconds()), "rdb_current_bgsave_time_sec", -1,
		"rdb_saves", saves.count.Load(), "rdb_last_cow_size", 0, "rdb_last_load_keys_expired", 0, "rdb_last_load_keys_loaded", 0,
	)
	last := int64(-1)
	if merge.Merges > 0 {
		last = int64(merge.Last.Took.Seconds())
	}
	w.fields(
		"aof_enabled", 1, "aof_rewrite_in_progress", oneIf(merge.Running), "aof_rewrite_scheduled", 0,
		"aof_last_rewrite_time_sec", last, "aof_current_rewrite_time_sec", -1,
		"aof_last_bgrewrite_status", okOrErr(merge.LastErr == ""), "aof_rewrites", merge.Merges, "aof_rewrites_consecutive_failures", 0,
		"aof_last_cow_size", 0, "module_fork_in_progress", 0, "module_fork_last_cow_size", 0,
	)
	w.fields(
		"aof_last_write_status", okOrErr(s.State == db.StateOK), "aof_current_size", s.Bytes, "aof_base_size", s.LiveBytes,
		"aof_pending_rewrite", 0, "aof_buffer_length", 0, "aof_pending_bio_fsync", 0, "aof_delayed_fsync", 0,
		"store_state", s.State, "store_reserve_bytes", s.Reserve,
		"store_reserve_wanted_bytes", s.ReserveDue,
	)
}

// okOrErr is how INFO shows whether something worked.
func okOrErr(ok bool) string {
	if ok {
		return "ok"
	}
	return "err"
}

// infoStats has the counters since the start or CONFIG RESETSTAT.
func (f *Figures) infoStats(w *infoWriter) {
	c := f.Counters
	w.fields(
		"total_connections_received", c.Connections.Load(), "total_commands_processed", c.executed(),
		"instantaneous_ops_per_sec", c.rate(), "total_net_input_bytes", c.In.Load(),
		"total_net_output_bytes", c.Out.Load(), "rejected_connections", c.Rejected.Load(), "sync_full", f.FullSyncs,
		"sync_partial_ok", f.PartialSyncs, "sync_partial_err", f.PartialRefused, "expired_keys", f.Store.Expired,
		"expired_subkeys", f.Store.ExpiredFields, "evicted_keys", f.Store.Evicted, "evicted_clients", c.Evicted.Load(),
		"keyspace_hits", c.Hits.Load(), "keyspace_misses", c.Misses.Load(),
		"client_output_buffer_limit_disconnections", c.Flooded.Load(),
		"pubsub_channels", f.Channels, "pubsub_patterns", f.Patterns,
		"pubsubshard_channels", f.Shards, "latest_fork_usec", 0, "total_forks", 0,
		"instantaneous_input_kbps", "0.00", "instantaneous_output_kbps", "0.00", "instantaneous_input_repl_kbps", "0.00", "instantaneous_output_repl_kbps", "0.00",
		"total_net_repl_input_bytes", 0, "total_net_repl_output_bytes", f.ReplicaBytes, "expired_stale_perc", "0.00", "expired_time_cap_reached_count", 0,
		"expire_cycle_cpu_milliseconds", 0, "total_eviction_exceeded_time", 0, "current_eviction_exceeded_time", 0, "migrate_cached_sockets", 0,
		"slave_expires_tracked_keys", 0, "active_defrag_hits", 0, "active_defrag_misses", 0, "active_defrag_key_hits", 0, "active_defrag_key_misses", 0,
		"total_active_defrag_time", 0, "current_active_defrag_time", 0, "tracking_total_keys", f.Tracking.Keys, "tracking_total_items", f.Tracking.Items, "tracking_total_prefixes", f.Tracking.Prefixes,
		"dump_payload_sanitizations", 0, "io_threaded_reads_processed", 0, "io_threaded_writes_processed", 0, "reply_buffer_shrinks", 0, "reply_buffer_expands", 0,
		"unexpected_error_replies", c.Panics.Load(), "total_error_replies", c.ErrorReplies.Load(),
		"total_reads_processed", c.Reads.Load(), "total_writes_processed", c.Writes.Load(),
	)
}

// infoReplication says whose replica the server is, and is about its own replicas and the stream for them.
func (f *Figures) infoReplication(w *infoWriter) {
	r := &f.Replication
	if f.Replica == nil {
		w.fields("role", "master")
	} else {
		w.fields("role", "slave")
		w.fields(f.Replica...)
	}
	w.field("connected_slaves", len(r.Replicas))
	for i, replica := range r.Replicas {
		w.field(fmt.Sprintf("slave%d", i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d",
			replica.Address, replica.Port, replica.State, replica.Offset, int(replica.Lag.Seconds())))
	}
	former := r.Former
	if former == "" {
		former = strings.Repeat("0", len(r.ID))
	}
	second := int64(-1)
	if r.FormerEnd >= 0 {
		second = r.FormerEnd + 1
	}
	active := 0
	if r.Begun {
		active = 1
	}
	w.fields(
		"master_failover_state", f.Failover,
		"master_replid", r.ID, "master_replid2", former, "master_repl_offset", r.Offset, "second_repl_offset", second,
		"repl_backlog_active", active, "repl_backlog_size", r.Backlog, "repl_backlog_first_byte_offset", r.First,
		"repl_backlog_histlen", r.Kept, "orphan_files", f.Orphans,
	)
	w.fields(f.Group...)
}

// infoCommands has a line for each command that has been called or rejected.
func (f *Figures) infoCommands(w *infoWriter) {
	f.eachCommand(func(name string, s *Command) {
		calls, rejected := s.Calls.Load(), s.Rejected.Load()
		if calls == 0 && rejected == 0 {
			return
		}
		usec := s.Nanoseconds.Load() / 1000
		w.field("cmdstat_"+name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			calls, usec, float64(usec)/float64(max(calls, 1)), rejected, s.Failed.Load()))
	})
}

// infoErrors counts error replies by their code.
func (f *Figures) infoErrors(w *infoWriter) {
	for _, code := range f.Counters.errorCodes() {
		w.field("errorstat_"+code.name, fmt.Sprintf("count=%d", code.count))
	}
}

// infoKeyspace has a line for each database that has keys. Keys that have expired are counted until
// they are deleted.
func (f *Figures) infoKeyspace(w *infoWriter) {
	for _, ns := range f.Store.Namespaces {
		if ns.Keys > 0 {
			w.field(fmt.Sprintf("db%d", ns.Namespace), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d", ns.Keys, ns.Deadlines, ns.AverageTTLms, ns.TimedHashes))
		}
	}
}

// infoStorage is Stave's own section: the log under the keys.
func (f *Figures) infoStorage(w *infoWriter) {
	s := &f.Store
	w.fields(
		"storage_dir", s.Dir, "storage_id", s.StoreID, "storage_segments", s.Segments, "storage_bytes", s.Bytes,
		"storage_live_bytes", s.LiveBytes, "storage_dead_bytes", s.Bytes-s.LiveBytes,
		"maxdisk", f.MaxDisk, "maxdisk_bound", s.Disk.Bound, "maxdisk_used", s.Disk.Used, "maxdisk_live", s.Disk.Live,
		"storage_index_bytes", s.IndexBytes, "storage_sequence", s.Sequence, "storage_syncs", s.Syncs,
		"storage_failed", s.Failed, "merges", s.Merge.Merges, "merge_failures", s.Merge.Failures,
		"merge_running", s.Merge.Running, "merge_read_bytes", s.Merge.Read, "merge_to_read_bytes", s.Merge.ToRead,
	)
	if a := s.Archive; a != nil {
		w.fields(
			"archive_sequence", a.Sequence, "archive_time", max(a.Time.Unix(), 0), "archive_behind", a.Behind, "archive_gaps", a.Gaps, "archive_bases", a.Bases,
			"archive_objects", a.Objects, "archive_bytes", a.Bytes, "archive_error", strings.ReplaceAll(a.Err, "\n", "; "),
		)
	}
	if follow := f.Follow; !errors.Is(follow.Err, db.ErrNotFollowing) {
		why := ""
		if follow.Err != nil {
			why = strings.ReplaceAll(follow.Err.Error(), "\n", "; ")
		}
		w.fields("storage_following", 1, "storage_follow_reloads", follow.Reloads, "storage_follow_error", why)
	}
}

// infoCPU has the processor time of this process. There are no children, and no thread that is the main one.
func (f *Figures) infoCPU(w *infoWriter) {
	user, system, known := processorTime()
	if !known {
		return // INFO then lacks the section's fields, which says it best
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }
	w.fields("used_cpu_sys", seconds(system), "used_cpu_user", seconds(user), "used_cpu_sys_children", "0.000000", "used_cpu_user_children", "0.000000",
		"used_cpu_sys_main_thread", seconds(system), "used_cpu_user_main_thread", seconds(user))
}

// infoLatency has the percentiles of each command that has been called.
func (f *Figures) infoLatency(w *infoWriter) {
	percents := strings.Fields(f.Percentiles)
	if len(percents) == 0 || f.Counters.NoLatency.Load() {
		return
	}
	f.eachCommand(func(name string, s *Command) {
		h := s.Latency.Load()
		if h == nil {
			return
		}
		parts := make([]string, len(percents))
		for i, text := range percents {
			percent, _ := strconv.ParseFloat(text, 64) // checked
			parts[i] = fmt.Sprintf("p%s=%.3f", text, float64(h.Percentile(percent).Nanoseconds())/1000)
		}
		w.field("latency_percentiles_usec_"+name, strings.Join(parts, ","))
	})
}
