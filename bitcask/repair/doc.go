// Package repair makes a new store from what can be read of a damaged one.
//
// Salvage is all of it: a function that takes a directory and no store, for a damaged one may not open. It copies every
// record that still verifies, in order of sequence, with those that recovery had truncated, and its Result says what is
// Lost. The damaged store is only read; nothing may write to it during the call. Salvage may run for several
// directories at a time.
//
// Records named by a hint are lost by name; without a hint, anything written before the next good record may be stale,
// and the Result says so. Counts of collections are corrected at the end.
package repair
