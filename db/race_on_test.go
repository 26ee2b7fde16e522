//go:build race

package db_test

// underRace tells tests that strings are read through transactions, for the detector would call the short cut a race.
const underRace = true
