package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/resp"
)

// The load of redis-benchmark: so many clients, with pipelines of so many commands, on so many keys and fields.
const (
	loadClients  = "50"
	loadPipeline = "16"
	loadKeys     = "100000"
)

// workloads are the commands whose cost is measured, as redis-benchmark takes them.
var workloads = []struct {
	name string
	args func(s settings) []string
}{
	{"SET", func(settings) []string { return []string{"-t", "set"} }},
	{"HSET", func(settings) []string { return []string{"-t", "hset"} }},
	{"XADD", func(s settings) []string {
		return []string{"XADD", "mystream", "*", "field", strings.Repeat("x", s.size)}
	}},
}

// run runs redis-benchmark against a server.
func run(ctx context.Context, s settings, on *servers.Server, args []string) (servers.Run, error) {
	return servers.Benchmark(ctx, append([]string{"-p", on.Port, "-n", strconv.Itoa(s.n), "-c", loadClients, "-P", loadPipeline, "-r", loadKeys, "-d", strconv.Itoa(s.size)}, args...)...)
}

// cost is what one run has shown.
type cost struct {
	cpu  float64 // microseconds of the server for a command
	rate float64 // commands a second, until the replica has them if there is one
}

// settle waits until all servers are idle: they share the processors.
func settle(ctx context.Context, s settings, sides []*side) error {
	for _, v := range sides {
		for _, server := range []*servers.Server{v.alone, v.master, v.replica} {
			switch settled, err := server.Settle(ctx); {
			case err != nil:
				return err
			case !settled:
				fmt.Fprintf(s.progress, "(%s is busy)", server.Name)
			}
		}
	}
	return nil
}

// time is one run on the server without a replica, or on the one with it.
func (v *side) time(ctx context.Context, s settings, sides []*side, args []string, replicated bool) (one cost, err error) {
	on := v.alone
	if replicated {
		on = v.master
	}
	if _, err := on.Do("FLUSHALL"); err != nil {
		return one, err
	}
	if err := settle(ctx, s, sides); err != nil {
		return one, err
	}
	before, err := on.CPU()
	if err != nil {
		return one, err
	}
	began := time.Now()
	if _, err := run(ctx, s, on, args); err != nil {
		return one, err
	}
	if replicated {
		if err := v.awaitCaughtUp(ctx); err != nil {
			return one, err
		}
	}
	one.rate = float64(s.n) / time.Since(began).Seconds()
	after, err := on.CPU()
	one.cpu = float64((after - before).Nanoseconds()) / 1000 / float64(s.n)
	return one, err
}

// costs are the table of what a replica costs.
func costs(ctx context.Context, s settings, sides []*side, out io.Writer) error {
	fmt.Fprint(out, "\n| command | CPU without a replica, us | CPU with one, us | more, us | commands a second with one |\n|---|---|---|---|---|\n")
	for _, w := range workloads {
		fmt.Fprint(s.progress, w.name, " ")
		var alone, with [2][]cost
		for round := range s.rounds {
			fmt.Fprint(s.progress, ".")
			for i := range sides {
				at := (round + i) % len(sides)
				for replicated, list := range map[bool]*[]cost{false: &alone[at], true: &with[at]} {
					one, err := sides[at].time(ctx, s, sides, w.args(s), replicated)
					if err != nil {
						return fmt.Errorf("%s: %s: %w", sides[at].name, w.name, err)
					}
					*list = append(*list, one)
				}
			}
		}
		fmt.Fprintln(s.progress)
		cpu := func(c cost) float64 { return c.cpu }
		rate := func(c cost) float64 { return c.rate }
		fmt.Fprintf(out, "| %s | %.2f, %.2f | %.2f, %.2f | %.2f, %.2f | %.0f, %.0f |\n", w.name, medianOf(alone[0], cpu), medianOf(alone[1], cpu), medianOf(with[0], cpu), medianOf(with[1], cpu),
			medianOf(with[0], cpu)-medianOf(alone[0], cpu), medianOf(with[1], cpu)-medianOf(alone[1], cpu), medianOf(with[0], rate), medianOf(with[1], rate))
	}
	return nil
}

// medianOf is the median of a figure.
func medianOf[T any](list []T, figure func(T) float64) float64 {
	var figures []float64
	for _, one := range list {
		figures = append(figures, figure(one))
	}
	return quantile(figures, 0.5)
}

// quantile is the value below which a share of a list is.
func quantile[T cmp.Ordered](list []T, share float64) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(share*float64(len(sorted)-1))]
}

// client is a connection of a client alongside.
type client struct {
	conn net.Conn
	in   *resp.Decoder
}

func dial(ctx context.Context, on *servers.Server) (*client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+on.Port)
	if err != nil {
		return nil, err
	}
	return &client{conn, resp.NewDecoder(conn)}, nil
}

// do sends a command and returns its reply, which may be an error.
func (c *client) do(args ...string) (resp.Reply, error) {
	if _, err := c.conn.Write(resp.AppendCommandStrings(nil, args...)); err != nil {
		return resp.Reply{}, err
	}
	return c.in.Read()
}

// lags are the table of how late a replica is.
func lags(ctx context.Context, s settings, sides []*side, out io.Writer) error {
	fmt.Fprint(s.progress, "lag ")
	all := make([][]time.Duration, len(sides))
	for round := range s.rounds {
		fmt.Fprint(s.progress, ".")
		for i := range sides {
			at := (round + i) % len(sides)
			if err := settle(ctx, s, sides); err != nil {
				return err
			}
			list, err := sides[at].lag(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", sides[at].name, err)
			}
			all[at] = append(all[at], list...)
		}
	}
	fmt.Fprintln(s.progress)
	fmt.Fprint(out, "\n| lag under SET, ms | redis-server | stave |\n|---|---|---|\n")
	for _, row := range []struct {
		name  string
		share float64
	}{{"median", 0.5}, {"p99", 0.99}, {"longest", 1}} {
		fmt.Fprintf(out, "| %s | %.2f | %.2f |\n", row.name, ms(quantile(all[0], row.share)), ms(quantile(all[1], row.share)))
	}
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// lag is how long each of some writes took to the replica while redis-benchmark runs. Each is asked for every 200 us.
func (v *side) lag(ctx context.Context, s settings) (list []time.Duration, err error) {
	writer, err := dial(ctx, v.master)
	if err != nil {
		return nil, err
	}
	defer writer.conn.Close()
	reader, err := dial(ctx, v.replica)
	if err != nil {
		return nil, err
	}
	defer reader.conn.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, s, v.master, workloads[0].args(s))
		ended <- err
	}()
	for n := 0; ; n++ {
		select {
		case err := <-ended:
			return list, err
		default:
		}
		value := strconv.Itoa(n)
		reply, err := writer.do("SET", "probe", value)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return nil, err
		}
		for began := time.Now(); ; time.Sleep(200 * time.Microsecond) {
			reply, err := reader.do("GET", "probe")
			if err == nil {
				err = reply.Err()
			}
			if err != nil {
				return nil, err
			}
			if string(reply.Text) == value {
				list = append(list, time.Since(began))
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}
