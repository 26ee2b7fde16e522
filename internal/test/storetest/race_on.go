//go:build race

package storetest

// UnderRace is for tests that know that strings are read through transactions, for the detector would call the short cut
// a race; and for those that count allocations, for it has a sync.Pool lose every fourth buffer.
const UnderRace = true
