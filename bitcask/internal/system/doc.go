// Package system keeps what a store notes of itself, by name: the newest system record of each name, with its value.
//
// Records may be used from any goroutine. A transaction holds Writing from its first change to its end, so that records
// become known in the order of their sequences.
package system
