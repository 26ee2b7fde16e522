package benchmark

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/internal/histogram"
)

// The figures of a benchmark, for people and for programs. Times are shown as
// quantiles and as a histogram of octaves: a mean would hide the one operation
// in a thousand that waited for the disk.

// A Report has all figures. Names and units of its fields are an interface:
// scripts compare figures of different versions.
type Report struct {
	Version   string   `json:"version"`
	System    string   `json:"system"`
	CPUs      int      `json:"cpus"`
	Entries   int      `json:"n"`
	Size      int      `json:"value_bytes"`
	Threads   int      `json:"threads"`
	Sync      string   `json:"sync"`
	Workloads []Result `json:"workloads"`
}

// NewReport notes what makes figures comparable: without the machine and
// the options they are only numbers.
func NewReport(version string, o Options) *Report {
	return &Report{
		Version: version, System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Entries: o.Entries, Size: o.ValueBytes, Threads: o.Threads, Sync: o.Sync.String(), Workloads: []Result{},
	}
}

// WriteHead prints the conditions, before the first workload has run.
func (r *Report) WriteHead(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s each, values of %s, %s, sync %s; %s, %s\n",
		humanize.Plural(r.Entries, "operation"), humanize.Size(int64(r.Size)), humanize.Plural(r.Threads, "thread"), r.Sync, r.System, humanize.Plural(r.CPUs, "CPU"))
	return err
}

// A Result is the figures of one workload. Times are nanoseconds. Max is exact; the quantiles
// are those of a histogram, with its relative error.
type Result struct {
	Name      string        `json:"name"`
	Count     uint64        `json:"operations"`
	Seconds   float64       `json:"seconds"`
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P90       time.Duration `json:"p90_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	Max       time.Duration `json:"max_ns"`
	Octaves   []Octave      `json:"histogram"`
}

// An Octave is how many operations took at least From and less than twice
// that.
type Octave struct {
	From  time.Duration `json:"from_ns"`
	Count uint64        `json:"count"`
}

// newResult takes the figures out of a histogram. A workload that took no measurable time has
// a rate, and not an infinite one.
func newResult(w Workload, h *histogram.Histogram, took time.Duration) Result {
	r := Result{
		Name: w.Name, Count: h.Count(), Seconds: took.Seconds(), PerSecond: float64(h.Count()) / max(took.Seconds(), 1e-9),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
	}
	for from, n := range h.Octaves() {
		r.Octaves = append(r.Octaves, Octave{from, n})
	}
	return r
}

// Write prints the figures in two lines and the histogram below them. An octave with few operations
// has a point for a bar, so that a rare slow one is seen.
func (r *Result) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s in %s, %s a second\n", r.Name, humanize.Plural(r.Count, "operation"),
		humanize.Duration(time.Duration(r.Seconds*float64(time.Second))), humanize.Count(int64(r.PerSecond)))
	fmt.Fprintf(&b, "p50 %s, p90 %s, p99 %s, p99.9 %s, max %s\n", humanize.Latency(r.P50), humanize.Latency(r.P90), humanize.Latency(r.P99), humanize.Latency(r.P999), humanize.Latency(r.Max))
	const width = 40
	for _, o := range r.Octaves {
		share := float64(o.Count) / float64(max(r.Count, 1))
		bar := strings.Repeat("#", int(share*width+0.5))
		if bar == "" && o.Count > 0 {
			bar = "."
		}
		line := fmt.Sprintf("%9s  %-*s  %s", humanize.Latency(o.From), width, bar, humanize.Share(share))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
