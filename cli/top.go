package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// A running server at a glance, from what INFO says twice. Rates are differences: the server's own averages are slower.
// It needs no more of a server than INFO, so it works with Redis, whose figures lack the part about segments. Fields
// that a server does not have count as 0 or are left out; nothing of it is an error.

// topCommand describes stave top. It is about a server and never opens a directory: what it shows is in no file.
func topCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "top",
		Flags: slices.Concat(hostFlags(), []cli.Flag{
			&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, Usage: "the server is at `HOST:PORT`, or at a socket's path"},
		}, authFlags(), watchFlags()),
		Action: func(c *cli.Context) error {
			every, count, err := readWatchFlags(c)
			switch {
			case err != nil:
				return err
			case c.NArg() > 0:
				return usagef("top takes no argument: --addr HOST:PORT names the server")
			}
			o, err := readStoreOptions(t, c)
			if err != nil {
				return err
			}
			return runTop(t, o, every, count)
		},
	}
}

// runTop asks and draws until it is interrupted, or has drawn count times. The first answer is only kept, so the first
// picture comes after one interval. A connection that is lost ends it.
func runTop(t *terminal.Streams, o storeOptions, every time.Duration, count int) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	s, err := newSession(ctx, t, o)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.Close)
	ctx, lineEnd, restore := endByKey(ctx, t)
	defer restore()
	var before topSample
	// Each picture is of the time between two answers, so the interval need not be kept exactly.
	return watch(ctx, t, true, every, count, func() (shown []byte, err error) {
		now, err := askTop(ctx, s)
		if err != nil {
			return nil, failed(statusOf(err), err)
		}
		if before.info != nil {
			shown = drawTop(before, now, s.name, t.Color())
			if t.OutTTY {
				shown = bytes.ReplaceAll(fitScreen(shown, t.Width(), t.Height()), []byte("\n"), []byte(lineEnd))
			}
		}
		before = now
		return shown, nil
	})
}

// fitScreen cuts what does not fit the screen, so that the first lines stay in sight. A line in colours is left as it is.
func fitScreen(shown []byte, width, height int) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(firstLines(shown, height-1)) {
		text := strings.TrimSuffix(string(line), "\n")
		if !strings.Contains(text, "\x1b") {
			text = terminal.Cut(text, width)
		}
		b.WriteString(text + "\n")
	}
	return b.Bytes()
}

// A topSample is what INFO said at one moment, which is when the reply was here. info is nil before the first.
type topSample struct {
	at   time.Time
	info map[string]string
}

// askTop asks for INFO everything: cmdstat and the percentiles of latency are not in INFO alone. A server that does not
// know the word replies with an empty text, which leaves all figures at 0.
func askTop(ctx context.Context, s *session) (topSample, error) {
	var text []byte
	var refused error
	err := s.backend.Do(ctx, [][]byte{[]byte("INFO"), []byte("everything")}, func(r resp.Reply) {
		if text, refused = bytes.Clone(r.Text), nil; r.IsError() {
			refused = r.Err()
		}
	})
	if err == nil {
		err = refused
	}
	return topSample{time.Now(), remote.ParseInfo(text)}, err
}

// number is a field as a number; 0 if there is none, or it is no number.
func (s topSample) number(name string) float64 {
	v, err := strconv.ParseFloat(s.info[name], 64)
	if err != nil {
		return 0
	}
	return v
}

// part is a member of a field such as calls=3,usec=9; 0 if there is none.
func (s topSample) part(field, name string) float64 {
	v, err := strconv.ParseFloat(s.word(field, name), 64)
	if err != nil {
		return 0
	}
	return v
}

