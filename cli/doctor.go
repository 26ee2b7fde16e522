package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// What an operator wants to know before trusting a machine with a store: the limits of the process, room on the disk
// and what a sync costs, the clock, and what an earlier accident has left behind. Each line ends with what to do next.
// What differs by system is in doctor_unix.go and doctor_other.go.

// doctorCommand describes stave doctor. It is to be run as the user of the server, or limits and permissions are those
// of somebody else.
func doctorCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "doctor",
		Flags: slices.Concat([]cli.Flag{dirFlag(), &cli.BoolFlag{Name: "json", Usage: "print all of it as one JSON object"},
			&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, Usage: "ask the server at `HOST:PORT` or at a socket's path, instead"}}, authFlags()),
		Action: func(c *cli.Context) error {
			if c.IsSet("addr") || c.IsSet("user") {
				return runServerDoctor(t, c)
			}
			return onDir(func(c *cli.Context, dir string) error { return runDoctor(t, dir, c.Bool("json")) })(c)
		},
	}
}

// A diagnosis is one line. Advice is empty where there is nothing to be done: a test holds this together with State.
type diagnosis struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warning or failure
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

// The states of a diagnosis. A failure is what a server cannot work with, or must not; a warning is what will be
// regretted.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFailure = "failure"
)

// colorOf are the colours of the states.
var colorOf = map[string]string{stateOK: "32", stateWarning: "33", stateFailure: "31"}

// runDoctor examines and prints. A directory that is not there yet is examined by its parent. It writes nothing but one
// hidden file for the time of the measurement, and takes no lock, so it may run alongside a server. A failure, and not
// a warning, makes the status 1: a script can run it before a server is started.
func runDoctor(t *terminal.Streams, dir string, asJSON bool) error {
	ctx, stop := t.Interruptible()
	defer stop()
	at := absolute(dir) // the directory that is examined: dir, or the nearest one above it
	found := []diagnosis{}
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		if err == nil {
			return openError(dir, errors.New("not a directory"))
		}
		// The root is its own parent, and is there.
		for at != filepath.Dir(at) {
			if at = filepath.Dir(at); isDir(at) {
				break
			}
		}
		found = append(found, diagnosis{"directory", stateWarning, fmt.Sprintf("%s is not there; the rest is about %s", dir, at), "stave serve --dir " + dir + " makes it"})
	}
	found = append(found, examineLimits()...)
	found = append(found, examineDisk(at)...)
	found = append(found, examineSync(ctx, at), examineClock(time.Now()))
	if at == absolute(dir) {
		found = append(found, examineStore(ctx, dir)...)
	}
	if ctx.Err() != nil {
		t.Complain(errors.New("interrupted"))
		return ctx.Err()
	}
	return reportDiagnoses(t, diagnoses{Dir: dir, Findings: found}, asJSON)
}

// diagnoses are all that is found of a directory, or of a server.
type diagnoses struct {
	Dir      string      `json:"dir,omitempty"`
	Server   string      `json:"server,omitempty"`
	Findings []diagnosis `json:"findings"`
}

// reportDiagnoses prints them. JSON also has the findings without a problem, and each state as a word.
func reportDiagnoses(t *terminal.Streams, all diagnoses, asJSON bool) (err error) {
	found := all.Findings
	if asJSON {
		err = json.NewEncoder(t.Out).Encode(all)
	} else {
		err = printDiagnoses(t, found)
	}
	if err == nil && slices.ContainsFunc(found, func(d diagnosis) bool { return d.State == stateFailure }) {
		return &exitError{status: exitCommand}
	}
	return failed(exitCommand, err)
}

