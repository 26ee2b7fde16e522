package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// TestCompare runs everything once. The figures of so few mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	for _, program := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program)
		}
	}
	var out bytes.Buffer
	if err := compare(t.Context(), settings{n: 20_000, keys: 5_000, size: 20, rounds: 1, dir: t.TempDir(), progress: io.Discard}, &out); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(out.String(), "\n| "), 1+len(workloads)+1+3+1+2; got != want {
		t.Errorf("%d lines in the tables, want %d:\n%s", got, want, &out)
	}
	if err := compare(t.Context(), settings{}, io.Discard); err == nil {
		t.Error("no keys are accepted")
	}
}

func TestQuantile(t *testing.T) {
	list := []int{5, 1, 4, 2, 3}
	for share, want := range map[float64]int{0: 1, 0.5: 3, 0.99: 4, 1: 5} {
		if got := quantile(list, share); got != want {
			t.Errorf("%v: %d, want %d", share, got, want)
		}
	}
}
