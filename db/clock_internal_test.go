package db

import (
	"testing"
	"time"
)

// TestClockNeverRunsBack: a machine's clock that is set back by an hour does not bring expired keys
// back, and advances again once it has caught up.
func TestClockNeverRunsBack(t *testing.T) {
	var c clock
	ahead := time.Now().Add(time.Hour).UnixMilli()
	c.latest.Store(ahead)
	for range 3 {
		if got := c.now(); got != ahead {
			t.Fatalf("the clock says %d, after it had said %d", got, ahead)
		}
	}
	c.latest.Store(time.Now().Add(-time.Hour).UnixMilli())
	if got, now := c.now(), time.Now().UnixMilli(); got > now || got < now-1000 {
		t.Fatalf("the clock says %d, the machine's %d", got, now)
	}
}
