//go:build !race

package keydir_test

const underRace = false

// rounds is n: fewer under the race detector.
func rounds(n int) int { return n }
