// Package mergeselect decides which records of some segments a merge copies: those that the index of the store leads
// to, and the tombstones that hide something elsewhere.
//
// A Selector fills one batch after the other, on a goroutine of its own, from package mergeinput. It asks an Index
// about each entry, grouped by stripe, or has once looked through all of the index before (livescan.go). A Pacer counts
// what that reads.
//
// Stripes are locked by the functions that the store gives, one at a time and for a few dozen entries.
package mergeselect
