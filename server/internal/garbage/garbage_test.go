package garbage_test

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stavedb/stave/server/internal/garbage"
)

// TestDrop: little garbage is left to the runtime, much is collected.
func TestDrop(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nobody else collects
	cycles := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	var c garbage.Collector
	before := cycles()
	c.Drop(60 << 20)
	time.Sleep(20 * time.Millisecond)
	if n := cycles() - before; n != 0 {
		t.Errorf("%d collections for 60 MiB", n)
	}
	c.Drop(60 << 20)
	for deadline := time.Now().Add(time.Minute); cycles() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("120 MiB are not collected")
		}
	}
}
