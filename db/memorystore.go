package db

import (
	"fmt"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/vfs"
)

// memoryDir is the directory of a store in memory, for messages and Stats.
const memoryDir = "memory"

// ErrMemory is returned by OpenMemory for Options.ReadOnly and Options.ReadDamaged.
var ErrMemory = bitcask.ErrMemory

// OpenMemory makes a new store that is held in memory and gone after Close: for tests, caches and examples. nil options
// are the defaults. All of it works as in a directory: transactions, deadlines, events, background expiry and merges,
// Check. [Store.Backup] and [Store.BackupTo] write to the operating system's files and to a stream: these are the ways
// to keep what it holds.
//
// A store in memory takes the size of its log, dead records included until a merge removes them, besides the index.
// Syncs cost nothing, so Options.Sync makes no difference. Reads cost one allocation more than in a directory, whose
// files are mapped. Two stores share nothing. Package dbtest makes one for a test.
//
// Errors: ErrMemory for options that open for reading only, since there is nothing to read, and those of [Open] about
// options.
func OpenMemory(o *Options) (*Store, error) {
	var m Options
	if o != nil {
		m = *o
	}
	if m.ReadOnly || m.ReadDamaged {
		return nil, fmt.Errorf("db: open %s: %w", memoryDir, ErrMemory)
	}
	if m.Reserve == 0 {
		m.Reserve = -1
	}
	m.seam.FS = vfs.NewPrivateMem()
	return Open(memoryDir, &m)
}
