package segment

import (
	"io"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// staleFile says that it is longer than what can be read of it, as a file of vfs.FromFS does that was truncated since it
// was opened, and one of a file system that remembers lengths.
type staleFile struct{ vfs.File }

func (staleFile) Size() (int64, error)              { return 4096, nil }
func (staleFile) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// TestEachEntryEndsInAFileOfAnotherLength: a file that is not as long as it says, and stays so, has an end.
func TestEachEntryEndsInAFileOfAnotherLength(t *testing.T) {
	if err := EachEntry(New([16]byte{}, 1, staleFile{}), func(*format.Entry) { t.Error("an entry") }); err != nil {
		t.Error(err)
	}
}
