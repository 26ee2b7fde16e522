package db

import "github.com/stavedb/stave/bitcask/archive"

// ArchiveStatus says how the archiver of a store is doing: see [archive.Status].
type ArchiveStatus = archive.Status

// startArchive begins to archive the store, if it is to be.
func (c *core) startArchive() {
	if o := c.opts.Archive; o != nil && !c.opts.ReadOnly {
		with := *o
		if with.Logger == nil {
			with.Logger = c.opts.Logger
		}
		c.archiver = archive.Start(c.base, with)
	}
}

// endArchive archives what is left of a store that is closed. What cannot be is in the store, and is archived when it is
// opened again: so it is no error of closing.
func (c *core) endArchive() {
	if c.archiver == nil {
		return
	}
	if err := c.archiver.Close(); err != nil {
		c.opts.Logger.Warn("the last commits are not in the archive yet", "cause", err)
	}
}
