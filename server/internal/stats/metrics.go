package stats

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/latency"
)

// The figures of INFO in the text format of Prometheus, version 0.0.4. A figure that Redis has too has the name
// that redis_exporter gives it, so that dashboards and alerts for Redis work; the others begin with stave_.
// Names, values and labels hold nothing of the data: no key, no argument, and no address of a client but those
// of replicas.

// metricsWriter writes samples. Those of one name must follow each other.
type metricsWriter struct {
	strings.Builder
	last string // the name of the sample before
}

// sample writes one figure. labels are names and values in turn.
func (w *metricsWriter) sample(kind, name string, value float64, labels ...string) {
	w.begin(kind, name)
	w.line(name, value, labels...)
}

// histogram begins one, whose lines follow.
func (w *metricsWriter) histogram(name string) { w.begin("histogram", name) }

func (w *metricsWriter) begin(kind, name string) {
	if name != w.last {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help[name], name, kind)
		w.last = name
	}
}

func (w *metricsWriter) line(name string, value float64, labels ...string) {
	w.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			w.WriteByte('{')
		} else {
			w.WriteByte(',')
		}
		w.WriteString(labels[i] + `="` + labelEscapes.Replace(strings.ToValidUTF8(labels[i+1], "_")) + `"`)
	}
	if len(labels) > 1 {
		w.WriteByte('}')
	}
	w.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

var labelEscapes = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)

func (w *metricsWriter) gauge(name string, value float64, labels ...string) {
	w.sample("gauge", name, value, labels...)
}

func (w *metricsWriter) counter(name string, value float64, labels ...string) {
	w.sample("counter", name, value, labels...)
}

// Metrics returns all figures, as GET /metrics does.
func (f *Figures) Metrics() string {
	var w metricsWriter
	f.metricsServer(&w)
	f.metricsTraffic(&w)
	f.metricsCommands(&w)
	f.metricsStorage(&w)
	f.metricsReplication(&w)
	return w.String()
}

// metricsServer are the figures of the process.
func (f *Figures) metricsServer(w *metricsWriter) {
	w.gauge("redis_up", 1)
	w.gauge("redis_instance_info", 1, "redis_version", f.RedisVersion, "redis_mode", "standalone", "role", f.role(), "os", runtime.GOOS+" "+runtime.GOARCH,
		"maxmemory_policy", f.Policy, "run_id", f.RunID, "process_id", strconv.Itoa(os.Getpid()), "stave_version", f.Version)
	w.gauge("redis_uptime_in_seconds", time.Since(f.Started).Seconds())
	w.gauge("redis_start_time_seconds", float64(f.Started.Unix()))
	if !f.CertificateEnds.IsZero() {
		w.gauge("stave_tls_certificate_not_after_seconds", float64(f.CertificateEnds.Unix()))
	}
	m := f.Counters.memory()
	w.gauge("redis_memory_used_bytes", float64(m.used))
	w.gauge("redis_memory_used_rss_bytes", float64(m.held))
	w.gauge("redis_memory_used_peak_bytes", float64(m.peak))
	w.gauge("redis_memory_max_bytes", float64(f.MaxMemory))
	w.gauge("stave_maxmemory_counted_bytes", float64(f.CountedMemory))
	w.gauge("redis_config_maxmemory", float64(f.MaxMemory))
	w.gauge("redis_config_maxclients", float64(f.MaxClients))
	w.gauge("redis_max_clients", float64(f.MaxClients))
	if user, system, known := processorTime(); known {
		w.counter("redis_cpu_user_seconds_total", user.Seconds())
		w.counter("redis_cpu_sys_seconds_total", system.Seconds())
	}
	saves := &f.Counters.Saves
	w.gauge("redis_loading_dump_file", 0)
	w.gauge("redis_aof_enabled", 1)
	w.gauge("redis_aof_last_write_status", oneOrZero(f.Store.State == db.StateOK))
	w.gauge("redis_rdb_changes_since_last_save", float64(saves.changes(f.Store.Sequence)))
	w.gauge("redis_rdb_last_save_timestamp_seconds", float64(saves.At.Load()))
	w.gauge("redis_rdb_last_bgsave_status", oneOrZero(!saves.failed.Load()))
	w.gauge("stave_goroutines", float64(runtime.NumGoroutine()))
}

