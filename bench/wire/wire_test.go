package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestCompare runs every command once. The figures of so few mean nothing.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		t.Skip("no redis-benchmark")
	}
	s, err := parse([]string{"-pipelines", "4", "-clients", "2", "-rounds", "2", "-run", "5ms", "-keys", "100", "-order", "50", "-dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.progress = io.Discard
	var out bytes.Buffer
	if err := compare(t.Context(), s, &out); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(out.String(), "\n| "), 1+len(workloads)+1+2+1+len(overtakings); got != want {
		t.Errorf("%d lines in the tables, want %d:\n%s", got, want, &out)
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-commands", "set,ZRANGE", "-clients", "1,2", "-stave", "a=/b", "-run", "2s"})
	if err != nil || len(s.commands) != 2 || len(s.clients) != 2 || len(s.staves) != 1 || s.run != 2*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"-commands", "SET,NOSUCH"}, {"-clients", "0"}, {"-pipelines", "x"}, {"-stave", "b"}, {"-rounds", "0"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
