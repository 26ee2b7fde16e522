// Package group decides which store of a group is primary, which ones are in sync with it, and what may be acknowledged,
// so that no acknowledged commit is lost as long as one member in sync is left. A Node is the state of one member. It is
// told what has happened and answers what is to be done: it has no clock, no socket and no service of records.
//
// The primary streams its commits, and acknowledges one when all in sync have it (Gate). A Record, which changes by
// compare-and-swap only, names the primary and those in sync. The invariants:
//
//   - S1: no reply and no read shows a commit that a member in sync lacks.
//   - S2: only a member that the record has as in sync becomes primary.
//   - S3: a member leaves those in sync by a swap that is done before any reply that it lacks.
//   - S4: a node that is not primary of the newest term it knows acknowledges nothing.
//   - S5: the lease makes reads faster, no more: if clocks stop or jump, S1 to S4 hold. Reads are up to date as long as clocks that
//     count suspension differ in rate by less than a third, and always with Options.StrictReads.
//
// Four rules keep them:
//
//   - A commit is shown when all have it that are in sync by the record, or would be by a swap whose outcome is not known. Such a
//     swap is repeated as it is until the record has another version: whenever it is carried out, its members were counted.
//   - An Ack promises not to serve as primary for Patience. A primary counts its Lease, which is shorter, from when the ping was
//     sent. A process that has just started may have promised before, and waits for as long.
//   - Each process that becomes primary does so by a swap to a term in which no other one has served, also after a restart: swaps of
//     earlier processes fail from then on, and earlier acknowledgements count no more.
//   - A member joins those in sync when it has all that earlier primaries may have shown: as much as the log had when the term began.
//
// A driver keeps this: what a process knows first is read, linearizably. Replies that wait when a node's term ends never leave. A member that
// takes a whole log keeps its old one until the new one is on its disk, or comes back with another incarnation.
//
// A member notes in its store what it knows of the record, before it acts on that (Noting), so that a service that has lost its data, or is
// a copy of the past, is recognized, and the record can be made anew (Recover).
//
// A Driver has the clock and asks the Service; module cluster has one for etcd. Package server/internal/member has a Driver. The tests run
// nodes in a simulator (TestWorlds, with -worlds N for more seeds), drivers in one process (grouptest), servers with their stores in another
// simulator (TestSimulatedGroup of package server), and in real time (TestLinearizableMembers).
//
// The protocol is primary and backup with a service of configurations, as PacificA (Lin and others, 2008) and Kafka's
// in-sync replicas have it, with a lease for reads.
package group
