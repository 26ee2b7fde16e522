// Program clients runs Redis clients against stave serve, over TLS and as users of an ACL file: clients [-table FILE] STAVE. Each does
// pipelines, WATCH, blocking commands, pub/sub, a value of 1 MiB and what it must not, then the server is restarted, and each goes
// on with the connections that it had. Then those that ask Sentinels write to a pair of servers whose master is killed. Those that are not written in Go are left out where they are not installed; see .ci/clients. It is a
// module of its own, so that Stave does not depend on them.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	patience  = 20 * time.Second // that a client has for one wait, and to connect again
	pipelined = 1000             // commands
	counters  = 4                // that increment by WATCH
	counts    = 10               // increments of each
	bulkValue = 1 << 20
)

// client is one that is run, with a protocol.
type client struct {
	name, version, protocol string
	jobs                    string
	run                     func(e *env) error
}

// env is what a client finds. Its keys and channels begin with prefix, which no other client uses.
type env struct {
	server   *server
	tls      *tls.Config
	user     string
	prefix   string
	password string
	restart  func() // waits for the others to get there, and for the restart of the server, or the death of the master

	sentinels []string // addresses, in place of the server
}

const usualJobs = "pipeline, WATCH, blocking, pub/sub, 1 MiB, NOPERM, restart"

// barrier lets the server be restarted when all clients wait for it.
type barrier struct {
	arrived  sync.WaitGroup
	finished chan struct{}
}

// of returns restart for one client, and a function that is called when it has ended, were it before.
func (b *barrier) of() (restart, end func()) {
	b.arrived.Add(1)
	arrive := sync.OnceFunc(b.arrived.Done)
	return func() {
		arrive()
		<-b.finished
	}, arrive
}

func main() {
	table := flag.String("table", "", "write the results into the table of `FILE`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "clients [-table FILE] STAVE")
		os.Exit(2)
	}
	results, err := runAll(flag.Arg(0))
	sentinel, failed := runSentinels(flag.Arg(0))
	results, err = append(results, sentinel...), errors.Join(err, failed)
	if err == nil && *table != "" {
		err = writeTable(*table, results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// runAll runs all clients at the same time and returns the rows of the table.
func runAll(stave string) (results []string, err error) {
	s, err := newServer(stave)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.start(); err != nil {
		return nil, err
	}
	all := append(goClients(), programs(s)...)
	gate := &barrier{finished: make(chan struct{})}
	rows, failures := make([]string, len(all)), make([]error, len(all))
	var clients sync.WaitGroup
	for i, c := range all {
		restart, end := gate.of()
		e := &env{
			server: s, tls: s.clientTLS(), user: "worker", password: password, restart: restart,
			prefix: fmt.Sprintf("clients:%s:%s:", strings.ReplaceAll(c.name, "/", "."), c.protocol),
		}
		clients.Go(func() {
			defer end()
			if failures[i] = c.run(e); failures[i] != nil {
				failures[i] = fmt.Errorf("%s, %s: %w", c.name, c.protocol, failures[i])
			}
			rows[i] = c.row(failures[i])
		})
	}
	gate.arrived.Wait()
	err = s.restart()
	close(gate.finished)
	clients.Wait()
	return rows, errors.Join(append(failures, err, refused(&env{server: s, tls: s.clientTLS(), user: "worker"}))...)
}

// row prints and returns the row of a client in the table.
func (c *client) row(failure error) string {
	result := "ok"
	if failure != nil {
		result = "FAILED"
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s |", c.name, c.version, c.protocol, c.jobs, result)
	fmt.Println(row)
	return row
}

// moduleVersion is the version of a Go module in this program.
func moduleVersion(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return "unknown"
}

// writeTable replaces the rows below the heading of the table by results. Rows of clients that were left out go too.
func writeTable(file string, results []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const heading = "| client | version | protocol | what it did | result |\n|---|---|---|---|---|\n"
	before, after, found := strings.Cut(string(text), heading)
	if !found {
		return fmt.Errorf("%s has no table of clients", file)
	}
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	slices.SortFunc(results, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return os.WriteFile(file, []byte(before+heading+strings.Join(results, "\n")+"\n"+after), 0o644)
}

// want is an error unless got is what was wanted.
func want[T comparable](what string, got, wanted T, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if got != wanted {
		return fmt.Errorf("%s: got %.100q, want %.100q", what, fmt.Sprint(got), fmt.Sprint(wanted))
	}
	return nil
}

// wantError is an error unless err begins with a word of Redis.
func wantError(what string, err error, word string) error {
	if err == nil || !strings.Contains(err.Error(), word) {
		return fmt.Errorf("%s: got %v, want %s", what, err, word)
	}
	return nil
}

// eventually calls f until it succeeds.
func eventually(what string, f func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// together runs f several times at once.
func together(n int, f func(i int) error) error {
	failures := make([]error, n)
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { failures[i] = f(i) })
	}
	work.Wait()
	return errors.Join(failures...)
}

var bulk = strings.Repeat("0123456789abcdef", bulkValue/16)
