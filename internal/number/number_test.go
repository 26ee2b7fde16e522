package number_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/number"
)

func TestParseInt(t *testing.T) {
	good := map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	}
	for text, want := range good {
		if got, ok := number.ParseInt(text); !ok || got != want {
			t.Errorf("ParseInt(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", "+", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1.0", "0x1", "1e3", "a", "1a", "\x00", "1\x00",
		"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
		"99999999999999999999", "100000000000000000000", "--1",
	} {
		if got, ok := number.ParseInt([]byte(text)); ok {
			t.Errorf("ParseInt(%q) = %d; want a refusal", text, got)
		}
	}
}

func FuzzParseInt(f *testing.F) {
	for _, s := range []string{"0", "-1", "007", "9223372036854775808", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := number.ParseInt(s)
		want, err := strconv.ParseInt(s, 10, 64)
		canonical := err == nil && strconv.FormatInt(want, 10) == s
		if ok != canonical || ok && n != want {
			t.Fatalf("ParseInt(%q) = %d, %v; strconv says %d, %v", s, n, ok, want, err)
		}
	})
}

// The verdicts are redis-server's, from ZADD.
func TestParseFloat(t *testing.T) {
	inf := math.Inf(1)
	good := map[string]float64{
		"1.5": 1.5, "+1.5": 1.5, "0x10": 16, "0x1p3": 8, "1e3": 1000, "infinity": inf, "Inf": inf, "+inf": inf, "-INF": -inf,
		"1.": 1, ".5": .5, "4.9e-324": 4.9e-324, "inFinity": inf, "1e+5": 1e5, "0X1.8": 1.5, "-0": 0, "0e999999": 0, "0x0p-9": 0,
	}
	for text, want := range good {
		if got, ok := number.ParseFloat(text); !ok || got != want {
			t.Errorf("ParseFloat(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", " 1.5", "1.5 ", "nan", "NaN", "-nan", ".", "1e", "1e400", "-1e400", "1e-400", "1_0", "0x_1", "INFI", "0x", "1.5f",
		"+-1", "1e99999", "0x1p99999", "1e-5000", "0x1p-9999", "1\x00", "-", "+",
	} {
		if got, ok := number.ParseFloat([]byte(text)); ok {
			t.Errorf("ParseFloat(%q) = %v; want a refusal", text, got)
		}
	}
}

// The verdicts are redis-server's, from ZCOUNT.
func TestParseBound(t *testing.T) {
	inf := math.Inf(1)
	good := map[string]float64{"": 0, " 1": 1, "inf": inf, "-infinity": -inf, "1e400": inf, "-1e400": -inf, "0x2": 2, "1e-400": 0}
	for text, want := range good {
		if got, ok := number.ParseBound(text); !ok || got != want {
			t.Errorf("ParseBound(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{" ", "1 ", "(1", "nan", "-", "+", "1.5x"} {
		if got, ok := number.ParseBound([]byte(text)); ok {
			t.Errorf("ParseBound(%q) = %v; want a refusal", text, got)
		}
	}
}

func TestParseWeight(t *testing.T) {
	good := map[string]float64{"": 0, "1.5": 1.5, " \t-2": -2, "inf": math.Inf(1), "3\x00x": 3, "\x00": 0, "0x10": 16}
	for text, want := range good {
		if got, ok := number.ParseWeight(text); !ok || got != want {
			t.Errorf("ParseWeight(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{" ", "1 ", "x", "nan", "1e999", "1e-999"} {
		if got, ok := number.ParseWeight([]byte(text)); ok {
			t.Errorf("ParseWeight(%q) = %v; want a refusal", text, got)
		}
	}
}
