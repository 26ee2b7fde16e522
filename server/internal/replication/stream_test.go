package replication

import (
	"bytes"
	"testing"

	"github.com/stavedb/stave/internal/serverside"
)

// TestBlocksTakeWhatTheyCount: the stream keeps no commit with much more memory than its bytes, which is what counts for the
// backlog.
func TestBlocksTakeWhatTheyCount(t *testing.T) {
	s := NewStream(1 << 20)
	s.Begin()
	for _, size := range []int{100, ownBlock, ownBlock + 1, 10 * ownBlock} {
		s.Written(serverside.Commit{RESP: append(make([]byte, 0, 16*ownBlock), bytes.Repeat([]byte("x"), size)...)})
	}
	for _, b := range s.blocks {
		if most := max(blockSize, 2*len(b.data)); cap(b.data) > most {
			t.Errorf("%d bytes take %d", len(b.data), cap(b.data))
		}
	}
}
