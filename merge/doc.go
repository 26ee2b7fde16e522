// Package merge decides which segments of a log to rewrite, when, and how
// fast; package bitcask does the rewriting.
//
// A merge reads a few segments, copies what is live and removes the rest.
// Readers and writers go on throughout; see bitcask.Store.Rewrite for how. The
// policy has the two levels of Basho's Bitcask: a trigger says that there is
// enough garbage somewhere to begin at all, an include threshold then says
// which segments are worth taking along. Segments that are much smaller than
// the limit are taken too, so that their number stays low.
package merge