// metricsTraffic are the figures of clients and keys.
func (f *Figures) metricsTraffic(w *metricsWriter) {
	c := f.Counters
	w.gauge("redis_connected_clients", float64(f.Clients))
	w.gauge("redis_blocked_clients", float64(c.Blocked.Load()))
	w.counter("redis_connections_received_total", float64(c.Connections.Load()))
	w.counter("redis_rejected_connections_total", float64(c.Rejected.Load()))
	w.counter("redis_commands_processed_total", float64(c.executed()))
	w.counter("redis_net_input_bytes_total", float64(c.In.Load()))
	w.counter("redis_net_output_bytes_total", float64(c.Out.Load()))
	w.counter("redis_keyspace_hits_total", float64(c.Hits.Load()))
	w.counter("redis_keyspace_misses_total", float64(c.Misses.Load()))
	w.counter("redis_expired_keys_total", float64(f.Store.Expired))
	w.counter("redis_evicted_keys_total", float64(f.Store.Evicted))
	w.gauge("redis_pubsub_channels", float64(f.Channels))
	w.gauge("redis_pubsub_patterns", float64(f.Patterns))
	f.metricsSlow(w)
	for _, figure := range []struct {
		name string
		of   func(*db.NamespaceStats) float64
	}{
		{"redis_db_keys", func(ns *db.NamespaceStats) float64 { return float64(ns.Keys) }},
		{"redis_db_keys_expiring", func(ns *db.NamespaceStats) float64 { return float64(ns.Deadlines) }},
		{"redis_db_avg_ttl_seconds", func(ns *db.NamespaceStats) float64 { return float64(ns.AverageTTLms) / 1000 }},
	} {
		for i := range f.Store.Namespaces {
			if ns := &f.Store.Namespaces[i]; ns.Keys > 0 {
				w.gauge(figure.name, figure.of(ns), "db", fmt.Sprintf("db%d", ns.Namespace))
			}
		}
	}
	w.counter("stave_expired_fields_total", float64(f.Store.ExpiredFields))
	w.gauge("stave_client_buffer_bytes", float64(c.ClientBytes.Load()))
	w.counter("stave_clients_evicted_total", float64(c.Evicted.Load()))
	w.counter("stave_subscribers_disconnected_total", float64(c.Flooded.Load()))
	w.counter("stave_panics_total", float64(c.Panics.Load()))
}

// metricsSlow are the figures of SLOWLOG and LATENCY.
func (f *Figures) metricsSlow(w *metricsWriter) {
	length, last, next := f.SlowLog.Usage()
	w.gauge("redis_slowlog_length", float64(length))
	w.gauge("redis_slowlog_last_id", float64(max(next-1, 0)))
	w.gauge("redis_last_slow_execution_duration_seconds", last.Seconds())
	for _, figure := range []struct {
		name string
		of   func(latency.Spike) float64
	}{
		{"redis_latency_spike_last", func(s latency.Spike) float64 { return float64(s.At.Unix()) }},
		{"redis_latency_spike_duration_seconds", func(s latency.Spike) float64 { return float64(s.Ms) / 1000 }},
	} {
		for _, name := range f.Spikes.Names() {
			if list, _ := f.Spikes.Of(name); len(list) > 0 {
				w.gauge(figure.name, figure.of(list[len(list)-1]), "event_name", name)
			}
		}
	}
}

// metricsCommands are the figures of each command that has been called, and of errors.
func (f *Figures) metricsCommands(w *metricsWriter) {
	for _, figure := range []struct {
		name string
		of   func(*Command) float64
	}{
		{"redis_commands_total", func(s *Command) float64 { return float64(s.Calls.Load()) }},
		{"redis_commands_duration_seconds_total", func(s *Command) float64 { return time.Duration(s.Nanoseconds.Load()).Seconds() }},
		{"redis_commands_rejected_calls_total", func(s *Command) float64 { return float64(s.Rejected.Load()) }},
		{"redis_commands_failed_calls_total", func(s *Command) float64 { return float64(s.Failed.Load()) }},
	} {
		f.eachCommand(func(name string, s *Command) {
			if s.Calls.Load() > 0 || s.Rejected.Load() > 0 {
				w.counter(figure.name, figure.of(s), "cmd", name)
			}
		})
	}
	f.eachCommand(func(cmd string, s *Command) {
		h := s.Latency.Load()
		if h == nil {
			return
		}
		const name = "redis_commands_latencies_usec"
		w.histogram(name)
		micros, sums := h.Octaves()
		total := 0.0
		for i := range micros {
			total = float64(sums[i])
			w.line(name+"_bucket", total, "cmd", cmd, "le", strconv.FormatInt(micros[i], 10))
		}
		w.line(name+"_bucket", total, "cmd", cmd, "le", "+Inf")
		w.line(name+"_sum", float64(s.Nanoseconds.Load())/1000, "cmd", cmd)
		w.line(name+"_count", total, "cmd", cmd)
	})
	for _, code := range f.Counters.errorCodes() {
		w.counter("redis_errors_total", float64(code.count), "err", code.name)
	}
}

