package scripts

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestCooldown: a client waits for 19 times what its scripts have taken, once, a second at most, and not when it has
// left.
func TestCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cooldown
		waits := func(ctx context.Context, want time.Duration) {
			t.Helper()
			began := time.Now()
			if c.Wait(ctx); time.Since(began) != want {
				t.Fatalf("waited for %v, want %v", time.Since(began), want)
			}
		}
		waits(t.Context(), 0)
		c.Note(time.Millisecond)
		waits(t.Context(), 19*time.Millisecond)
		waits(t.Context(), 0)
		c.Note(20 * time.Millisecond)
		c.Note(17 * time.Millisecond)
		waits(t.Context(), 703*time.Millisecond)
		c.Note(time.Minute)
		waits(t.Context(), time.Second)

		ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer leave()
		c.Note(time.Minute)
		waits(ctx, 60*time.Millisecond)
		waits(t.Context(), 0)
	})
}
