package structures_test

import (
	"strconv"
	"testing"

	"github.com/stavedb/stave/structures"
)

// Two sets of a million members that share half of them, and a small one.
func BenchmarkCombine(b *testing.B) {
	m := newMemory()
	for key, span := range map[string][2]int{"big": {0, 1 << 20}, "other": {1 << 19, 3 << 19}, "small": {0, 1000}} {
		var members []string
		for i := span[0]; i < span[1]; i++ {
			members = append(members, "member:"+strconv.Itoa(i))
		}
		if _, err := m.set(key).Add(members); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		op   structures.SetOp
		keys []string
	}{
		{"union", structures.Union, []string{"big", "other"}},
		{"inter", structures.Inter, []string{"big", "other"}},
		{"diff", structures.Diff, []string{"big", "other"}},
		{"inter small", structures.Inter, []string{"big", "small"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if err := structures.Combine(m, c.op, c.keys, func([]byte) bool { n++; return true }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
