//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archivedAll waits until a server has archived what it has, and returns the sequence number.
func (p *program) archivedAll() (sequence string) {
	p.t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		info := map[string]string{}
		for line := range strings.Lines(p.does("INFO", "storage")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[name] = value
		}
		if info["archive_behind"] == "0" && info["archive_bases"] == "1" && info["archive_error"] == "" && info["archive_gaps"] == "0" {
			return info["archive_sequence"]
		}
		if time.Since(begin) > time.Minute {
			p.t.Fatalf("%q", info)
		}
	}
}

// TestServeArchived: what a server has archived is restored after a kill and a FLUSHALL, to a number, to a time, and to the
// newest moment; nothing is restored over a store, or from what is no archive.
func TestServeArchived(t *testing.T) {
	dir := t.TempDir()
	data, archive := filepath.Join(dir, "data"), filepath.Join(dir, "archive")
	p := startProgram(t, "--dir", data, "--addr", "127.0.0.1:0", "--archive", archive)
	for i := range 50 {
		p.does("SET", fmt.Sprint("k", i), "1")
	}
	p.archivedAll()
	p.kill()
	p = startProgram(t, "--dir", data, "--addr", "127.0.0.1:0", "--archive", archive)
	p.does("RPUSH", "list", "a", "b")
	before := p.archivedAll()
	time.Sleep(1100 * time.Millisecond) // times are of a second
	moment := time.Now().Format(time.RFC3339Nano)
	p.does("FLUSHALL")
	p.does("SET", "after", "1")
	p.archivedAll()
	if out := p.does("INFO", "storage"); !strings.Contains(out, "archive_time:1") {
		t.Errorf("%s", out)
	}
	keys := func(where string) string {
		t.Helper()
		out, stderr, status := run("", "exec", "--dir", filepath.Join(dir, where), "DBSIZE")
		if status != 0 {
			t.Errorf("%s: %s", where, stderr)
		}
		return strings.TrimSpace(out)
	}
	restore := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, status := run("", append([]string{"restore", "--archive", archive}, args...)...)
		if status != want {
			t.Errorf("restore %q: status %d, %s", args, status, stderr)
		}
		return stdout, stderr
	}
	restore(0, "--to", before, filepath.Join(dir, "number"))
	restore(0, "--to", moment, filepath.Join(dir, "time"))
	if out, _ := restore(0, filepath.Join(dir, "newest")); !strings.Contains(out, "restored 1 key as of sequence") {
		t.Errorf("%s", out)
	}
	for where, want := range map[string]string{"number": "(integer) 51", "time": "(integer) 51", "newest": "(integer) 1"} {
		if got := keys(where); got != want && got != strings.TrimPrefix(want, "(integer) ") {
			t.Errorf("%s has %s keys, want %s", where, got, want)
		}
	}
	if out, _ := restore(0, "--list"); !strings.HasPrefix(out, "sequence ") || strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
	out, _ := restore(0, "--list", "--json")
	var span struct{ First, Last struct{ Sequence uint64 } }
	if err := json.Unmarshal([]byte(out), &span); err != nil || span.Last.Sequence < span.First.Sequence || span.Last.Sequence < 51 {
		t.Errorf("%s, %v", out, err)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{1, "directory is not empty", []string{filepath.Join(dir, "number")}},
		{1, " restores the one before it", []string{"--to", "99999999", filepath.Join(dir, "x")}},
		{1, "the nearest moments: none before it", []string{"--to", "2001-01-01 00:00", filepath.Join(dir, "x")}},
		{2, "--to takes", []string{"--to", "yesterday", filepath.Join(dir, "x")}},
		{2, "takes the directory", nil},
	} {
		if _, stderr := restore(c.status, c.args...); !strings.Contains(stderr, c.says) {
			t.Errorf("%q: %s", c.args, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("something was restored")
	}
	if _, _, status := run("", "restore", "--archive", filepath.Join(dir, "nothing"), "--list"); status != 3 {
		t.Errorf("no archive: status %d", status)
	}
	if _, stderr, status := run("", "serve", "--dir", data, "--archive", filepath.Join(data, "archive")); status != 2 || !strings.Contains(stderr, "outside") {
		t.Errorf("an archive in the store: status %d, %s", status, stderr)
	}
}
