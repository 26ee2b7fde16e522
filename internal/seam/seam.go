// Package seam is where tests and tools of this module set what no program has a reason to set on a store: the file
// system below it, and which of its optional files and ways to read it does without. The options of db and of bitcask
// carry it in a field that is not exported:
//
//	store, err := db.Open("d", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
package seam

import (
	"context"
	"time"

	"github.com/stavedb/stave/internal/vfs"
)

// Options of a store for tests and tools. The zero value is what every program gets.
type Options struct {
	ChunkShift uint8 // a transaction keeps its records and what rolls them back in chunks of 1<<ChunkShift; 0: the default

	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// NoMapping reads with pread instead of through mappings. Default: false.
	NoMapping bool
	// NoHints neither reads nor writes hint files. Default: false.
	NoHints bool
	// NoIndex neither reads nor writes the file INDEX: Open replays the log from its beginning. Default: false.
	NoIndex bool
	// Copies says whether commits may be copied into the log instead of being written. Default: what the engine does by
	// itself.
	Copies Copies
	// CopyStep is how many bytes are reserved for copies at a time, in steps of 2 KiB up to 64 KiB; the first ones are
	// a quarter of it. Default: 64 KiB.
	CopyStep int64
	// Load says when the stripes of the INDEX are loaded. Default: LoadUsual.
	Load Load
	// ChunkSize, of db alone, is into how many bytes it cuts strings that are longer than eight times as much. A store
	// can be opened with any; strings that are there stay as they were cut. Default: 8 KiB. Lowest: 16 bytes; highest:
	// 16 MiB.
	ChunkSize int
	// YieldEvery is how many steps a long transaction makes before it lets others use its stripes. Default: 512.
	YieldEvery int
	// Refuse is asked before a transaction gets a record, which fails with its error. Default: nobody is asked.
	Refuse func() error
	// Clock, of db alone, is the machine's clock, for tests that step it. Default: time.Now.
	Clock func() time.Time
	// Until ends an opening early, with the error of the context. It has no effect on the open store. Default: nothing
	// does.
	Until context.Context
	// Read is told of the bytes that an opening, a check, a backup or a salvage has dealt with since the last call, by
	// several goroutines at a time. It must not use the store. Default: nobody is told.
	Read func(bytes int64)
}

// Progress tells Read, if there is one.
func (o *Options) Progress(bytes int64) {
	if o.Read != nil {
		o.Read(bytes)
	}
}

// Copies says whether something is copied into the log, where the file system allows it.
type Copies int8

// The values of [Options.Copies].
const (
	CopiesDefault Copies = iota
	CopiesOn
	CopiesOff
)

// DefaultCopies is what [CopiesDefault] means, for a flag of tests and tools that is read before any store is opened.
var DefaultCopies = CopiesDefault

// Load is when the stripes of the INDEX are loaded.
type Load int

// The values of Load.
const (
	LoadUsual    Load = iota // those of a small INDEX at Open; those of a longer one when they are needed, and in the background
	LoadAtOpen               // all at Open
	LoadLate                 // when they are needed, and in the background, however short the INDEX is
	LoadOnDemand             // only when they are needed
)

// fields are functions that find these options in those of a package.
var fields []any

// Register makes the options in a T known. Packages call it as they are initialized.
func Register[T any](field func(*T) *Options) { fields = append(fields, field) }

// Of returns the options in o, to be changed in place.
func Of[T any](o *T) *Options {
	for _, f := range fields {
		if field, ok := f.(func(*T) *Options); ok {
			return field(o)
		}
	}
	panic("BUG: seam: options of a package that has not registered them")
}

// With returns o with the given options in it.
func With[T any](o *T, s Options) *T {
	*Of(o) = s
	return o
}
