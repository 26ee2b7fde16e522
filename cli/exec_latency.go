package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
)

// How long a server takes to answer, as its clients feel it: PING on one connection, with a pause after each. A time is
// that of the round trip, with the network and this process in it; what the server itself measures is in LATENCY. A
// server that stands still for longer than the interval is one long sample, and not the many that would have waited.

// pingPause is the time between a reply and the next PING, as in redis-cli. It leaves the server idle in between, so
// what is measured is not the load of the measurement.
const pingPause = 10 * time.Millisecond

// runLatency prints a line for each interval, -r of them or until it is interrupted. An interval is a second, or what
// -i says, and has one sample at least. The 99th percentile of n samples is the one at 0.99 (n-1), rounded down, in
// their order: with few samples it is not the largest.
func runLatency(ctx context.Context, s *session, c *cli.Context) error {
	interval := time.Second
	if c.IsSet("interval") {
		interval = max(time.Duration(c.Float64("interval")*float64(time.Second)), pingPause)
	}
	count := -1
	if c.IsSet("repeat") {
		count = c.Int("repeat")
	}
	for n := 0; n != count; n++ {
		took, err := s.pings(ctx, interval)
		if ctx.Err() != nil {
			return nil // the way to end it
		}
		if err != nil {
			return err
		}
		slices.Sort(took)
		at := func(share float64) string { return humanize.Latency(took[int(share*float64(len(took)-1))]) }
		if _, err := fmt.Fprintf(s.Out, "min %s, median %s, 99 %% %s, max %s (%s)\n", at(0), at(0.5), at(0.99), at(1), humanize.Plural(int64(len(took)), "sample")); err != nil {
			return err
		}
	}
	return nil
}

// pings measures until the interval is over; once at least. The pause comes after the reply and not at a fixed rate, so
// a server that is slow is asked less often, and a fast one about a hundred times a second.
func (s *session) pings(ctx context.Context, interval time.Duration) (took []time.Duration, err error) {
	for began := time.Now(); len(took) == 0 || time.Since(began) < interval; {
		sent := time.Now()
		if _, err := s.query(ctx, "PING"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(sent))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pingPause):
		}
	}
	return took, nil
}
