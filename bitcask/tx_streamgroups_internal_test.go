package bitcask

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// consumerOfOld is a store of a build that removed a consumer with one tombstone (keydir.ConsumerRange): in three
// segments consumer 0 is given two entries, consumer 1 claims the first, and is deleted.
func consumerOfOld(t *testing.T, mem *vfs.Mem, o seam.Options) *Store {
	t.Helper()
	s := openOld(t, mem, o)
	update := func(fn func(tx *Tx) error) {
		t.Helper()
		tx, err := s.Begin(true, "s")
		if err != nil {
			t.Fatal(err)
		}
		if err = fn(tx); err == nil {
			_, err = tx.Commit()
		}
		tx.End()
		if err == nil {
			err = s.Rotate()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(tx *Tx, elem, value string) error {
		return tx.PutGroups(0, "s", keydir.Collection{}, elem, []byte(value))
	}
	first, second := keydir.PendingElem(0, keydir.StreamID{Ms: 1}), keydir.PendingElem(0, keydir.StreamID{Ms: 2})
	update(func(tx *Tx) error {
		coll, err := tx.Collection(0, "s", keydir.Stream)
		if err == nil {
			err = tx.PutStreamMeta(0, "s", coll, keydir.StreamMeta{Last: keydir.StreamID{Ms: 2}})
		}
		for _, r := range [][2]string{{keydir.GroupElem("g"), "0 2-0 2"}, {keydir.ConsumerElem(0, "a"), "0 1 1"}, {keydir.ConsumerElem(0, "b"), "1 1 1"}, {first, "0 1 1"}, {second, "0 1 1"}} {
			if err == nil {
				err = put(tx, r[0], r[1])
			}
		}
		return err
	})
	update(func(tx *Tx) error { return put(tx, first, "1 2 2") })
	update(func(tx *Tx) error {
		coll, err := tx.StreamGroups(0, "s")
		if err != nil {
			return err
		}
		sp, h, err := tx.spaceFor(0, "s")
		if err != nil {
			return err
		}
		all := keydir.ConsumerRange(0, 1)
		ranges, _ := keydir.GroupsRangeOf([]byte(all))
		if n := tx.dropAlongsideOf(coll, keydir.StreamGroups, sp, h, "s", coll.Within(ranges)...); n != 2 {
			return fmt.Errorf("%d removed", n)
		}
		_, err = tx.add(KindElementTombstone, keydir.StreamGroups, sp, h, "s", all, nil)
		return err
	})
	return s
}

func openOld(t *testing.T, mem *vfs.Mem, o seam.Options) *Store {
	t.Helper()
	o.FS = mem
	s, err := Open("d", seam.With(&Options{}, o))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pendingIn lists what is pending in the stream s, and its consumers.
func pendingIn(t *testing.T, s *Store) (list []string) {
	t.Helper()
	tx, err := s.Begin(false, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	coll, err := tx.StreamGroups(0, "s")
	if err != nil {
		t.Fatal(err)
	}
	coll.AscendRank(0, func(elem []byte, score uint64) bool {
		switch {
		case keydir.IsPending(string(elem)):
			list = append(list, fmt.Sprintf("%v of %d", keydir.PendingID(elem), keydir.GroupNumber(score)))
		case elem[0] == 'c':
			list = append(list, string(elem[keydir.GroupPrefix:]))
		}
		return true
	})
	return list
}

// TestTombstoneOfAConsumer: one that an older build has written is read as it was meant, and where all segments are
// merged at once, nothing of it is left.
func TestTombstoneOfAConsumer(t *testing.T) {
	const want = "[a 2-0 of 0]"
	for name, o := range map[string]seam.Options{"log": {NoIndex: true, NoHints: true}, "hints": {NoIndex: true}, "INDEX": {}} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := consumerOfOld(t, mem, o)
			for _, moment := range []string{"at once", "opened again", "merged", "opened after a merge"} {
				if got := fmt.Sprint(pendingIn(t, s)); got != want {
					t.Fatalf("%s: %s, want %s", moment, got, want)
				}
				if r, err := s.CheckReplay(t.Context(), func(f Finding) { t.Errorf("%s: %v", moment, f) }); err != nil || !r.Compared {
					t.Fatalf("%s: %+v, %v", moment, r, err)
				}
				if moment == "opened again" {
					var ids []uint32
					for _, sg := range s.Segments() {
						if sg.Sealed {
							ids = append(ids, sg.ID)
						}
					}
					if _, err := s.Rewrite(context.Background(), ids, RewriteOptions{}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openOld(t, mem, o)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCheckReplay: what a merge has undone in a store of an older build is found while the store is open, and once it is
// closed by its INDEX; a merge of all segments mends it while the store is right.
func TestCheckReplay(t *testing.T) {
	mem := vfs.NewMem()
	s := consumerOfOld(t, mem, seam.Options{})
	if _, err := s.Rewrite(t.Context(), []uint32{2}, RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	found := func(check func(context.Context, func(Finding)) (CheckResult, error), compared bool) (list []string) {
		t.Helper()
		r, err := check(t.Context(), func(f Finding) { list = append(list, f.Rule+" "+f.String()) })
		if err != nil || r.Compared != compared || r.Findings != len(list) {
			t.Fatalf("%+v, %v, %q", r, err, list)
		}
		return list
	}
	if list := found(s.Check, false); len(list) > 0 {
		t.Errorf("a check that replays nothing found %q", list)
	}
	for _, write := range []bool{false, true} { // with an INDEX that leads a replay astray
		if list := found(s.CheckReplay, true); len(list) != 1 || !strings.Contains(list[0], `I12`) || !strings.Contains(list[0], `key "s"`) || !strings.Contains(list[0], "pending entry 1-0") {
			t.Errorf("with an INDEX %v: %q", write, list)
		}
		if err := s.SaveIndex(); err != nil {
			t.Fatal(err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, err := s.CheckReplay(t.Context(), func(Finding) { panic("a report") })
		t.Errorf("a report that panics: %v", err)
	}()
	if err := s.Put("k", []byte("v")); err != nil { // no lock is left, nor a pin: see leak_test.go
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	offline := func() []string {
		s, err := Open("d", seam.With(&Options{ReadOnly: true}, seam.Options{FS: mem, NoIndex: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.CheckReplay(t.Context(), func(Finding) {}); err != ErrReadOnly {
			t.Errorf("of a store that is open for reading: %v", err)
		}
		return found(s.Check, true)
	}
	if list := offline(); len(list) != 1 || !strings.Contains(list[0], "I8") || !strings.Contains(list[0], "pending entry 1-0") {
		t.Errorf("closed: %q", list)
	}
	s = openOld(t, mem, seam.Options{})
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if _, err := s.Rewrite(t.Context(), ids, RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if list := found(s.CheckReplay, true); len(list) > 0 {
		t.Errorf("after a merge of all: %q", list)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if list := offline(); len(list) > 0 {
		t.Errorf("after a merge of all, closed: %q", list)
	}
}
