package bitcask_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// groupsOf lists what the groups of a stream have, in order of score.
func groupsOf(t *testing.T, s *bitcask.Store, key string) (all []string) {
	t.Helper()
	tx, err := s.Begin(false, key)
	must(t, err)
	defer tx.End()
	coll, err := tx.StreamGroups(0, key)
	must(t, err)
	if !coll.Valid() {
		return nil
	}
	coll.AscendRank(0, func(elem []byte, score uint64) bool {
		_, loc, _ := coll.Score(string(elem))
		value, err := tx.Value(nil, 0, key, string(elem), keydir.StreamGroups, loc)
		must(t, err)
		all = append(all, fmt.Sprintf("%q=%s", elem, value))
		return true
	})
	return all
}

// Groups survive reopening from the log, from hints and from the INDEX, and merges; a tombstone of a range takes all
// that a group or a consumer has, and that of the key everything.
func TestStreamGroups(t *testing.T) {
	for name, o := range map[string]seam.Options{"log": {NoIndex: true, NoHints: true}, "hints": {NoIndex: true}, "INDEX": {}} {
		t.Run(name, func(t *testing.T) {
			o.FS = vfs.NewMem()
			open := func() *bitcask.Store {
				s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, o))
				must(t, err)
				return s
			}
			s := open()
			update := func(fn func(tx *bitcask.Tx) error) {
				t.Helper()
				tx, err := s.Begin(true, "s")
				must(t, err)
				defer tx.End()
				must(t, fn(tx))
				_, err = tx.Commit()
				must(t, err)
			}
			put := func(tx *bitcask.Tx, elem, value string) error {
				return tx.PutGroups(0, "s", keydir.Collection{}, elem, []byte(value))
			}
			update(func(tx *bitcask.Tx) error {
				coll, err := tx.Collection(0, "s", keydir.Stream)
				must(t, err)
				must(t, tx.PutStreamMeta(0, "s", coll, keydir.StreamMeta{}))
				for g := range uint32(3) {
					must(t, put(tx, keydir.GroupElem(fmt.Sprint("group", g)), fmt.Sprintf("%d 0-0 0", g)))
					for c := range uint32(2) {
						must(t, put(tx, keydir.ConsumerElem(g, fmt.Sprint("consumer", c)), fmt.Sprintf("%d 1 1", c)))
					}
					for i := range uint64(100) {
						must(t, put(tx, keydir.PendingElem(g, keydir.StreamID{Ms: i}), fmt.Sprintf("%d 1 1", i%2)))
					}
				}
				return nil
			})
			if all := groupsOf(t, s, "s"); len(all) != 3+3*2+3*100 {
				t.Fatalf("%d elements", len(all))
			}
			tx, err := s.Begin(true, "s")
			must(t, err)
			n, err := tx.DeleteGroups(0, "s", keydir.Collection{}, keydir.GroupRange(1))
			must(t, err)
			tx.End() // rolled back
			if all := groupsOf(t, s, "s"); n != 103 || len(all) != 309 {
				t.Fatalf("%d removed, %d elements after the rollback", n, len(all))
			}
			update(func(tx *bitcask.Tx) error {
				for elem, want := range map[string]int{keydir.GroupRange(1): 103, keydir.ConsumerElem(0, "consumer1"): 1, keydir.PendingElem(2, keydir.StreamID{Ms: 7}): 1} {
					if n, err := tx.DeleteGroups(0, "s", keydir.Collection{}, elem); err != nil || n != want {
						t.Errorf("%q: %d removed, %v", elem, n, err)
					}
				}
				if n, err := tx.DeleteGroups(0, "s", keydir.Collection{}, keydir.ConsumerRange(0, 0)); err == nil || n != 0 {
					t.Errorf("all that a consumer has, with one tombstone: %d removed", n)
				}
				return nil
			})
			update(func(tx *bitcask.Tx) error {
				put := func(elem, value string) keydir.Loc {
					must(t, tx.PutGroups(0, "s", keydir.Collection{}, elem, []byte(value)))
					coll, err := tx.StreamGroups(0, "s")
					must(t, err)
					_, loc, _ := coll.Score(elem)
					return loc
				}
				two, three := keydir.GroupElem("group2"), keydir.ConsumerElem(2, "consumer0")
				first := put(two, "2 0-0 1")
				for i, again := range []keydir.Loc{put(two, "2 0-0 2"), put(two, "2 0-0 3")} {
					if again != first {
						t.Errorf("%d: another record of the same group", i)
					}
				}
				if put(three, "0 55 55") == first || put(two, "2 0-0 10") == first {
					t.Error("the record of a group has been overwritten with what is not its own, or longer")
				}
				return nil
			})
			want := groupsOf(t, s, "s")
			if all := fmt.Sprint(want); !strings.Contains(all, `group2"=2 0-0 10`) || !strings.Contains(all, `consumer0"=0 55 55`) {
				t.Error(all)
			}
			for range 2 {
				must(t, s.Close())
				s = open()
				if got := groupsOf(t, s, "s"); fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 309-105 {
					t.Fatalf("%d elements, want %d", len(got), len(want))
				}
				_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) })
				must(t, err)
				must(t, s.Rotate())
			}
			update(func(tx *bitcask.Tx) error { _, err := tx.Drop(0, "s"); return err })
			if got := groupsOf(t, s, "s"); got != nil {
				t.Errorf("of a deleted stream: %q", got)
			}
			must(t, s.Close())
		})
	}
}
