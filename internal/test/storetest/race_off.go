//go:build !race

package storetest

// UnderRace says whether the race detector is on.
const UnderRace = false
