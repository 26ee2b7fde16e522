package stats

import (
	"strconv"
	"time"

	"github.com/stavedb/stave/server/internal/replication"
)

// Link is the link of a replica to its master at one moment.
type Link struct {
	Host               string
	Port               int
	IsUp, IsSyncing    bool
	IsStopped          bool          // a command of the master has failed here, and it does not go on by itself
	Offset             int64         // in the stream of the master that is applied; -1 if there is none
	Silence            time.Duration // since bytes came last; negative if none ever came
	Down               time.Duration // since it went down; 0 while it is up
	SyncBytes          int64         // loaded of the full synchronization that runs
	FullSyncs, Partial int64         // since the server began, as the next two
	Failures, Ignored  int64         // of the link, and commands that failed and were skipped
}

// role is the role as redis_exporter names it.
func (f *Figures) role() string {
	if f.Link != nil {
		return "slave"
	}
	return "master"
}

// distinct leaves out replicas that could not be told apart, such as several that have not said where they listen: a series
// may be there only once.
func distinct(all []replication.State) (list []*replication.State) {
	type series struct {
		address string
		port    int
		state   string
	}
	seen := map[series]bool{}
	for i := range all {
		s := &all[i]
		if of := (series{s.Address, s.Port, s.State}); !seen[of] {
			seen[of] = true
			list = append(list, s)
		}
	}
	return list
}

// metricsReplication are the figures of the server's own replicas, and of its link to a master. What Redis has too is named as
// redis_exporter names it.
func (f *Figures) metricsReplication(w *metricsWriter) {
	r := &f.Replication
	w.gauge("redis_connected_slaves", float64(len(r.Replicas)))
	w.gauge("redis_master_repl_offset", float64(r.Offset))
	w.gauge("redis_repl_backlog_is_active", oneOrZero(r.Begun))
	w.gauge("redis_replication_backlog_bytes", float64(r.Backlog))
	w.gauge("redis_repl_backlog_history_bytes", float64(r.Kept))
	w.gauge("redis_replica_resyncs_full", float64(f.FullSyncs))
	w.gauge("redis_replica_partial_resync_accepted", float64(f.PartialSyncs))
	w.gauge("redis_replica_partial_resync_denied", float64(f.PartialRefused))
	w.counter("stave_replication_sent_bytes_total", float64(f.ReplicaBytes))
	if f.Orphans >= 0 {
		w.gauge("stave_orphan_files", float64(f.Orphans))
	}
	replicas := distinct(r.Replicas)
	for _, figure := range []struct {
		name string
		of   func(*replication.State) float64
	}{
		{"redis_connected_slave_offset_bytes", func(s *replication.State) float64 { return float64(s.Offset) }},
		{"redis_connected_slave_lag_seconds", func(s *replication.State) float64 { return s.Lag.Seconds() }},
		{"stave_connected_slave_lag_bytes", func(s *replication.State) float64 { return float64(r.Offset - s.Offset) }},
	} {
		for _, s := range replicas {
			w.gauge(figure.name, figure.of(s), "slave_ip", s.Address, "slave_port", strconv.Itoa(s.Port), "slave_state", s.State)
		}
	}
	l := f.Link
	if l == nil {
		return
	}
	port := strconv.Itoa(l.Port)
	link := func(name string, value float64) { w.gauge(name, value, "master_host", l.Host, "master_port", port) }
	w.gauge("redis_slave_info", 1, "master_host", l.Host, "master_port", port, "read_only", "1")
	link("redis_master_link_up", oneOrZero(l.IsUp))
	link("redis_master_sync_in_progress", oneOrZero(l.IsSyncing))
	if l.Silence >= 0 {
		link("redis_master_last_io_seconds_ago", l.Silence.Seconds())
	}
	link("redis_slave_repl_offset", float64(max(l.Offset, 0)))
	link("stave_master_link_down_seconds", l.Down.Seconds())
	link("stave_master_link_stopped", oneOrZero(l.IsStopped))
	link("stave_master_sync_read_bytes", float64(l.SyncBytes))
	w.counter("stave_master_link_failures_total", float64(l.Failures))
	w.counter("stave_master_full_syncs_total", float64(l.FullSyncs))
	w.counter("stave_master_partial_syncs_total", float64(l.Partial))
	w.counter("stave_master_ignored_errors_total", float64(l.Ignored))
}
