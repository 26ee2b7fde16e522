package bitcask_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestKeyOfAfterRollback: the rollback of a drop makes the old handle valid again, which another collection of the
// stripe has had meanwhile.
func TestKeyOfAfterRollback(t *testing.T) {
	s := openMem(t, vfs.NewMem(), bitcask.Options{})
	defer closeStore(t, s)
	one, other := "one", ""
	for i := 0; other == ""; i++ {
		if key := fmt.Sprint("other", i); s.StripeOfKey(key) == s.StripeOfKey(one) {
			other = key
		}
	}
	tx, err := s.BeginAll(true)
	mustBe(t, err)
	defer tx.End()
	coll, err := tx.Collection(0, one, keydir.Set)
	mustBe(t, err)
	mustBe(t, tx.PutElem(0, one, coll, "member", nil))
	_, err = tx.Commit()
	mustBe(t, err)

	before := tx.Savepoint()
	_, err = tx.Drop(0, one)
	mustBe(t, err)
	_, err = tx.Collection(0, other, keydir.Set)
	mustBe(t, err)
	mustBe(t, tx.RollbackTo(before))
	if key := tx.KeyOf(coll); key != one {
		t.Errorf("the collection of %q is that of %q", one, key)
	}
}
