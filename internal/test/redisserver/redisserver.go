// Package redisserver starts a redis-server for a test.
package redisserver

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Server is a redis-server that runs until its test ends.
type Server struct {
	Socket string // its only address

	t *testing.T
}

// Start starts a redis-server that loads an RDB file, unless that is "", and skips the test where there is none. It
// answers.
func Start(t *testing.T, file string) Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server")
	}
	dir, err := os.MkdirTemp("", "rdb") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if file != "" {
		if err := os.Link(file, filepath.Join(dir, "dump.rdb")); err != nil {
			t.Fatal(err)
		}
	}
	s := Server{filepath.Join(dir, "s"), t}
	server := exec.Command(path, "--port", "0", "--unixsocket", s.Socket, "--dir", dir, "--save", "", "--enable-debug-command", "yes")
	var log bytes.Buffer
	server.Stdout = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		server.Process.Kill()
		server.Wait() // after which log is complete
	}
	t.Cleanup(stop)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if text, _ := s.CLI(nil, "PING"); strings.TrimSpace(text) == "PONG" {
			return s
		}
		if time.Since(began) > time.Minute {
			stop()
			t.Fatalf("redis-server does not answer:\n%s", log.String())
		}
	}
}

// URL is the address as a tool takes it.
func (s Server) URL() string { return "unix://" + s.Socket }

// CLI runs redis-cli.
func (s Server) CLI(in io.Reader, args ...string) (string, error) {
	c := exec.Command("redis-cli", append([]string{"-s", s.Socket}, args...)...)
	c.Stdin = in
	out, err := c.CombinedOutput()
	return string(out), err
}

// Do is CLI that must work.
func (s Server) Do(args ...string) string {
	s.t.Helper()
	out, err := s.CLI(nil, args...)
	if err != nil || strings.HasPrefix(out, "ERR") {
		s.t.Fatalf("%q: %s, %v", args, out, err)
	}
	return strings.TrimSpace(out)
}

// Save returns the path of a file with everything in it.
func (s Server) Save() string {
	s.Do("SAVE")
	return filepath.Join(filepath.Dir(s.Socket), "dump.rdb")
}
