package backup

import (
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/vfs"
)

// Source is the store that is copied.
type Source struct {
	FS       *vfs.Held // of Dir
	Dir      string
	ReadOnly bool // another process may write to the store
	NoHints  bool // the copy needs none
	// Cut returns the segments of the moment of the copy, without empty ones, and the sequence number after their last
	// record. Their files stay until release.
	Cut func() (list []commitlog.CutSegment, next uint64, release func(), err error)
	// Manifest returns what a copy inherits of the store's manifest: Store, Seed, Features, Collided and Origins. They
	// belong to the caller.
	Manifest func() *manifest.Manifest
	// Earlier is the directory of an earlier backup, whose segments are used where they are the same. Default: none.
	Earlier string
	// Ended is why the copy is to be given up, or nil.
	Ended func() error
	// Read is told of how many bytes more are done: read of files that are copied or compared, or of segments that are
	// linked.
	Read func(bytes int64)
}

// Result says what a copy is made of.
type Result struct {
	Sequence    uint64 // of the newest record in it
	Segments    int
	Linked      int // of them, that the two stores share
	Copied      int // of them, that only the copy has
	BytesLinked int64
	BytesCopied int64
	Reused      int // of them, that the earlier backup has as well
	BytesReused int64
	Damaged     int // segments of the earlier backup that do not verify; the copy has those of the store
}
