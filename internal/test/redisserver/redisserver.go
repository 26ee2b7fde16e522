// Package redisserver starts a redis-server for a test.
package redisserver

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Server is a redis-server that runs until its test ends.
type Server struct {
	Socket string // its only address, but for
	Port   string // on 127.0.0.1; "" for none

	password string
	t        *testing.T
}

// Start starts a redis-server that loads an RDB file, unless that is "", and skips the test where there is none. It
// answers.
func Start(t *testing.T, file string) Server {
	t.Helper()
	return start(t, file, "", "--port", "0")
}

// StartMaster starts an empty redis-server that listens on a port too, with a password unless that is "": a master, unless flags
// say otherwise.
func StartMaster(t *testing.T, password string, flags ...string) Server {
	t.Helper()
	port := FreePort(t)
	flags = append([]string{"--port", port, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, flags...)
	if password != "" {
		flags = append(flags, "--requirepass", password)
	}
	s := start(t, "", password, flags...)
	s.Port = port
	return s
}

// FreePort is a port that nobody listens on. Somebody else may take it, which is rare.
func FreePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func start(t *testing.T, file, password string, flags ...string) Server {
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
	s := Server{Socket: filepath.Join(dir, "s"), password: password, t: t}
	server := exec.Command(path, append([]string{"--unixsocket", s.Socket, "--dir", dir, "--save", "", "--enable-debug-command", "yes"}, flags...)...)
	var log bytes.Buffer
	server.Stdout = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		server.Process.Kill()
		server.Wait() // after which log is complete
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the log of redis-server ends with\n%s", log.Bytes()[max(0, log.Len()-4000):])
		}
	})
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
	own := []string{"-s", s.Socket}
	if s.password != "" {
		own = append(own, "-a", s.password, "--no-auth-warning")
	}
	c := exec.Command("redis-cli", append(own, args...)...)
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
