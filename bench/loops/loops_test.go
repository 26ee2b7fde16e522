package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestCompare runs it for a moment: the figures mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	var out bytes.Buffer
	s := settings{loops: []string{"1", "2"}, clients: 4, pipeline: 4, rounds: 1, run: 20 * time.Millisecond, keys: 1000, dir: t.TempDir()}
	if err := compare(t.Context(), s, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 11 || strings.Contains(out.String(), "| 0 |") {
		t.Errorf("%d lines in the table, want 11:\n%s", got, &out)
	}
	s.keys = 0
	if err := compare(t.Context(), s, &out); err == nil {
		t.Error("no keys are accepted")
	}
}
