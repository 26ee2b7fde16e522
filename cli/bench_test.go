package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli"
)

// Every workload runs to its end, with several threads and with one, each of
// its operations is in the histogram, and nothing is left on the disk.
func TestBench(t *testing.T) {
	for _, threads := range []string{"1", "3"} {
		dir := t.TempDir()
		var stdout, stderr bytes.Buffer
		args := []string{"stave", "bench", dir, "-n", "250", "--threads", threads, "--sync", "none", "--json"}
		if status := cli.Run(args, strings.NewReader(""), &stdout, &stderr); status != 0 || stderr.Len() > 0 {
			t.Fatalf("%v: status %d, %s", args, status, stderr.String())
		}
		var report struct {
			Workloads []struct {
				Name       string
				Operations int
				P50        int64 `json:"p50_ns"`
				Max        int64 `json:"max_ns"`
				Histogram  []struct{ Count int }
			}
		}
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Workloads) != 11 {
			t.Errorf("%d workloads", len(report.Workloads))
		}
		for _, w := range report.Workloads {
			counted := 0
			for _, octave := range w.Histogram {
				counted += octave.Count
			}
			want := 250
			if w.Name == "batch" {
				want = 2
			}
			if w.Operations != want || counted != want || w.P50 <= 0 || w.Max < w.P50 {
				t.Errorf("%s: %+v", w.Name, w)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// The text has a block for a workload: a sentence, the quantiles, and bars
// whose shares make up the whole.
func TestBenchText(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"stave", "bench", t.TempDir(), "-n", "100", "--only", "zset"}
	if status := cli.Run(args, strings.NewReader(""), &stdout, &stderr); status != 0 || stderr.Len() > 0 {
		t.Fatalf("status %d, %s", status, stderr.String())
	}
	want := regexp.MustCompile(`^100 operations each, values of 128 B, 1 thread, sync interval; \S+, \d+ CPUs?

zset: 100 operations in [\d.]+ (us|ms|s), [\d,]+ a second
p50 [\d.]+ [num]?s, p90 [\d.]+ [num]?s, p99 [\d.]+ [num]?s, p99.9 [\d.]+ [num]?s, max [\d.]+ [num]?s
( *[\d.]+ [num]?s(  [#.]+ +[\d.]+ %)?
)+$`)
	if !want.MatchString(stdout.String()) {
		t.Errorf("got:\n%s", stdout.String())
	}
}

// TestHelpBehindArguments: help is help, wherever the option stands.
func TestHelpBehindArguments(t *testing.T) {
	run := func(args ...string) string {
		var out, errs strings.Builder
		if status := cli.Run(append([]string{"stave"}, args...), strings.NewReader(""), &out, &errs); status != 0 || errs.Len() > 0 {
			t.Errorf("%q: status %d, %s", args, status, errs.String())
		}
		return out.String()
	}
	want := run("bench", "--help")
	for _, args := range [][]string{{"bench", "nowhere", "--help"}, {"bench", "-n", "5", "nowhere", "-h"}} {
		if got := run(args...); got != want {
			t.Errorf("%q: %s", args, got)
		}
	}
}
