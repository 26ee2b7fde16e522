package command

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/stavedb/stave/db"
)

// maintenanceCommands are Stave's own, for what Redis does not have: a log that is merged and can
// be verified.
var maintenanceCommands = InGroup(GroupServer, []*Command{
	{Name: "merge", Arity: -1, Flags: Admin | NoScript | NoMulti | own, Run: mergeCommand},
	{Name: "check", Arity: 1, Flags: Admin | NoScript | NoMulti | own, Run: checkCommand},
	{Name: "stats", Arity: 1, Flags: Describes | Admin | NoScript | own, Run: statsCommand},
})

// mergeCommand runs a merge to its end: the connection waits for the result, other clients do not.
// STOP, from another connection, ends it early, and so does the end of the server; what has been
// merged by then stays merged. START merges what the policy picks, ALL every segment, both at the
// pace of merges in the background. PAUSE ends a merge that the background has started, and keeps
// it from starting others until RESUME.
func mergeCommand(c *Call) error {
	if len(c.Args) > 2 {
		return ErrSyntax
	}
	merger := c.Host.Store.Merger()
	word := func(keyword string) bool { return len(c.Args) == 2 && c.Args.Is(1, keyword) }
	switch {
	case len(c.Args) == 1 || word("start"):
		return c.merge(db.MergeOptions{})
	case word("all"):
		return c.merge(db.MergeOptions{All: true})
	case word("status"):
		return c.mergeStatus(merger.Status())
	case word("stop"):
		merger.Stop()
	case word("pause"):
		merger.Pause()
	case word("resume"):
		merger.Resume()
	default:
		return ErrSyntax
	}
	return c.OK()
}

// merge runs one merge and replies with its result. The result is a map of figures. One merge runs
// at a time: a second one is refused and does not wait.
func (c *Call) merge(o db.MergeOptions) error {
	result, err := c.Host.Store.Merge(c.Host.Context, o)
	switch {
	case errors.Is(err, db.ErrMergeBusy):
		return Error("ERR another merge is running")
	case errors.Is(err, context.Canceled):
		return Error("ERR the merge was stopped")
	case err != nil:
		return err
	}
	return c.Reply(mergeFacts(result))
}

// mergeFacts are the figures of a merge that has ended.
func mergeFacts(r db.MergeResult) []Fact {
	return []Fact{
		{"segments", r.Segments}, {"segments_written", r.Written}, {"segments_now", r.SegmentsNow}, {"bytes_read", r.BytesRead},
		{"bytes_written", r.BytesOut}, {"bytes_reclaimed", r.Reclaimed()}, {"records_copied", r.Copied}, {"records_dropped", r.Dropped},
		{"milliseconds", r.Took.Milliseconds()},
	}
}

// mergeStatus replies with the state of merging, and with the figures of the last merge if there
// was one.
func (c *Call) mergeStatus(s db.MergeStatus) error {
	list := []Fact{
		{"running", s.Running}, {"paused", s.Paused}, {"bytes_read", s.Read}, {"bytes_to_read", s.ToRead}, {"merges", s.Merges},
		{"failures", s.Failures}, {"last_error", s.LastErr},
	}
	if s.Merges > 0 {
		list = append(list, Fact{"last_at", s.LastAt.Unix()})
		for _, f := range mergeFacts(s.Last) {
			list = append(list, Fact{"last_" + f.Name, f.Value})
		}
	}
	return c.Reply(list)
}

// maxFindings bounds how many findings CHECK lists; it counts all of them.
const maxFindings = 100

// checkCommand verifies the whole store. It reads every byte, and holds no lock for long; findings
// are counted in full and listed up to a bound. It is the check of "stave check", of a store in use. What the system
// says of a file has its path; the reply leaves the directory out.
func checkCommand(c *Call) error {
	var findings []string
	dir := filepath.Clean(c.Host.Store.Stats().Dir) + string(filepath.Separator)
	result, err := c.Host.Store.Check(c.Host.Asking(), func(f db.Finding) {
		if len(findings) < maxFindings {
			findings = append(findings, strings.ReplaceAll(f.String(), dir, ""))
		}
	})
	if err != nil {
		return err
	}
	return c.Reply([]Fact{
		{"segments", result.Segments}, {"bytes", result.Bytes}, {"records", result.Records}, {"hints", result.Hints}, {"keys", result.Keys},
		{"findings", result.Findings}, {"found", findings},
	})
}

// statsCommand replies with the figures of the store that INFO storage shows too, under the names
// of the library.
func statsCommand(c *Call) error {
	s := c.Host.Store.Stats()
	return c.Reply([]Fact{
		{"dir", s.Dir}, {"store_id", s.StoreID}, {"keys", s.Keys}, {"deadlines", s.Deadlines}, {"expired", s.Expired},
		{"segments", s.Segments}, {"bytes", s.Bytes}, {"live_bytes", s.LiveBytes}, {"index_bytes", s.IndexBytes},
		{"sequence", s.Sequence}, {"syncs", s.Syncs}, {"failed", s.Failed}, {"merges", s.Merge.Merges},
	})
}
