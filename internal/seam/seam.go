// Package seam is where tests and tools of this module set what no program has a reason to set on a store: the file system
// below it, and which of its optional files and ways to read it does without. The options of db and of bitcask carry it in
// a field that is not exported:
//
//	store, err := db.Open("d", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
package seam

import "github.com/stavedb/stave/internal/vfs"

// Options of a store for tests and tools. The zero value is what every program gets.
type Options struct {
	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// NoMapping reads with pread instead of through mappings. Default: false.
	NoMapping bool
	// NoHints neither reads nor writes hint files. Default: false.
	NoHints bool
	// NoIndex neither reads nor writes the file INDEX: Open replays the log from its beginning. Default: false.
	NoIndex bool
	// ChunkSize, of db alone, is into how many bytes it cuts strings that are longer than eight times as much. A store can be opened with
	// any; strings that are there stay as they were cut. Default: 8 KiB. Lowest: 16 bytes; highest: 16 MiB.
	ChunkSize int
}

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
