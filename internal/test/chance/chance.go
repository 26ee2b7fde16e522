// Package chance gives random tests their seeds: another one at each run, printed in the log of the test, and accepted
// by a flag. So `-count 200` runs a test with two hundred seeds. The environment variable CHANCE is a seed for all
// tests of a run, as .ci/run takes it from the commit: a commit that fails there fails again.
package chance

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

var given = flag.Uint64("seed", 0, "seed of the random tests that have no flag of their own (0: another one each time)")

// Draw returns the seed that a flag gave, or if that is 0, that of the environment, or if there is none, another one
// each time.
func Draw(given uint64) uint64 {
	if text := os.Getenv("CHANCE"); given == 0 && text != "" {
		seed, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			panic("CHANCE, the seed of the random tests, is no number below 2^63: " + text)
		}
		given = seed
	}
	for given == 0 {
		given = rand.Uint64() >> 1 // tests add to it
	}
	return given
}

// Seed returns the seed of a test, and says in its log how to repeat it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := Draw(*given)
	t.Logf("seed %d (repeat with -run '^%s$' -seed %d)", seed, t.Name(), seed)
	return seed
}

// Rand returns a source of random numbers with the seed of the test.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 1))
}
