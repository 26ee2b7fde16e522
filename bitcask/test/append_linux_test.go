package bitcask_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
)

var appendsDir = flag.String("appends.dir", "", "where BenchmarkAppends makes its stores (default: the directory of temporary files)")

// BenchmarkAppends compares puts that are copied into the log with puts that are written, in turns of some ten thousand
// within one process:
// processor time of the process per put, and the distribution of the time of each put. Ratios are medians over the
// turns. A turn is one iteration: go test ./bitcask/test -run '^$' -bench Appends -benchtime 30x
func BenchmarkAppends(b *testing.B) {
	for _, overwrite := range []bool{false, true} {
		name := "new"
		if overwrite {
			name = "overwrite"
		}
		b.Run(name, func(b *testing.B) { benchmarkAppends(b, overwrite) })
	}
}

const turnPuts = 20_000

// appendTurns is a store that either copies or writes its commits, and the times that were measured on it.
type appendTurns struct {
	*bitcask.Store
	puts  int
	cpu   []float64 // ns per put, of each turn
	took  []time.Duration
	value []byte
}

func benchmarkAppends(b *testing.B, overwrite bool) {
	var ways [2]*appendTurns // written, copied
	for i, copies := range []seam.Copies{seam.CopiesOff, seam.CopiesOn} {
		dir, err := os.MkdirTemp(*appendsDir, "stave-appends-")
		if err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := bitcask.Open(dir, seam.With(&bitcask.Options{}, seam.Options{Copies: copies}))
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		ways[i] = &appendTurns{Store: s, value: make([]byte, 128)}
		if overwrite {
			ways[i].turn(b, false, false)
		}
	}
	for n := 0; b.Loop(); n++ {
		for i := range ways {
			w := ways[(n+i)%2]
			begin := cpuTime(b)
			w.turn(b, overwrite, false)
			w.cpu = append(w.cpu, float64(cpuTime(b)-begin)/turnPuts)
			w.turn(b, overwrite, true)
		}
	}
	var ratios []float64
	for i := range ways[0].cpu {
		ratios = append(ratios, ways[1].cpu[i]/ways[0].cpu[i])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(ratios, 0.5), "cpu-ratio")
	for i, name := range []string{"written", "copied"} {
		w := ways[i]
		b.ReportMetric(at(w.cpu, 0.5), name+"-cpu-ns")
		b.ReportMetric(float64(at(w.took, 0.1).Nanoseconds()), name+"-p10-ns")
		b.ReportMetric(float64(at(w.took, 0.5).Nanoseconds()), name+"-p50-ns")
		b.ReportMetric(float64(at(w.took, 0.999).Nanoseconds()), name+"-p99.9-ns")
		b.ReportMetric(float64(at(w.took, 1).Microseconds()), name+"-slowest-us")
	}
}

// turn makes puts, and notes how long each took if they are timed.
func (w *appendTurns) turn(b *testing.B, overwrite, timed bool) {
	var last time.Time
	if timed {
		last = time.Now()
	}
	for range turnPuts {
		n := w.puts
		if overwrite {
			n = n * 7919 % turnPuts // all of them in some order
		}
		w.puts++
		if err := w.Put(fmt.Sprintf("key:%012d", n), w.value); err != nil {
			b.Fatal(err)
		}
		if timed {
			now := time.Now()
			w.took = append(w.took, now.Sub(last))
			last = now
		}
	}
}

// at is the value below which a share of the values are.
func at[T cmp.Ordered](values []T, share float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(share*float64(len(sorted)-1))]
}

// cpuTime is the processor time of this process in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
