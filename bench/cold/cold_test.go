package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestCompare runs it on few keys, which the system may have in memory: the figures mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	var out bytes.Buffer
	if err := compare(t.Context(), settings{n: 1000, clients: 2, rounds: 1, run: 50 * time.Millisecond, dir: t.TempDir()}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 3 || strings.Contains(out.String(), "| 0 |") {
		t.Errorf("%d lines in the table, want 3:\n%s", got, &out)
	}
	if err := compare(t.Context(), settings{n: 0, clients: 1, rounds: 1}, &out); err == nil {
		t.Error("no keys are accepted")
	}
}
