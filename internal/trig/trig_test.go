package trig_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/trig"
)

var argumentsFlag = flag.Int("trig.arguments", 10_000, "random arguments that are compared with exact values; with the C library, a hundred times as many")

// arguments are n random ones from -limit to limit, half of them near 0, a quarter near limit, and those that are hard:
// powers of two, multiples of π/4 with their neighbours, and some whose values lie next to the middle between two
// float64.
func arguments(r *rand.Rand, n int, limit float64) []float64 {
	list := []float64{0, limit, -limit, 0x1.e0000000001c2p-20, 0x1.8000000000009p-23}
	for i := range 80 {
		list = append(list, math.Ldexp(limit, -i), limit-math.Ldexp(limit, -i), math.Ldexp(1, -i))
	}
	for i := range 5 {
		x := float64(i) * math.Pi / 4
		list = append(list, x, math.Nextafter(x, 9), math.Nextafter(x, -9))
	}
	for i := range n {
		x := limit * (2*r.Float64() - 1)
		switch i % 4 {
		case 0, 1:
			x *= math.Pow(10, -9*r.Float64())
		case 2:
			x = math.Copysign(limit, x) - x*math.Pow(10, -15*r.Float64())
		}
		list = append(list, x)
	}
	within := list[:0]
	for _, x := range list {
		if math.Abs(x) <= limit {
			within = append(within, x)
		}
	}
	return within
}

// TestNearestFloat compares with values of 250 bits.
func TestNearestFloat(t *testing.T) {
	r := chance.Rand(t)
	n := *argumentsFlag
	if testing.Short() {
		n /= 10
	}
	for _, x := range arguments(r, n, math.Pi) {
		if want, _ := exactSine(exact(x)).Float64(); trig.Sin(x) != want {
			t.Errorf("sine of %x: %x, not %x", x, trig.Sin(x), want)
		}
		if want, _ := exactCosine(exact(x)).Float64(); trig.Cos(x) != want {
			t.Errorf("cosine of %x: %x, not %x", x, trig.Cos(x), want)
		}
	}
	for _, x := range arguments(r, n, 1) {
		// The sine grows up to π/2: x lies between those of the middles of the result and its neighbours.
		a := trig.Asin(x)
		low, high := middle(a, math.Inf(-1)), middle(a, math.Inf(1))
		right := math.Abs(x) == 1 || exactSine(low).Cmp(exact(x)) < 0 && exactSine(high).Cmp(exact(x)) > 0
		if x == 0 {
			right = a == 0
		}
		if !right || math.Abs(a) > math.Pi/2 {
			t.Errorf("arc sine of %x: %x", x, a)
		}
	}
}

const bits = 250

func exact(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }

// middle is the middle between x and its neighbour.
func middle(x, towards float64) *big.Float {
	m := exact(x)
	return m.Quo(m.Add(m, exact(math.Nextafter(x, towards))), exact(2))
}

func exactSine(x *big.Float) *big.Float   { return taylor(new(big.Float).Copy(x), x, 2) }
func exactCosine(x *big.Float) *big.Float { return taylor(exact(1), x, 1) }

// taylor sums the series from a term on, the next of which is -x²/n(n+1) of it.
func taylor(term, x *big.Float, n int64) *big.Float {
	sum := new(big.Float).Copy(term)
	square := new(big.Float).Mul(x, x)
	for ; n < 100; n += 2 {
		term.Mul(term, square)
		term.Quo(term, exact(float64(-n*(n+1))))
		sum.Add(sum, term)
	}
	return sum
}

func TestBeyond(t *testing.T) {
	for _, x := range []float64{1.0000000000000002, -2, math.Inf(1), math.NaN()} {
		if a := trig.Asin(x); !math.IsNaN(a) {
			t.Errorf("arc sine of %v: %v", x, a)
		}
	}
	for _, x := range []float64{math.Inf(-1), math.NaN()} {
		if s, c := trig.Sin(x), trig.Cos(x); !math.IsNaN(s) || !math.IsNaN(c) {
			t.Errorf("sine and cosine of %v: %v, %v", x, s, c)
		}
	}
	for _, x := range []float64{4, -100, 1e300} {
		if s, c := trig.Sin(x), trig.Cos(x); s != math.Sin(x) || c != math.Cos(x) {
			t.Errorf("sine and cosine of %v: %v, %v", x, s, c)
		}
	}
	if a, s := trig.Asin(math.Copysign(0, -1)), trig.Sin(math.Copysign(0, -1)); !math.Signbit(a) || !math.Signbit(s) {
		t.Errorf("of -0: %v, %v", a, s)
	}
}

// program prints sine, cosine and arc sine of the arguments that it reads.
const program = `
#include <math.h>
#include <stdio.h>
int main(void) {
	double x[2], y[3];
	while (fread(x, sizeof x, 1, stdin) == 1) {
		y[0] = sin(x[0]), y[1] = cos(x[0]), y[2] = asin(x[1]);
		fwrite(y, sizeof y, 1, stdout);
	}
	return 0;
}
`

// TestNearC compares with the C library of this machine, which is what a redis-server uses: results are at most
// neighbours.
func TestNearC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil || testing.Short() {
		t.Skip("no C compiler, or no time")
	}
	r := chance.Rand(t)
	executable := filepath.Join(t.TempDir(), "sines")
	compile := exec.Command(cc, "-O1", "-fno-builtin", "-x", "c", "-o", executable, "-", "-lm")
	compile.Stdin = bytes.NewReader([]byte(program))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Skipf("the C compiler does not work here: %v: %s", err, out)
	}
	angles, sines := arguments(r, 100**argumentsFlag, math.Pi), arguments(r, 100**argumentsFlag, 1)
	n := min(len(angles), len(sines))
	var in []byte
	for i := range n {
		in = binary.NativeEndian.AppendUint64(in, math.Float64bits(angles[i]))
		in = binary.NativeEndian.AppendUint64(in, math.Float64bits(sines[i]))
	}
	run := exec.Command(executable)
	run.Stdin = bytes.NewReader(in)
	out, err := run.Output()
	if err != nil || len(out) != 24*n {
		t.Fatalf("%d bytes of %d arguments, %v", len(out), n, err)
	}
	var differ, differGo [3]int
	for i := range n {
		a, x := angles[i], sines[i]
		ours := [3]float64{trig.Sin(a), trig.Cos(a), trig.Asin(x)}
		std := [3]float64{math.Sin(a), math.Cos(a), math.Asin(x)}
		for j := range ours {
			theirs := math.Float64frombits(binary.NativeEndian.Uint64(out[24*i+8*j:]))
			if std[j] != theirs {
				differGo[j]++
			}
			if ours[j] == theirs {
				continue
			}
			differ[j]++
			if math.Nextafter(ours[j], theirs) != theirs {
				t.Errorf("of %x and %x: %x, in C %x", a, x, ours[j], theirs)
			}
		}
	}
	t.Logf("of %d sines, cosines and arc sines %d differ from the C library's; %d of package math", n, differ, differGo)
}

func BenchmarkSin(b *testing.B) {
	x := 0.5
	for b.Loop() {
		x = trig.Sin(x) + 0.9
	}
}

func BenchmarkAsin(b *testing.B) {
	x := 0.5
	for b.Loop() {
		x = trig.Asin(x)/3 + 0.4
	}
}
