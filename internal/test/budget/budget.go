// Package budget fits long tests into the time that `go test` gives a package (-timeout, by default 10 minutes), on a
// machine that is busy with other things. It is for tests only.
//
// A package lists its long tests in a Plan. Each asks its Budget, case by case, whether there is time for it: on a
// quiet machine there always is. Where there is not, the cases that run are spread evenly over all, never fewer than a
// least number, and the log of the test says how many they were. Everything runs if there is no deadline (-timeout 0)
// or if a flag of the test is given.
package budget

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Plan is what the tests of a package take. The time until the deadline is shared in these proportions.
type Plan struct {
	// Seconds are those of the long tests, by name, on two quiet cores.
	Seconds map[string]float64
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
	limit   time.Duration // 0: none
	elapsed atomic.Int64  // nanoseconds. A test in a bubble of synctest cannot read the clock.
	parts   int

	mu             sync.Mutex // guards what follows, and the parts
	progress       float64    // the sum of that of all parts
	ended          int        // parts
	taken, offered int        // cases
}

// Start returns the budget of a test whose cases come in so many parts of about the same size, which may run in
// parallel. The flags are those that say what the test does: if one is given, it is done.
func (p *Plan) Start(t *testing.T, parts int, flags ...string) *Budget {
	t.Helper()
	b := &Budget{parts: parts}
	if _, ok := p.Seconds[t.Name()]; !ok {
		t.Fatalf("BUG: %s is not in the plan of its package", t.Name())
	}
	share := p.share(t.Name(), selected(), repetitions())
	deadline, ok := t.Deadline()
	if !ok || given(flags) {
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
		if text := b.shortfall(); text != "" {
			t.Logf("%s %s", t.Name(), text)
		}
	})
	return b
}

// share is the part of the time left that the test may take, which is about to start.
func (p *Plan) share(name string, runs func(name string) bool, repetitions int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	toCome := p.Rest
	for other, seconds := range p.Seconds {
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
	return (1 - reserve) * p.Seconds[name] / toCome
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

// shortfall says what part of its cases a test has left out; nothing if it was none.
func (b *Budget) shortfall() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken >= b.offered {
		return ""
	}
	return fmt.Sprintf("ran %d of %d cases (%.0f %%), for lack of time: all of them run with -timeout 0",
		b.taken, b.offered, 100*float64(b.taken)/float64(b.offered))
}

// Part is a part of the cases of a test, which come in one after the other.
type Part struct {
	b        *Budget
	least    int
	taken    int
	progress float64
	ended    bool
}

// Part returns the next part. So many of its cases run in any case.
func (b *Budget) Part(least int) *Part { return &Part{b: b, least: least} }

// Take reports whether the next case runs, after some of about so many have been offered: unless the test is late.
func (p *Part) Take(done, of int) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.reach(float64(done) / float64(max(of, 1)))
	p.b.offered++
	if float64(p.taken) > float64(p.least)*p.progress && p.b.late() {
		return false
	}
	p.taken++
	p.b.taken++
	return true
}

// late says whether the test has used more of its time than it has done of its cases.
func (b *Budget) late() bool {
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
