package budget

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// all lets every test run.
func all(string) bool { return true }

func TestShares(t *testing.T) {
	p := &Plan{Seconds: map[string]float64{"TestA": 30, "TestB": 50}, Rest: 20}
	for _, tt := range []struct {
		name        string
		runs        func(string) bool
		repetitions int
		want        float64
	}{
		{"TestA", all, 1, 0.3},
		{"TestB", all, 1, 0.5 / 0.7}, // TestA has started
		{"TestB", all, 3, 50.0 / (20 + 2*30 + 2*50)},
		{"TestB", func(name string) bool { return name == "TestB" }, 3, 0.5 / 0.7},
		{"TestB", all, 3, 50.0 / (20 + 2*30 + 50)}, // it has started three times: there is always its own time
	} {
		if got := p.share(tt.name, tt.runs, tt.repetitions) / (1 - reserve); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("share of %s of %d: %v, want %v", tt.name, tt.repetitions, got, tt.want)
		}
	}
}

// machine takes so long for a case.
type machine struct {
	*Budget
	each time.Duration
}

func (m machine) work() { m.elapsed.Add(int64(m.each)) }

func TestTake(t *testing.T) {
	const cases = 10_000
	for _, tt := range []struct {
		name        string
		each        time.Duration // of a second
		least       int
		low, high   int
		limit, used time.Duration
	}{
		{"quick", 50 * time.Microsecond, 10, cases, cases, time.Second, time.Second},
		{"just in time", 99 * time.Microsecond, 10, cases, cases, time.Second, time.Second},
		{"half as quick as it had to be", 200 * time.Microsecond, 10, 4990, 5010, time.Second, 1010 * time.Millisecond},
		{"slow", 10 * time.Millisecond, 10, 95, 110, time.Second, 1100 * time.Millisecond},
		{"far too slow", time.Second, 10, 10, 12, time.Second, 12 * time.Second},
		{"no limit", time.Hour, 10, cases, cases, 0, math.MaxInt64},
	} {
		m := machine{&Budget{limit: tt.limit, parts: 1, oneIn: 1}, tt.each}
		p := m.Part(t, tt.least)
		var halves [2]int
		for i := range cases {
			if p.Take(i, cases) {
				halves[i*2/cases]++
				m.work()
			}
		}
		p.End()
		taken := halves[0] + halves[1]
		if taken < tt.low || taken > tt.high || time.Duration(m.elapsed.Load()) > tt.used {
			t.Errorf("%s: %d cases in %v", tt.name, taken, time.Duration(m.elapsed.Load()))
		}
		if float64(halves[1]) < 0.8*float64(halves[0]) || halves[1] == 0 {
			t.Errorf("%s: %d cases of the first half and %d of the second", tt.name, halves[0], halves[1])
		}
		if complete := m.shortfall() == ""; complete != (taken == cases) {
			t.Errorf("%s: %d cases, %q", tt.name, taken, m.shortfall())
		}
	}
}

func TestPartsShare(t *testing.T) {
	m := machine{&Budget{limit: time.Second, parts: 20, oneIn: 1}, time.Millisecond}
	var taken []int
	for range 20 {
		p := m.Part(t, 1)
		n := 0
		for i := range 1000 {
			if p.Take(i, 1000) {
				n++
				m.work()
			}
		}
		p.End()
		taken = append(taken, n)
	}
	for i, n := range taken {
		if i > 1 && (n < 40 || n > 60) { // the first two may use what tests may be ahead by
			t.Fatalf("cases of the parts: %v", taken)
		}
	}
	if used := time.Duration(m.elapsed.Load()); used > 1010*time.Millisecond {
		t.Errorf("took %v", used)
	}
}

