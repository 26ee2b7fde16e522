package stats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/slowlog"
	"github.com/stavedb/stave/server/internal/stats"
)

// figures are those of a server with one command, which has been called twice and refused once.
func figures() *stats.Figures {
	table := command.NewTable([]*command.Command{{Name: "get"}, {Name: "set"}})
	c := new(stats.Counters)
	c.Init(table.Size)
	get := &c.Commands[table.Lookup("get").Index]
	get.Calls.Add(2)
	get.Nanoseconds.Add(3000)
	get.Failed.Add(1)
	c.NoteLatency(get, 1500*time.Nanosecond, 2)
	c.CountError("WRONGTYPE Operation against a key")
	c.CountError("BARE")
	return &stats.Figures{Counters: c, Table: table.Commands, SlowLog: new(slowlog.Log), Spikes: new(latency.Spikes), Percentiles: "50", Started: time.Now()}
}

func TestBothTextsShowTheSame(t *testing.T) {
	f := figures()
	info, metrics := f.Info("all"), f.Metrics()
	for text, wants := range map[string][]string{
		info: {"cmdstat_get:calls=2,usec=3,usec_per_call=1.50,rejected_calls=0,failed_calls=1\r\n", "errorstat_BARE:count=1\r\n", "errorstat_WRONGTYPE:count=1\r\n",
			"total_error_replies:2\r\n", "total_commands_processed:2\r\n", "latency_percentiles_usec_get:p50="},
		metrics: {`redis_commands_total{cmd="get"} 2` + "\n", `redis_commands_failed_calls_total{cmd="get"} 1` + "\n", `redis_errors_total{err="WRONGTYPE"} 1` + "\n",
			"redis_commands_processed_total 2\n", `redis_commands_latencies_usec_count{cmd="get"} 2` + "\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if strings.Contains(text, "cmdstat_set") || strings.Contains(text, `cmd="set"`) {
			t.Error("a command that was never called is shown")
		}
	}
}

// TestMetricsOfReplicas: replicas that cannot be told apart are one series, and the figures of a link are a replica's alone.
func TestMetricsOfReplicas(t *testing.T) {
	f := figures()
	f.Replication = replication.Figures{Offset: 1000, Begun: true, Replicas: []replication.State{
		{Address: "10.0.0.1", Port: 6380, State: "online", Offset: 900, Lag: 2 * time.Second}, {Address: "10.0.0.2", State: "send_bulk"},
		{Address: "10.0.0.2", State: "send_bulk"}, {Address: "10.0.0.2", State: "online"},
	}}
	metrics := f.Metrics()
	seen := map[string]bool{}
	for line := range strings.Lines(metrics) {
		series, _, _ := strings.Cut(line, " ")
		if line[0] != '#' && seen[series] {
			t.Errorf("%s is there twice", series)
		}
		seen[series] = true
	}
	for _, want := range []string{
		`redis_connected_slave_lag_seconds{slave_ip="10.0.0.1",slave_port="6380",slave_state="online"} 2` + "\n",
		`stave_connected_slave_lag_bytes{slave_ip="10.0.0.1",slave_port="6380",slave_state="online"} 100` + "\n", "redis_connected_slaves 4\n", `role="master"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if strings.Contains(metrics, "master_link") {
		t.Error("a master has a link to one")
	}
	for files, want := range map[int]string{2: "stave_orphan_files 2\n", 0: "stave_orphan_files 0\n", -1: ""} {
		f.Orphans = files
		if text := f.Metrics(); strings.Contains(text, "stave_orphan_files") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("with %d files of orphans, %q is not there", files, want)
		}
	}
	f.Link = &stats.Link{Host: "10.0.0.9", Port: 1, Silence: -1, Down: time.Minute, IsStopped: true, Failures: 3}
	metrics = f.Metrics()
	for _, want := range []string{
		`redis_master_link_up{master_host="10.0.0.9",master_port="1"} 0` + "\n", `stave_master_link_down_seconds{master_host="10.0.0.9",master_port="1"} 60` + "\n",
		`stave_master_link_stopped{master_host="10.0.0.9",master_port="1"} 1` + "\n", "stave_master_link_failures_total 3\n", `role="slave"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if strings.Contains(metrics, "redis_master_last_io_seconds_ago") {
		t.Error("a master that has sent nothing was heard of")
	}
}

func TestReset(t *testing.T) {
	f := figures()
	f.Counters.Blocked.Add(1)
	f.Counters.Reset()
	info := f.Info("all")
	for _, gone := range []string{"cmdstat_", "errorstat_", "latency_percentiles"} {
		if strings.Contains(info, gone) {
			t.Errorf("after a reset there is %q in\n%s", gone, info)
		}
	}
	if !strings.Contains(info, "blocked_clients:1\r\n") {
		t.Error("a reset forgets what is so at present")
	}
}
