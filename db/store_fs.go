package db

import (
	"io/fs"

	"github.com/stavedb/stave/internal/vfs"
)

// OpenFS opens a store for reading in a directory of a file system of package io/fs: one that go:embed has put into the
// program, or a zip archive. It is [Open] with Options.ReadOnly; nil options are the defaults.
//
// Files that can be read at any offset, as those of go:embed and os.DirFS, are read where they are; others are in
// memory while the store is open. A store that was closed opens fastest, and best with Options.Reserve of -1 when it
// was made: its files are then no longer than what they hold. A directive go:embed takes all files of a store but LOCK,
// which is not needed, if it names the directory.
//
// Errors: those of [Open], and of the file system.
func OpenFS(fsys fs.FS, dir string, o *Options) (*Store, error) {
	var r Options
	if o != nil {
		r = *o
	}
	r.ReadOnly = true
	r.seam.FS = vfs.FromFS(fsys)
	return Open(dir, &r)
}
