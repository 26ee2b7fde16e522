package seeded

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var (
	try    = flag.String("seeded", "", "a regular expression: the bugs to be tried")
	stride = flag.Int("seeded.stride", 1, "try one in so many of them, from a random one on")
	update = flag.Bool("update", false, "TestTable: write the table of the bugs")
	times  = flag.Int("seeded.times", 1, "how often each is tried: a test that draws at random is to notice it each time")
)

// limit is the time that a test has to notice a bug, the building of the
// package not counted.
const limit = 10 * time.Minute

// TestBugsFit checks that every bug can still be put into the code, that its
// package compiles with it, and that the test that is to notice it is there.
func TestBugsFit(t *testing.T) {
	c := newChecker(t)
	for _, b := range allBugs(t) {
		files, err := b.changed()
		if err == nil {
			err = c.check(files)
		}
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		if !hasTest(t, b.pkg, b.testName()) {
			t.Errorf("%s: there is no %s in %s", b.name, b.testName(), b.pkg)
		}
	}
}

// TestTable keeps the table of docs/appendix/seeded-bugs.md equal to the bugs.
func TestTable(t *testing.T) {
	path := filepath.Join(root, "docs", "appendix", "seeded-bugs.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const heading = "| mistake | what is wrong | fault | caught by |\n"
	before, _, _ := strings.Cut(string(text), heading)
	var table strings.Builder
	table.WriteString(before + heading + "|---|---|---|---|\n")
	for _, b := range allBugs(t) {
		fmt.Fprintf(&table, "| %s | %s | %s | `%s` %s |\n", b.name, b.what, b.fault, b.testName(), b.pkg)
	}
	if table.String() == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the bugs say: go test ./internal/test/seeded -run TestTable -update", path)
	}
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func allBugs(t *testing.T) []*bug {
	t.Helper()
	bugs, err := readBugs("bugs")
	if err != nil {
		t.Fatal(err)
	}
	if len(bugs) == 0 {
		t.Fatal("no bugs")
	}
	return bugs
}

func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// TestSeededBugs puts each bug into the code and runs the test that is to
// notice it.
func TestSeededBugs(t *testing.T) {
	if *try == "" {
		t.Skip("takes minutes: -seeded . tries all bugs")
	}
	wanted, err := regexp.Compile(*try)
	if err != nil {
		t.Fatal(err)
	}
	var tried, caught atomic.Int64
	bugs := slices.DeleteFunc(allBugs(t), func(b *bug) bool { return !wanted.MatchString(b.name) })
	t.Run("bug", func(t *testing.T) {
		for i := chance.Rand(t).IntN(*stride); i < len(bugs); i += *stride {
			b := bugs[i]
			tried.Add(1)
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				took := b.try(t)
				caught.Add(1)
				t.Logf("%s | %s | %s | `%s` %s | %.1f s |", b.name, b.what, b.fault, b.testName(), b.pkg, took.Seconds())
			})
		}
	})
	t.Logf("seeded bugs: %d of %d tried, caught by their test: %d", tried.Load(), len(bugs), caught.Load())
}

// try fails unless the bug's test fails. It returns how long that test took.
func (b *bug) try(t *testing.T) time.Duration {
	files, err := b.changed()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "test")
	module, pkg := b.module()
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "-overlay", overlay(t, files), pkg)
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the code with the bug does not build: %v\n%s", err, out)
	}
	var took time.Duration
	for i := range *times {
		output, once, err := b.run(t, binary)
		if err != nil && hasLong(t, binary) { // the sample did not meet it
			output, once, err = b.run(t, binary, "-long")
		}
		if err != nil {
			t.Fatalf("%s: time %d: %v\n%s", b.name, i+1, err, output)
		}
		took = max(took, once)
	}
	return took
}

// hasLong reports whether the tests of a package run as samples without -long.
func hasLong(t *testing.T, binary string) bool {
	return exec.CommandContext(t.Context(), binary, "-test.list", "^$", "-long").Run() == nil
}

// run fails unless the bug's test, built with the bug, fails.
func (b *bug) run(t *testing.T, binary string, more ...string) (output []byte, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	args := slices.Concat([]string{"-test.failfast", "-test.run", b.test}, b.args, more)
	run := exec.CommandContext(ctx, binary, args...)
	run.Dir = filepath.Join(root, b.pkg)
	begin := time.Now()
	output, err = run.CombinedOutput()
	took = time.Since(begin)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("not noticed within %v", limit)
	case err == nil:
		err = errors.New("not noticed")
	case !strings.Contains(string(output), "--- FAIL: "+b.testName()):
		err = fmt.Errorf("the test did not fail but ended: %w", err)
	default:
		err = nil
	}
	return tail(output), took, err
}

// tail is the end of a long output.
func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }

// overlay writes the changed files and the file that names them to go.
func overlay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	n := 0
	for name, text := range files {
		path, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		n++
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
