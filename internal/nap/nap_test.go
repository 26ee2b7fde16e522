package nap_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/nap"
)

func nothing() bool { return false }

// TestSleep: a sleep ends by its time, by work that is due before its end, and by stop; work that is due later lets it go on.
func TestSleep(t *testing.T) {
	for _, tt := range []struct {
		name          string
		stir          func(*nap.Nap, chan struct{})
		d             time.Duration
		hasWork       func() bool
		stirred, ends bool // ends: before its time
	}{
		{"time", func(*nap.Nap, chan struct{}) {}, time.Millisecond, nothing, false, false},
		{"work before", func(n *nap.Nap, _ chan struct{}) { n.Stir(99) }, time.Hour, nothing, true, true},
		{"work at once", func(n *nap.Nap, _ chan struct{}) { n.Stir(nap.Any) }, time.Hour, nothing, true, true},
		{"work at its end", func(n *nap.Nap, _ chan struct{}) { n.Stir(100) }, 200 * time.Millisecond, nothing, false, false},
		{"work later", func(n *nap.Nap, _ chan struct{}) { n.Stir(math.MaxInt64) }, 200 * time.Millisecond, nothing, false, false},
		{"work of before", func(*nap.Nap, chan struct{}) {}, time.Hour, func() bool { return true }, true, true},
		{"stop", func(_ *nap.Nap, stop chan struct{}) { close(stop) }, time.Hour, nothing, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, stop := new(nap.Nap), make(chan struct{})
			asleep := make(chan struct{})
			went := make(chan bool, 1)
			began := time.Now()
			go func() {
				went <- n.Sleep(stop, tt.d, 100, func() bool { close(asleep); return tt.hasWork() })
			}()
			<-asleep
			tt.stir(n, stop)
			if stirred := <-went; stirred != tt.stirred {
				t.Errorf("stirred: %v, want %v", stirred, tt.stirred)
			}
			if took := time.Since(began); !tt.ends && took < tt.d {
				t.Errorf("ended after %v of %v", took, tt.d)
			}
		})
	}
}

// TestNoWorkIsMissed: whatever is made while the loop falls asleep, sleeps or wakes is done long before the sleep would have ended.
func TestNoWorkIsMissed(t *testing.T) {
	n, stop := new(nap.Nap), make(chan struct{})
	var mu sync.Mutex
	made, done := 0, 0
	hasWork := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done < made
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for n.Sleep(stop, time.Hour, 1, hasWork) { // false: stopped
			mu.Lock()
			done = made
			mu.Unlock()
		}
	}()
	for range 20_000 {
		mu.Lock()
		made++
		mu.Unlock()
		n.Stir(nap.Any)
	}
	for began := time.Now(); hasWork(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("work was made, and the loop sleeps")
		}
	}
	close(stop)
	<-finished
}