// isDir reports whether there is a directory at a path, or a link that leads to one.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// printDiagnoses prints a line each. Names of files may come from others, so they are made safe for a terminal. The
// state is a word, and the colour only repeats it.
func printDiagnoses(t *terminal.Streams, found []diagnosis) error {
	for _, d := range found {
		line := fmt.Sprintf("%s %-12s %s", terminal.Paint(t.Color(), fmt.Sprintf("%-8s", d.State), colorOf[d.State]), d.Name, terminal.Safe([]byte(d.Found)))
		if d.Advice != "" {
			line += ": " + string(terminal.Safe([]byte(d.Advice)))
		}
		if _, err := fmt.Fprintln(t.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// examineSync measures what a sync of a small write takes: 50 times, or for two seconds on a disk that is slow. A sync
// that has begun is waited for, whatever ctx says.
func examineSync(ctx context.Context, dir string) diagnosis {
	times, err := syncTimes(ctx, dir, 50, 2*time.Second)
	if err != nil || len(times) == 0 {
		return diagnosis{"sync", stateWarning, fmt.Sprintf("not measured: %v", err), "run it as the user of the server, which must be able to write there"}
	}
	slices.Sort(times)
	median, worst := times[len(times)/2], times[len(times)-1]
	return judgeSync(median, worst, len(times))
}

// judgeSync says what to think of syncs. One that takes next to nothing does not reach a disk, or the disk has a
// protected cache. The bounds: a flush of a usual disk takes more than 20 us; half a second is what a client of a
// server with appendfsync always would notice; more than 20 ms is a disk that turns, or is busy.
func judgeSync(median, worst time.Duration, n int) diagnosis {
	d := diagnosis{Name: "sync", State: stateOK, Found: fmt.Sprintf("4 KiB take %s in the median of %d, %s at worst", humanize.Latency(median), n, humanize.Latency(worst))}
	switch {
	case median < 20*time.Microsecond:
		d.State, d.Advice = stateWarning, "too fast for a disk: a memory file system, or syncs that are ignored; a power cut may take what was acknowledged"
	case worst > 500*time.Millisecond:
		d.State, d.Advice = stateWarning, "stalls like the worst delay every client with appendfsync always; look for other writers on this disk"
	case median > 20*time.Millisecond:
		d.State, d.Advice = stateWarning, "use appendfsync everysec, or a faster disk"
	}
	return d
}

// syncTimes writes and syncs a file some times, at most for a while, and removes it. Each write makes the file longer,
// as appends to a log do, so that what is measured has the file system's own bookkeeping in it.
func syncTimes(ctx context.Context, dir string, n int, most time.Duration) (times []time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".stave-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 4096)
	for began := time.Now(); len(times) < n && time.Since(began) < most && ctx.Err() == nil; {
		started := time.Now()
		if _, err := f.WriteAt(block, int64(len(times))*4096); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(started))
	}
	return times, nil
}

// examineClock looks for a clock that was never set: deadlines are absolute times. Machines without a battery begin in
// 1970, or at the time when their firmware was built.
func examineClock(now time.Time) diagnosis {
	d := diagnosis{Name: "clock", State: stateOK, Found: now.UTC().Format(time.RFC3339)}
	if now.Year() < 2025 {
		d.State, d.Advice = stateFailure, "the clock is not set: keys with deadlines would live too long; set it, and run a time service"
	}
	return d
}

// examineStore looks at what is in the directory, and opens the store for reading if there is one. Remains of accidents
// are found by their names, since a store that cannot be opened has some as well.
func examineStore(ctx context.Context, dir string) []diagnosis {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []diagnosis{{"store", stateFailure, err.Error(), "run it as the user of the server"}}
	}
	// .torn-* are what recoveries have kept of logs that they truncated, *.partial what repair and backup make first.
	var found []diagnosis
	var torn, partial []string
	manifest := false
	for _, e := range entries {
		manifest = manifest || e.Name() == "MANIFEST"
		if strings.Contains(e.Name(), ".torn-") {
			torn = append(torn, e.Name())
		}
		if strings.HasSuffix(e.Name(), ".partial") {
			partial = append(partial, e.Name())
		}
	}
	if len(torn) > 0 {
		found = append(found, diagnosis{"remains", stateWarning, fmt.Sprintf("%s: what openings have truncated", strings.Join(torn, ", ")), "stave repair reads them; delete them if nothing is missing"})
	}
	if len(partial) > 0 {
		found = append(found, diagnosis{"remains", stateWarning, fmt.Sprintf("%s: from a repair or a backup that did not end", strings.Join(partial, ", ")), "delete it"})
	}
	if names, err := orphanFiles(dir); err != nil {
		found = append(found, diagnosis{"orphans", stateWarning, err.Error(), "run it as the user of the server"})
	} else if len(names) > 0 {
		found = append(found, orphansFound(len(names)))
	}
	if !manifest {
		return append(found, diagnosis{"store", stateOK, "there is none in this directory yet", ""})
	}
	return append(found, examineOpen(ctx, dir)...)
}

// examineOpen opens the store for reading, which ends when ctx does. It takes as long as an opening does, for large
// stores seconds, and verifies no more than that: stave check reads every record. The plan is that of a merge with the
// default policy; a server may have been given another one.
func examineOpen(ctx context.Context, dir string) []diagnosis {
	store, err := db.Open(dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{Until: ctx}))
	switch {
	case isDamage(err):
		return []diagnosis{{"store", stateFailure, err.Error(), "stave check DIR says how much is damaged, stave repair DIR --out NEW copies what is left"}}
	case err != nil:
		return []diagnosis{{"store", stateFailure, err.Error(), "see stave help check"}}
	}
	// All that is asked of the store is in memory by now, so it can be closed before the lines are made.
	st, recovery := store.Stats(), store.Log().Recovery()
	plan := store.Merger().Plan(false)
	err = store.Close()
	text := fmt.Sprintf("%s in %s, opened in %s", humanize.Plural(st.Keys, "key"), humanize.Plural(st.Segments, "segment"), humanize.Duration(recovery.Took))
	found := []diagnosis{{"store", stateOK, text, "stave check DIR verifies every record"}}
	if err != nil {
		found = append(found, diagnosis{"store", stateFailure, err.Error(), ""})
	}
	if recovery.TornBytes > 0 {
		found = append(found, diagnosis{"log", stateOK, humanize.Size(recovery.TornBytes) + " of an unfinished write at the end", "the next opening for writing truncates it; a running server may be writing just now"})
	}
	if len(recovery.Unknown) > 0 {
		found = append(found, diagnosis{"files", stateWarning, strings.Join(recovery.Unknown, ", ") + ": not of a store", "keep other files elsewhere"})
	}
	if plan.Triggered && plan.Reclaims > 0 {
		found = append(found, diagnosis{"merge", stateWarning, fmt.Sprintf("due: it would reclaim %s", humanize.Size(plan.Reclaims)), "a server does it by itself; else stave merge DIR"})
	}
	return found
}

