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
	simSeeds = flag.Int("sim.seeds", 60, "how many seeds TestSimulatedGroup tries")
	simSeed  = flag.Uint64("sim.seed", 0, "the first of them (0: another one each time)")
)

// TestSimulatedGroup has groups of two to four members in one goroutine, with the code of servers: stores on file systems in memory, sessions
// in rounds of an event loop, gates, streams, feeders and links with their bytes, whole stores as files, members, and drivers that are
// stepped. Modelled are the connections, the loops that move their bytes (transport), and the service of records. A seed says what
// happens when, and repeats exactly (TestSimulationRepeats):
//
//   - pieces of bytes are late, and wait while nodes are cut off from each other, in one direction or both; connections break, also within a
//     file; answers of the service are late or lost; watches miss records;
//   - nodes stand still and go on; their clocks differ in rate by less than a third; with strict reads by a factor of five, and they stop and jump;
//   - processes are killed and machines lose their power, one or all, between two things that they do or within one, after any operation on the
//     disk. Of what was not synced any part may be gone (package crash). Every other group syncs each commit, which then must be enough.
//
// Clients append to three keys, one or two at a time, and read them. At each reply the judge, who sees everything, looks whether each member
// in sync has what it shows (S1), whether who replies is primary as far as it knows (S4), whether as many stores have a write as it needs, and
// whether it is as new as all that was shown when it was asked (S5); at each swap, who takes over (S2). When the faults are over all are in sync
// again, what was acknowledged is there, once, and what was refused is not; one order of all calls explains the replies. TestSimulatorNotices has
// the simulator do it wrong.
//
// Not drawn: what goroutines of one server do to each other; disks that fail or are full; other commands and types, several databases, deadlines, the
// clock of the day; messages; sessions that stay connected, and pipelines; merges; a second group; members that come anew or leave for good.
func TestSimulatedGroup(t *testing.T) {
	first := chance.Draw(*simSeed)
	n := *simSeeds
	if testing.Short() {
		n = min(n, 20)
	}
	t.Logf("seeds from %d (-sim.seed)", first)
	var all simCounts
	began := time.Now()
	for i := range uint64(n) {
		w := simulate(t, first+i, sound, &all)
		if len(w.Wrong) > 0 {
			t.Log(strings.Join(w.History[max(0, len(w.History)-400):], "\n"))
			t.Fatalf("seed %d: %v (repeat with -run '^%s$' -sim.seeds 1 -sim.seed %d)", first+i, w.Wrong[0], t.Name(), first+i)
		}
	}
	t.Logf("%d seeds in %s: %+v", n, time.Since(began).Round(time.Millisecond), all)
	if n >= 60 && (all.takeovers == 0 || all.removals == 0 || all.joins == 0 || all.powerCuts == 0 || all.withinSteps == 0 || all.fulls == 0 || all.partials == 0 || all.unknown == 0 || all.stops == 0) {
		t.Error("it has not tried everything")
	}
}

// TestSimulationRepeats runs seeds twice: what happens is the same.
func TestSimulationRepeats(t *testing.T) {
	first := chance.Draw(*simSeed)
	for i := range uint64(6) {
		var counts [2]simCounts
		one := strings.Join(simulate(t, first+i, sound, &counts[0]).History, "\n")
		again := strings.Join(simulate(t, first+i, sound, &counts[1]).History, "\n")
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
		names  []string // what the failure begins with
	}{
		{gateOff, 20, []string{"S1"}},
		{tableOff, 20, []string{"S1", "S4"}},
		{removedTooEarly, 60, []string{"S1", "lost write"}},
		{impatient, 150, []string{"S5"}},
		{acksArrived, 20, []string{"S1", "lost write"}},
		{forgetful, 100, []string{"S1", "lost write"}},
	} {
		first := chance.Draw(*simSeed)
		noticed := false
		for i := range test.seeds {
			w := simulate(t, first+i, test.defect, new(simCounts))
			if len(w.Wrong) == 0 {
				continue
			}
			t.Logf("%s: noticed by seed %d of %d: %.150s", test.defect, i+1, first, w.Wrong[0])
			if noticed = slices.ContainsFunc(test.names, func(name string) bool { return strings.HasPrefix(w.Wrong[0], name) }); noticed {
				break // else it is something else that the defect does, too
			}
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
