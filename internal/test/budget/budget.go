// Package budget decides how much of a long test runs. It is for tests only.
//
// A package lists its long tests in a Plan. Each asks its Budget, case by case, whether that case is to run. Without
// the flag -long that is one case in so many, spread evenly over all; which ones depends on a seed, that of the commit
// in .ci/run, so that all are met over time. The log of the test says how many of how many ran.
//
// `go test` also gives a package a time (-timeout, by default 10 minutes). On a machine that is busy with other things
// the cases that run are those for which there is time, again spread evenly, and never fewer than a least number.
// Everything runs with -long -timeout 0, or if a flag of the test is given that repeats a run.
package budget

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var long = flag.Bool("long", false, "run the long tests whole, not a sample of their cases; see also -timeout")

// Some returns so many of the cases of a test that has no Budget, spread evenly, or all with -long or a seed.
func Some[E any](t *testing.T, cases []E, n int) []E {
	if *long || n >= len(cases) || given([]string{"seed"}) {
		return cases
	}
	seed := chance.Draw(0)
	rng, some := sampler(t, seed), make([]E, n)
	for i := range some {
		from, to := i*len(cases)/n, (i+1)*len(cases)/n
		some[i] = cases[from+rng.IntN(to-from)]
	}
	t.Logf("%s runs %d of %d cases: the same ones with CHANCE=%d, all with -long", t.Name(), n, len(cases), seed)
	return some
}

// Rounds is how often a test does something that it draws at random: the lower number without -long.
func Rounds(t *testing.T, few, all int) int {
	if *long {
		return all
	}
	t.Logf("%s runs %d of %d rounds: all with -long", t.Name(), few, all)
	return few
}

// sampler draws the sample of a test, or of one of its subtests.
func sampler(t *testing.T, seed uint64) *rand.Rand {
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}

// Plan is what the tests of a package take. The time until the deadline is shared in these proportions.
type Plan struct {
	// Seconds are those that the long tests take whole, by name, on two quiet cores.
	Seconds map[string]float64
	// OneIn says of which tests a sample of one case in so many runs, unless -long is given.
	OneIn map[string]int
	// Rest are the seconds that all other tests take together.
	Rest float64

	mu      sync.Mutex
	started map[string]int
}

const (
	reserve = 0.1 // of the time that is left is given to no test
	slack   = 0.1 // of its time a test may be ahead of its progress
	tick    = 10 * time.Millisecond
)

// Budget is the time of one long test.
type Budget struct {
	oneIn   int           // case in so many runs
	seed    uint64        // of that sample
	limit   time.Duration // 0: none
	elapsed atomic.Int64  // nanoseconds. A test in a bubble of synctest cannot read the clock.
	parts   int

	mu             sync.Mutex // guards what follows, and the parts
	progress       float64    // the sum of that of all parts
	ended          int        // parts
	taken, offered int        // cases
	late           int        // cases left out for lack of time
}

