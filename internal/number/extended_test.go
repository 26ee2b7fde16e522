package number_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/number"
)

// The sums are redis-server's, from INCRBYFLOAT.
func TestExtendedSums(t *testing.T) {
	for _, c := range []struct{ a, b, sum string }{
		{"0.1", "0.2", "0.3"},
		{"3", "1.000000000000000005", "4.00000000000000001"},
		{"10.50", "0.1", "10.6"},
		{"5.0e3", "2.0e2", "5200"},
		{"-1.5", "1.5", "0"},
		{"-0", "-0", "0"},
		{"17179869184", "1", "17179869185"},
		{"1e17", "1", "100000000000000001"},
		{"18446744073709551615", "1", "18446744073709551616"},
		{"18446744073709551616", "1", "18446744073709551616"},
		{"0x10", "0x.8", "16.5"},
		{"0x1p-3", "+.5", "0.625"},
		{"1e-4950", "1", "1"},
		{"1.", "0", "1"},
		{"123456789.123456789", "0.000000001", "123456789.12345678999554366"},
	} {
		a, okA := number.ParseExtended(c.a)
		b, okB := number.ParseExtended([]byte(c.b))
		if !okA || !okB {
			t.Errorf("%s, %s: parsed %v, %v", c.a, c.b, okA, okB)
			continue
		}
		sum, ok := number.AddExtended(a, b)
		if !ok {
			t.Errorf("%s + %s is no number", c.a, c.b)
			continue
		}
		if got := string(number.AppendExtended([]byte("="), sum)); got != "="+c.sum {
			t.Errorf("%s + %s %s; want %s", c.a, c.b, got, c.sum)
		}
	}
}

func TestExtendedRefusals(t *testing.T) {
	for _, text := range []string{
		"", " 1", "1 ", "nan", "-nan", "x", "1e", "1e+", "0x", "0xg", ".", "-", "+", "--1", "1_0", "e5", "0x1p", "infin", "1e4933", "-1e4933",
		"1e-4960", "1e99999999999999999999", "1e-99999999999999999999", "0x1p16384", "0x1p-16446", strings.Repeat("1", 5120),
	} {
		if x, ok := number.ParseExtended(text); ok {
			t.Errorf("%.40q was read as %v", text, x.Text('g', 20))
		}
	}
	for _, text := range []string{"1e4932", "0x1.8p-16446", "0e99999999999999999999", "0", strings.Repeat("0", 5119), "0x1.fffffffffffffffep16383"} {
		if _, ok := number.ParseExtended(text); !ok {
			t.Errorf("%.40q was refused", text)
		}
	}
	inf, _ := number.ParseExtended("inf")
	minus, _ := number.ParseExtended("-Infinity")
	largest, _ := number.ParseExtended("1e4932")
	if _, ok := number.AddExtended(inf, minus); ok {
		t.Error("inf - inf is a number")
	}
	if sum, ok := number.AddExtended(largest, largest); ok {
		t.Errorf("an overflow gives %v", sum)
	}
}

func FuzzExtended(f *testing.F) {
	for _, text := range []string{"1", "-0.5e-3", "0x1p9", "inf", "1e4932", ".", "1e99999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, ok := number.ParseExtended(text)
		if !ok || x.IsInf() {
			return
		}
		printed := number.AppendExtended(nil, x)
		if len(printed) <= 5119 {
			again, ok := number.ParseExtended(printed)
			if !ok {
				t.Fatalf("%q is printed as %q, which is refused", text, printed)
			}
			if twice := number.AppendExtended(nil, again); string(twice) != string(printed) {
				t.Fatalf("%q, printed %q, read and printed again %q", text, printed, twice)
			}
		}
	})
}
