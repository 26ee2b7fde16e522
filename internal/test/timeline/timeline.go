// Package timeline is what simulators have in common: things that happen one after the other, in one goroutine and by a clock of their own,
// and that a seed draws.
package timeline

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Line is one run of a simulator. It is for one goroutine, but for Now.
type Line struct {
	R       *rand.Rand
	Trace   bool     // notes are kept
	History []string // notes, with their times
	Wrong   []string // why the run has failed

	now   atomic.Int64
	order uint64
	queue events
}

// Now is how much time has passed.
func (l *Line) Now() time.Duration { return time.Duration(l.now.Load()) }

// After has something happen d from now. What is to happen at the same time does so in the order of these calls.
func (l *Line) After(d time.Duration, do func()) {
	l.order++
	heap.Push(&l.queue, event{l.Now() + d, l.order, do})
}

// Run lets time pass, unless the run has failed.
func (l *Line) Run(d time.Duration) {
	end := l.Now() + d
	for len(l.queue) > 0 && l.queue[0].at <= end && len(l.Wrong) == 0 {
		e := heap.Pop(&l.queue).(event)
		l.now.Store(int64(e.at))
		e.do()
	}
	l.now.Store(int64(end))
}

// Between draws a time.
func (l *Line) Between(from, to time.Duration) time.Duration {
	return from + time.Duration(l.R.Int64N(int64(to-from)+1))
}

// Chance is true so many times in a hundred.
func (l *Line) Chance(percent int) bool { return l.R.IntN(100) < percent }

// Note keeps what happens now.
func (l *Line) Note(format string, args ...any) {
	if l.Trace {
		l.History = append(l.History, fmt.Sprintf("%10.4f ", l.Now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// Fail ends the run.
func (l *Line) Fail(format string, args ...any) {
	l.Note(format, args...)
	l.Wrong = append(l.Wrong, fmt.Sprintf(format, args...))
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
