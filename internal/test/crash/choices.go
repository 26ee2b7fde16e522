package crash

import (
	"iter"
	"math/big"
	"math/rand/v2"
	"strings"
)

// Choice says which units a power cut keeps: bit i stands for the i-th. As text it is a hexadecimal number.
type Choice struct{ bits big.Int }

// ParseChoice is the inverse of Choice.String.
func ParseChoice(text string) (c Choice, ok bool) {
	_, ok = c.bits.SetString(strings.TrimPrefix(text, "0x"), 16)
	return c, ok && c.bits.Sign() >= 0
}

// String returns the choice as 0x and hexadecimal digits.
func (c Choice) String() string { return "0x" + c.bits.Text(16) }

// Has reports whether the i-th unit is kept.
func (c Choice) Has(i int) bool { return c.bits.Bit(i) == 1 }

// All is the choice that keeps all of n units.
func All(n int) Choice { return chosen(n, func(int) bool { return true }) }

func chosen(n int, keep func(i int) bool) (c Choice) {
	for i := range n {
		if keep(i) {
			c.bits.SetBit(&c.bits, i, 1)
		}
	}
	return c
}

// Exhaustive is up to how many units all choices are tried.
const Exhaustive = 12

// Choices ranges over the choices among n units that keep at least one of the last fresh ones: those without have
// been left by an earlier cut. fresh = 0 means all choices. Up to Exhaustive units each one comes. Above that come:
// everything, nothing, each unit lost alone, each kept alone, the first so many, and that many random ones.
func Choices(n, fresh, random int, rng *rand.Rand) iter.Seq[Choice] {
	return func(yield func(Choice) bool) {
		if n <= Exhaustive {
			for bits := range int64(1) << n {
				if fresh > 0 && bits>>(n-fresh) == 0 {
					continue
				}
				if !yield(Choice{*big.NewInt(bits)}) {
					return
				}
			}
			return
		}
		keeps := func(c Choice) bool {
			if fresh == 0 {
				return true
			}
			for i := n - fresh; i < n; i++ {
				if c.Has(i) {
					return true
				}
			}
			return false
		}
		for pick := range 3*n + 1 + random {
			if c := pickOf(n, pick, rng); keeps(c) && !yield(c) {
				return
			}
		}
	}
}

// pickOf is one of the choices among many units, by number.
func pickOf(n, pick int, rng *rand.Rand) Choice {
	unit := pick % n
	switch pick / n {
	case 0: // also nothing
		return chosen(n, func(i int) bool { return i < unit })
	case 1:
		return chosen(n, func(i int) bool { return i == unit })
	case 2:
		return chosen(n, func(i int) bool { return i != unit })
	}
	if pick == 3*n {
		return All(n)
	}
	return Random(n, rng)
}

// Random is a choice among n units, of few or of many.
func Random(n int, rng *rand.Rand) Choice {
	density := rng.Float64()
	return chosen(n, func(int) bool { return rng.Float64() < density })
}
