package format_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestExtendSum compares with the standard library, at every length and alignment that takes another path.
func TestExtendSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(chance.Seed(t), 0))
	data := make([]byte, 1<<10)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for length := range 300 {
		for from := range 17 {
			start, part := rng.Uint32(), data[from:from+length]
			if got, want := format.ExtendSum(start, part), crc32.Update(start, crc32.IEEETable, part); got != want {
				t.Fatalf("the checksum of %x after %#x is %#x, want %#x", part, start, got, want)
			}
		}
	}
}

// BenchmarkExtendSum takes lengths of records: a header and a short name, a value of 128 bytes with its name, a page.
func BenchmarkExtendSum(b *testing.B) {
	data := make([]byte, 4<<10)
	for _, n := range []int{8, 20, 40, 63, 64, 80, 151, 156, 160, 4 << 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			var sum uint32
			for range b.N {
				sum = format.ExtendSum(sum, data[:n])
			}
		})
	}
}
