package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/dashboard"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// The figures of INFO in the text format of Prometheus, version 0.0.4. A figure that Redis has too has the name
// that redis_exporter gives it, so that dashboards and alerts for Redis work; the others begin with stave_.
// Names, values and labels hold nothing of the data: no key, no argument, no address of a client.

// metricsWriter writes samples. Those of one name must follow each other.
type metricsWriter struct {
	strings.Builder
	last string // the name of the sample before
}

// sample writes one figure. labels are names and values in turn.
func (w *metricsWriter) sample(kind, name string, value float64, labels ...string) {
	if name != w.last {
		fmt.Fprintf(w, "# TYPE %s %s\n", name, kind)
		w.last = name
	}
	w.line(name, value, labels...)
}

func (w *metricsWriter) line(name string, value float64, labels ...string) {
	w.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			w.WriteByte('{')
		} else {
			w.WriteByte(',')
		}
		w.WriteString(labels[i] + `="` + labelEscapes.Replace(labels[i+1]) + `"`)
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
func (v *Server) Metrics() string {
	var w metricsWriter
	store := v.store.Stats()
	v.metricsServer(&w, store)
	v.metricsTraffic(&w, store)
	v.metricsCommands(&w)
	v.metricsStorage(&w, store)
	return w.String()
}

// metricsServer are the figures of the process.
func (v *Server) metricsServer(w *metricsWriter, store db.Stats) {
	w.gauge("redis_up", 1)
	w.gauge("redis_instance_info", 1, "redis_version", RedisVersion, "redis_mode", "standalone", "role", "master", "os", runtime.GOOS+" "+runtime.GOARCH,
		"maxmemory_policy", "noeviction", "run_id", v.runID, "process_id", strconv.Itoa(os.Getpid()), "stave_version", v.options.Version)
	w.gauge("redis_uptime_in_seconds", time.Since(v.started).Seconds())
	w.gauge("redis_start_time_seconds", float64(v.started.Unix()))
	m := v.memory()
	w.gauge("redis_memory_used_bytes", float64(m.used))
	w.gauge("redis_memory_used_rss_bytes", float64(m.held))
	w.gauge("redis_memory_used_peak_bytes", float64(m.peak))
	w.gauge("redis_memory_max_bytes", float64(v.tunables.maxMemory.Load()))
	w.gauge("redis_config_maxmemory", float64(v.tunables.maxMemory.Load()))
	w.gauge("redis_config_maxclients", float64(v.tunables.maxClients.Load()))
	w.gauge("redis_max_clients", float64(v.tunables.maxClients.Load()))
	if user, system, known := processorTime(); known {
		w.counter("redis_cpu_user_seconds_total", user.Seconds())
		w.counter("redis_cpu_sys_seconds_total", system.Seconds())
	}
	w.gauge("redis_loading_dump_file", 0)
	w.gauge("redis_connected_slaves", 0)
	w.gauge("redis_aof_enabled", 1)
	w.gauge("redis_aof_last_write_status", oneOrZero(store.State == db.StateOK))
	w.gauge("redis_rdb_changes_since_last_save", float64(v.saves.changes(store.Sequence)))
	w.gauge("redis_rdb_last_save_timestamp_seconds", float64(v.saves.at.Load()))
	w.gauge("redis_rdb_last_bgsave_status", oneOrZero(!v.saves.failed.Load()))
	w.gauge("stave_goroutines", float64(runtime.NumGoroutine()))
}

// metricsTraffic are the figures of clients and keys.
func (v *Server) metricsTraffic(w *metricsWriter, store db.Stats) {
	c := &v.counters
	w.gauge("redis_connected_clients", float64(len(v.sessions())))
	w.gauge("redis_blocked_clients", float64(c.blocked.Load()))
	w.counter("redis_connections_received_total", float64(c.connections.Load()))
	w.counter("redis_rejected_connections_total", float64(c.rejected.Load()))
	w.counter("redis_commands_processed_total", float64(v.executed()))
	w.counter("redis_net_input_bytes_total", float64(c.in.Load()))
	w.counter("redis_net_output_bytes_total", float64(c.out.Load()))
	w.counter("redis_keyspace_hits_total", float64(c.hits.Load()))
	w.counter("redis_keyspace_misses_total", float64(c.misses.Load()))
	w.counter("redis_expired_keys_total", float64(store.Expired))
	w.counter("redis_evicted_keys_total", 0)
	w.gauge("redis_pubsub_channels", float64(len(v.hub.Names(pubsub.Channel))))
	w.gauge("redis_pubsub_patterns", float64(len(v.hub.Names(pubsub.Pattern))))
	v.metricsSlow(w)
	for _, ns := range store.Namespaces {
		if ns.Keys > 0 {
			w.gauge("redis_db_keys", float64(ns.Keys), "db", fmt.Sprintf("db%d", ns.Namespace))
		}
	}
	for _, ns := range store.Namespaces {
		if ns.Keys > 0 {
			w.gauge("redis_db_keys_expiring", float64(ns.Deadlines), "db", fmt.Sprintf("db%d", ns.Namespace))
		}
	}
	for _, ns := range store.Namespaces {
		if ns.Keys > 0 {
			w.gauge("redis_db_avg_ttl_seconds", float64(ns.AverageTTLms)/1000, "db", fmt.Sprintf("db%d", ns.Namespace))
		}
	}
	w.counter("stave_expired_fields_total", float64(store.ExpiredFields))
	w.gauge("stave_client_buffer_bytes", float64(c.clientBytes.Load()))
	w.counter("stave_clients_evicted_total", float64(c.evicted.Load()))
	w.counter("stave_subscribers_disconnected_total", float64(c.flooded.Load()))
	w.counter("stave_panics_total", float64(c.panics.Load()))
}

