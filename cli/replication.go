package cli

import (
	"fmt"
	"net"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
)

// Replication in words, for stave top and stave doctor: what INFO says of a server's master and of its replicas. The fields
// are Redis's, so that it works with Redis as well; those that only Stave has make it more precise.

// silentAfter is how many seconds of silence are unusual: replicas acknowledge once a second, masters send a PING every ten.
const (
	silentReplica = 10
	silentMaster  = 30
)

// replication returns a line about the master, if there is one, then one for each replica, then one about the backlog, and one
// about commits that a new master did not have. It is empty for a server that has never had to do with replication.
func (s topSample) replication() (found []diagnosis) {
	if s.info["role"] == "slave" {
		found = append(found, s.linkToMaster(), s.syncsOfReplica())
	}
	for i := 0; s.info[fmt.Sprintf("slave%d", i)] != ""; i++ {
		found = append(found, s.replica(fmt.Sprintf("slave%d", i)))
	}
	if s.info["repl_backlog_active"] == "1" {
		found = append(found, s.backlog())
	}
	if n := s.number("orphan_files"); n != 0 {
		found = append(found, orphansFound(int(n)))
	}
	return found
}

// orphansFound says that there are files of what a demoted master alone had; -1: what there is cannot be read.
func orphansFound(files int) diagnosis {
	d := diagnosis{"orphans", stateWarning, humanize.Plural(files, "file") + " with commits that a new master did not have", "stave orphans DIR lists them; delete a file when what is in it is settled"}
	if files < 0 {
		d.Found, d.Advice = "the directory orphans of the store cannot be read", "look at its owner and its mode"
	}
	return d
}

// linkToMaster says how the link of a replica is, and why.
func (s topSample) linkToMaster() diagnosis {
	d := diagnosis{Name: "master", State: stateOK}
	address := net.JoinHostPort(s.info["master_host"], s.info["master_port"])
	why := s.info["master_link_error"]
	if why == "" {
		why = "its log says why"
	}
	down := s.age("master_link_down_since_seconds")
	silence := s.number("master_last_io_seconds_ago")
	switch {
	case s.info["replica_stopped"] == "1":
		d.State, d.Found = stateFailure, fmt.Sprintf("this replica differs from its master %s and has stopped: %s", address, why)
		d.Advice = "REPLICAOF NO ONE, then REPLICAOF HOST PORT, loads everything again; do not promote it before"
	case s.info["master_sync_in_progress"] == "1":
		d.State, d.Found = stateWarning, fmt.Sprintf("everything is loaded from %s: %s so far", address, humanize.Size(int64(s.number("master_sync_read_bytes"))))
		d.Advice = "readers see the old data until it is complete"
	case s.info["master_link_status"] != "up":
		d.State, d.Found = stateWarning, fmt.Sprintf("the link to %s has been down for %s: %s", address, down, why)
		d.Advice = "it is made again by itself; readers see the data of then"
	case silence > silentMaster:
		d.State, d.Found = stateWarning, fmt.Sprintf("%s has sent nothing for %s", address, s.age("master_last_io_seconds_ago"))
		d.Advice = "look at it and at the network; the link is given up after repl-timeout"
	default:
		d.Found = fmt.Sprintf("replica of %s, which sent something %s ago; applied up to offset %s", address, s.age("master_last_io_seconds_ago"), s.info["slave_repl_offset"])
	}
	return d
}

// syncsOfReplica says how the data of a replica came. Redis counts that at the master only.
func (s topSample) syncsOfReplica() diagnosis {
	full, partial, failures := s.number("replica_full_syncs"), s.number("replica_partial_syncs"), s.number("replica_link_failures")
	d := diagnosis{Name: "link", State: stateOK, Found: fmt.Sprintf("since the start: %s, went on where it was %s, %s",
		humanize.Plural(int64(full), "full synchronization"), times(partial), humanize.Plural(int64(failures), "failure"))}
	if ignored := s.number("replica_ignored_errors"); ignored > 0 {
		d.State, d.Found = stateWarning, d.Found+fmt.Sprintf(", %s of the master skipped", humanize.Plural(int64(ignored), "command"))
		d.Advice = "it differs from its master (replica-ignore-errors): load everything again before it is promoted"
	}
	return d
}

// replica says how far one of a master's replicas is.
func (s topSample) replica(field string) diagnosis {
	d := diagnosis{Name: "replica", State: stateOK}
	address := net.JoinHostPort(s.word(field, "ip"), s.word(field, "port"))
	behind := int64(s.number("master_repl_offset") - s.part(field, "offset"))
	silence := s.part(field, "lag")
	switch state := s.word(field, "state"); state {
	case "online":
	case "wait_bgsave", "send_bulk":
		d.Found = fmt.Sprintf("%s is sent everything (%s)", address, state)
		return d
	default:
		d.State, d.Found, d.Advice = stateWarning, fmt.Sprintf("%s is in the state %q", address, state), "its log says more"
		return d
	}
	if d.Found = address + " has everything"; behind > 0 {
		d.Found = fmt.Sprintf("%s is %s behind", address, humanize.Size(behind))
	}
	d.Found += fmt.Sprintf(", and said so %s ago", humanize.Age(time.Duration(silence)*time.Second))
	switch {
	case silence >= silentReplica:
		d.State, d.Advice = stateWarning, "it acknowledges nothing: look at its log, its disk and the network"
	case behind > int64(s.number("repl_backlog_size")):
		d.State, d.Advice = stateWarning, "more than the backlog keeps, so a cut of its link means a full synchronization: look at its disk and the network, or raise repl-backlog-size"
	}
	return d
}

// backlog says how much is kept for replicas that are away, and how often that was enough.
func (s topSample) backlog() diagnosis {
	d := diagnosis{Name: "backlog", State: stateOK}
	refused := s.number("sync_partial_err")
	d.Found = fmt.Sprintf("%s of %s kept for replicas that are away; since the start: %s, went on where they were %s", humanize.Size(int64(s.number("repl_backlog_histlen"))),
		humanize.Size(int64(s.number("repl_backlog_size"))), humanize.Plural(int64(s.number("sync_full")), "full synchronization"), times(s.number("sync_partial_ok")))
	if refused > 0 {
		d.Found += fmt.Sprintf(", could not %s", times(refused))
	}
	if s.info["connected_slaves"] == "0" && s.info["role"] != "slave" {
		d.State, d.Advice = stateWarning, "no replica is connected, and there was one: look at it; if it was taken away, the stream ends after repl-backlog-ttl"
	}
	return d
}

// times is a number of times in words.
func times(n float64) string {
	if n == 1 {
		return "once"
	}
	return humanize.Count(int64(n)) + " times"
}

// age is a field of seconds in words.
func (s topSample) age(field string) string {
	return humanize.Age(time.Duration(max(s.number(field), 0)) * time.Second)
}
