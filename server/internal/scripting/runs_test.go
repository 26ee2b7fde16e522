package scripting_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/server/internal/scripting"
)

// TestWaitingIsNotOverdue: others are told that a script takes too long once it has, not counting what it has itself
// waited for scripts before it.
func TestWaitingIsNotOverdue(t *testing.T) {
	var runs scripting.Runs
	r := &scripting.Run{Started: time.Now().Add(-time.Hour)}
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
