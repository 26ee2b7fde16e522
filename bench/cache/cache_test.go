package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestCompare runs it with a few keys: the figures mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	var out bytes.Buffer
	s := settings{keys: 200, requests: 2000, seed: 1, dir: t.TempDir()}
	if err := compare(t.Context(), s, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 6 || strings.Contains(out.String(), "| 0.0 | 0.0 | 0.0 |") {
		t.Errorf("%d lines in the table, want 6:\n%s", got, &out)
	}
	out.Reset()
	s.full = 500 * time.Millisecond
	if err := compare(t.Context(), s, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 3 {
		t.Errorf("%d lines in the table, want 3:\n%s", got, &out)
	}
	s.keys = 0
	if err := compare(t.Context(), s, &out); err == nil {
		t.Error("no keys are accepted")
	}
}
