//go:build race

package keydir_test

// underRace tells tests that the race detector makes them twenty times slower.
const underRace = true
