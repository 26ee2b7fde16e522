package replication

import (
	"bytes"
	"testing"

	"github.com/stavedb/stave/internal/serverside"
)

// TestBlocksTakeWhatTheyCount: the stream keeps the memory of no commit that takes much more than its bytes, which are what counts
// for the backlog.
func TestBlocksTakeWhatTheyCount(t *testing.T) {
	s := NewStream(1 << 20)
	s.Begin()
	for _, size := range []int{100, ownBlock, ownBlock + 1, 10 * ownBlock} {
		b := append(make([]byte, 0, 16*ownBlock), bytes.Repeat([]byte("x"), size)...)
		s.Written(serverside.Commit{RESP: b})
		last := s.blocks[len(s.blocks)-1].data
		if isKept := &last[0] == &b[0]; isKept && cap(b) > 2*size {
			t.Errorf("%d bytes take %d", size, cap(b))
		}
	}
}
