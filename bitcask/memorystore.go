package bitcask

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/internal/vfs"
)

// memoryDir is the directory of a store in memory, for messages.
const memoryDir = "memory"

// ErrMemory is returned by OpenMemory for options that only make sense for a store that is there already.
var ErrMemory = errors.New("stave: a new store in memory cannot be opened for reading only")

// OpenMemory makes a new store that is held in memory and gone after Close: for tests, caches and examples. It is the
// same store on other files: transactions, merges, Check and backups work, and Sync has nothing to wait for. Backup
// writes to the operating system's files, which is the way to keep what the store holds.
//
// It takes what the log takes, dead records included until a merge, besides the keydir. Reads copy from memory that is
// not mapped: a get takes one allocation more than in a directory. There is no reserve for a full disk unless
// Options.Reserve asks for one. Two stores share nothing.
//
// Errors: ErrMemory for ReadOnly and ReadDamaged, or those of Open about options.
func OpenMemory(o *Options) (*Store, error) {
	var m Options
	if o != nil {
		m = *o
	}
	if m.ReadOnly || m.ReadDamaged {
		return nil, fmt.Errorf("open %s: %w", memoryDir, ErrMemory)
	}
	if m.Reserve == 0 {
		m.Reserve = -1
	}
	m.seam.FS = vfs.NewPrivateMem()
	return Open(memoryDir, &m)
}
