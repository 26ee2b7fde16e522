package tracking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server/internal/tracking"
)

// TestPrefixesOverlap: a mode refuses prefixes of which one begins with another, and names the pair that comparing all
// of them, in the order in which they were given, finds first.
func TestPrefixesOverlap(t *testing.T) {
	rng := chance.Rand(t)
	draw := func(most int) (list []string) {
		for range rng.IntN(most) {
			b := make([]byte, rng.IntN(6))
			for i := range b {
				b[i] = "ab\xff"[rng.IntN(3)]
			}
			list = append(list, string(b))
		}
		return list
	}
	overlap := func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
	for range 20_000 {
		before := &tracking.Mode{Broadcast: true}
		if before.Follow(nil) != nil || rng.IntN(4) > 0 {
			before = &tracking.Mode{Broadcast: true}
			for _, prefix := range draw(5) {
				if !slices.ContainsFunc(before.Prefixes, func(other string) bool { return overlap(prefix, other) }) {
					before.Prefixes = append(before.Prefixes, prefix)
				}
			}
			slices.Sort(before.Prefixes)
		}
		given, want := draw(5), ""
		for i, prefix := range given {
			if j := slices.IndexFunc(before.Prefixes, func(other string) bool { return overlap(prefix, other) }); j >= 0 {
				want = fmt.Sprintf("'%s' overlaps with an existing prefix '%s'", prefix, before.Prefixes[j])
				break
			}
			if j := slices.IndexFunc(given[i+1:], func(other string) bool { return overlap(prefix, other) }); j >= 0 {
				want = fmt.Sprintf("'%s' overlaps with another provided prefix '%s'", prefix, given[i+1+j])
				break
			}
		}
		err := (&tracking.Mode{Broadcast: true, Prefixes: slices.Clone(given)}).Follow(before)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Fatalf("%q after %q: %v, want %s", given, before.Prefixes, err, want)
		}
	}
}

// TestManyPrefixes: what comes of hundreds of thousands of prefixes does not take time that grows with their square,
// which would be an hour.
func TestManyPrefixes(t *testing.T) {
	const n = 500_000
	mode := &tracking.Mode{Broadcast: true}
	for i := range n {
		mode.Prefixes = append(mode.Prefixes, fmt.Sprintf("%07d", i))
	}
	if err := mode.Follow(nil); err != nil {
		t.Fatal(err)
	}
	if len(mode.Prefixes) != n || mode.Size() < n*100 {
		t.Error(len(mode.Prefixes), mode.Size())
	}
}