// word is part of a member that is no number.
func (s topSample) word(field, name string) string {
	for pair := range strings.SplitSeq(s.info[field], ",") {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// A busyCommand is a row of the table. The percentiles are the server's, of all executions since its start or the last
// CONFIG RESETSTAT: INFO has none of an interval.
type busyCommand struct {
	name            string
	rate            float64
	mean            float64 // of the interval, in microseconds
	median, slowest string  // since the start
}

// drawTop draws the time between two samples. A counter that has become smaller, because the server was restarted or
// its counts were reset, makes a rate of 0. What the server says goes to the terminal only made safe. Keys are summed
// over the databases; their averages would mean nothing.
func drawTop(before, now topSample, name string, color bool) []byte {
	seconds := max(now.at.Sub(before.at).Seconds(), 0.001)
	rate := func(field string) float64 { return max(now.number(field)-before.number(field), 0) / seconds }
	var b strings.Builder
	// The keyspace has a field for each database with keys: db0:keys=3,expires=1,avg_ttl=0.
	keys, timed := 0.0, 0.0
	for field := range now.info {
		if n, ok := strings.CutPrefix(field, "db"); ok {
			if _, err := strconv.Atoi(n); err == nil {
				keys, timed = keys+now.part(field, "keys"), timed+now.part(field, "expires")
			}
		}
	}
	// Stave names a version of Redis too, for clients; its own is shown.
	version := "redis " + now.info["redis_version"]
	if v := now.info["stave_version"]; v != "" {
		version = "stave " + v
	}
	fmt.Fprintf(&b, "%s  %s  up %s  %s clients, %s blocked\n\n", terminal.Safe([]byte(name)), terminal.Safe([]byte(version)), humanize.Age(time.Duration(now.number("uptime_in_seconds"))*time.Second),
		humanize.Count(int64(now.number("connected_clients"))), humanize.Count(int64(now.number("blocked_clients"))))
	// The share of hits is that of the interval; without a read in it there is none.
	hits, misses := rate("keyspace_hits"), rate("keyspace_misses")
	found := "-"
	if hits+misses > 0 {
		found = fmt.Sprintf("%.1f %%", hits/(hits+misses)*100)
	}
	fmt.Fprintf(&b, "ops     %12s /s   hits %s   expired %s /s   errors %s /s\n", humanize.Count(int64(rate("total_commands_processed"))), found,
		humanize.Count(int64(rate("expired_keys"))), humanize.Count(int64(rate("total_error_replies"))))
	fmt.Fprintf(&b, "net     %12s /s in   %s /s out\n", humanize.Size(int64(rate("total_net_input_bytes"))), humanize.Size(int64(rate("total_net_output_bytes"))))
	fmt.Fprintf(&b, "keys    %12s      %s with a TTL   memory %s\n", humanize.Count(int64(keys)), humanize.Count(int64(timed)), humanize.Size(int64(now.number("used_memory"))))
	// The part that Redis has not: the log, a merge under way, and why writes are refused.
	if disk := int64(now.number("storage_bytes")); disk > 0 {
		live := int64(now.number("storage_live_bytes"))
		fmt.Fprintf(&b, "log     %12s      %s live in %s   %s syncs /s\n", humanize.Size(disk), humanize.Percent(live, disk), humanize.Plural(int64(now.number("storage_segments")), "segment"), humanize.Count(int64(rate("storage_syncs"))))
		if now.info["merge_running"] == "1" || now.info["merge_running"] == "true" {
			read, all := int64(now.number("merge_read_bytes")), int64(now.number("merge_to_read_bytes"))
			fmt.Fprintf(&b, "merge   [%s] %s of %s\n", humanize.PercentBar(min(read, all), all), humanize.Size(read), humanize.Size(all))
		}
		if why := now.info["storage_failed"]; why != "" {
			fmt.Fprintf(&b, "%s\n", terminal.Paint(color, "writes are refused: "+string(terminal.Safe([]byte(why))), "31"))
		}
	}
	// The master and the replicas, if there are any.
	for _, d := range now.replication() {
		line := fmt.Sprintf("%-8s%s", d.Name, d.Found)
		if d.State != stateOK {
			line = fmt.Sprintf("%s: %s", line, d.Advice)
		}
		line = string(terminal.Safe([]byte(line)))
		if d.State != stateOK {
			line = terminal.Paint(color, line, colorOf[d.State])
		}
		b.WriteString(line + "\n")
	}
	table := terminal.NewTable("command", "calls /s", "mean", "p50", "p99")
	for _, c := range busyCommands(before, now, seconds, 12) {
		table.Row(string(terminal.Safe([]byte(c.name))), fmt.Sprintf("%.0f", c.rate), humanize.Latency(time.Duration(c.mean*1000)), c.median, c.slowest)
	}
	if len(table.Rows) > 1 {
		b.WriteString("\n")
		_ = table.Write(&b)
	}
	return []byte(b.String())
}

// busyCommands are those that were called most between two samples, most of them at most. INFO is left out: the calls
// are our own.
func busyCommands(before, now topSample, seconds float64, most int) []busyCommand {
	var list []busyCommand
	for field := range now.info {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		calls := now.part(field, "calls") - before.part(field, "calls")
		if calls <= 0 || name == "info" {
			continue
		}
		// Time and calls are differences too, so the mean is that of the interval.
		c := busyCommand{name: name, rate: calls / seconds, mean: max(now.part(field, "usec")-before.part(field, "usec"), 0) / calls, median: "-", slowest: "-"}
		if spread := "latency_percentiles_usec_" + name; now.info[spread] != "" {
			c.median = humanize.Latency(time.Duration(now.part(spread, "p50") * 1000))
			c.slowest = humanize.Latency(time.Duration(now.part(spread, "p99") * 1000))
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b busyCommand) int { return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.name, b.name)) })
	return list[:min(len(list), most)]
}
