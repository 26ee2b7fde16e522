package main

import (
	"fmt"
	"math/rand/v2"
)

const (
	keySize   = 16
	valueSize = 128
)

// keyAt is the key of a number, 16 bytes long.
func keyAt(i int) string { return fmt.Sprintf("key:%012d", i) }

// shuffledKeys returns the keys of the numbers from to from+n in an order that
// depends on the seed. They lie in memory in that order, so that walking them
// costs the measurement nothing.
func shuffledKeys(seed uint64, from, n int) []string {
	keys := make([]string, n)
	for i, p := range rand.New(rand.NewPCG(seed, 1)).Perm(n) {
		keys[i] = keyAt(from + p)
	}
	return keys
}

// values yields values that differ, without allocating them.
type values struct{ pool []byte }

func newValues() values {
	pool := make([]byte, 1<<16)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(pool) // never fails
	return values{pool}
}

func (v values) at(i int) []byte {
	from := (i * 61) & (len(v.pool)/2 - 1)
	return v.pool[from : from+valueSize : from+valueSize]
}

// errOf is the error of a call whose result is of no interest here.
func errOf[T any](_ T, err error) error { return err }
