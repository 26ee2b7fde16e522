package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stavedb/stave/internal/group"
	urfave "github.com/urfave/cli/v2"
)

// Groups on one machine, for trying them out and for tests of programs: three processes each. Those of the first one have an etcd each.

// localIDs are the members of the first group, and those of the second and the third.
var localIDs, moreIDs = []string{"a", "b", "c"}, []string{"d", "e", "f", "g", "h", "i"}

func localCommand() *urfave.Command {
	return &urfave.Command{
		Name: "local", Usage: "Runs a group of three servers on this machine, or several", ArgsUsage: "DIR",
		UsageText: "staved local [--port N] [--groups N] DIR",
		Description: `A server that ends, by kill -9 for example, is started again. The directory DIR
keeps all that they have. SIGINT and SIGTERM end the group. Clients of Redis Cluster
find the primary: redis-cli -c -p 6380.`,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "port", Value: 6380, Usage: "the servers listen on the ports `N`, N+1 and so on, and the etcds on N+10 to N+22; 0: on free ones"},
			&urfave.IntFlag{Name: "groups", Value: 1, Usage: "`N` groups, 3 at most, have the slots of a cluster together"},
			&urfave.StringFlag{Name: "sync", Value: "interval", Usage: "flush to the disk: `MODE` is always (before each reply), interval (every second) or none"},
		},
		Action: func(c *urfave.Context) error {
			if c.NArg() != 1 {
				return errors.New("staved local takes one directory, in which the servers keep what they have")
			}
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
			defer stop()
			l := &local{dir: c.Args().First(), sync: c.String("sync"), out: c.App.Writer, log: c.App.ErrWriter}
			if err := l.prepare(c.Int("port"), c.IsSet("port"), c.Int("groups"), c.IsSet("groups")); err != nil {
				return err
			}
			return l.run(ctx)
		},
	}
}

// local are such groups.
type local struct {
	dir, sync string
	base      int // the first of the ports
	groups    int
	isNew     bool // no member has been started

	mu       sync.Mutex // guards the rest
	out, log io.Writer
	ready    map[string]bool
}

// prepare makes the directory, which keeps the ports and the number of groups from then on: the etcds know each other by the ports.
func (l *local) prepare(port int, isPort bool, groups int, isGroups bool) (err error) {
	if groups < 1 || groups > 3 {
		return fmt.Errorf("--groups must be 1 to 3, not %d", groups)
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(l.dir, "port")
	text, err := os.ReadFile(file)
	if err == nil {
		l.groups = 1
		n, err := fmt.Sscan(string(text), &l.base, &l.groups)
		switch {
		case n == 0:
			return fmt.Errorf("%s: %w", file, err)
		case isPort && port != l.base:
			return fmt.Errorf("%s was made with --port %d: leave --port out", l.dir, l.base)
		case isGroups && groups != l.groups:
			return fmt.Errorf("%s was made with --groups %d: leave --groups out", l.dir, l.groups)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l.base, l.groups = port, groups; port == 0 {
		if l.base, err = freePorts(); err != nil {
			return err
		}
	}
	l.isNew = true
	return os.WriteFile(file, fmt.Appendln(nil, l.base, l.groups), 0o600)
}

// ids are all members, three for each group.
func (l *local) ids() []string { return slices.Concat(localIDs, moreIDs)[:l.groups*len(localIDs)] }

// ports of member i: for clients, between the etcds, and of its etcd for clients.
func ports(base, i int) [3]int { return [3]int{base + i, base + 10 + i, base + 20 + i} }

// freePorts finds a base whose ports are all free. They are not of those that the system gives to outgoing connections.
func freePorts() (base int, err error) {
	for range 100 {
		base = 10000 + 30*rand.IntN(700)
		if err = areFree(base); err == nil {
			return base, nil
		}
	}
	return 0, err
}

func areFree(base int) error {
	for i := range len(localIDs) + len(moreIDs) {
		for _, port := range ports(base, i) {
			ln, err := net.Listen("tcp", local4(port))
			if err != nil {
				return err
			}
			if err := ln.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func local4(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// args are those of member i.
func (l *local) args(i int) []string {
	id, of := l.ids()[i], i/len(localIDs)
	p, dir := ports(l.base, i), filepath.Join(l.dir, id)
	args := []string{"serve", "--dir", filepath.Join(dir, "data"), "--sync", l.sync, "--id", id, "--addr", local4(p[0])}
	var peers, clients []string
	for j, id := range localIDs {
		peers, clients = append(peers, id+"="+local4(ports(l.base, j)[1])), append(clients, "http://"+local4(ports(l.base, j)[2]))
	}
	if of == 0 {
		args = append(args, "--etcd-dir", filepath.Join(dir, "etcd"), "--peers", strings.Join(peers, ","), "--etcd-client", local4(p[2]))
	} else {
		args = append(args, "--etcd", strings.Join(clients, ","))
	}
	if l.groups > 1 {
		args = append(args, "--group", fmt.Sprint("g", of+1), "--slots", l.slots(of).String())
	}
	if l.isNew && i%len(localIDs) == 0 {
		args = append(args, "--bootstrap")
	}
	return args
}

// slots are those of a group, about as many as all others have.
func (l *local) slots(of int) group.SlotRange {
	return group.SlotRange{First: of * group.SlotCount / l.groups, Last: (of+1)*group.SlotCount/l.groups - 1}
}

// run keeps all members running until ctx ends.
func (l *local) run(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	l.ready = map[string]bool{}
	var running sync.WaitGroup
	for i := range l.ids() {
		running.Go(func() { l.keep(ctx, program, i) })
	}
	running.Wait()
	return nil
}

// Waits before a member that has ended is started again.
const (
	againSoon = 100 * time.Millisecond
	againLate = 5 * time.Second
)

// keep runs a member, again and again.
func (l *local) keep(ctx context.Context, program string, i int) {
	wait := againSoon
	for ctx.Err() == nil {
		began := time.Now()
		err := l.member(ctx, program, i)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > againLate {
			wait = againSoon
		}
		l.say(l.log, "%s has ended (%v); it is started again\n", l.ids()[i], err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, againLate)
	}
}

// member runs a member until it ends, or ctx does.
func (l *local) member(ctx context.Context, program string, i int) error {
	cmd := exec.CommandContext(ctx, program, l.args(i)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append([]string{"STAVE_CLUSTER_ENABLED=yes"}, os.Environ()...) // clients find the primary; the user may want something else
	setChild(cmd)
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.said(l.ids()[i], lines.Text())
		}
		_, _ = io.Copy(io.Discard, out) // after a line that is too long
	})
	err := runChild(cmd)
	_ = w.Close() // of a pipe: it does not fail
	reading.Wait()
	return err
}

// said takes a line of a member. When all have been ready once, the groups are.
func (l *local) said(id, line string) {
	l.say(l.log, "%s: %s\n", id, line)
	if !strings.Contains(line, " ready on ") {
		return
	}
	l.mu.Lock()
	was := len(l.ready)
	l.ready[id] = true
	all := was < len(l.ids()) && len(l.ready) == len(l.ids())
	l.mu.Unlock()
	if all {
		var addresses []string
		for i := range l.ids() {
			addresses = append(addresses, local4(ports(l.base, i)[0]))
		}
		l.say(l.out, "staved local: the group listens on %s, its data are in %s\n", strings.Join(addresses, ", "), l.dir)
	}
}

func (l *local) say(w io.Writer, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(w, format, args...) // there is nobody else to be told
}
