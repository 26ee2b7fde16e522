package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/internal/test/fakeserver"
)

// TestReplicationInWords: what INFO says, and the lines that it becomes; a line that is not ok says what to do.
func TestReplicationInWords(t *testing.T) {
	const replica = "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n"
	const backlog = "repl_backlog_active:1\r\nrepl_backlog_size:16000000\r\nrepl_backlog_histlen:1000000\r\nsync_full:1\r\nsync_partial_ok:2\r\n"
	for _, tt := range []struct {
		info string
		want []string // state, name and the beginning of each line
	}{
		{"role:master\r\nconnected_slaves:0\r\nrepl_backlog_active:0\r\n", nil},
		{"role:master\r\nconnected_slaves:4\r\nmaster_repl_offset:20000000\r\n" +
			"slave0:ip=10.0.0.2,port=6380,state=online,offset=20000000,lag=1\r\nslave1:ip=10.0.0.3,port=6380,state=online,offset=18000000,lag=0\r\n" +
			"slave2:ip=::1,port=6380,state=send_bulk,offset=0,lag=0\r\nslave3:ip=10.0.0.4,port=6380,state=online,offset=19000000,lag=12\r\n" +
			"slave4:ip=10.0.0.5,port=6380,state=online,offset=1000000,lag=1\r\nslave5:ip=10.0.0.6,port=1,state=new,offset=0,lag=0\r\n" + backlog,
			[]string{"ok replica 10.0.0.2:6380 has everything, and said so 1s ago", "ok replica 10.0.0.3:6380 is 2.0 MB behind", "ok replica [::1]:6380 is sent everything (send_bulk)",
				"warning replica 10.0.0.4:6380 is 1.0 MB behind, and said so 12s ago", "warning replica 10.0.0.5:6380 is 19 MB behind", `warning replica 10.0.0.6:1 is in the state "new"`,
				"ok backlog 1.0 MB of 16 MB kept for replicas that are away; since the start: 1 full synchronization, went on where they were 2 times"}},
		{"role:master\r\nconnected_slaves:0\r\nsync_partial_err:1\r\n" + backlog, []string{"warning backlog 1.0 MB of 16 MB kept for replicas that are away; since the start: 1 full synchronization, went on where they were 2 times, could not once"}},
		{replica + "master_link_status:up\r\nmaster_last_io_seconds_ago:3\r\nslave_repl_offset:77\r\nreplica_full_syncs:1\r\nreplica_partial_syncs:1\r\nreplica_link_failures:5\r\n",
			[]string{"ok master replica of 10.0.0.1:6379, which sent something 3s ago; applied up to offset 77", "ok link since the start: 1 full synchronization, went on where it was once, 5 failures"}},
		{"role:master\r\norphan_files:2\r\n", []string{"warning orphans 2 files with commits that a new master did not have"}},
		{"role:master\r\norphan_files:-1\r\n", []string{"warning orphans the directory orphans of the store cannot be read"}},
		{"role:master\r\norphan_files:0\r\n", nil},
		{replica + "master_link_status:up\r\nmaster_last_io_seconds_ago:45\r\n", []string{"warning master 10.0.0.1:6379 has sent nothing for 45s", "ok link "}},
		{replica + "master_link_status:down\r\nmaster_link_down_since_seconds:90\r\nmaster_link_error:dial tcp: refused\r\n",
			[]string{"warning master the link to 10.0.0.1:6379 has been down for 1m: dial tcp: refused", "ok link "}},
		{replica + "master_link_status:down\r\nmaster_link_down_since_seconds:5\r\n", []string{"warning master the link to 10.0.0.1:6379 has been down for 5s: its log says why", "ok link "}},
		{replica + "master_link_status:down\r\nmaster_sync_in_progress:1\r\nmaster_sync_read_bytes:2000000\r\n", []string{"warning master everything is loaded from 10.0.0.1:6379: 2.0 MB so far", "ok link "}},
		{replica + "master_link_status:down\r\nreplica_stopped:1\r\nreplica_ignored_errors:2\r\nmaster_link_error:the master's command failed here: INCR k\r\n",
			[]string{"failure master this replica differs from its master 10.0.0.1:6379 and has stopped: the master's command failed here: INCR k",
				"warning link since the start: 0 full synchronizations, went on where it was 0 times, 0 failures, 2 commands of the master skipped"}},
	} {
		found := topSample{info: remote.ParseInfo([]byte(tt.info))}.replication()
		var lines []string
		for _, d := range found {
			lines = append(lines, d.State+" "+d.Name+" "+d.Found)
			if d.State != stateOK && d.Advice == "" {
				t.Errorf("%s: no advice", d.Found)
			}
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%q:\n%q", tt.info, lines)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("got  %q\nwant %q", lines[i], want)
			}
		}
	}
}

// TestDoctorOfAServer: --addr asks a server; a failure is the status 1, and what the server says does not reach the terminal as
// it is.
func TestDoctorOfAServer(t *testing.T) {
	info := "role:slave\r\nmaster_host:h\r\nmaster_port:1\r\nreplica_stopped:1\r\nmaster_link_error:\x1b[2J\r\nstave_version:1.2\r\nuptime_in_seconds:90\r\nstore_state:full\r\n"
	s := fakeserver.New(t, func(string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info) })
	for _, form := range [][]string{nil, {"--json"}} {
		var out, errs bytes.Buffer
		status := Run(append([]string{"stave", "doctor", "--addr", s.Addr().String()}, form...), nil, &out, &errs)
		if status != exitCommand || errs.Len() > 0 {
			t.Errorf("%d %s", status, errs.String())
		}
		text := out.String()
		if strings.Contains(text, "\x1b") {
			t.Error("an escape sequence of the server reaches the terminal")
		}
		for _, want := range []string{"stave 1.2, a replica, up 1m", "the disk is full", "has stopped", "REPLICAOF NO ONE"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
	var out, errs bytes.Buffer
	if status := Run([]string{"stave", "doctor", "dir", "--addr", "x"}, nil, &out, &errs); status != exitUsage {
		t.Errorf("a directory and a server: %d %s", status, errs.String())
	}
}
