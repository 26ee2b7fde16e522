package bitcask_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestNoSequenceIsUsedTwice kills a store whose last record follows another
// (a bound of a list): its number must not be given out again.
func TestNoSequenceIsUsedTwice(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fs}))
	inAll(t, s, func(tx *bitcask.Tx) error {
		coll, err := tx.Collection(0, "list", keydir.List)
		if err != nil {
			return err
		}
		if err := tx.PutIndex(0, "list", coll, 0, []byte("v")); err != nil {
			return err
		}
		_, err = tx.Commit()
		return err
	})
	want := s.Sequence()
	if want != 4 {
		t.Fatalf("%d records, want 4: element, count and two bounds", want)
	}
	killed := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fs.Clone()}))
	if got := killed.Sequence(); got != want {
		t.Errorf("the newest record is number %d, it was %d", got, want)
	}
	check(t, killed)
}
