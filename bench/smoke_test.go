package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the command, which calls itself.
func TestMain(m *testing.M) {
	for _, arg := range os.Args[1:] {
		if arg == "-child" {
			main()
			return
		}
	}
	os.Exit(m.Run())
}

// Every workload runs and fills its rows. The figures of so few entries mean
// nothing.
func TestEveryWorkload(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every workload")
	}
	if _, err := exec.LookPath("/proc/self/exe"); err != nil {
		t.Skip("needs /proc")
	}
	var out bytes.Buffer
	if err := runAll(t.Context(), settings{n: 2000, dir: t.TempDir(), timeout: time.Minute}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(out.String(), "\n| ")
	want := 0
	for _, table := range tables {
		want += 1 + len(table.rows)
	}
	if lines != want {
		t.Errorf("%d lines in the tables, want %d:\n%s", lines, want, out.String())
	}
}

func TestChoose(t *testing.T) {
	for only, want := range map[string]int{"": len(workloads), "memory": 6 + len(engines), "memory/set": 1, "memory/set,open": 1 + 2*len(engines), "speed/*/pebble": 5} {
		got, err := choose(only)
		if err != nil || len(got) != want {
			t.Errorf("-only %q: %d workloads, %v; want %d", only, len(got), err, want)
		}
	}
	if _, err := choose("memory,speeed"); err == nil {
		t.Error("a misspelt name was accepted")
	}
}

// A workload that fails is an error at the end and says so in its rows; the others are measured all the same.
func TestFailedWorkload(t *testing.T) {
	chosen, err := choose("pause/nothing")
	if err != nil {
		t.Fatal(err)
	}
	chosen = append([]workload{{name: "pause/unknown", steps: 1}}, chosen...)
	got := make(figures)
	err = measureAll(t.Context(), settings{n: 2000, timeout: time.Minute}, chosen, t.TempDir(), got)
	if err == nil || !strings.Contains(err.Error(), "pause/unknown: step 0") {
		t.Errorf("error %v", err)
	}
	if _, ok := got.median("pause/nothing/each-p50"); !ok {
		t.Error("the workload after it was not measured")
	}
	failing := pauseRow("unknown", "unknown", "< 1 ms")
	failing.met = atMost(1e6)
	if line, ok := failing.line(got, true); !ok || line != "| unknown | failed | failed | failed | failed | < 1 ms | no |" {
		t.Errorf("its row: %s, %v", line, ok)
	}
	got.add("pause/unknown/each-p99", 5000) // of another run
	if line, _ := failing.line(got, true); !strings.Contains(line, "| 5.00 us, failed |") {
		t.Errorf("its row after a run that did not fail: %s", line)
	}
	got.fail("pause/unknow")
	if got.failed("pause/nothing/each-p50") || got.failed("pause") {
		t.Error("a workload that has not failed says so")
	}
}
