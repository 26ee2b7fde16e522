package latency

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/server/command"
)

// maxSpikes is how many spikes of an event are kept, as in Redis.
const maxSpikes = 160

// Spike is the slowest execution of a second.
type Spike struct {
	At time.Time // cut to the second
	Ms int64
}

// Spikes are the spikes of all events.
type Spikes struct {
	mu     sync.Mutex // guards events
	events map[string]*spikeEvent
}

// spikeEvent are the spikes of one event, the oldest first.
type spikeEvent struct {
	list []Spike
	max  int64 // of all since the last reset, in milliseconds
}

// Add notes an execution. Those of one second are one spike, the slowest.
func (l *Spikes) Add(event string, now time.Time, ms int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = make(map[string]*spikeEvent)
	}
	e := l.events[event]
	if e == nil {
		e = &spikeEvent{}
		l.events[event] = e
	}
	e.max = max(e.max, ms)
	now = now.Truncate(time.Second)
	if n := len(e.list); n > 0 && e.list[n-1].At.Equal(now) {
		e.list[n-1].Ms = max(e.list[n-1].Ms, ms)
		return
	}
	if len(e.list) == maxSpikes {
		e.list = append(e.list[:0], e.list[1:]...)
	}
	e.list = append(e.list, Spike{now, ms})
}

// Names are the events that have spikes, sorted.
func (l *Spikes) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.events))
}

// Of returns the spikes of an event, and the slowest of all.
func (l *Spikes) Of(event string) (list []Spike, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.events[event]; e != nil {
		return slices.Clone(e.list), e.max
	}
	return nil, 0
}

// Reset forgets the spikes of some events, or of all, and returns of how many.
func (l *Spikes) Reset(events ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(events) == 0 {
		n = len(l.events)
		clear(l.events)
		return n
	}
	for _, event := range events {
		if l.events[event] != nil {
			delete(l.events, event)
			n++
		}
	}
	return n
}

// graphRows and graphColumns are the size of LATENCY GRAPH.
const (
	graphRows    = 4
	graphColumns = 80
)

// draw draws the newest spikes of an event, the oldest left: a column each, with its age below.
func draw(event string, list []Spike, most int64, now time.Time) string {
	if len(list) > graphColumns {
		list = list[len(list)-graphColumns:]
	}
	low, high := list[0].Ms, list[0].Ms
	for _, s := range list {
		low, high = min(low, s.Ms), max(high, s.Ms)
	}
	const marks = "_o#"
	span := float64(max(high-low, 1))
	steps := graphRows * len(marks)
	var out strings.Builder
	out.WriteString(event + " - high " + milliseconds(high) + ", low " + milliseconds(low) + " (all time high " + milliseconds(most) + ")\n")
	out.WriteString(strings.Repeat("-", graphColumns) + "\n")
	for row := range graphRows {
		for _, s := range list {
			step := min(int(float64(s.Ms-low)*float64(steps)/span), steps-1) - (graphRows-row-1)*len(marks)
			switch {
			case step < 0:
				out.WriteByte(' ')
			case step < len(marks):
				out.WriteByte(marks[step])
			default:
				out.WriteByte('|')
			}
		}
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	ages := make([]string, len(list))
	longest := 0
	for i, s := range list {
		ages[i] = ageText(now.Sub(s.At))
		longest = max(longest, len(ages[i]))
	}
	for row := range longest {
		for _, age := range ages {
			if row < len(age) {
				out.WriteByte(age[row])
			} else {
				out.WriteByte(' ')
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func milliseconds(n int64) string { return strconv.FormatInt(n, 10) + " ms" }

// ageText is how long something is ago, in the largest unit that is not 0.
func ageText(d time.Duration) string {
	seconds := int64(max(d, 0) / time.Second)
	switch {
	case seconds < 60:
		return strconv.FormatInt(seconds, 10) + "s"
	case seconds < 3600:
		return strconv.FormatInt(seconds/60, 10) + "m"
	case seconds < 86400:
		return strconv.FormatInt(seconds/3600, 10) + "h"
	}
	return strconv.FormatInt(seconds/86400, 10) + "d"
}

// Latest is LATENCY LATEST: event, moment, milliseconds, and those of the worst spike.
func (l *Spikes) Latest(c *command.Call) error {
	names := l.Names()
	var list []any
	for _, name := range names {
		if spikes, most := l.Of(name); len(spikes) > 0 {
			last := spikes[len(spikes)-1]
			list = append(list, []any{name, last.At.Unix(), last.Ms, most})
		}
	}
	return c.Reply(list)
}

// History is LATENCY HISTORY: moment and milliseconds of each spike, the oldest first.
func (l *Spikes) History(c *command.Call) error {
	spikes, _ := l.Of(c.Key(2))
	var list []any
	for _, one := range spikes {
		list = append(list, []any{one.At.Unix(), one.Ms})
	}
	return c.Reply(list)
}

// Graph is LATENCY GRAPH.
func (l *Spikes) Graph(c *command.Call) error {
	spikes, most := l.Of(c.Key(2))
	if len(spikes) == 0 {
		return command.Errorf("ERR No samples available for event '%s'", command.Quoted(c.Arg(2)))
	}
	c.Out.Verbatim("txt", draw(c.Key(2), spikes, most, time.Now()))
	return nil
}

// Doctor is LATENCY DOCTOR. threshold is how many milliseconds make a spike; 0: none is noted.
func (l *Spikes) Doctor(c *command.Call, threshold int64) error {
	names := l.Names()
	var text strings.Builder
	switch {
	case threshold == 0 && len(names) == 0:
		text.WriteString("Spikes are not noted: latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold 100 notes what takes 100 ms and more.\n")
	case len(names) == 0:
		fmt.Fprintf(&text, "No command has taken %d ms or more.\n", threshold)
	}
	for _, name := range names {
		spikes, most := l.Of(name)
		var sum int64
		for _, one := range spikes {
			sum += one.Ms
		}
		last := spikes[len(spikes)-1]
		fmt.Fprintf(&text, "%s: %d spikes, %s on the average, %s at most, the last %s ago.\n",
			name, len(spikes), milliseconds(sum/int64(len(spikes))), milliseconds(most), ageText(time.Since(last.At)))
	}
	if len(names) > 0 {
		text.WriteString("SLOWLOG GET has the commands with their arguments. A command that waits for a lock waits for one that works on the same keys for long. " +
			"INFO storage has what merges and syncs do meanwhile.\n")
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}
