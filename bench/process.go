package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figures are measurements by name. Several of one name are repetitions.
type figures map[string][]float64

func (f figures) add(name string, v float64) { f[name] = append(f[name], v) }

// median returns the middle of the measurements of a name.
func (f figures) median(name string) (float64, bool) {
	if len(f[name]) == 0 {
		return 0, false
	}
	return median(f[name]), true
}

// failure is the figure that a workload has failed. A name of a workload stands before it.
const failure = "/failed"

// fail notes that a run of a workload has failed.
func (f figures) fail(workload string) { f.add(workload+failure, 1) }

// failed reports whether a run has failed of the workload that a figure is of.
func (f figures) failed(name string) bool {
	for at, b := range []byte(name) {
		if b == '/' && len(f[name[:at]+failure]) > 0 {
			return true
		}
	}
	return false
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	m := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[m-1] + sorted[m]) / 2
	}
	return sorted[m]
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// child is one step of one workload, in its own process.
type child struct {
	settings
	dir     string // for the workload's files, the same for all its steps
	name    string
	step    int
	engine  *engine
	figures figures
	die     bool // end by being killed
}

// path is the name of a file or directory in the workload's directory.
func (c *child) path(name string) string { return filepath.Join(c.dir, name) }

// record adds a figure. Its full name begins with that of the workload.
func (c *child) record(name string, v float64) { c.figures.add(c.name+"/"+name, v) }

// profiled runs the measured part of a step, with profiles if they are wanted.
func (c *child) profiled(part string, fn func() error) (err error) {
	if c.profile == "" {
		return fn()
	}
	base := filepath.Join(c.profile, strings.ReplaceAll(c.name, "/", "-")+"-"+part)
	f, err := os.Create(base + ".cpu.prof")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	err = fn()
	pprof.StopCPUProfile()
	a, aerr := os.Create(base + ".allocs.prof")
	if aerr != nil {
		return errors.Join(err, aerr)
	}
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(a, 0), a.Close())
}

// runChild runs one step and writes its figures as JSON.
func runChild(s settings, name string, step int, out io.Writer) error {
	c := &child{settings: s, dir: s.dir, name: name, step: step, figures: make(figures)}
	for _, w := range workloads {
		if w.name != name {
			continue
		}
		if err := w.run(c); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(c.figures); err != nil {
			return err
		}
		if !c.die {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Kill(); err != nil {
			return err
		}
		select {} // until the signal arrives
	}
	return fmt.Errorf("no workload %q", name)
}

// runWorkload runs the steps of a workload in fresh processes and collects
// what they measure.
func runWorkload(ctx context.Context, s settings, w workload, root string, all figures) error {
	dir, err := os.MkdirTemp(root, strings.ReplaceAll(w.name, "/", "-")+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for step := range w.steps {
		if err := runStep(ctx, s, w.name, step, dir, all); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	return nil
}

func runStep(ctx context.Context, s settings, name string, step int, dir string, all figures) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args := []string{"-child", name, "-step", strconv.Itoa(step), "-n", strconv.Itoa(s.n), "-dir", dir}
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o755); err != nil {
			return err
		}
		args = append(args, "-profile", s.profile)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	raw, err := cmd.Output()
	// A step that ends by being killed has delivered its figures before.
	if got := make(figures); len(raw) > 0 && json.Unmarshal(raw, &got) == nil {
		for name, list := range got {
			all[name] = append(all[name], list...)
		}
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("not done after %s: %w", time.Since(begin).Round(time.Second), cause)
	}
	if err == nil {
		err = errors.New("no figures")
	}
	return err
}