// Start returns the budget of a test whose cases come in so many parts of about the same size, which may run in
// parallel. The flags are those that say what the test does: if one is given, it is done.
func (p *Plan) Start(t *testing.T, parts int, flags ...string) *Budget {
	t.Helper()
	b := &Budget{parts: parts, oneIn: 1}
	if _, ok := p.Seconds[t.Name()]; !ok {
		t.Fatalf("BUG: %s is not in the plan of its package", t.Name())
	}
	share := p.share(t.Name(), selected(), repetitions())
	if given(flags) {
		return b
	}
	if b.oneIn = p.oneIn(t.Name()); b.oneIn > 1 {
		b.seed = chance.Draw(0)
	}
	t.Cleanup(func() {
		if text := b.shortfall(); text != "" {
			t.Logf("%s %s", t.Name(), text)
		}
	})
	deadline, ok := t.Deadline()
	if !ok {
		return b
	}
	begin := time.Now()
	b.limit = max(time.Duration(share*float64(deadline.Sub(begin))), 1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				b.elapsed.Store(int64(time.Since(begin)))
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return b
}

// oneIn is what part of a test's cases runs. A short run has samples of its own.
func (p *Plan) oneIn(name string) int {
	if *long || testing.Short() {
		return 1
	}
	return max(p.OneIn[name], 1)
}

// Cases is how many of so many cases run in a test that draws them at random.
func (b *Budget) Cases(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offered += n - n/b.oneIn
	return n / b.oneIn
}

// share is the part of the time left that the test may take, which is about to start.
func (p *Plan) share(name string, runs func(name string) bool, repetitions int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	toCome := p.Rest
	for other, seconds := range p.Seconds {
		seconds /= float64(p.oneIn(other))
		switch left := repetitions - p.started[other]; {
		case other == name:
			toCome += seconds * float64(max(left, 1))
		case runs(other):
			toCome += seconds * float64(max(left, 0))
		}
	}
	if p.started == nil {
		p.started = map[string]int{}
	}
	p.started[name]++
	return (1 - reserve) * p.Seconds[name] / float64(p.oneIn(name)) / toCome
}

// selected says which tests -run and -skip let run.
func selected() func(name string) bool {
	run, skip := option("test.run"), option("test.skip")
	top := func(pattern string) *regexp.Regexp {
		pattern, _, _ = strings.Cut(pattern, "/")
		re, err := regexp.Compile(pattern)
		if err != nil {
			panic("BUG: package testing takes patterns that are none: " + err.Error())
		}
		return re
	}
	return func(name string) bool {
		skipped := skip != "" && !strings.Contains(skip, "/") && top(skip).MatchString(name)
		return top(run).MatchString(name) && !skipped
	}
}

// option is the value of a flag of package testing.
func option(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// repetitions is how often each test runs, by -count and -cpu.
func repetitions() int {
	n, err := strconv.Atoi(option("test.count"))
	if err != nil {
		n = 1
	}
	return n * (1 + strings.Count(option("test.cpu"), ","))
}

// given says whether one of the flags is.
func given(flags []string) (yes bool) {
	flag.Visit(func(f *flag.Flag) {
		for _, name := range flags {
			yes = yes || f.Name == name
		}
	})
	return yes
}

// Stride gives the sample to a test that leaves out cases by itself, before it makes them: it runs one in so many, from
// the first-th on.
func (b *Budget) Stride() (oneIn, first int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	oneIn, b.oneIn = b.oneIn, 1
	return oneIn, int(b.seed % uint64(oneIn))
}

// shortfall says what part of its cases a test has left out, and why; nothing if it was none.
func (b *Budget) shortfall() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken >= b.offered {
		return ""
	}
	text := fmt.Sprintf("ran %d of %d cases", b.taken, b.offered)
	if b.oneIn > 1 {
		text += fmt.Sprintf(", one in %d: the same ones run with CHANCE=%d, all with -long", b.oneIn, b.seed)
	}
	if b.late > 0 {
		text += fmt.Sprintf("; %d were left out for lack of time: they run with -timeout 0", b.late)
	}
	return text
}

// Part is a part of the cases of a test, which come in one after the other.
type Part struct {
	b        *Budget
	rng      *rand.Rand // of the sample
	pick     int        // the case that runs of the next oneIn
	offered  int
	least    int
	taken    int
	progress float64
	ended    bool
}

// Part returns the next part, for a subtest or the test itself. So many of the cases of its sample run in any case.
func (b *Budget) Part(t *testing.T, least int) *Part {
	return &Part{b: b, least: least, rng: sampler(t, b.seed)}
}

// sampled reports whether the next case is in the sample.
func (p *Part) sampled() bool {
	n := p.offered % p.b.oneIn
	if n == 0 {
		p.pick = p.rng.IntN(p.b.oneIn)
	}
	p.offered++
	return n == p.pick
}

// Take reports whether the next case runs, after some of about so many have been offered: if it is in the sample,
// unless the test is late.
func (p *Part) Take(done, of int) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.reach(float64(done) / float64(max(of, 1)))
	p.b.offered++
	if !p.sampled() {
		return false
	}
	if float64(p.taken) > float64(p.least)*p.progress && p.b.behind() {
		p.b.late++
		return false
	}
	p.taken++
	p.b.taken++
	return true
}

// behind says whether the test has used more of its time than it has done of its cases.
func (b *Budget) behind() bool {
	done := b.progress / float64(b.parts)
	return b.limit > 0 && float64(b.elapsed.Load()) > (slack+(1-slack)*done)*float64(b.limit)
}

// More reports whether a part whose cases build on one another continues, after some of so many. Parts that run one
// after the other get the same time each.
func (p *Part) More(done, of int) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.reach(float64(done) / float64(max(of, 1)))
	over := p.b.limit > 0 && float64(p.b.elapsed.Load()) > float64(p.b.limit)*float64(p.b.ended+1)/float64(p.b.parts)
	if done < of && (done < p.least || !over) {
		return true
	}
	p.b.taken += done
	p.b.offered += max(done, of)
	p.b.late += max(of-done, 0)
	return false
}

// End says that the part has no more cases.
func (p *Part) End() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if !p.ended {
		p.ended = true
		p.reach(1)
		p.b.ended++
	}
}

func (p *Part) reach(progress float64) {
	if progress > p.progress {
		p.b.progress += progress - p.progress
		p.progress = progress
	}
}
