// Package merge decides which segments of a log to merge, when, and how fast. It moves no
// byte itself: package bitcask does, in bitcask.Store.Rewrite (merge.go, internal/mergeselect, internal/rewrite).
//
//   - A [Policy] picks segments. [Policy.Pick] is pure: segment counts in, a [Plan] out.
//   - A [Merger] watches one store: [Merger.Tick] merges when the policy's trigger says so,
//     [Merger.Run] on request. It throttles, reports, pauses, and retries after failures.
//
// The policy has the two levels of Basho's Bitcask: a trigger says that some segment has
// enough garbage to begin at all, an include threshold then selects the segments that are
// worth merging along with it. Segments much shorter than the limit are included, too, so that
// their number stays low. On a full disk it takes small steps instead, each of which releases
// more than it writes.
//
// # Guarantees
//
// Readers and writers continue throughout, see bitcask.Store.Rewrite. At most one merge of a store
// runs at a time. A cancelled or failed merge keeps what it has merged. Unless all segments
// are asked for, it needs spare space for one segment.
//
// # Locks
//
// A Merger may be used from any goroutine, except that one goroutine calls Tick. The package
// starts no goroutine. No lock is held while bitcask rewrites, except the one that keeps
// a second merge out.
//
// # Caveats
//
// Live bytes are estimates, up to an eighth too high, so a plan's figures are, too. A merge by
// Tick leaves out segments that could not be read lately; one by Run tries them and reports
// the damage.
package merge
