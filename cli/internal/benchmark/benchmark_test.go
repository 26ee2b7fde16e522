package benchmark_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/cli/internal/benchmark"
)

// A measurement that is interrupted, while it loads or later, returns the context's error and leaves nothing on the
// disk.
func TestInterrupted(t *testing.T) {
	chosen, err := benchmark.Named("get")
	if err != nil || len(chosen) != 1 {
		t.Fatal(chosen, err)
	}
	for _, during := range []string{"get: loading", "get"} {
		ctx, cancel := context.WithCancel(t.Context())
		r := benchmark.New(benchmark.Options{Entries: 100_000, Threads: 2, ValueBytes: 10, Progress: func(step string, _, total int) {
			if total != 100_000 {
				t.Errorf("%s: %d in all", step, total)
			}
			if step == during {
				cancel()
			}
		}})
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := r.Measure(ctx, chosen[0], dir); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", during, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: left behind: %v", during, err)
		}
		cancel()
	}
}

func TestNamed(t *testing.T) {
	for list, want := range map[string]int{"": 11, "put": 1, "put, put": 2} {
		if got, err := benchmark.Named(list); err != nil || len(got) != want {
			t.Errorf("%q: %d, %v", list, len(got), err)
		}
	}
	if _, err := benchmark.Named("put,,get"); err == nil {
		t.Error("no name is a workload")
	}
}
