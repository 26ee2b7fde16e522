package scripts_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/server/internal/scripts"
)

// TestWaitingIsNotOverdue: others are told that a script takes too long once it has, not counting what it has itself
// waited for scripts before it.
func TestWaitingIsNotOverdue(t *testing.T) {
	var runs scripts.Runs
	r := &scripts.Run{Started: time.Now().Add(-time.Hour)}
	r.Locking.Store(true)
	runs.Add(r)
	if err := runs.Overdue(time.Minute); err == nil {
		t.Error("an hour is not too long")
	}
	r.Script.Waits(time.Hour)
	if err := runs.Overdue(time.Minute); err != nil {
		t.Errorf("a script that has only waited: %v", err)
	}
}
