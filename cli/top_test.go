package cli

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/internal/test/fakeserver"
	"github.com/stavedb/stave/internal/test/golden"
)

// Two samples of INFO and the picture of what lies between: rates are differences, figures of state are the later ones.
func TestTopPicture(t *testing.T) {
	began := time.Unix(1000, 0)
	before := topSample{began, remote.ParseInfo([]byte("# Stats\r\ntotal_commands_processed:1000\r\nkeyspace_hits:10\r\nkeyspace_misses:10\r\n" +
		"total_net_input_bytes:0\r\ncmdstat_get:calls=100,usec=200\r\ncmdstat_info:calls=1,usec=1\r\nstorage_syncs:5\r\n"))}
	now := topSample{began.Add(2 * time.Second), remote.ParseInfo([]byte("# Server\r\nstave_version:1.2\r\nuptime_in_seconds:90000\r\nconnected_clients:7\r\n" +
		"total_commands_processed:21000\r\nkeyspace_hits:910\r\nkeyspace_misses:110\r\ntotal_net_input_bytes:4000000\r\ntotal_net_output_bytes:9000\r\nused_memory:44000000\r\n" +
		"cmdstat_get:calls=16100,usec=64200\r\ncmdstat_set:calls=50,usec=1000\r\ncmdstat_info:calls=2,usec=1\r\n" +
		"latency_percentiles_usec_get:p50=2.007,p99=100.351,p99.9=2000.895\r\ndb0:keys=1000,expires=10,avg_ttl=0\r\ndb3:keys=5,expires=1,avg_ttl=0\r\n" +
		"storage_bytes:256000000\r\nstorage_live_bytes:128000000\r\nstorage_segments:3\r\nstorage_syncs:7\r\n" +
		"merge_running:1\r\nmerge_read_bytes:64000000\r\nmerge_to_read_bytes:128000000\r\nstorage_failed:disk \x1b[2J\r\n" +
		"role:master\r\nconnected_slaves:2\r\nmaster_repl_offset:5000000\r\nslave0:ip=10.0.0.2,port=6380,state=online,offset=5000000,lag=0\r\n" +
		"slave1:ip=10.0.0.3,port=6380,state=online,offset=2000000,lag=15\r\nrepl_backlog_active:1\r\nrepl_backlog_size:16000000\r\nrepl_backlog_histlen:5000000\r\nsync_full:2\r\n"))}
	got := drawTop(before, now, "127.0.0.1:6379", false)
	golden.Compare(t, "testdata/top.golden", got, flag.Lookup("update").Value.String() == "true")
	if bytes.Contains(got, []byte("\x1b")) {
		t.Error("an escape sequence of the server reaches the terminal")
	}
	// A counter that was reset, or a server that was restarted, has no negative rates.
	if back := drawTop(now, before, "x", false); bytes.Contains(back, []byte(" -1")) {
		t.Errorf("%s", back)
	}
}

// A server that does not answer, or refuses INFO, is an error with its status.
func TestTopRefused(t *testing.T) {
	s := fakeserver.New(t, func(string) string { return "-NOAUTH Authentication required.\r\n" })
	var out, errs bytes.Buffer
	status := Run([]string{"stave", "top", "--addr", s.Addr().String(), "--count", "1"}, nil, &out, &errs)
	if status != exitCommand || !strings.Contains(errs.String(), "NOAUTH") {
		t.Errorf("%d %s", status, errs.String())
	}
}
