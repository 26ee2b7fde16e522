package replication_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// childDirectory names the store of a process that this test binary is started as, to be killed.
const childDirectory = "STAVE_TEST_REPLICA"

// serveChild serves a store until the process is killed. It prints its port.
func serveChild(dir string) {
	store, err := db.Open(dir, &db.Options{SegmentSize: 1 << 20})
	if err == nil {
		var ln net.Listener
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			fmt.Println(ln.Addr())
			err = server.Serve(context.Background(), ln, store, nil)
		}
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}

// child is a Stave in a process of its own.
type child struct {
	t       *testing.T
	dir     string
	cmd     *exec.Cmd
	address string
}

// start starts it, or starts it again after kill.
func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childDirectory+"="+c.dir)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if c.address = strings.TrimSpace(line); err != nil || strings.HasPrefix(line, "failed") {
		c.t.Fatalf("the child does not serve: %s%v", line, err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// startChild starts one that is killed at the end of the test.
func startChild(t *testing.T) *child {
	t.Helper()
	c := &child{t: t, dir: t.TempDir()}
	c.start()
	t.Cleanup(c.kill)
	return c
}
