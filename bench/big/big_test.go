package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestCompare runs two rows. The figures of so few elements mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server")
	}
	var out bytes.Buffer
	if err := compare(t.Context(), settings{n: 300, rounds: 1, only: "RESTORE,MSET", dir: t.TempDir()}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 3 {
		t.Errorf("%d lines in the table, want 3:\n%s", got, &out)
	}
	if err := compare(t.Context(), settings{n: 0, rounds: 1}, &out); err == nil {
		t.Error("no elements are accepted")
	}
}
