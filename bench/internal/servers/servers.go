// Package servers starts redis-server and stave in processes of their own, for commands that compare them.
package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// Server is a server that runs in a process of its own, and a connection to it. It is for one goroutine.
type Server struct {
	Name    string
	Port    string // on 127.0.0.1
	command *exec.Cmd
	conn    net.Conn
	in      *resp.Decoder
}

// Main runs a command of that name, until a signal ends its context, and exits after an error.
func Main(name string, run func(ctx context.Context, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Build makes the binary of this checkout, which is a module of its own.
func Build(ctx context.Context, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/stavedb/stave").Output()
	if err != nil {
		return fmt.Errorf("looking for the sources of stave: %w", err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(root)), "-o", binary, ".")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building stave: %w", err)
	}
	return nil
}

// Workplace makes a directory for one run, in dir or where temporary files are, which the caller removes. It returns the
// binary to measure, too: the one of that name, or without one the one of this checkout, which it builds there.
func Workplace(ctx context.Context, dir, stave string) (root, binary string, err error) {
	if root, err = os.MkdirTemp(dir, "stave-bench-"); err != nil || stave != "" {
		return root, stave, err
	}
	binary = filepath.Join(root, "stave")
	if err := Build(ctx, binary); err != nil {
		return "", "", errors.Join(err, os.RemoveAll(root))
	}
	return root, binary, nil
}

// StartRedis starts redis-server with its files in dir, which is made if it does not exist. It syncs its append-only file once a second.
func StartRedis(ctx context.Context, dir string) (*Server, error) {
	return start("redis-server", dir, func(port string) *exec.Cmd {
		return exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes",
			"--appendfsync", "everysec", "--loglevel", "warning")
	})
}

// StartStave starts a binary of stave with its files in dir, which is made if it does not exist.
func StartStave(ctx context.Context, name, binary, dir string, options ...string) (*Server, error) {
	return start(name, dir, func(port string) *exec.Cmd {
		return exec.CommandContext(ctx, binary, append([]string{"serve", "--quiet", "--addr", "127.0.0.1:" + port, "--dir", dir}, options...)...)
	})
}

// start starts a server on a free port and connects to it.
func start(name, dir string, command func(port string) *exec.Cmd) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err = errors.Join(err, free.Close()); err != nil {
		return nil, err
	}
	v := &Server{Name: name, Port: port, command: command(port)}
	v.command.Stderr = os.Stderr
	v.command.Cancel = func() error { return v.command.Process.Signal(syscall.SIGTERM) }
	if err := v.command.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if v.conn, err = net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			v.in = resp.NewDecoder(bufio.NewReaderSize(v.conn, 64<<10))
			return v, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w", name, err), v.command.Process.Kill(), v.command.Wait())
		}
	}
}

// Stop ends the server.
func (v *Server) Stop() error {
	err := v.conn.Close()
	if signalled := v.command.Process.Signal(syscall.SIGTERM); !errors.Is(signalled, os.ErrProcessDone) {
		err = errors.Join(err, signalled)
	}
	var ended *exec.ExitError
	if waited := v.command.Wait(); !errors.As(waited, &ended) && !errors.Is(waited, context.Canceled) { // interrupted
		err = errors.Join(err, waited)
	}
	return err
}

// Send sends commands together and waits for their replies.
func (v *Server) Send(commands [][]string) error {
	var out []byte
	for _, args := range commands {
		out = resp.AppendCommandStrings(out, args...)
	}
	if _, err := v.conn.Write(out); err != nil {
		return err
	}
	for _, args := range commands {
		reply, err := v.in.Read()
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", v.Name, args[0], err)
		}
	}
	return nil
}

// Do sends a command and returns its reply.
func (v *Server) Do(args ...string) (resp.Reply, error) {
	_, err := v.conn.Write(resp.AppendCommandStrings(nil, args...))
	if err != nil {
		return resp.Reply{}, err
	}
	reply, err := v.in.Read()
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", v.Name, args[0], err)
	}
	return reply, err
}

// Memory is the anonymous memory that the server has, in bytes: what it has mapped of files is not counted.
func (v *Server) Memory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "RssAnon:")
	var kilobytes int64
	if _, err := fmt.Sscan(after, &kilobytes); err != nil {
		return 0, fmt.Errorf("RssAnon of %s: %w", v.Name, err)
	}
	return kilobytes << 10, nil
}

// CPU is the processor time that the threads of the server have used.
func (v *Server) CPU() (used time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", v.command.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(errors.New("processor time is read from /proc/PID/task/*/schedstat, which is not there"), err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		field, _, _ := strings.Cut(string(text), " ")
		nanoseconds, parsed := strconv.ParseInt(field, 10, 64)
		if err = errors.Join(err, parsed); err != nil {
			return 0, err
		}
		used += time.Duration(nanoseconds)
	}
	return used, nil
}

// Bounds of Settle.
const (
	settleStep = 50 * time.Millisecond
	settleIdle = settleStep / 25 // processor time of a step in which a server that is idle looks after its timers
	settleMost = 5 * time.Second
)

// Settle waits until the server has been idle for a moment, and reports whether it was within settleMost. What it does on
// its own after the commands before, such as hints and merges, or the rewriting of a log by a child, would be counted for
// the next ones. What it begins later, on a timer, is not waited for.
func (v *Server) Settle(ctx context.Context) (settled bool, err error) {
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", v.command.Process.Pid)
	before, err := v.CPU()
	for end := time.Now().Add(settleMost); err == nil && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(settleStep):
		}
		var now time.Duration
		if now, err = v.CPU(); err != nil {
			return false, err
		}
		list, _ := os.ReadFile(children) // a kernel may be built without it

		// A thread that has ended takes its time with it.
		if (now-before).Abs() <= settleIdle && len(list) == 0 {
			return true, nil
		}
		before = now
	}
	return false, err
}
