package sketch

import "testing"

// BenchmarkSketch counts and joins dense sketches of a million elements.
func BenchmarkSketch(b *testing.B) {
	s, err := New().Dense()
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		index, value := Of([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		if s, _, err = s.Raise(index, value); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			h, err := s.Histogram()
			if n := h.Estimate(); err != nil || n < 950_000 || n > 1_050_000 {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("merge", func(b *testing.B) {
		var largest [Registers]uint8
		for b.Loop() {
			if err := s.MaxInto(&largest); err != nil {
				b.Fatal(err)
			}
		}
	})
}
