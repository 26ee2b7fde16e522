// Package archive keeps the history of a store outside of its directory, so that the store can be made again as it was at
// any moment: an [Archiver] copies what a store commits to a [Store], such as a [Directory] on another disk, within a
// second or two; [Restore] makes a store of it that ends with any commit.
//
// An archive has two kinds of things: a base is a backup of all of the store, and the log is its commits, in order, byte
// by byte as they stand in the segments, with a mark each second that says how far the log was at that time. A moment is
// a base and the log from there up to a commit. Every base is the beginning of more moments, and what came before the
// oldest base that is still wanted is deleted (Options.Keep).
//
// Commits are archived once they are on the disk, so the archive never has one that the store may lose. They are read
// from the files, and the writers of the store wait for nothing. If the archive cannot be written to, the archiver tries
// again, and keeps back up to Options.Backlog bytes of segments that merges would remove; beyond that commits go
// missing: they are a gap, which is counted and logged, and the archiver begins again with a new base. The same holds if
// the store turns out not to be the one that was archived, but an older copy. An unbroken sequence of objects is a
// generation; nothing is missing within one.
//
// docs/ARCHIVE.md is for operators, docs/FORMAT.md has the bytes.
package archive
