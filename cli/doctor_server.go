package cli

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
)

// runServerDoctor asks a running server, by one INFO, what its directory does not say: whether it takes writes, and how
// replication goes. What it runs on is examined on its machine, by stave doctor DIR.
func runServerDoctor(t *terminal.Streams, c *cli.Context) (err error) {
	if c.NArg() > 0 {
		return usagef("doctor examines a directory, or the server at --addr")
	}
	o, err := readStoreOptions(t, c)
	if err != nil {
		return err
	}
	ctx, stop := t.Interruptible()
	defer stop()
	s, err := newSession(ctx, t, o)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.Close)
	now, err := askTop(ctx, s)
	if err != nil {
		return failed(statusOf(err), err)
	}
	return reportDiagnoses(t, diagnoses{Server: s.name, Findings: append(now.server(), now.replication()...)}, c.Bool("json"))
}

// server says whether a server takes writes.
func (s topSample) server() []diagnosis {
	role, version := "master", "redis "+s.info["redis_version"]
	if s.info["role"] == "slave" {
		role = "replica"
	}
	if v := s.info["stave_version"]; v != "" {
		version = "stave " + v
	}
	found := []diagnosis{{"server", stateOK, fmt.Sprintf("%s, a %s, up %s", version, role, humanize.Age(time.Duration(s.number("uptime_in_seconds"))*time.Second)), ""}}
	switch state := s.info["store_state"]; state {
	case "", "ok":
	case "full":
		found = append(found, diagnosis{"store", stateFailure, "the disk is full: only deletes are taken", "free some space; writes go on by themselves"})
	default:
		found = append(found, diagnosis{"store", stateFailure, "writes are refused: " + s.info["storage_failed"], "mend the disk, then start the server again"})
	}
	if s.info["storage_follow_error"] != "" {
		found = append(found, diagnosis{"store", stateWarning, "it does not follow its writer any more: " + s.info["storage_follow_error"], "see docs/FOLLOW.md"})
	}
	if s.info["archive_error"] != "" {
		found = append(found, diagnosis{"archive", stateFailure, fmt.Sprintf("%.0f records are not archived: %s", s.number("archive_behind"), s.info["archive_error"]), "mend what the archive is on; it goes on by itself"})
	} else if s.number("archive_gaps") > 0 {
		found = append(found, diagnosis{"archive", stateWarning, fmt.Sprintf("%.0f gaps since the start: some moments cannot be restored", s.number("archive_gaps")), "stave restore --archive DIR --list says which can; see docs/ARCHIVE.md"})
	}
	return found
}
