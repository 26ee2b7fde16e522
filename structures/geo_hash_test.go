package structures

import (
	"math"
	"testing"
)

// What redis-server 7.0 makes of scores that no place has, on x86-64.
func TestScoresOfNoPlace(t *testing.T) {
	for score, want := range map[float64]uint64{
		math.Inf(1): 0, math.Inf(-1): 1 << 63, 1e300: 0, -1e300: 1 << 63, -5: math.MaxUint64 - 4, 1 << 63: 1 << 63,
		1 << 64: 0, 1.5: 1, -1.5: math.MaxUint64, 3 << 62: 3 << 62, 0: 0,
	} {
		if got := scoreBits(score); got != want {
			t.Errorf("score %v: %#x, want %#x", score, got, want)
		}
	}
	for score, want := range map[float64]float64{math.Inf(1): -179.99999731779098511, math.Inf(-1): 180, 1 << 63: 180, 1 << 64: -179.99999731779098511} {
		if got := geoPoint(score).Longitude; got != want {
			t.Errorf("longitude of score %v: %v, want %v", score, got, want)
		}
	}
}
