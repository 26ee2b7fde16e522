package bitcask

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/safelog"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// SyncMode says when acknowledged writes are on disk. In every mode an acknowledged write survives a killed process;
// the modes differ in what a power cut may take.
type SyncMode int

const (
	// SyncInterval syncs every Options.SyncEvery: a power cut takes at most the writes of that time.
	SyncInterval SyncMode = iota
	// SyncAlways acknowledges a write only once it is on disk. One sync serves every writer that waits.
	SyncAlways
	// SyncNone leaves it to the operating system, and to Sync and Close.
	SyncNone
)

func (m SyncMode) String() string {
	switch m {
	case SyncAlways:
		return "always"
	case SyncNone:
		return "none"
	}
	return "interval"
}

// Options of a store. The zero value works. They cannot change after Open, except Sync by Store.SetSync.
type Options struct {
	// Sync says when writes reach the disk, until SetSync says otherwise. Default: SyncInterval.
	Sync SyncMode
	// SyncEvery is the time between syncs with SyncInterval. In every mode a store without a write for so long is
	// synced, and the manifest notes how far its log reaches. Default: 1 s.
	SyncEvery time.Duration
	// SegmentSize is the length in bytes from which a segment is sealed; a single larger commit gets a segment of its
	// own. On a disk of which the store can have less than 160 times as much it is less. Default: 256 MiB. Less than
	// 256 bytes counts as 256. Highest: 2 GiB.
	SegmentSize int64
	// ReadOnly opens without the lock, alongside a live writer, and changes not
	// one byte. It sees the store as it was at Open, unless Follow is set. Default: false.
	ReadOnly bool
	// Follow, with ReadOnly, makes a store that goes on applying what the writer of the directory appends, from the
	// call of Store.Follow on. All of the INDEX is loaded at Open. Default: false.
	Follow bool
	// ReadDamaged opens for reading, as ReadOnly does, also where Open otherwise fails with a
	// *CorruptError or ErrMissing, if the damage can be narrowed down to keys: these give a
	// *CorruptError, all others are intact. Recovery().Damage lists the damage. If it cannot be
	// narrowed down, Open fails all the same: any key could be stale. Default: false.
	ReadDamaged bool
	// Reserve is how many bytes of disk space are kept in the file RESERVE for deletes and merges on a disk that is
	// full. Default: a quarter of the log up to 1 MiB, a 64th of it beyond 64 MiB, at most a segment; six
	// segments when less than a quarter of the disk is left. Negative: none.
	Reserve int64
	// Logger receives recoveries and background failures. Its handler must not use the store. A
	// handler that panics loses only its record. Default: silent.
	Logger *slog.Logger
	// Open calls Loading when it knows the store's id and the sequence number after which it will replay changes.
	// replayed is called for every change of a deadline among them, by several goroutines at a time, those of one key
	// in sequence order; before that, if known is false, once for every existing deadline. Open may start over and call
	// Loading again with 0. A nil replayed is never called. One that panics ends the process, for its goroutine is not
	// the caller's. Default: none.
	Loading func(store [16]byte, after uint64) (replayed func(DeadlineEvent), known bool)

	seam seam.Options // of tests and tools
}

func init() { seam.Register(func(o *Options) *seam.Options { return &o.seam }) }

// DeadlineEvent is a change of deadlines found while loading.
type DeadlineEvent struct {
	Space    uint32 // the space of the key
	Key      string // valid within the call
	Deadline int64  // Unix milliseconds; 0: none any more
	Dropped  bool   // the whole space is gone; Key is empty
	Sequence uint64
}

// WithDefaults returns the options as Open completes them, or ErrOption with the name of a field that is out of its
// range.
func (o *Options) WithDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if err := r.check(); err != nil {
		return Options{}, err
	}
	r.ReadOnly = r.ReadOnly || r.ReadDamaged
	if r.SyncEvery == 0 {
		r.SyncEvery = time.Second
	}
	if r.SegmentSize == 0 {
		r.SegmentSize = 256 << 20
	}
	r.SegmentSize = max(r.SegmentSize, 256)
	r.Logger = safelog.New(r.Logger) // some records are logged with locks held
	if r.seam.FS == nil {
		r.seam.FS = vfs.OS()
	}
	return r, nil
}

// copiesByDefault says that commits are copied into the log where that is possible, and not only in tests that ask for
// it.
const copiesByDefault = seam.CopiesOn

// copyStep is how many bytes are reserved at a time for commits to be copied into; 0: they are written.
func (o *Options) copyStep() int64 {
	const unit = 4 * segment.ReserveUnit
	wanted := cmp.Or(o.seam.Copies, seam.DefaultCopies, copiesByDefault)
	switch {
	case wanted != seam.CopiesOn:
		return 0
	case o.seam.CopyStep > 0:
		return min((o.seam.CopyStep+unit-1)/unit*unit, segment.MaxReserve)
	}
	return segment.MaxReserve
}

// check refuses options that no store can have. Every Reserve has a meaning.
func (o *Options) check() error {
	refuse := func(field string, value any, want string) error {
		return fmt.Errorf("%w: Options.%s is %v, want %s", ErrOption, field, value, want)
	}
	switch {
	case o.Sync < SyncInterval || o.Sync > SyncNone:
		return refuse("Sync", int(o.Sync), "SyncInterval, SyncAlways or SyncNone")
	case o.SyncEvery < 0:
		return refuse("SyncEvery", o.SyncEvery, "a positive duration, or 0 for the default")
	case o.Follow && (!o.ReadOnly || o.ReadDamaged):
		return refuse("Follow", o.Follow, "it with ReadOnly and without ReadDamaged")
	case o.SegmentSize < 0 || o.SegmentSize > 2<<30:
		return refuse("SegmentSize", o.SegmentSize, "at most 2 GiB, or 0 for the default")
	}
	return nil
}

// mapLength is the length to map of a segment that will still grow.
func (o *Options) mapLength() int {
	if o.seam.NoMapping {
		return 0
	}
	return int(o.SegmentSize)
}

func (o *Options) mapFor(sg *segment.Segment) int {
	if o.seam.NoMapping || sg.Damaged {
		return 0
	}
	if sg.Sealed() {
		return int(sg.Size.Load())
	}
	return max(o.mapLength(), int(sg.Size.Load()))
}

func (o *Options) mode() vfs.Mode {
	if o.ReadOnly {
		return vfs.ReadOnly
	}
	return vfs.ReadWrite
}
