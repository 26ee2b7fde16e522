package server

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var (
	simSeeds = flag.Int("sim.seeds", 100, "how many seeds TestSimulatedGroup tries")
	simSeed  = flag.Uint64("sim.seed", 0, "the first of them (0: another one each time)")
)

// TestSimulatedGroup has groups of two to four members in one goroutine.
func TestSimulatedGroup(t *testing.T) {
	first := chance.Draw(*simSeed)
	n := *simSeeds
	t.Logf("seeds from %d (-sim.seed)", first)
	var all simCounts
	began := time.Now()
	for i := range uint64(n) {
		w := simulate(t, first+i, sound, &all)
		if len(w.wrong) > 0 {
			t.Log(strings.Join(w.history[max(0, len(w.history)-400):], "\n"))
			t.Fatalf("seed %d: %v (repeat with -run '^%s$' -sim.seeds 1 -sim.seed %d)", first+i, w.wrong[0], t.Name(), first+i)
		}
	}
	t.Logf("%d seeds in %s: %+v", n, time.Since(began).Round(time.Millisecond), all)
}

// TestSimulationRepeats runs seeds twice: what happens is the same.
func TestSimulationRepeats(t *testing.T) {
	first := chance.Draw(*simSeed)
	for i := range uint64(6) {
		var counts [2]simCounts
		one := strings.Join(simulate(t, first+i, sound, &counts[0]).history, "\n")
		again := strings.Join(simulate(t, first+i, sound, &counts[1]).history, "\n")
		if one == again && counts[0] == counts[1] {
			continue
		}
		at := 0
		for at < min(len(one), len(again)) && one[at] == again[at] {
			at++
		}
		from := max(0, at-2000)
		t.Fatalf("seed %d differs from itself (-sim.seed):\n%s\n--- and\n%s", first+i, one[from:min(len(one), at+300)], again[from:min(len(again), at+300)])
	}
}

// TestSimulatorNotices has the simulator do something wrong, which it is to notice, and for the right reason.
func TestSimulatorNotices(t *testing.T) {
	for _, test := range []struct {
		defect simDefect
		seeds  uint64
		names  []string // what the failure may begin with
	}{
		{gateOff, 10, []string{"S1", "S5", "lost write"}},
		{tableOff, 30, []string{"S1", "S5", "lost write"}},
		{removedTooEarly, 100, []string{"S1", "lost write"}},
		{impatient, 200, []string{"S5"}},
		{acksArrived, 30, []string{"S1", "lost write"}},
		{forgetful, 100, []string{"S1", "lost write"}},
	} {
		first := chance.Draw(*simSeed)
		noticed := false
		for i := range test.seeds {
			w := simulate(t, first+i, test.defect, new(simCounts))
			if len(w.wrong) == 0 {
				continue
			}
			noticed = true
			t.Logf("%s: noticed by seed %d of %d: %.150s", test.defect, i+1, first, w.wrong[0])
			if !slices.ContainsFunc(test.names, func(name string) bool { return strings.HasPrefix(w.wrong[0], name) }) {
				t.Errorf("%s: %s", test.defect, w.wrong[0])
			}
			break
		}
		if !noticed {
			t.Errorf("%s: not noticed by %d seeds from %d", test.defect, test.seeds, first)
		}
	}
}

// simOp is a request that was answered.
type simOp struct {
	r        *simRequest
	returned time.Duration
}
