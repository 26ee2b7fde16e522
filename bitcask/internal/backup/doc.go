// Package backup copies a store at one moment, into a directory or as a tar archive, given a Source: that is all it
// knows of the store. Directory and Archive make one each; they hold no lock of the store, and give up soon after
// Source.Ended has an error.
//
// A backup is a copy of the store at one moment between two commits, and a store of its own. Reads, writes, rotations
// and merges continue while it is made; none of them waits for a file.
//
// Sealed segments and their hints get a second name in the copy. That is safe because a sealed segment is never written
// again, by this store or by the copy: a merge removes a name, a hint is replaced by its name, and the copy has no
// unsealed segment. What a merge removes from the store in the meantime stays until the backup is done (pins). Of the
// unsealed segments, of which at most two hold frames, the frames present at that moment are copied and sealed.
//
// From then on the store and the copy diverge. So the copy has a store id of its own, and its manifest says which
// segments it has inherited: whatever either of them writes later is foreign to the other.
//
// INDEX and TTL file are left out: both are bound to the store id, and the log holds all that they say.
//
// What a crash leaves:
//
//	before the manifest is there:  NAME.partial, without a manifest, which no Open takes for a store
//	before the rename:             NAME.partial, whole
//	after it:                      NAME or NAME.partial; either is whole, for all in it is on disk
//	after the sync of the parent:  NAME
//
// The next backup of that name removes a NAME.partial.
package backup