// judgeRoom says whether the free space is enough for a merge, which writes a segment before it removes any. All are
// bytes; free is what an ordinary user may fill, store what the files of the directory have, 0 without one.
func judgeRoom(free, total, store, segment int64) diagnosis {
	d := diagnosis{Name: "room", State: stateOK, Found: fmt.Sprintf("%s free of %s", humanize.Size(free), humanize.Size(total))}
	switch {
	case free < 64<<20:
		d.State, d.Advice = stateFailure, "free some space now: writes are refused when it is full"
	case free < 2*segment:
		d.State, d.Advice = stateWarning, fmt.Sprintf("a merge writes up to %s before it removes anything; keep twice as much free", humanize.Size(segment))
	case store > 0 && free < store/5:
		d.State, d.Advice = stateWarning, fmt.Sprintf("the store has %s: keep a fifth of it free", humanize.Size(store))
	}
	return d
}

// judgeFiles says whether so many open files are enough: a connection takes one, and a segment one or two. A server
// with too few does not fail: it lowers maxclients to what there is.
func judgeFiles(limit uint64) diagnosis {
	d := diagnosis{Name: "descriptors", State: stateOK, Found: fmt.Sprintf("%d open files allowed", limit)}
	if limit < 4096 {
		d.State, d.Advice = stateWarning, "raise it to 65536 (ulimit -n, or LimitNOFILE of the unit): a client takes one, a segment one or two"
	}
	return d
}

// judgeFileSystem says what to think of a file system by its name, as fileSystemName has it. One that is not known is
// not warned of.
func judgeFileSystem(name string) diagnosis {
	d := diagnosis{Name: "file system", State: stateOK, Found: name}
	switch name {
	case "tmpfs", "ramfs":
		d.State, d.Advice = stateWarning, "nothing in it survives a restart of the machine"
	case "nfs", "smb", "cifs", "fuse", "9p":
		d.State, d.Advice = stateWarning, "locks and syncs over a network, or a user's program, may promise more than they keep; use a local disk"
	}
	return d
}

// bytesIn is how many bytes the files in a directory have, by their lengths: a reserve or zeros at the end of a log
// count. What cannot be read counts as nothing.
func bytesIn(dir string) (n int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}
