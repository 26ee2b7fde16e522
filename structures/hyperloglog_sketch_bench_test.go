package structures

import "testing"

// BenchmarkSketch counts and joins dense sketches of a million elements.
func BenchmarkSketch(b *testing.B) {
	s, err := newSketch().dense()
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		index, value := registerOf([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		if s, _, err = s.raise(index, value); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			h, err := s.histogram()
			if n := h.estimate(); err != nil || n < 950_000 || n > 1_050_000 {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("merge", func(b *testing.B) {
		var largest [registers]uint8
		for b.Loop() {
			if err := s.maxInto(&largest); err != nil {
				b.Fatal(err)
			}
		}
	})
}
