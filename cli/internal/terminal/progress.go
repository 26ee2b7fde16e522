package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
)

// A bar for people who wait. It goes to the standard error and only to a terminal: a log file full
// of carriage returns is useless, and the standard output is for results.

// Interval is how often a bar is redrawn.
const Interval = 100 * time.Millisecond

// A progress bar is one line on stderr, redrawn in place. Without a terminal it
// draws nothing, so callers need not ask. Its methods may be called by several goroutines at a time.
type Progress struct {
	out io.Writer // nil: draw nothing

	mu      sync.Mutex // guards what follows
	verb    string
	done    int64 // by Add
	total   int64 // what there is to do, in bytes or keys; 0: unknown, and no bar and no ETA
	started time.Time
	drawn   time.Time
	shown   bool
}

// NewProgress starts a bar on out, or a silent one when out is nil. The clock starts here, not at
// the first update.
func NewProgress(out io.Writer, verb string, total int64) *Progress {
	now := time.Now()
	return &Progress{out: out, verb: verb, total: total, started: now, drawn: now}
}

// Next begins another step, with a total of its own.
func (p *Progress) Next(verb string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verb, p.total, p.done, p.started = verb, total, 0, time.Now()
}

// Add is Update after so many bytes more of a total in bytes.
func (p *Progress) Add(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += bytes
	p.update(p.done, p.done, -1)
}

// Update draws the state, at most every Interval: how much of the total is done, how many
// bytes were moved, and how many keys (-1: does not apply). The first drawing comes after an
// interval too: what is done by then never flickers.
func (p *Progress) Update(done, bytes, keys int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update(done, bytes, keys)
}

func (p *Progress) update(done, bytes, keys int64) {
	if p.out == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.drawn) < Interval {
		return
	}
	p.drawn, p.shown = now, true
	fmt.Fprintf(p.out, "\r%s\x1b[K", p.line(done, bytes, keys, now.Sub(p.started)))
}

// Clear removes the bar, so that whatever is written next has the line. It does nothing if nothing
// was drawn, so it can be called on every way out.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// line is the text of the bar: it fits 80 columns. The time left assumes that the rest goes as fast
// as what is done.
func (p *Progress) line(done, bytes, keys int64, elapsed time.Duration) string {
	seconds := max(elapsed.Seconds(), 0.001)
	done = min(done, p.total)
	var b strings.Builder
	b.WriteString(p.verb)
	if p.total > 0 {
		const width = 20
		full := int(float64(done) / float64(p.total) * width)
		fmt.Fprintf(&b, " [%s%s] %3.0f%%", strings.Repeat("#", full), strings.Repeat(".", width-full), float64(done)/float64(p.total)*100)
	}
	fmt.Fprintf(&b, " %s", humanize.Size(bytes))
	if keys >= 0 {
		b.WriteString(" " + humanize.Plural(keys, "key"))
	}
	fmt.Fprintf(&b, " %s/s", humanize.Size(int64(float64(bytes)/seconds)))
	if left := p.total - done; left > 0 && done > 0 {
		eta := time.Duration(float64(left) / float64(done) * float64(elapsed))
		fmt.Fprintf(&b, " ETA %s", eta.Round(time.Second))
	}
	return b.String()
}
