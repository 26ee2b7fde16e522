package latency_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
)

// A percentile is not below the exact one, and at most an eighth above it.
func TestPercentilesAreAnEighthOff(t *testing.T) {
	rand := chance.Rand(t)
	var h latency.Histogram
	var all []time.Duration
	for range 2000 {
		d := time.Duration(1) << (11 + rand.IntN(28)) // 2 us to 4 minutes
		d += time.Duration(rand.Int64N(int64(d)))
		all = append(all, d)
		h.Note(d, 1)
	}
	slices.Sort(all)
	for _, percent := range []float64{0.05, 1, 50, 90, 99, 99.9, 100} {
		exact := all[max(int(percent/100*2000+0.999999)-1, 0)]
		if got := h.Percentile(percent); got < exact || got > exact+exact/8+1 {
			t.Errorf("p%v is %v, exactly %v", percent, got, exact)
		}
	}
}

func TestExtremesOfTheHistogram(t *testing.T) {
	var h latency.Histogram
	if got := h.Percentile(50); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
	if micros, sums := h.Octaves(); micros != nil || sums != nil {
		t.Errorf("sums of nothing: %d, %d", micros, sums)
	}
	h.Note(0, 2)
	h.Note(1500, 1)
	h.Note(1000*time.Hour, 3)
	micros, sums := h.Octaves()
	if len(micros) != 3 || !slices.Equal(sums, []int64{2, 3, 6}) || micros[0] != 1 || micros[1] != 2 || !slices.IsSorted(micros) {
		t.Errorf("sums are %d up to %d us", sums, micros)
	}
	if low, high := h.Percentile(1), h.Percentile(100); low > 2*time.Microsecond || high < 10*time.Minute {
		t.Errorf("percentiles are %v and %v", low, high)
	}
}

func TestSpikes(t *testing.T) {
	var l latency.Spikes
	start := time.Unix(1000, 999)
	l.Add("command", start, 5)
	l.Add("command", start.Add(time.Microsecond), 9)
	l.Add("command", start, 7)
	l.Add("command", start.Add(time.Second), 3)
	l.Add("aof", start, 1)
	if list, most := l.Of("command"); most != 9 || !slices.Equal(list, []latency.Spike{{At: time.Unix(1000, 0), Ms: 9}, {At: time.Unix(1001, 0), Ms: 3}}) {
		t.Errorf("spikes are %v, the worst %d", list, most)
	}
	for i := range 500 {
		l.Add("aof", start.Add(time.Duration(i)*time.Second), int64(i))
	}
	if list, most := l.Of("aof"); len(list) != 160 || list[0].Ms != 340 || most != 499 {
		t.Errorf("%d spikes from %v on, the worst %d", len(list), list[0], most)
	}
	if got := l.Names(); !slices.Equal(got, []string{"aof", "command"}) {
		t.Errorf("events are %q", got)
	}
	var out resp.Writer
	call := &command.Call{Args: [][]byte{[]byte("latency"), []byte("graph"), []byte("command")}, Out: &out}
	if err := l.Graph(call); err != nil || !strings.Contains(string(out.Bytes()), "command - high 9 ms, low 3 ms (all time high 9 ms)") {
		t.Errorf("graph: %q, %v", out.Bytes(), err)
	}
	call.Args[2] = []byte("none")
	if err := l.Graph(call); err == nil {
		t.Error("an event without spikes has a graph")
	}
	out.Discard(out.Len())
	if err := l.Latest(call); err != nil {
		t.Fatal(err)
	}
	if want := "*2\r\n*4\r\n$3\r\naof\r\n:1499\r\n:499\r\n:499\r\n*4\r\n$7\r\ncommand\r\n:1001\r\n:3\r\n:9\r\n"; string(out.Bytes()) != want {
		t.Errorf("latest: %q", out.Bytes())
	}
	if n := l.Reset("command", "none"); n != 1 {
		t.Errorf("%d events were reset", n)
	}
	if n := l.Reset(); n != 1 || len(l.Names()) != 0 {
		t.Errorf("%d events were reset, left are %q", n, l.Names())
	}
	out.Discard(out.Len())
	if err := l.Doctor(call, 0); err != nil || !strings.Contains(string(out.Bytes()), "latency-monitor-threshold is 0") {
		t.Errorf("doctor: %q, %v", out.Bytes(), err)
	}
}
