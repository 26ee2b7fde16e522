package ballast_test

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/ballast"
)

// TestTake: with ballast a collection waits for as much garbage as there is ballast, which takes no memory; where the
// environment says when to collect there is none.
func TestTake(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	for name, value := range map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if drop := ballast.Take(); ballast.Bytes() != 0 {
				t.Errorf("%s=%s, and there is ballast", name, value)
				drop()
			}
		})
	}
	const size = 32 << 20
	before, resident := garbageAllowed(), residentBytes(t)
	if before >= size {
		t.Fatalf("%d bytes of garbage are left without ballast", before)
	}
	drop := ballast.Take()
	ballast.Take()() // there is some
	if ballast.Bytes() != size {
		t.Fatalf("%d bytes of ballast", ballast.Bytes())
	}
	if ballast.Without(size+5) != 5 || ballast.Without(5) != 0 {
		t.Errorf("%d bytes without the ballast are %d, and 5 are %d", size+5, ballast.Without(size+5), ballast.Without(5))
	}
	if n := garbageAllowed(); n < size || n > size+2*before {
		t.Errorf("%d bytes of garbage are left with ballast", n)
	}
	if more := residentBytes(t) - resident; more > size/2 {
		t.Errorf("the process has %d bytes more in memory", more)
	}
	if drop(); ballast.Bytes() != 0 || garbageAllowed() >= size {
		t.Errorf("dropped, there are %d bytes of ballast, and %d of garbage are left", ballast.Bytes(), garbageAllowed())
	}
}

// garbageAllowed is for how much garbage the next collection waits, in bytes.
func garbageAllowed() int {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// residentBytes is what the process has in memory, or 0 on a system that does not give the pages of ballast back.
func residentBytes(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	b, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(b); err == nil && len(fields) > 1 {
		var pages int
		if pages, err = strconv.Atoi(string(fields[1])); err == nil {
			return pages * os.Getpagesize()
		}
	}
	t.Fatalf("%q, %v", b, err)
	return 0
}
