package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/stavedb/stave/bench/internal/servers"
)

// describe returns a paragraph that names the machine, the versions and the settings of the run.
func describe(s settings, all []*servers.Server) string {
	var list []string
	for _, v := range all {
		list = append(list, v.Name)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%s. %d cores, %s, %s; load average at the start %s. %d rounds, values of %d bytes, %d keys.", strings.Join(list, ", "),
		runtime.NumCPU(), versionOf("redis-server"), runtime.Version(), strings.Join(strings.Fields(string(load))[:1], ""), s.rounds, s.size, s.keys)
}

func versionOf(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if _, version, ok := strings.Cut(string(out), "v="); err == nil && ok {
		version, _, _ = strings.Cut(version, " ")
		return program + " " + version
	}
	return program
}

// header is the head of a table. The first server is what the others are compared with.
func header(all []*servers.Server) string {
	columns := []string{"command", "redis-server, 1000/s"}
	for _, v := range all[1:] {
		columns = append(columns, v.Name+", ratio")
	}
	for _, what := range []string{"p99, ms", "CPU, us"} {
		for _, v := range all {
			columns = append(columns, v.Name+", "+what)
		}
	}
	return "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
}

// row is the line of a table.
func (c *cell) row() string {
	columns := []string{c.name, fmt.Sprintf("%.1f", c.median(0, sample.rateOf)/1000)}
	for i := range c.samples[1:] {
		columns = append(columns, fmt.Sprintf("%.2f", c.ratio(i+1)))
	}
	for _, figure := range []func(sample) float64{sample.p99Of, sample.cpuOf} {
		for i := range c.samples {
			columns = append(columns, fmt.Sprintf("%.2f", c.median(i, figure)))
		}
	}
	return "| " + strings.Join(columns, " | ") + " |\n"
}

// median is the median of a figure over all runs of a server.
func (c *cell) median(server int, figure func(sample) float64) float64 {
	var list []float64
	for _, one := range c.samples[server] {
		list = append(list, figure(one))
	}
	return median(list)
}

// ratio is how many times as fast as the first server another is: the median over the rounds.
func (c *cell) ratio(server int) float64 {
	var list []float64
	for round, one := range c.samples[server] {
		list = append(list, one.rate/c.samples[0][round].rate)
	}
	return median(list)
}

// summary counts, for each server but the first, the cells in which it falls short of the first.
func summary(cells []*cell, all []*servers.Server) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Of %d cells, where a server falls short of %s:\n\n| | slower | p99 longer | more than 1.05 times the CPU |\n|---|---|---|---|\n", len(cells), all[0].Name)
	for i, v := range all[1:] {
		var slower, later, costlier int
		for _, c := range cells {
			if c.ratio(i+1) < 1 {
				slower++
			}
			if c.median(i+1, sample.p99Of) > c.median(0, sample.p99Of) {
				later++
			}
			if c.median(i+1, sample.cpuOf) > 1.05*c.median(0, sample.cpuOf) {
				costlier++
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d |\n", v.Name, slower, later, costlier)
	}
	return out.String()
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	m := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[m-1] + sorted[m]) / 2
	}
	return sorted[m]
}
