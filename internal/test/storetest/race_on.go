//go:build race

package storetest

// UnderRace is for tests that know that strings are read through transactions: the detector would call the short cut
// a race.
const UnderRace = true
