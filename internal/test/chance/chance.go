// Package chance gives random tests their seeds: another one at each run, printed in the log of the test, and accepted by a
// flag. So `-count 200` runs a test with two hundred seeds.
package chance

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var given = flag.Uint64("seed", 0, "seed of the random tests that have no flag of their own (0: another one each time)")

// Draw returns the seed that a flag gave, or if that is 0, another one each time.
func Draw(given uint64) uint64 {
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
