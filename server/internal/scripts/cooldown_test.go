package scripts

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCooldown: a client waits 19 times as long as its scripts have lasted together, a second at most.
func TestCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cooldown
		waits := func(want time.Duration) {
			t.Helper()
			if c.Active() != (want > 0) {
				t.Fatalf("active: %v", c.Active())
			}
			if want > 0 && time.Until(c.Until()) != want {
				t.Fatalf("waits for %v, want %v", time.Until(c.Until()), want)
			}
			time.Sleep(want)
			if until := c.Until(); !until.IsZero() || c.Active() {
				t.Fatalf("waits until %v", until)
			}
		}
		waits(0)
		c.Note(0)
		waits(0)
		c.Note(time.Millisecond)
		waits(19 * time.Millisecond)
		c.Note(20 * time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		c.Note(17 * time.Millisecond)
		waits(693 * time.Millisecond)
		c.Note(time.Minute)
		c.Note(time.Minute)
		waits(time.Second)
	})
}
