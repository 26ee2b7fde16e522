package bitcask_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestLongCommitLeavesRoomForTheReserve: a commit that is many times as long as a segment is refused where the disk has room for it and not for the
// reserve that its segment needs. A shorter one is taken, and then the reserve is so long at once.
func TestLongCommitLeavesRoomForTheReserve(t *testing.T) {
	const disk, left = 16 << 20, 4 << 20
	mem := vfs.NewMem()
	mem.SetLimit(disk, diskPage)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem, NoIndex: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	free := func() int64 { return disk - mem.Used(diskPage) }
	for i := 0; free() > left; i++ {
		if err := s.Put(fmt.Sprint("key", i), []byte(strings.Repeat("v", 16<<10))); err != nil {
			t.Fatal(err)
		}
	}
	long := func(bytes int64) error { return s.Put("long", make([]byte, bytes)) }
	if err := long(free() - 128<<10); !errors.Is(err, bitcask.ErrNoSpace) || errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("a commit that leaves nothing for the reserve: %v", err)
	}
	if err := long(1 << 20); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Reserve < st.ReserveDue || st.ReserveDue < 1<<20 {
		t.Errorf("a reserve of %d bytes, want %d", st.Reserve, st.ReserveDue)
	}
}
