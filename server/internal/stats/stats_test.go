package stats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
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
