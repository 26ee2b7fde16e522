package db

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

// SyncMode says when acknowledged writes are on disk.
type SyncMode = bitcask.SyncMode

// The sync modes. In each an acknowledged write survives a killed process.
const (
	SyncInterval = bitcask.SyncInterval // a power cut takes at most the last Options.SyncEvery
	SyncAlways   = bitcask.SyncAlways   // acknowledged means on disk; one sync serves all waiters
	SyncNone     = bitcask.SyncNone     // left to the operating system, to Sync and to Close
)

// Options of a store. The zero value works; they cannot change after Open.
type Options struct {
	// Sync says when writes reach the disk. Default: SyncInterval.
	Sync SyncMode
	// SyncEvery is the time between syncs with SyncInterval. Default: 1 s.
	SyncEvery time.Duration
	// SegmentSize is the length in bytes from which a segment is sealed; on a disk
	// of which the store can have less than 160 times as much it is less.
	// Default: 256 MiB.
	SegmentSize int64
	// Namespaces is how many numbered namespaces there are, at most 65536.
	// Default: 16.
	Namespaces int
	// ReadOnly opens alongside a live writer, changes not one byte, and sees the
	// store as it was at Open, unless Follow is set. Default: false.
	ReadOnly bool
	// Follow, with ReadOnly, keeps showing what the writer commits, also in another process, some milliseconds later:
	// see docs/FOLLOW.md. Default: false.
	Follow bool
	// ReadDamaged opens a damaged store for reading, as ReadOnly does, if the
	// damage can be narrowed down to keys: these give a *bitcask.CorruptError, all
	// others are as they were. See bitcask.Options. Default: false: Open fails.
	ReadDamaged bool
	// Merge steers the background merge. Default: merge.Policy's defaults.
	Merge merge.Policy
	// NoMerge turns the background merge off; Store.Merge still works.
	// Default: false.
	NoMerge bool
	// ExpireEvery is the time between two runs of the expiry cycle.
	// While a run leaves due keys, the next one follows sooner: the cycle takes up to half of a core.
	// Default: 100 ms. Negative: no cycle; expired keys are still never seen.
	ExpireEvery time.Duration
	// OrderedKeys keeps the names of all keys in memory, in order, so that
	// Keyspace.Range and its like find a range without looking at all keys. It
	// takes some 65 bytes for a key of 16 (go test ./db -run - -bench OrderedKeys),
	// and reads every name at Open. Default: false.
	OrderedKeys bool
	// Reserve is how many bytes of disk space are kept, in the file RESERVE, for
	// deletes and merges on a disk that is full. Default: a quarter of the log up
	// to 1 MiB, a 64th of it beyond 64 MiB, at most a segment; six segments when
	// less than a quarter of the disk is left. Negative: none.
	Reserve int64
	// Evict bounds the store, as a cache is: keys that its policy allows are evicted. Store.SetEvict changes it. Default: no bound.
	Evict Evict
	// Archive has all commits copied to another place, from which the store can be made again as it was at any moment:
	// see package bitcask/archive. A store that is open for reading is not archived. Close takes some seconds
	// longer if the archive does not answer, 20 at most. Default: none.
	Archive *archive.Options
	// Logger receives recoveries and background failures. Its handler cannot use the store, or a snapshot of it:
	// that fails with ErrNested. A handler that panics loses only its record. Default: silent.
	Logger *slog.Logger
	// Observe is called after each call on the store that locks a key, with its name, duration and error: for metrics
	// and for logs of slow calls. It is called on the goroutine of that call, on many at a time, with nothing locked,
	// and cannot use the store: that fails with ErrNested. If it panics the call has been made all the same. Reads take
	// their key's lock when there is an observer, and every call takes a few microseconds more; without one there is no
	// cost. Calls refused before a key is locked are not observed, nor are transactions between Begin and End. Default:
	// none.
	Observe func(Operation)

	seam seam.Options // of tests and tools
}

func init() { seam.Register(func(o *Options) *seam.Options { return &o.seam }) }

// defaultChunkSize is the length in bytes of the chunks of a long string: one of more than eight chunks.
const defaultChunkSize = 8 << 10

// ErrOption is returned by Open for an option that no store can have. The error names the field.
var ErrOption = bitcask.ErrOption

// ofBase is what the log has of the options.
func (o *Options) ofBase() *bitcask.Options {
	below := o.seam
	if o.OrderedKeys {
		below.Load = seam.LoadAtOpen // Open reads every name: damage refuses it before it has changed anything
	}
	return seam.With(&bitcask.Options{
		Sync: o.Sync, SyncEvery: o.SyncEvery, SegmentSize: o.SegmentSize, ReadOnly: o.ReadOnly, Follow: o.Follow, ReadDamaged: o.ReadDamaged,
		Reserve: o.Reserve, Logger: o.Logger,
	}, below)
}

// check refuses values out of their range. Every ExpireEvery has a meaning.
func (o *Options) check() error {
	if _, err := o.ofBase().WithDefaults(); err != nil {
		return err
	}
	if o.Namespaces < 0 || o.Namespaces > bitcask.MaxNamespaces {
		return fmt.Errorf("%w: Options.Namespaces is %d, want at most %d, or 0 for the default", ErrOption, o.Namespaces, bitcask.MaxNamespaces)
	}
	if o.Archive != nil && o.Archive.To == nil {
		return fmt.Errorf("%w: Options.Archive.To is nil", ErrOption)
	}
	if err := o.Evict.check(); err != nil {
		return err
	}
	if err := o.Merge.Check(); err != nil {
		return fmt.Errorf("Options.Merge: %w", err)
	}
	return nil
}

// withDefaults returns the options with a value in every field, or ErrOption with the name of the field that is wrong.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if err := r.check(); err != nil {
		return Options{}, err
	}
	r.ReadOnly = r.ReadOnly || r.ReadDamaged
	if r.seam.ChunkSize == 0 {
		r.seam.ChunkSize = defaultChunkSize
	}
	r.seam.ChunkSize = min(max(r.seam.ChunkSize, 16), 16<<20)
	if r.Namespaces == 0 {
		r.Namespaces = 16
	}
	if r.ExpireEvery == 0 {
		r.ExpireEvery = 100 * time.Millisecond
	}
	if r.seam.Clock == nil {
		r.seam.Clock = time.Now
	}
	if r.seam.FS == nil {
		r.seam.FS = vfs.OS()
	}
	return r, nil
}
