//go:build race

package db_test

// underRace is for tests that know that strings are read through transactions: the detector would call the short cut
// a race.
const underRace = true