// metricsSlow are the figures of SLOWLOG and LATENCY.
func (v *Server) metricsSlow(w *metricsWriter) {
	length, last, next := v.slowLog.Usage()
	w.gauge("redis_slowlog_length", float64(length))
	w.gauge("redis_slowlog_last_id", float64(max(next-1, 0)))
	w.gauge("redis_last_slow_execution_duration_seconds", last.Seconds())
	events := v.spikes.Names()
	for _, name := range events {
		if list, _ := v.spikes.Of(name); len(list) > 0 {
			w.gauge("redis_latency_spike_last", float64(list[len(list)-1].At.Unix()), "event_name", name)
		}
	}
	for _, name := range events {
		if list, _ := v.spikes.Of(name); len(list) > 0 {
			w.gauge("redis_latency_spike_duration_seconds", float64(list[len(list)-1].Ms)/1000, "event_name", name)
		}
	}
}

// metricsCommands are the figures of each command that has been called, and of errors.
func (v *Server) metricsCommands(w *metricsWriter) {
	var called []*command.Command
	for _, cmd := range Commands {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			if s := &v.commands[one.Index]; s.calls.Load() > 0 || s.rejected.Load() > 0 {
				called = append(called, one)
			}
		}
	}
	for _, figure := range []struct {
		name string
		of   func(*commandStats) float64
	}{
		{"redis_commands_total", func(s *commandStats) float64 { return float64(s.calls.Load()) }},
		{"redis_commands_duration_seconds_total", func(s *commandStats) float64 { return time.Duration(s.nanoseconds.Load()).Seconds() }},
		{"redis_commands_rejected_calls_total", func(s *commandStats) float64 { return float64(s.rejected.Load()) }},
		{"redis_commands_failed_calls_total", func(s *commandStats) float64 { return float64(s.failed.Load()) }},
	} {
		for _, cmd := range called {
			w.counter(figure.name, figure.of(&v.commands[cmd.Index]), "cmd", cmd.Name)
		}
	}
	for _, cmd := range called {
		h := v.commands[cmd.Index].latency.Load()
		if h == nil {
			continue
		}
		const name = "redis_commands_latencies_usec"
		if w.last != name {
			fmt.Fprintf(w, "# TYPE %s histogram\n", name)
			w.last = name
		}
		micros, sums := h.Octaves()
		for i := range micros {
			w.line(name+"_bucket", float64(sums[i]), "cmd", cmd.Name, "le", strconv.FormatInt(micros[i], 10))
		}
		total := 0.0
		if n := len(sums); n > 0 {
			total = float64(sums[n-1])
		}
		w.line(name+"_bucket", total, "cmd", cmd.Name, "le", "+Inf")
		w.line(name+"_sum", float64(v.commands[cmd.Index].nanoseconds.Load())/1000, "cmd", cmd.Name)
		w.line(name+"_count", total, "cmd", cmd.Name)
	}
	for _, code := range v.errorCodes() {
		w.counter("redis_errors_total", float64(code.count), "err", code.name)
	}
}

// metricsStorage are the figures of the log.
func (v *Server) metricsStorage(w *metricsWriter, s db.Stats) {
	w.gauge("stave_segments", float64(s.Segments))
	w.gauge("stave_log_bytes", float64(s.Bytes))
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
	if f := v.store.FollowState(); !errors.Is(f.Err, db.ErrNotFollowing) {
		w.gauge("stave_follow_ok", oneOrZero(f.Err == nil))
		w.counter("stave_follow_reloads_total", float64(f.Reloads))
	}
	const fsync = "stave_fsync_seconds"
	fmt.Fprintf(w, "# TYPE %s histogram\n", fsync)
	w.last = fsync
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

// httpHandler serves /metrics, /healthz, /readyz and the dashboard.
func (v *Server) httpHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", dashboard.Handler(v.dashboardBackend()))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(v.Metrics())) // whoever asked has gone if it fails
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "ok, the store is %s\n", v.store.Stats().State)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := v.readiness()
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, text)
	})
	return mux
}

// readiness reports whether the server does what it is for: takes writes, or shows what another process writes.
func (v *Server) readiness() (text string, ready bool) {
	if f := v.store.FollowState(); f.Err != nil && !errors.Is(f.Err, db.ErrNotFollowing) {
		return fmt.Sprintf("the store has not followed its writer since %s: %v", f.Since.UTC().Format(time.RFC3339), f.Err), false
	}
	state := v.store.Stats().State
	return fmt.Sprintf("the store is %s", state), state == db.StateOK
}
