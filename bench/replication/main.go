// Command replication times what one replica costs its master, and a full synchronization, on "stave serve" and redis-server,
// each with a replica of its own kind.
//
// The cost is the processor time of the master for a command of redis-benchmark, with 50 clients and pipelines of 16, on a server
// that never had a replica and on one that has; the rate with a replica counts until that has everything. The lag is from the reply
// to a SET until a client of the replica sees it, during such a load. A full synchronization is timed from REPLICAOF until the link
// is up, first of an empty replica and then of one with as many keys of its own, which are served until they are replaced; two
// clients write to the master meanwhile, one SET after the other, and one reads at the replica each millisecond. Both servers sync
// their logs once a second. They take turns in each round; figures are medians over the rounds, but the longest waits.
//
//	go run ./replication                                     everything, about four minutes on two cores
//	go run ./replication -only sync -keys 10000000 -rounds 1 some of it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
)

// settings are the options.
type settings struct {
	n, keys, size, rounds int
	only, stave, dir      string
	progress              io.Writer
}

func main() {
	s := settings{progress: os.Stderr}
	flag.IntVar(&s.n, "n", 300_000, "commands of a run")
	flag.IntVar(&s.keys, "keys", 1_000_000, "keys of a full synchronization")
	flag.IntVar(&s.size, "size", 128, "`bytes` of a value")
	flag.IntVar(&s.rounds, "rounds", 3, "runs of each figure")
	flag.StringVar(&s.only, "only", "", "only some of cost,lag,sync, with commas between")
	flag.StringVar(&s.stave, "stave", "", "`binary` of stave; default: built from this checkout")
	flag.StringVar(&s.dir, "dir", "", "`directory` for the servers' files; default: a temporary one")
	flag.Parse()
	servers.Main("replication", func(ctx context.Context, out io.Writer) error { return compare(ctx, s, out) })
}

// compare measures everything and writes the tables.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.n < 1 || s.keys < 1 || s.size < 1 || s.rounds < 1 {
		return errors.New("-n, -keys, -size and -rounds must be positive")
	}
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	s.stave = stave
	sides, err := startSides(ctx, s, root)
	defer func() {
		for _, v := range sides {
			err = errors.Join(err, v.stop())
		}
	}()
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d cores, %s. %d rounds, values of %d bytes, %d commands, %d keys. Each pair is redis-server, stave.\n", strings.TrimSpace(string(version)), runtime.NumCPU(), runtime.Version(),
		s.rounds, s.size, s.n, s.keys)
	for _, part := range []struct {
		name string
		of   func(context.Context, settings, []*side, io.Writer) error
	}{{"cost", costs}, {"lag", lags}, {"sync", syncs}} {
		if s.only != "" && !slices.Contains(strings.Split(s.only, ","), part.name) {
			continue
		}
		if err := part.of(ctx, s, sides, out); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// side are the servers of one kind: one that never has a replica while the cost is measured, and a master with its replica.
type side struct {
	name                   string
	alone, master, replica *servers.Server
}

// startSides starts all servers. What has been started is returned also with an error.
func startSides(ctx context.Context, s settings, root string) (sides []*side, err error) {
	for _, name := range []string{"redis-server", "stave"} {
		v := &side{name: name}
		sides = append(sides, v)
		for what, to := range map[string]**servers.Server{"alone": &v.alone, "master": &v.master, "replica": &v.replica} {
			dir := filepath.Join(root, name+"-"+what)
			if name == "stave" {
				*to, err = servers.StartStave(ctx, name+" "+what, s.stave, dir)
			} else {
				*to, err = servers.StartRedis(ctx, dir)
			}
			if err != nil {
				return sides, err
			}
		}
		if name == "redis-server" { // as Stave does it
			_, one := v.master.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
			_, other := v.replica.Do("CONFIG", "SET", "repl-diskless-load", "swapdb")
			if err := errors.Join(one, other); err != nil {
				return sides, err
			}
		}
		if _, err := v.follow(ctx); err != nil {
			return sides, err
		}
	}
	return sides, nil
}

func (v *side) stop() (err error) {
	for _, server := range []*servers.Server{v.replica, v.master, v.alone} {
		if server != nil {
			err = errors.Join(err, server.Stop())
		}
	}
	return err
}

// info is a field of INFO replication.
func info(server *servers.Server, field string) (string, error) {
	reply, err := server.Do("INFO", "replication")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(reply.Text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s: INFO has no %s", server.Name, field)
}

// patience is how long a replica may take.
const patience = 5 * time.Minute

// await asks every few milliseconds until a condition holds.
func await(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		switch is, err := holds(); {
		case err != nil || is:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return errors.New("in vain for " + patience.String() + ": " + what)
		}
	}
}

// follow makes the replica one, and returns how long it took until its link was up.
func (v *side) follow(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	if _, err := v.replica.Do("REPLICAOF", "127.0.0.1", v.master.Port); err != nil {
		return 0, err
	}
	err = await(ctx, v.name+": the link is up", func() (bool, error) {
		state, err := info(v.replica, "master_link_status")
		return state == "up", err
	})
	return time.Since(began), err
}

// awaitCaughtUp waits until the replica has everything.
func (v *side) awaitCaughtUp(ctx context.Context) error {
	return await(ctx, v.name+": the replica has everything", func() (bool, error) {
		want, err := info(v.master, "master_repl_offset")
		if err != nil {
			return false, err
		}
		have, err := info(v.replica, "master_repl_offset")
		return have == want, err
	})
}
