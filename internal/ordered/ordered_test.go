package ordered_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/ordered"
)

// floats holds every kind of float64 there is, in ascending order.
var floats = []float64{
	math.Inf(-1), -math.MaxFloat64, -1e300, -2, -1.0000000000000002, -1, -0.5, -2.2250738585072014e-308,
	-math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 2.2250738585072014e-308, 0.5, 1, 1.0000000000000002, 2,
	1e300, math.MaxFloat64, math.Inf(1),
}

var ints = []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -256, -1, 0, 1, 255, 1 << 32, math.MaxInt64 - 1, math.MaxInt64}

func TestFloatKeepsOrderAndComesBack(t *testing.T) {
	for i, a := range floats {
		for j, b := range floats {
			checkFloats(t, a, b)
			if cmp.Compare(i, j) != cmp.Compare(ordered.Float(a), ordered.Float(b)) {
				t.Errorf("order of %v and %v is lost", a, b)
			}
		}
	}
}

func TestNegativeZeroIsZero(t *testing.T) {
	negative := math.Copysign(0, -1)
	if ordered.Float(negative) != ordered.Float(0) {
		t.Fatal("-0 and 0 have different forms")
	}
	if got := ordered.ToFloat(ordered.Float(negative)); math.Signbit(got) {
		t.Fatalf("-0 came back as %v, want 0", got)
	}
}

func TestNaNStaysNaN(t *testing.T) {
	positive := math.NaN()
	negative := math.Copysign(positive, -1)
	for _, f := range []float64{positive, negative} {
		if got := ordered.ToFloat(ordered.Float(f)); !math.IsNaN(got) {
			t.Errorf("NaN came back as %v", got)
		}
	}
	if ordered.Float(positive) <= ordered.Float(math.Inf(1)) || ordered.Float(negative) >= ordered.Float(math.Inf(-1)) {
		t.Error("a NaN lies between the infinities")
	}
}

func TestIntKeepsOrderAndComesBack(t *testing.T) {
	for _, a := range ints {
		for _, b := range ints {
			checkInts(t, a, b)
		}
	}
}

// TestWrittenForms pins the text on disk: these digits are part of the format.
func TestWrittenForms(t *testing.T) {
	for _, c := range []struct {
		name string
		u    uint64
		want string
	}{
		{"score 0", ordered.Float(0), "8000000000000000"},
		{"score 1", ordered.Float(1), "bff0000000000000"},
		{"score -1", ordered.Float(-1), "400fffffffffffff"},
		{"score +inf", ordered.Float(math.Inf(1)), "fff0000000000000"},
		{"score -inf", ordered.Float(math.Inf(-1)), "000fffffffffffff"},
		{"index 0", ordered.Int(0), "8000000000000000"},
		{"index 1", ordered.Int(1), "8000000000000001"},
		{"index -1", ordered.Int(-1), "7fffffffffffffff"},
		{"lowest index", ordered.Int(math.MinInt64), "0000000000000000"},
		{"every digit", 0x0123456789abcdef, "0123456789abcdef"},
		{"every digit, backwards", 0xfedcba9876543210, "fedcba9876543210"},
		{"highest index", ordered.Int(math.MaxInt64), "ffffffffffffffff"},
	} {
		if got := string(ordered.AppendHex(nil, c.u)); got != c.want {
			t.Errorf("%s is %s, want %s", c.name, got, c.want)
		}
	}
}

func TestParseHexRefusesOtherSpellings(t *testing.T) {
	for _, text := range []string{
		"", "0", "800000000000000", "80000000000000000", "800000000000000A", "+00000000000000f", "0x00000000000000",
		"800000000000000g", "80000000 0000000", "8000000000000_00", "８00000000000000", strings.Repeat("\x00", 16), strings.Repeat("`", 16),
		strings.Repeat("/", 16), strings.Repeat(":", 16),
	} {
		if u, ok := ordered.ParseHex([]byte(text)); ok {
			t.Errorf("ParseHex(%q) = %x, want it refused", text, u)
		}
	}
}

func TestAppendHexAppends(t *testing.T) {
	if got := string(ordered.AppendHex([]byte("zset:k:s:"), 0xabc)); got != "zset:k:s:0000000000000abc" {
		t.Fatalf("got %q", got)
	}
	buf := make([]byte, 0, ordered.HexLen)
	if n := testing.AllocsPerRun(100, func() { ordered.AppendHex(buf, 7) }); n != 0 {
		t.Fatalf("AppendHex into a big enough buffer allocates %v times", n)
	}
}

func FuzzFloat(f *testing.F) {
	for _, a := range floats {
		f.Add(a, -a)
	}
	f.Add(math.Copysign(0, -1), 0.0)
	f.Fuzz(func(t *testing.T, a, b float64) {
		if math.IsNaN(a) || math.IsNaN(b) {
			return
		}
		checkFloats(t, a, b)
	})
}

func FuzzInt(f *testing.F) {
	for _, a := range ints {
		f.Add(a, -a)
	}
	f.Fuzz(checkInts)
}

func FuzzParseHex(f *testing.F) {
	f.Add([]byte("bff0000000000000"))
	f.Add([]byte("BFF0000000000000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		u, ok := ordered.ParseHex(text)
		if canonical := fmt.Appendf(nil, "%016x", u); ok && !bytes.Equal(canonical, text) {
			t.Fatalf("ParseHex(%q) = %x, whose only spelling is %q", text, u, canonical)
		}
	})
}

// checkFloats asserts that two numbers compare alike in all three forms and come back as they were.
func checkFloats(t *testing.T, a, b float64) {
	t.Helper()
	if got := ordered.ToFloat(ordered.Float(a)); got != a {
		t.Errorf("%v came back as %v", a, got)
	}
	checkOrder(t, cmp.Compare(a, b), ordered.Float(a), ordered.Float(b))
}

func checkInts(t *testing.T, a, b int64) {
	t.Helper()
	if got := ordered.ToInt(ordered.Int(a)); got != a {
		t.Errorf("%v came back as %v", a, got)
	}
	checkOrder(t, cmp.Compare(a, b), ordered.Int(a), ordered.Int(b))
}

func checkOrder(t *testing.T, want int, a, b uint64) {
	t.Helper()
	if got := cmp.Compare(a, b); got != want {
		t.Errorf("forms %x and %x compare %d, want %d", a, b, got, want)
	}
	x, y := ordered.AppendHex(nil, a), ordered.AppendHex(nil, b)
	if got := bytes.Compare(x, y); got != want {
		t.Errorf("texts %s and %s compare %d, want %d", x, y, got, want)
	}
	if back, ok := ordered.ParseHex(x); !ok || back != a {
		t.Errorf("%s parses as %x, %v; want %x", x, back, ok, a)
	}
}

func BenchmarkAppendHex(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, ordered.HexLen)
	for b.Loop() {
		buf = ordered.AppendHex(buf[:0], 0xbff0000000000000)
	}
}

func BenchmarkParseHex(b *testing.B) {
	b.ReportAllocs()
	text := []byte("bff0000000000000")
	for b.Loop() {
		ordered.ParseHex(text)
	}
}
