// Package benchmark measures a store on the disk of a directory, through the embedded interface, with the store's own
// defaults and without a network: a [Runner] measures one [Workload] at a time, on a new store. The module in bench
// compares with other stores.
//
// Each workload has a store of its own, so that none pays for the garbage of the previous one; loading is not measured.
// A thread counts into a histogram of its own, since a shared one would be what is measured.
package benchmark
