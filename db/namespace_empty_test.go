package db_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestMergeKeepsTombstonesOfAnEmptyNamespace: a namespace that an opened store knows nothing of, since there is nothing
// in it, still has records in older segments, which its tombstones hide. Those of a namespace that was flushed hide
// nothing.
func TestMergeKeepsTombstonesOfAnEmptyNamespace(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		mem := vfs.NewMem()
		openIt := func(o db.Options) (s, one *db.Store) {
			seam.Of(&o).FS, o.NoMerge = mem, true
			s = ok[*db.Store](t)(db.Open("d", &o))
			return s, ok[*db.Store](t)(s.Use(1))
		}
		s, one := openIt(db.Options{})
		must(t, one.String("k").Put([]byte("v")))
		must(t, s.String("stays").Put(nil))
		must(t, s.Log().Rotate())
		equal(t, "deleted", ok[bool](t)(one.Key("k").Delete()), true)
		if flushed {
			must(t, one.Flush())
		}
		must(t, s.Log().Rotate())
		must(t, s.Close())

		s, _ = openIt(db.Options{})
		result := ok[bitcask.RewriteResult](t)(rewriteNewest(s))
		must(t, s.Close())
		equal(t, "records copied", result.Copied, 1) // the tombstone, or what says that the namespace was flushed

		s, one = openIt(*seam.With(&db.Options{}, seam.Options{NoIndex: true}))
		if exists := ok[bool](t)(one.Key("k").Exists()); exists {
			t.Errorf("flushed %v: a deleted key is back", flushed)
		}
		equal(t, "keys", s.Len(), 1)
		must(t, s.Close())
	}
}
