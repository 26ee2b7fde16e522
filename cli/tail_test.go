//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/db"
)

// TestTailFollow: tail --follow shows the commits of a writer that has the store open, soon after they are on the disk
// and next to a rotation, and Ctrl-C ends it with status 0.
func TestTailFollow(t *testing.T) {
	dir := t.TempDir()
	w, err := db.Open(dir, &db.Options{SegmentSize: 1 << 10, SyncEvery: 5 * time.Millisecond, NoMerge: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.String("before").Put([]byte("1")); err != nil {
		t.Fatal(err)
	}
	r, out := io.Pipe()
	var stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- cli.Run([]string{"stave", "tail", dir, "--follow", "--since", "0"}, strings.NewReader(""), out, &stderr)
		out.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("%q, %v, want %s", lines.Text(), lines.Err(), want)
		}
	}
	next(`"key":"before"`)
	for i := range 40 {
		key := fmt.Sprint("key", i)
		if err := w.String(key).Put(bytes.Repeat([]byte("v"), 100)); err != nil {
			t.Fatal(err)
		}
		next(`"key":"` + key + `"`)
	}
	signal(t, syscall.SIGINT)
	for lines.Scan() {
		t.Errorf("one more line: %s", lines.Text())
	}
	if got := <-status; got != 0 || stderr.Len() > 0 {
		t.Errorf("status %d, %q", got, stderr.String())
	}
}

// TestTailOfAReplacedStore: when a copy of the store takes its place, tail --follow ends with status 1, as where
// commits are not there any more, and says what to do.
func TestTailOfAReplacedStore(t *testing.T) {
	t.Chdir(t.TempDir())
	want(t, "OK\n", "", 0, "", "exec", "--dir", "store", "SET", "k", "v")
	if err := os.CopyFS("copy", os.DirFS("store")); err != nil {
		t.Fatal(err)
	}
	want(t, "OK\n", "", 0, "", "exec", "--dir", "store", "SET", "k", "old")
	want(t, "OK\nOK\nOK\n", "", 0, "SET k new\nSET k new\nSET k new\n", "exec", "--dir", "copy")
	r, out := io.Pipe()
	var stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- cli.Run([]string{"stave", "tail", "store", "--follow", "--last", "1"}, strings.NewReader(""), out, &stderr)
		out.Close()
	}()
	lines := bufio.NewScanner(r)
	if !lines.Scan() || !strings.Contains(lines.Text(), "old") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	if err := os.Rename("store", "gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("copy", "store"); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Errorf("one more line: %s", lines.Text())
	}
	got := <-status
	const next = ": stave tail store --last 1 shows its last number; take a stave export then, and go on with --since and that number\n"
	if got != 1 || !strings.HasPrefix(stderr.String(), "stave: tail store: another ") || !strings.HasSuffix(stderr.String(), next) {
		t.Errorf("status %d, %q", got, stderr.String())
	}
}

// A fullWriter fails like the standard output on a full disk.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestTailCannotWrite: an output that takes no more ends tail with status 1 and the reason.
func TestTailCannotWrite(t *testing.T) {
	dir := t.TempDir()
	want(t, "OK\n", "", 0, "", "exec", "--dir", dir, "SET", "k", "v")
	var stderr bytes.Buffer
	if status := cli.Run([]string{"stave", "tail", dir, "--follow"}, strings.NewReader(""), fullWriter{}, &stderr); status != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}
