package bitcask_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// collect puts the i-th element into a collection of any type, in a transaction of
// its own.
func collect(s *bitcask.Store, typ keydir.Type, key string, i int) error {
	tx, err := s.Begin(true, key)
	if err != nil {
		return err
	}
	defer tx.End()
	coll, err := tx.Collection(0, key, typ)
	if err != nil {
		return err
	}
	elem := fmt.Sprintf("element %d", i)
	switch typ {
	case keydir.List:
		err = tx.PutIndex(0, key, coll, int64(i), []byte(elem))
	case keydir.ZSet:
		err = tx.PutScored(0, key, coll, elem, uint64(i))
	case keydir.Set:
		err = tx.PutElem(0, key, coll, elem, nil)
	default:
		err = tx.PutElem(0, key, coll, elem, []byte("value"))
	}
	if err == nil {
		_, err = tx.Commit()
	}
	return err
}

// TestIndexFull: a collection that takes all the memory that it can is an error of the
// write that adds to it. Whatever needs no more memory goes on, and so does the rest.
func TestIndexFull(t *testing.T) {
	for _, typ := range []keydir.Type{keydir.Hash, keydir.List, keydir.Set, keydir.ZSet} {
		t.Run(typ.String(), func(t *testing.T) {
			s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
			put(t, s, "before", "1")
			s.LimitIndex(1 << 20)
			n := 0
			var err error
			for ; err == nil && n < 1e6; n++ {
				err = collect(s, typ, "k", n)
			}
			if n--; !errors.Is(err, bitcask.ErrIndexFull) || n < 100 {
				t.Fatalf("after %d elements: %v", n, err)
			}
			if err := s.Err(); err != nil {
				t.Fatal(err)
			}
			put(t, s, "after", "2")
			if err := collect(s, typ, "k", n/2); err != nil {
				t.Errorf("an element that is there: %v", err)
			}
			if err := collect(s, typ, "other", 0); err != nil {
				t.Errorf("another collection: %v", err)
			}
			check(t, s)

			s.LimitIndex(math.MaxInt)
			if err := collect(s, typ, "k", n); err != nil {
				t.Errorf("with more room: %v", err)
			}
			check(t, s)
		})
	}
}

// TestStripeFull: a new collection where the small ones of its stripe take all the
// memory that they can is an error, of its write and of an element for one of them.
func TestStripeFull(t *testing.T) {
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
	if err := collect(s, keydir.Hash, "k", 0); err != nil {
		t.Fatal(err)
	}
	s.LimitIndex(0)
	if err := collect(s, keydir.Hash, "k", 1); !errors.Is(err, bitcask.ErrIndexFull) {
		t.Errorf("another element: %v", err)
	}
	if err := collect(s, keydir.Hash, "k", 0); err != nil {
		t.Errorf("the same element: %v", err)
	}
	refused := 0
	for i := range 2000 {
		switch err := collect(s, keydir.Hash, fmt.Sprint("other", i), 0); {
		case errors.Is(err, bitcask.ErrIndexFull):
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}
	if refused < 1000 {
		t.Errorf("%d of 2000 collections refused in 256 full stripes", refused)
	}
	put(t, s, "string", "1")
	check(t, s)
}
