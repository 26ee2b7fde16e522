package db

import (
	"testing"
	"time"
)

// TestExpiryRest: a cycle that does not keep up uses half of a core, and never waits longer than usual.
func TestExpiryRest(t *testing.T) {
	const every = 100 * time.Millisecond
	for _, tt := range []struct {
		took       time.Duration
		behind     bool
		every, rst time.Duration
	}{
		{0, false, every, every},
		{2 * time.Millisecond, false, every, every},
		{2 * time.Millisecond, true, every, 2 * time.Millisecond},
		{time.Second, true, every, every},
		{2 * time.Millisecond, true, time.Millisecond, time.Millisecond},
	} {
		if got := expiryRest(tt.every, tt.took, tt.behind); got != tt.rst {
			t.Errorf("after a run of %v, behind %v, every %v: a rest of %v, want %v", tt.took, tt.behind, tt.every, got, tt.rst)
		}
	}
}
