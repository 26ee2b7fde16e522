package server

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

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

// simOp is a request that was answered.
type simOp struct {
	r        *simRequest
	returned time.Duration
}

// simModel is what a key may do whose value is known in the end: how much of that there is at a moment.
func simModel(final string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, output any) (bool, any) {
			have, entry, shows := state.(int), input.(string), output.(int)
			if !strings.HasPrefix(final[have:], entry) {
				return false, have
			}
			have += len(entry)
			return shows == have || shows < 0, have
		},
	}
}

// linearizable judges what clients know of each key, and the end.
func (j *simJudge) linearizable(primary *simNode) {
	end := j.w.now + time.Hour
	answered := map[*simRequest]bool{}
	for _, op := range j.ops {
		answered[op.r] = true
	}
	for _, key := range simKeys {
		final := primary.value(key)
		operations := []porcupine.Operation{{Input: "", Output: len(final), Call: int64(end), Return: int64(end + 1)}}
		add := func(r *simRequest, value int, returned time.Duration) {
			operations = append(operations, porcupine.Operation{ClientId: r.n, Input: r.entry, Output: value, Call: int64(r.called), Return: int64(returned)})
		}
		for _, op := range j.ops {
			for i, k := range op.r.keys {
				if k == key {
					add(op.r, len(op.r.values[i]), op.returned)
				}
			}
		}
		for _, r := range j.calls { // whose outcome is not known: it was written, or never
			if !answered[r] && r.entry != "" && (strings.HasPrefix(final, r.entry) || strings.Contains(final, ","+r.entry)) {
				for _, k := range r.keys {
					if k == key {
						add(r, -1, end)
					}
				}
			}
		}
		if porcupine.CheckOperationsTimeout(simModel(final), operations, 10*time.Second) == porcupine.Illegal {
			j.w.fail("the history of %s is not linearizable", key)
		}
	}
}
