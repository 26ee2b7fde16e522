package keydir_test

import (
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestFieldDeadlinesBesideTheirHash keeps the two collections of one key apart, and counts the hash alone as a key.
func TestFieldDeadlinesBesideTheirHash(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1, 2})
	const h = 99
	if _, ok := d.FindAlongside(h, "key", keydir.FieldDeadlines); ok {
		t.Error("an empty directory has deadlines of fields")
	}
	hash := d.NewCollection(h, keydir.Hash, "key")
	deadlines := d.NewCollection(h, keydir.FieldDeadlines, "key")
	hash.Put("field", 1)
	deadlines.PutScored("field", 5, 2)
	if f, ok := d.FindCollection(h, "key"); !ok || f != hash {
		t.Error("the hash is not found")
	}
	if f, ok := d.FindAlongside(h, "key", keydir.FieldDeadlines); !ok || f != deadlines {
		t.Error("its deadlines are not found")
	}
	if _, ok := d.FindAlongside(h, "other", keydir.FieldDeadlines); ok {
		t.Error("another key of the same hash has deadlines")
	}
	if d.Len() != 1 || d.LenDeadlines() != 0 || d.LenFieldDeadlines() != 1 {
		t.Errorf("%d keys, %d deadlines, %d hashes with deadlines", d.Len(), d.LenDeadlines(), d.LenFieldDeadlines())
	}
	dropped := d.DropCollection(h, deadlines)
	if _, ok := d.FindAlongside(h, "key", keydir.FieldDeadlines); ok || d.LenFieldDeadlines() != 0 {
		t.Error("dropped deadlines are still there")
	}
	if f := d.Restore(h, dropped); f.Type() != keydir.FieldDeadlines || f.Len() != 1 || d.LenFieldDeadlines() != 1 {
		t.Error("restored deadlines are not what they were")
	}
	if _, score := deadlines.First(); score != 5 {
		t.Errorf("the first deadline is %d, want 5", score)
	}
	check(t, d)
}

func TestFieldDeadlinesAgainstMap(t *testing.T) {
	for _, size := range []int{8, 150, 2000} {
		r := chance.Rand(t)
		d := keydir.NewDirectory(keydir.Seed{r.Uint64(), r.Uint64()})
		h := r.Uint64()
		m := newMembers(d.NewCollection(h, keydir.FieldDeadlines, "key"))
		name := names(r, size)["mixed"]
		for range 4 * size {
			if r.IntN(3) > 0 {
				m.put(t, name(), r.Uint64N(50), keydir.Loc(r.Uint64()))
			} else {
				m.delete(t, name())
			}
			m.move(t, r, name())
		}
		check(t, d)
		m.equal(t, r)
	}
}
