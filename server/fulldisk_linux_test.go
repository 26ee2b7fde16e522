package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// wire is a client that reads whole replies.
type wire struct {
	t  *testing.T
	c  net.Conn
	in *bufio.Reader
}

// ask sends one command and returns the reply: a text, an error with its "-", a number, or a map as text.
func (w *wire) ask(args ...string) string {
	w.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := w.c.Write([]byte(b.String())); err != nil {
		w.t.Fatal(err)
	}
	for raw := []byte(nil); ; {
		more := make([]byte, 64<<10)
		n, err := w.in.Read(more)
		if err != nil {
			w.t.Fatal(err)
		}
		raw = append(raw, more[:n]...)
		if reply, _, err := resp.Decode(raw); err == nil {
			if reply.IsError() {
				return "-" + string(reply.Text)
			}
			return reply.String()
		}
	}
}

func (w *wire) info(field string) string {
	w.t.Helper()
	for line := range strings.Lines(w.ask("INFO", "persistence")) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	w.t.Fatalf("INFO has no %s", field)
	return ""
}

// fillUp sets keys until that is refused, and wants an error without the name of a file.
func (w *wire) fillUp(keys int) {
	w.t.Helper()
	for i := range 1_000_000 {
		got := w.ask("SET", fmt.Sprint("key", i%keys), strings.Repeat("v", 1000))
		if got == "OK" {
			continue
		}
		if !strings.HasPrefix(got, "-MISCONF Stave cannot write: the disk is full") || strings.Contains(got, ".data") || strings.Contains(got, "/") {
			w.t.Fatalf("after %d: %q", i, got)
		}
		return
	}
}

// resumes wants writes to go on by themselves soon.
func (w *wire) resumes(what string) {
	w.t.Helper()
	got := ""
	for range 6000 {
		if got = w.ask("SET", "again", "v"); got == "OK" {
			if state := w.info("store_state"); state != "ok" {
				w.t.Errorf("%s: a store that takes writes is %s", what, state)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("%s: %q", what, got)
}

// TestFullDiskOverTheWire fills a tmpfs through a server, which is killed in between: DEL, FLUSHALL and MERGE free it,
// and garbage is freed by the background.
func TestFullDiskOverTheWire(t *testing.T) {
	for name, free := range map[string]func(w *wire){
		"DEL, then MERGE ALL": func(w *wire) {
			for i := range 20_000 {
				if got := w.ask("DEL", fmt.Sprint("key", i)); got == "0" {
					break
				} else if got != "1" {
					if got := w.ask("MERGE", "ALL"); strings.HasPrefix(got, "-") {
						w.t.Fatalf("MERGE ALL: %q", got)
					}
					if got := w.ask("DEL", fmt.Sprint("key", i)); got != "1" {
						w.t.Fatalf("DEL after MERGE: %q", got)
					}
				}
			}
			if got := w.ask("MERGE", "ALL"); strings.HasPrefix(got, "-") {
				w.t.Fatalf("MERGE ALL: %q", got)
			}
		},
		"FLUSHALL, then MERGE": func(w *wire) {
			if got := w.ask("FLUSHALL"); got != "OK" {
				w.t.Fatalf("FLUSHALL: %q", got)
			}
			if got := w.ask("MERGE"); strings.HasPrefix(got, "-") {
				w.t.Fatalf("MERGE: %q", got)
			}
		},
		"FLUSHALL, and the background": func(w *wire) {
			if got := w.ask("FLUSHALL"); got != "OK" {
				w.t.Fatalf("FLUSHALL: %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			someTransport(t, func(t *testing.T, transport server.Transport) {
				dir := mountTmpfs(t, "8388k")
				o := &db.Options{SegmentSize: 1 << 20, NoMerge: !strings.Contains(name, "background")}
				withServer(t, dir, o, transport, func(w *wire) {
					w.fillUp(1_000_000)
					if state, last := w.info("store_state"), w.info("aof_last_write_status"); state != "full" || last != "err" {
						t.Errorf("INFO: %s, %s", state, last)
					}
					if got := w.ask("GET", "key1"); len(got) != 1000 {
						t.Errorf("a read: %q", got)
					}
				})
				withServer(t, dir, o, transport, func(w *wire) { // on the full disk
					if got := w.ask("GET", "key1"); len(got) != 1000 {
						t.Errorf("a read: %q", got)
					}
					free(w)
					w.resumes(name)
				})
			})
		})
	}
}

// mountTmpfs mounts a file system of some size for a test.
func mountTmpfs(t *testing.T, size string) (dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a file system")
	}
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %s", out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDiskWithDefaults fills a tmpfs of 48 MB through a server with default settings, deletes all keys one by one,
// and wants none of these to be refused, and writes to resume.
func TestFullDiskWithDefaults(t *testing.T) {
	someTransport(t, func(t *testing.T, transport server.Transport) {
		dir := mountTmpfs(t, "48m")
		value := make([]byte, 3000)
		rand := chance.Rand(t)
		keys := 0
		withServer(t, dir, nil, transport, func(w *wire) {
			for ; ; keys++ {
				for i := range value {
					value[i] = byte(rand.Uint32())
				}
				if got := w.ask("SET", fmt.Sprint("key", keys), string(value)); strings.HasPrefix(got, "-MISCONF") {
					break
				} else if got != "OK" {
					t.Fatalf("SET: %q", got)
				}
			}
			for i := range keys {
				if got := w.ask("DEL", fmt.Sprint("key", i)); got != "1" {
					t.Fatalf("DEL %d of %d: %q", i, keys, got)
				}
			}
			w.resumes("DEL of every key")
		})
		if keys < 12_000 {
			t.Errorf("the disk was full with %d keys", keys)
		}
	})
}

func withServer(t *testing.T, dir string, o *db.Options, transport server.Transport, do func(w *wire)) {
	t.Helper()
	store, err := db.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- newServer(t, store, &server.Options{Transport: transport}).Serve(ctx, ln) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	do(&wire{t, conn, bufio.NewReader(conn)})
}