func TestMore(t *testing.T) {
	m := machine{&Budget{limit: time.Second, parts: 2, oneIn: 1}, time.Millisecond}
	for i, want := range []int{501, 499} {
		p := m.Part(t, 5)
		n := 0
		for p.More(n, 800) {
			n++
			m.work()
		}
		p.End()
		if n < want-2 || n > want+2 {
			t.Errorf("part %d: %d steps", i, n)
		}
	}
	if want := "ran 1001 of 1600 cases; 599 were left out for lack of time: they run with -timeout 0"; m.shortfall() != want {
		t.Errorf("%q", m.shortfall())
	}
	m.elapsed.Store(int64(time.Hour))
	p := m.Part(t, 5)
	n := 0
	for p.More(n, 800) {
		n++
		m.work()
	}
	if n != 5 {
		t.Errorf("without time: %d steps", n)
	}
}

// A sample is one case of each so many; another seed takes others, another subtest too, and over time all are taken.
func TestSample(t *testing.T) {
	const cases, oneIn = 120, 12
	met := map[int]bool{}
	take := func(t *testing.T, seed uint64) (taken []int) {
		p := (&Budget{parts: 1, oneIn: oneIn, seed: seed}).Part(t, 0)
		for i := range cases {
			if p.Take(i, cases) {
				taken, met[i] = append(taken, i), true
			}
		}
		return taken
	}
	first := take(t, 1)
	if len(first) != cases/oneIn || slices.Equal(first, take(t, 2)) || !slices.Equal(first, take(t, 1)) {
		t.Errorf("cases of seed 1: %v", first)
	}
	for i, n := range first {
		if n/oneIn != i {
			t.Errorf("they are not spread evenly: %v", first)
		}
	}
	t.Run("another", func(t *testing.T) {
		if slices.Equal(first, take(t, 1)) {
			t.Error("each subtest takes the same cases")
		}
	})
	for seed := range uint64(200) {
		take(t, seed)
	}
	if len(met) != cases {
		t.Errorf("200 seeds meet %d of %d cases", len(met), cases)
	}
	b := &Budget{parts: 1, oneIn: oneIn, seed: 7}
	p, n := b.Part(t, 0), 0
	for drawn := b.Cases(cases); p.More(n, drawn); {
		n++
	}
	if !strings.HasPrefix(b.shortfall(), "ran 10 of 120 cases, ") || !strings.HasSuffix(b.shortfall(), "one in 12: the same ones run with CHANCE=7, all with -long") {
		t.Errorf("%q", b.shortfall())
	}
}

func TestSome(t *testing.T) {
	if *long {
		t.Skip("there are no samples")
	}
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	some := Some(t, cases, 3)
	if len(some) != 3 || some[0] > 2 || some[1] < 3 || some[1] > 5 || some[2] < 6 {
		t.Errorf("%v", some)
	}
	if all := Some(t, cases, 11); len(all) != 10 {
		t.Errorf("%v", all)
	}
}

// What a sample leaves out counts as time for others.
func TestSharesOfSamples(t *testing.T) {
	if testing.Short() || *long {
		t.Skip("there are no samples")
	}
	p := &Plan{Seconds: map[string]float64{"TestA": 300, "TestB": 50}, OneIn: map[string]int{"TestA": 10}, Rest: 20}
	if got := p.share("TestA", all, 1) / (1 - reserve); math.Abs(got-0.3) > 1e-9 {
		t.Errorf("share: %v", got)
	}
}

// A real budget counts the time of this machine, and says nothing of a test that was complete.
func TestStart(t *testing.T) {
	p := &Plan{Seconds: map[string]float64{t.Name(): 1}}
	b := p.Start(t, 1)
	if _, ok := t.Deadline(); ok && b.limit <= 0 {
		t.Fatal("there is a deadline and no limit")
	}
	part := b.Part(t, 1)
	begin := time.Now()
	for part.More(0, 1) && b.limit > 0 && b.elapsed.Load() == 0 {
		if time.Since(begin) > time.Minute {
			t.Fatal("no time passes")
		}
		time.Sleep(time.Millisecond)
	}
	part.More(1, 1)
	part.End()
}
