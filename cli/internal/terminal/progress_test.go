package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestProgressFitsALine(t *testing.T) {
	p := NewProgress(nil, "import", 1<<42)
	line := p.line(1<<41, 1<<41, 123_456_789, 2*time.Hour)
	if len(line) > 80 || !strings.Contains(line, "50%") || !strings.Contains(line, "ETA 2h0m0s") {
		t.Errorf("%d columns: %s", len(line), line)
	}
	if got := NewProgress(nil, "import", 0).line(5, 5, 1, time.Second); strings.Contains(got, "%") {
		t.Errorf("a percentage of nothing: %s", got)
	}
}
