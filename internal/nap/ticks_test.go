package nap_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/nap"
)

// TestTicksOfAProcess: loops that begin at any time and work for some time look at the same moments, and none of them twice at
// one, nor after more than its time.
func TestTicksOfAProcess(t *testing.T) {
	for _, shift := range []time.Duration{0, 300 * time.Millisecond, 999_999_999} {
		synctest.Test(t, func(t *testing.T) {
			nap.Shift(shift)
			defer nap.Shift(0)
			const every, rounds = time.Second, 20
			var loops sync.WaitGroup
			looks := make(chan time.Time, 3*rounds)
			for _, begins := range []time.Duration{0, 317 * time.Millisecond, 999 * time.Millisecond} {
				loops.Go(func() {
					time.Sleep(begins)
					for range rounds {
						before := time.Now()
						time.Sleep(nap.Until(every))
						if took := time.Since(before); took <= 0 || took > every+every/50 {
							t.Errorf("a sleep of %v", took)
						}
						looks <- time.Now()
						time.Sleep(begins / 2)
					}
				})
			}
			loops.Wait()
			moments := make(map[time.Time]int)
			for range cap(looks) {
				moments[<-looks]++
			}
			if len(moments) > rounds+2 {
				t.Errorf("%d moments of looks for %d seconds", len(moments), rounds)
			}
			for m := range moments {
				if m.UnixNano()%int64(every) != int64(shift) {
					t.Errorf("a look at %v", m)
				}
			}
		})
	}
}

// TestTickIsNotRepeated: just before a moment, as the clock has it that a timer does not know, the next one is meant.
func TestTickIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		time.Sleep(nap.Until(every) - 100*time.Microsecond)
		if got, want := nap.Until(every), every+100*time.Microsecond; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
