//go:build race

package keydir_test

// underRace is for tests that the race detector makes twenty times slower.
const underRace = true

// rounds is how often a test does what it does n times without the race detector.
func rounds(n int) int { return max(1, n/6) }
