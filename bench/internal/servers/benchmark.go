package servers

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Run is what one run of redis-benchmark has shown.
type Run struct {
	Rate float64 // commands a second
	P99  float64 // milliseconds; with pipelines, of a pipeline
}

// Benchmark runs redis-benchmark, with the form of its output added to the arguments, which ask for one test.
func Benchmark(ctx context.Context, args ...string) (Run, error) {
	out, err := exec.CommandContext(ctx, "redis-benchmark", append([]string{"--csv", "--precision", "3"}, args...)...).Output()
	if err != nil {
		return Run{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	return readRun(string(out))
}

// readRun reads the output of redis-benchmark --csv, which must be of one test.
func readRun(out string) (one Run, err error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		return one, errors.Join(fmt.Errorf("redis-benchmark printed %q", out), err)
	}
	for column, to := range map[string]*float64{"rps": &one.Rate, "p99_latency_ms": &one.P99} {
		at := slices.Index(rows[0], column)
		if at < 0 {
			return one, fmt.Errorf("redis-benchmark printed no column %s: %q", column, out)
		}
		if *to, err = strconv.ParseFloat(rows[1][at], 64); err != nil {
			return one, fmt.Errorf("redis-benchmark printed %q", out)
		}
	}
	if one.Rate <= 0 {
		return one, fmt.Errorf("redis-benchmark printed %q", out)
	}
	return one, nil
}
