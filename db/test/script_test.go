package db_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// script is what a store goes through, one number a step: everything about a
// step is drawn from its number, so any part of a script is a script as well.
type script []uint64

func newScript(seed uint64, steps int) script {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := make(script, steps)
	for i := range s {
		s[i] = rng.Uint64()
	}
	return s
}

// writeFile writes one line a step.
func (s script) writeFile(name string) error {
	var b strings.Builder
	for _, step := range s {
		fmt.Fprintf(&b, "%016x\n", step)
	}
	return os.WriteFile(name, []byte(b.String()), 0o600)
}

func readScript(name string) (s script, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		step, err := strconv.ParseUint(strings.TrimSpace(lines.Text()), 16, 64)
		if err != nil {
			return nil, err
		}
		s = append(s, step)
	}
	return s, lines.Err()
}

// shrink leaves out steps that the failure does not need, first large parts, then single steps, and
// gives up after so many tries.
func (s script) shrink(tries int, fails func(script) bool) script {
	for part := max(len(s)/2, 1); ; part = max(part/2, 1) {
		smaller := false
		for at := 0; at < len(s) && tries > 0; tries-- {
			rest := slices.Concat(s[:at], s[min(at+part, len(s)):])
			if fails(rest) {
				s, smaller = rest, true
			} else {
				at += part
			}
		}
		if tries <= 0 || part == 1 && !smaller {
			return s
		}
	}
}

func TestShrink(t *testing.T) {
	s := newScript(1, 100)
	needed := script{s[17], s[18], s[71]}
	got := s.shrink(1000, func(s script) bool {
		left := needed
		for _, step := range s {
			if len(left) > 0 && step == left[0] {
				left = left[1:]
			}
		}
		return len(left) == 0
	})
	if !slices.Equal(got, needed) {
		t.Errorf("%d steps are left, want 3", len(got))
	}
}

// scriptFailure is what a replay panics with when the store is not as it should be.
type scriptFailure string

// scriptRun replays a script under one set of options. What each operation
// returns is compared with the model, which knows nothing of options: so it is
// the same under all of them.
type scriptRun struct {
	*modelTest
	set   *optionSet
	clock time.Time // of the step; whatever the store does in its background, steps come at the same moments in every run
	step  uint64
}

// replay runs the script in a bubble of its own and returns the failure, or the final content of
// the store.
func (set *optionSet) replay(t *testing.T, s script) (state string, failure scriptFailure) {
	var d disk
	if set.onDisk {
		parent := t.TempDir()
		d = &realDisk{t: t, parent: parent, dir: filepath.Join(parent, "0")}
	} else {
		d = &memoryDisk{vfs.NewMem()}
	}
	synctest.Test(t, func(t *testing.T) {
		r := &scriptRun{modelTest: &modelTest{t: t, disk: d, model: newModel(), done: map[string]int{}}, set: set}
		r.again() // nothing has been drawn yet, but a store may be compared before the first step
		r.modelTest.script = r
		state, failure = r.run(s)
	})
	return state, failure
}

func (r *scriptRun) run(s script) (state string, failure scriptFailure) {
	defer func() {
		switch p := recover().(type) {
		case nil:
			return
		case scriptFailure:
			failure = p
		default:
			failure = scriptFailure(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
		if r.store != nil {
			if err := r.store.Close(); err != nil {
				failure += scriptFailure(fmt.Sprintf("\nclose: %v", err))
			}
		}
	}()
	r.clock = time.Now()
	r.open()
	for i, step := range s {
		r.modelTest.step = i
		r.begin(step)
		r.oneStep()
		if r.set.after != nil && i%max(r.set.every, 1) == 0 {
			r.set.after(r)
		}
		if i%50 == 49 {
			r.compare("now and then")
		}
	}
	r.reopenAfter(false, func([]bitcask.SegmentInfo) {})
	r.compare("at the end")
	r.check("at the end")
	state = r.model.String()
	r.closeStore()
	return state, ""
}

// begin waits until it is time for a step. It can be called again to draw the
// same once more.
func (r *scriptRun) begin(step uint64) {
	r.step = step
	r.rng = rand.New(rand.NewPCG(step, 3))
	r.clock = r.clock.Add(time.Duration(20+r.rng.IntN(80)) * time.Millisecond)
	if p := r.rng.IntN(100); p < 2 {
		r.clock = r.clock.Add(time.Duration(r.rng.IntN(4000)) * time.Millisecond)
	}
	if late := time.Since(r.clock); late > 0 {
		r.failf("the step before took longer than its time, by %v: the test needs longer steps", late)
	}
	time.Sleep(time.Until(r.clock))
	r.model.expire(time.Now().UnixMilli())
}

// again is the generator as it was when the step began.
func (r *scriptRun) again() {
	r.rng = rand.New(rand.NewPCG(r.step, 4))
}

// oneStep does one thing. The background and the files are the option set's
// affair.
func (r *scriptRun) oneStep() {
	p := r.rng.IntN(100)
	r.again()
	switch {
	case p < 2:
		r.wholeNamespaces()
	case p < 5:
		mergeStep(false)(r)
	case p < 14:
		r.transaction()
	default:
		through := r.set.through
		if through == nil {
			through = direct
		}
		through(r)
	}
}

// options are the same for every opening of a run.
func (r *scriptRun) options() *db.Options {
	o := seam.With(&db.Options{Namespaces: modelNamespaces, Sync: db.SyncNone, SegmentSize: 4 << 10, NoMerge: true, ExpireEvery: -1, Merge: merge.Policy{TriggerRatio: 0.3, IncludeRatio: 0.1, SmallCount: 2, BytesPerSecond: -1}},
		seam.Options{FS: r.disk.fs()})
	if r.set.change != nil {
		r.set.change(o)
	}
	return o
}
