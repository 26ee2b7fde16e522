package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// The service is versitygw, which keeps objects in a directory: a program of its own, that go.tool.mod has, so that nothing
// of it is in go.mod.

// binaries are the programs that the tests start.
var binaries = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "stave-s3-*"); err != nil {
		return "", err
	}
	for name, args := range map[string][]string{
		"versitygw": {"-modfile=go.tool.mod", "github.com/versity/versitygw/cmd/versitygw"},
		"stave-s3":  {"./stave-s3"},
	} {
		args = append([]string{"build", "-o", filepath.Join(dir, name)}, args...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("go %q: %w\n%s", args, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull) // not those of the machine
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"} {
		os.Unsetenv(name)
	}
	os.Setenv("AWS_REGION", "us-east-1")
	os.Setenv("AWS_ACCESS_KEY_ID", "tester")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "secret of the tester")
	status := m.Run()
	if dir, _ := binaries(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}

// gateway is a running service with an empty bucket.
type gateway struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

const bucket = "archives"

func startGateway(t *testing.T) *gateway {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := &gateway{t: t, dir: t.TempDir(), addr: ln.Addr().String()}
	must(t, ln.Close())
	for _, name := range []string{"data", "attributes"} {
		must(t, os.Mkdir(filepath.Join(g.dir, name), 0o700))
	}
	g.start()
	t.Cleanup(g.kill)
	t.Setenv("AWS_ENDPOINT_URL", "http://"+g.addr)
	must(t, g.open("").core.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}))
	return g
}

func (g *gateway) start() {
	g.t.Helper()
	dir, err := binaries()
	must(g.t, err)
	g.cmd = exec.Command(filepath.Join(dir, "versitygw"), "--port", g.addr, "--quiet", "--keep-alive", "posix", "--sidecar", filepath.Join(g.dir, "attributes"), filepath.Join(g.dir, "data"))
	g.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+os.Getenv("AWS_ACCESS_KEY_ID"), "ROOT_SECRET_KEY="+os.Getenv("AWS_SECRET_ACCESS_KEY"))
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	must(g.t, g.cmd.Start())
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", g.addr); err == nil {
			c.Close()
			return
		}
		if time.Since(begun) > 30*time.Second {
			g.kill()
			g.t.Fatalf("versitygw does not answer: %s", &g.log)
		}
	}
}

func (g *gateway) kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

// open is a Store of its own in the bucket.
func (g *gateway) open(prefix string) *Store {
	g.t.Helper()
	s, err := Open("s3://" + bucket + "/" + prefix)
	must(g.t, err)
	return s
}

// uploads is how many objects have been begun in parts and are not there.
func (g *gateway) uploads(s *Store) int {
	g.t.Helper()
	list, err := s.core.ListMultipartUploads(g.t.Context(), bucket, s.prefix, "", "", "", 1000)
	must(g.t, err)
	return len(list.Uploads)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire is a TCP proxy before the gateway that cuts or stalls connections.
type wire struct {
	ln net.Listener
	to string
	// after is how many bytes of a connection go through in one direction before it breaks; 0: all. up is that from the
	// client, down that to it.
	up, down atomic.Int64
	stalls   atomic.Bool // in the place of breaking it goes silent
	flips    atomic.Bool // in the place of breaking it flips a bit
	left     atomic.Int64
	broke    atomic.Int64
}

// wired has Stores that are opened from here on talk to the gateway by a wire, which breaks so many connections.
func (g *gateway) wired() *wire {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(g.t, err)
	w := &wire{ln: ln, to: g.addr}
	ctx, stop := context.WithCancel(context.Background())
	g.t.Cleanup(func() { stop(); ln.Close() })
	g.t.Setenv("AWS_ENDPOINT_URL", "http://"+ln.Addr().String())
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go w.serve(ctx, c)
		}
	}()
	return w
}

func (w *wire) serve(ctx context.Context, client net.Conn) {
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		client.Close()
		return
	}
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	var work sync.WaitGroup
	work.Go(func() { w.copy(ctx, server, client, &w.up); server.Close(); client.Close() })
	work.Go(func() { w.copy(ctx, client, server, &w.down); server.Close(); client.Close() })
	work.Wait()
}

// copy copies until the end, or breaks.
func (w *wire) copy(ctx context.Context, to, from net.Conn, after *atomic.Int64) {
	buf := make([]byte, 32<<10)
	for sent := int64(0); ; {
		n, err := from.Read(buf)
		if limit := after.Load(); limit > 0 && sent+int64(n) > limit && w.left.Add(-1) >= 0 {
			w.broke.Add(1)
			if !w.flips.Load() {
				_, _ = to.Write(buf[:limit-min(sent, limit)])
				if w.stalls.Load() {
					<-ctx.Done()
				}
				return
			}
			buf[n-1] ^= 1
		}
		if _, writeErr := to.Write(buf[:n]); writeErr != nil || err != nil {
			return
		}
		sent += int64(n)
	}
}

// all reads an object.
func all(ctx context.Context, s *Store, name string) ([]byte, error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}
