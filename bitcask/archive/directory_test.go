package archive_test

import (
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/bitcask/archive/archivetest"
)

// TestDirectoryIsAStore: a directory does what every Store does.
func TestDirectoryIsAStore(t *testing.T) {
	archivetest.Test(t, func(t *testing.T) archive.Store {
		d, err := archive.OpenDirectory(filepath.Join(t.TempDir(), "archive"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