// metricsStorage are the figures of the log.
func (f *Figures) metricsStorage(w *metricsWriter) {
	s := &f.Store
	w.gauge("stave_segments", float64(s.Segments))
	w.gauge("stave_log_bytes", float64(s.Bytes))
	w.gauge("stave_maxdisk_bytes", float64(s.Disk.Bound))
	w.gauge("stave_maxdisk_used_bytes", float64(s.Disk.Used))
	w.gauge("stave_maxdisk_live_bytes", float64(s.Disk.Live))
	w.gauge("stave_live_bytes", float64(s.LiveBytes))
	w.gauge("stave_dead_bytes", float64(s.Bytes-s.LiveBytes))
	w.gauge("stave_index_bytes", float64(s.IndexBytes))
	w.gauge("stave_keys", float64(s.Keys))
	w.gauge("stave_sequence", float64(s.Sequence))
	w.counter("stave_commits_total", float64(s.Commits))
	w.counter("stave_commit_bytes_total", float64(s.Written))
	w.gauge("stave_reserve_bytes", float64(s.Reserve))
	w.gauge("stave_reserve_wanted_bytes", float64(s.ReserveDue))
	for _, state := range []string{string(db.StateOK), string(db.StateFull), string(db.StateFailed)} {
		w.gauge("stave_state", oneOrZero(state == string(s.State)), "state", state)
	}
	if a := s.Archive; a != nil {
		w.gauge("stave_archive_ok", oneOrZero(a.Err == ""))
		w.gauge("stave_archive_sequence", float64(a.Sequence))
		w.gauge("stave_archive_behind", float64(a.Behind))
		w.gauge("stave_archive_bytes", float64(a.Bytes))
		w.counter("stave_archive_gaps_total", float64(a.Gaps))
	}
	if !errors.Is(f.Follow.Err, db.ErrNotFollowing) {
		w.gauge("stave_follow_ok", oneOrZero(f.Follow.Err == nil))
		w.counter("stave_follow_reloads_total", float64(f.Follow.Reloads))
	}
	const fsync = "stave_fsync_seconds"
	w.histogram(fsync)
	var sum uint64
	for i, n := range s.SyncTimes.Counts {
		sum += n
		le := "+Inf"
		if i < len(db.SyncBuckets) {
			le = strconv.FormatFloat(db.SyncBuckets[i].Seconds(), 'g', -1, 64)
		}
		w.line(fsync+"_bucket", float64(sum), "le", le)
	}
	w.line(fsync+"_sum", s.SyncTimes.Total.Seconds())
	w.line(fsync+"_count", float64(sum))
	w.gauge("stave_merge_running", oneOrZero(s.Merge.Running))
	w.gauge("stave_merge_paused", oneOrZero(s.Merge.Paused))
	w.counter("stave_merges_total", float64(s.Merge.Merges))
	w.counter("stave_merge_failures_total", float64(s.Merge.Failures))
	w.gauge("stave_merge_read_bytes", float64(s.Merge.Read))
	w.gauge("stave_merge_to_read_bytes", float64(s.Merge.ToRead))
	w.gauge("stave_merge_last_seconds", s.Merge.Last.Took.Seconds())
	w.gauge("stave_merge_last_reclaimed_bytes", float64(s.Merge.Last.Reclaimed()))
}

// oneOrZero is 1 for what is so, and 0 otherwise.
func oneOrZero(is bool) float64 { return float64(oneIf(is)) }
