package s3

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
)

// archived waits until a store has a base and all commits in its archive.
func archived(t *testing.T, s *db.Store) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		st := s.Stats().Archive
		if st.Behind == 0 && st.Bases > 0 && st.Err == "" {
			return
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("not archived: %+v", st)
		}
	}
}

// TestAnyMoment: a store is archived to a service that is killed now and then, and any commit is restored from there.
func TestAnyMoment(t *testing.T) {
	g, r := startGateway(t), chance.Rand(t)
	to := g.open("any")
	s, err := db.Open(filepath.Join(t.TempDir(), "store"), &db.Options{SegmentSize: 64 << 10, Archive: &archive.Options{To: to, Every: 20 * time.Millisecond}})
	must(t, err)
	const keys = 20
	key := func(n int) string { return fmt.Sprint("key", n%keys) }
	value := func(n int) string { return fmt.Sprint(n, strings.Repeat(" ", n%700)) }
	for n := 1; n <= 1500; n++ { // commit n sets a key
		must(t, s.String(key(n)).Put([]byte(value(n))))
		switch {
		case n == 300:
			archived(t, s)
		case n%400 == 0:
			g.kill()
		case n%400 == 50 && n > 400:
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			g.start()
		case r.IntN(20) == 0:
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	}
	archived(t, s)
	st := s.Stats().Archive
	must(t, s.Close())
	spans, err := archive.Spans(t.Context(), to)
	must(t, err)
	if len(spans) != 1 || st.Gaps > 0 || spans[0].Last.Sequence != 1500 {
		t.Fatalf("%d spans, %d gaps", len(spans), st.Gaps)
	}
	first := max(1, int(spans[0].First.Sequence))
	for range 10 {
		n := first + r.IntN(1501-first)
		dir := filepath.Join(t.TempDir(), "restored")
		made, err := archive.Restore(t.Context(), to, dir, archive.Target{Sequence: uint64(n)})
		must(t, err)
		got, err := db.Open(dir, nil)
		must(t, err)
		for of := max(1, n-keys+1); of <= n; of++ {
			if b, err := got.String(key(of)).Get(); err != nil || string(b) != value(of) {
				t.Errorf("restored to %d: %s is %.10q, %v; want %d", n, key(of), b, err, of)
			}
		}
		if made.Sequence != uint64(n) || got.Stats().Keys != min(n, keys) {
			t.Errorf("restored to %d: %d, with %d keys", n, made.Sequence, got.Stats().Keys)
		}
		must(t, got.Close())
	}
	t.Logf("%d objects", st.Objects)
}

// stave runs stave-s3.
func stave(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	dir, err := binaries()
	must(t, err)
	cmd := exec.Command(filepath.Join(dir, "stave-s3"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("stave-s3 %q: status %d, want %d: %s", args, got, want, &errs)
	}
	return out.String(), errs.String()
}

// TestProgram: the commands of README.md. A server that was archived is killed, and restored to before a FLUSHALL.
func TestProgram(t *testing.T) {
	g := startGateway(t)
	dir := t.TempDir()
	data, place := filepath.Join(dir, "data"), "s3://"+bucket+"/program"
	binary, err := binaries()
	must(t, err)
	server := exec.Command(filepath.Join(binary, "stave-s3"), "serve", "--dir", data, "--addr", "127.0.0.1:0", "--archive", place)
	out, err := server.StdoutPipe()
	must(t, err)
	var log bytes.Buffer
	server.Stderr = &log
	must(t, server.Start())
	defer server.Process.Kill()
	ready, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(ready)
	does := func(command ...string) string {
		t.Helper()
		reply, _ := stave(t, 0, append([]string{"exec", "--addr", addr}, command...)...)
		return reply
	}
	archivedUpTo := func() (sequence string) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			info := does("INFO", "storage")
			if strings.Contains(info, "archive_behind:0") && strings.Contains(info, "archive_bases:1") {
				return regexp.MustCompile(`archive_sequence:(\d+)`).FindStringSubmatch(info)[1]
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("%s", info)
			}
		}
	}
	for i := range 5 {
		does("SET", fmt.Sprint("k", i), "1")
	}
	before := archivedUpTo()
	does("FLUSHALL")
	does("SET", "after", "1")
	archivedUpTo()
	must(t, server.Process.Kill())
	_ = server.Wait()
	if list, _ := stave(t, 0, "restore", "--archive", place, "--list"); strings.Count(list, "\n") != 1 {
		t.Errorf("%s", list)
	}
	for to, want := range map[string]string{before: "5", "": "1"} {
		where := filepath.Join(dir, "to"+to)
		args := []string{"restore", "--archive", place}
		if to != "" {
			args = append(args, "--to", to)
		}
		stave(t, 0, append(args, where)...)
		if keys, _ := stave(t, 0, "exec", "--dir", where, "DBSIZE"); strings.TrimPrefix(strings.TrimSpace(keys), "(integer) ") != want {
			t.Errorf("to %q: %s keys, want %s", to, keys, want)
		}
	}
	g.kill()
	if _, stderr := stave(t, 1, "restore", "--archive", place, filepath.Join(dir, "x")); !strings.Contains(stderr, "refused") || !strings.Contains(stderr, place) {
		t.Errorf("%s", stderr)
	}
	for _, args := range [][]string{{"serve", "--dir", data, "--archive", "s3://"}, {"restore", "--archive", "gs://bucket/x", "--list"}} {
		if _, stderr := stave(t, 2, args...); !strings.Contains(stderr, "s3://") {
			t.Errorf("%q: %s", args, stderr)
		}
	}
}
