//go:build race

package keydir_test

// underRace is for tests that the race detector makes twenty times slower.
const underRace = true
