package db_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

// A step is what one segment of a history holds.
type step func(s *db.Store) error

// keyHistories write each kind of record, and what removes, replaces or outdates it, in one segment after another.
var keyHistories = map[string][]step{
	"a consumer that is deleted after it has claimed": {
		groupOf2, readBy("c1"), claimBy("c2"), deleteConsumer("c2"),
	},
	"a consumer that is deleted after it has claimed by itself": {
		groupOf2, readBy("c1"), autoClaimBy("c2"), deleteConsumer("c2"), autoClaimBy("c3"), deleteConsumer("c3"),
	},
	"the number of a deleted consumer": {
		groupOf2, readBy("c1"), claimBy("c2"), deleteConsumer("c2"), claimBy("c3"), deleteConsumer("c1"), readBy("c2"),
	},
	"entries that are pending again": {
		groupOf2, readBy("c1"), claimBy("c2"), ackG(id1), claimBy("c1"), deleteConsumer("c1"),
	},
	"a group that is destroyed": {
		groupOf2, readBy("c1"), claimBy("c2"), func(s *db.Store) error { return groupG(s).Set(db.StreamGroupStart{}) },
		destroyG, groupOf2, readBy("c2"),
	},
	"a stream with groups that is replaced": {
		groupOf2, readBy("c1"), claimBy("c2"), putString("x", 10), dropKey("x"), groupOf2, deleteConsumer("c1"),
	},
	"a stream with groups that is renamed": {
		groupOf2, claimBy("c1"), renameKey("x", "y"), groupOf2, readBy("c2"),
		renameKey("x", "y"), groupOf2,
	},
	"a stream that is trimmed and set": {
		add3, trimTo(1), add3,
		trimTo(0), dropKey("s"), add3,
		func(s *db.Store) error { return first(s.Stream("s").Delete(id1)) },
	},
	"types that replace each other": {
		putFields("k", "a", "b"), putString("k", 10), dropKey("k"), putFields("k", "c"), putString("k", 10),
		func(s *db.Store) error { return first(s.Set("k2").Add("m")) },
		func(s *db.Store) error { return first(s.Set("k").PutCombined(structures.Union, "k2")) },
	},
	"a hash that is a string in between": {
		putFields("k", "a", "b"), putString("k", 10), putString("k", 20), dropKey("k"), putFields("k", "b"), putString("k", 5), dropKey("k"),
	},
	"strings in chunks of several sizes": {
		putString("k", 100_000), putString("k", 10), putString("k", 80_000), dropKey("k"), putString("k", 70_000), setPart("k", 300), putString("k", 70_000),
	},
	"a string in chunks that is a hash in between": {
		putString("k", 100_000), dropKey("k"), putFields("k", "a"), dropKey("k"), putString("k", 80_000), setPart("k", 66_000), putString("k", 1),
	},
	"deadlines of fields": {
		putFields("k", "a", "b"), timeFields("k", "a", "b"), putFields("k", "a"), func(s *db.Store) error { return first(s.Hash("k").Delete("b")) }, putFields("k", "b"),
		timeFields("k", "b"), func(s *db.Store) error { return first(s.Hash("k").PersistFields("b")) },
	},
	"deadlines of fields of a hash that is replaced": {
		putFields("k", "a", "b"), timeFields("k", "a", "b"), putString("k", 10), dropKey("k"), putFields("k", "a"), timeFields("k", "a"), dropKey("k"),
	},
	"deadlines": {
		putFor("k"), putString("k", 10), putFor("k"), func(s *db.Store) error { return first(s.Key("k").Persist()) }, dropKey("k"), putString("k", 1),
	},
	"lists": {
		pushList("l", "a", "b", "c"), func(s *db.Store) error { return s.List("l").Trim(1, 1) }, pushList("l", "d", "e"), dropKey("l"), pushList("l", "f"),
		func(s *db.Store) error { return first(s.List("l").PopFront()) }, pushList("l", "g"),
	},
	"a list that is trimmed at both ends, and grows there again": {
		pushList("l", "a", "b", "c", "d", "e", "f", "g", "h"), trimList(2, 5), pushFront("l", "i", "j", "k"), pushList("l", "m", "n", "o"),
		trimList(3, 3), pushFront("l", "p"), pushList("l", "q"),
	},
	"a list that is trimmed again and again": {
		pushList("l", "a", "b", "c", "d", "e"), trimList(0, 1), pushList("l", "f", "g", "h"), trimList(0, 1), pushList("l", "i", "j", "k"),
		func(s *db.Store) error { return first(s.List("l").PopBackN(3)) }, pushList("l", "m"),
	},
	"a list from the middle of which elements are removed": {
		pushList("l", "a", "b", "x", "x", "c", "d", "e"), func(s *db.Store) error { return first(s.List("l").Remove(0, []byte("x"))) }, pushFront("l", "f", "g", "h"),
		func(s *db.Store) error { return first(s.List("l").PopFrontN(2)) }, dropKey("l"), pushList("l", "i", "j", "k"), trimList(1, 1),
	},
	"a list with holes": {
		pushList("l", "a", "b", "c", "d", "e", "f", "g"), removeFrom("l", "c", "e"), insertAfter("l", "b", "h", "i"), removeFrom("l", "i", "f"),
		trimList(1, -2), pushFront("l", "j"), pushList("l", "k", "l"),
	},
	"a list that is inserted into": {
		pushList("l", "a", "b", "c", "d"), insertAfter("l", "b", "e", "f", "g"), removeFrom("l", "f", "b"), insertAfter("l", "g", "h"),
		trimList(2, 9), pushFront("l", "i", "j"), insertAfter("l", "e", "k"),
	},
	"a list that is inserted into, trimmed there, and inserted into again": {
		pushList("l", "a", "b", "c"), insertAfter("l", "a", "d", "e", "f"), trimList(2, 3), pushFront("l", "a", "x"), insertAfter("l", "a", "d", "e", "f"),
		func(s *db.Store) error { return first(s.List("l").PopFrontN(4)) }, insertAfter("l", "e", "g"),
	},
	"a long list that is inserted into": {
		pushMany("l", 40), pushFront("l", "d", "c", "b", "a"), insertAfter("l", "b", "e", "f", "g"), removeFrom("l", "f", "b"), insertAfter("l", "g", "h"),
		trimList(2, -3), pushFront("l", "i", "j"), insertAfter("l", "e", "k"),
	},
	"a long list that is inserted into, trimmed there, and inserted into again": {
		pushMany("l", 40), pushFront("l", "a"), insertAfter("l", "a", "d", "e", "f"), trimList(2, -1), pushFront("l", "a", "x"), insertAfter("l", "a", "d", "e", "f"),
		func(s *db.Store) error { return first(s.List("l").PopFrontN(4)) }, insertAfter("l", "e", "g"),
	},
	"a long list with inserted elements that becomes short": {
		pushMany("l", 40), pushFront("l", "c", "b", "a"), insertAfter("l", "b", "d", "e", "f"), insertAfter("l", "c", "g"), trimList(1, 10), insertAfter("l", "e", "h"),
		pushFront("l", "i"), insertAfter("l", "b", "j", "k"), removeFrom("l", "e", "g"), insertAfter("l", "j", "l"),
	},
	"a long list with new sub-indexes": {
		pushMany("l", 40), pushFront("l", "c", "b", "a"), insertZigzag("l", "b", 80), removeFrom("l", "b", "z70"), insertZigzag("l", "z60", 80), trimList(20, -20), insertZigzag("l", "z60", 50),
	},
	"sorted sets": {
		addScore(1), addScore(2), func(s *db.Store) error { return first(s.SortedSet("z").Remove("m")) }, addScore(3), dropKey("z"), addScore(4),
	},
	"namespaces": {
		putString("k", 10), func(s *db.Store) error { return s.Swap(0, 1) }, putString("k", 20), (*db.Store).Flush, putString("k", 30),
		func(s *db.Store) error { return s.Swap(0, 2) }, (*db.Store).FlushAll,
	},
	"libraries": {
		keepLibrary(100), keepLibrary(200_000), keepLibrary(70_000), keepLibrary(0), keepLibrary(70_000), keepLibrary(10),
	},
}

var (
	id1 = db.StreamID{Ms: 1}
	id2 = db.StreamID{Ms: 2}
)

// groupOf2 adds two entries to the stream x, which has none with such ids, or has lost them, and makes its group g.
func groupOf2(s *db.Store) error {
	last := db.StreamID{}
	if id, err := s.Stream("x").LastID(); err == nil {
		last = id
	}
	for ms := uint64(1); ms <= 2 && last == (db.StreamID{}); ms++ {
		if _, err := s.Stream("x").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: ms}}, db.Field{Name: "a", Value: []byte("1")}); err != nil {
			return err
		}
	}
	return s.Stream("x").Group("g").Create(db.StreamGroupStart{})
}

func groupG(s *db.Store) db.StreamGroup { return s.Stream("x").Group("g") }

func readBy(c string) step { return func(s *db.Store) error { return first(groupG(s).Read(c, 10)) } }

func ackG(id db.StreamID) step { return func(s *db.Store) error { return first(groupG(s).Ack(id)) } }

func destroyG(s *db.Store) error { return first(groupG(s).Destroy()) }

func claimBy(c string) step {
	return func(s *db.Store) error {
		return first(groupG(s).Claim(db.StreamClaim{Consumer: c, Force: true}, id1, id2))
	}
}

func autoClaimBy(c string) step {
	return func(s *db.Store) error {
		_, _, _, err := groupG(s).AutoClaim(db.StreamAutoClaim{Consumer: c, Count: 10})
		return err
	}
}

func deleteConsumer(c string) step {
	return func(s *db.Store) error { return first(groupG(s).DeleteConsumer(c)) }
}

func putString(key string, n int) step {
	return func(s *db.Store) error { return s.String(key).Put([]byte(strings.Repeat(string(rune('a'+n%26)), n))) }
}

func putFor(key string) step {
	return func(s *db.Store) error { return s.String(key).Put([]byte("v"), db.ExpireAt(time.UnixMilli(4e12))) }
}

func setPart(key string, at int64) step {
	return func(s *db.Store) error { return first(s.String(key).SetRange(at, []byte("part"))) }
}

func dropKey(key string) step { return func(s *db.Store) error { return first(s.Key(key).Delete()) } }

func renameKey(from, to string) step {
	return func(s *db.Store) error { return s.Key(from).Rename(to) }
}

func putFields(key string, fields ...string) step {
	return func(s *db.Store) error {
		for _, f := range fields {
			if _, err := s.Hash(key).Put(f, []byte("v")); err != nil {
				return err
			}
		}
		return nil
	}
}

func timeFields(key string, fields ...string) step {
	return func(s *db.Store) error { return first(s.Hash(key).ExpireFieldsAt(time.UnixMilli(4e12), fields)) }
}

func pushList(key string, values ...string) step {
	return func(s *db.Store) error {
		for _, v := range values {
			if _, err := s.List(key).PushBack([]byte(v)); err != nil {
				return err
			}
		}
		return nil
	}
}

// pushMany puts n values at the back, in one commit.
func pushMany(key string, n int) step {
	return func(s *db.Store) error { return first(s.List(key).PushBack(manyValues(n)...)) }
}

func manyValues(n int) [][]byte {
	values := make([][]byte, n)
	for i := range values {
		values[i] = fmt.Append(nil, "many", i)
	}
	return values
}

func pushFront(key string, values ...string) step {
	return func(s *db.Store) error {
		for _, v := range values {
			if _, err := s.List(key).PushFront([]byte(v)); err != nil {
				return err
			}
		}
		return nil
	}
}

func removeFrom(key string, values ...string) step {
	return func(s *db.Store) error {
		for _, v := range values {
			if _, err := s.List(key).Remove(0, []byte(v)); err != nil {
				return err
			}
		}
		return nil
	}
}

// insertAfter inserts each value after the same one.
func insertAfter(key, pivot string, values ...string) step {
	return func(s *db.Store) error {
		for _, v := range values {
			if _, err := s.List(key).InsertAfter([]byte(pivot), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	}
}

// insertZigzag inserts n values, each next to the last one, before and after it in turns: that uses up sub-indexes fastest.
func insertZigzag(key, pivot string, n int) step {
	return func(s *db.Store) error {
		for i := range n {
			insert := s.List(key).InsertAfter
			if i%2 == 1 {
				insert = s.List(key).InsertBefore
			}
			value := fmt.Sprint("z", i)
			if _, err := insert([]byte(pivot), []byte(value)); err != nil {
				return err
			}
			pivot = value
		}
		return nil
	}
}

func trimList(start, stop int64) step {
	return func(s *db.Store) error { return s.List("l").Trim(start, stop) }
}

func addScore(score float64) step {
	return func(s *db.Store) error {
		return first(s.SortedSet("z").Add(db.Scored{Member: "m", Score: score}, db.Scored{Member: fmt.Sprint("m", score)}))
	}
}

// add3 appends three entries to a stream, after those that it has had.
func add3(s *db.Store) error {
	last, err := s.Stream("s").LastID()
	if err != nil {
		last = db.StreamID{}
	}
	for ms := range uint64(3) {
		if _, err := s.Stream("s").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: last.Ms + ms + 1}}, db.Field{Name: "a", Value: []byte("1")}); err != nil {
			return err
		}
	}
	return nil
}

func trimTo(n int) step {
	return func(s *db.Store) error { return first(s.Stream("s").Trim(db.StreamTrim{MaxLen: n})) }
}

func keepLibrary(n int) step {
	return func(s *db.Store) error { return putLibrary(s, "l", strings.Repeat("x", n)) }
}

// TestAnyMergeThenReplay: of each history, whichever of its segments a merge takes, the store holds afterwards what it
// held before, as an open store, as a snapshot and a backup, and once its log has been replayed: no record says
// something else because others have gone.
func TestAnyMergeThenReplay(t *testing.T) {
	for name, steps := range keyHistories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mem := chance.Rand(t), vfs.NewMem()
			s := openMem(t, mem, "d", false)
			for _, do := range steps {
				must(t, do(s))
				must(t, s.Log().Rotate())
			}
			want := ok[string](t)(everything(s))
			ids := sealed(s)
			left := mem.Clone()
			must(t, s.Close())
			sets := numbers(1 << len(ids))[1:]
			for _, taken := range budget.Some(t, sets, (len(sets)+4)/5) {
				var some []uint32
				for i, id := range ids {
					if taken>>i&1 == 1 {
						some = append(some, id)
					}
				}
				mem := left.Clone()
				s := openMem(t, mem, "d", false)
				_, err := s.Log().Rewrite(t.Context(), some, bitcask.RewriteOptions{})
				must(t, err)
				sameEverywhere(t, fmt.Sprintf("a merge of %v of %v", some, ids), mem, s, r, want)
				for more := range r.IntN(4) * r.IntN(2) { // what the first has copied may let tombstones go
					must(t, mergeSome(s, r))
					sameEverywhere(t, fmt.Sprintf("a merge of %v of %v and %d more", some, ids, more+1), mem, s, r, want)
				}
				must(t, s.Close())
				if t.Failed() {
					return
				}
			}
		})
	}
}

// openMem opens a store in memory, which replays its log.
func openMem(t *testing.T, mem *vfs.Mem, dir string, readOnly bool) *db.Store {
	t.Helper()
	o := &db.Options{NoMerge: true, ExpireEvery: -1, ReadOnly: readOnly}
	return ok[*db.Store](t)(db.Open(dir, seam.With(o, seam.Options{FS: mem, NoIndex: true, Copies: seam.CopiesOff})))
}

// sameEverywhere compares what a store holds, and whatever can be made of it, with what it should hold.
func sameEverywhere(t *testing.T, what string, mem *vfs.Mem, s *db.Store, r *rand.Rand, want string) {
	t.Helper()
	same := func(how string, s *db.Store) {
		t.Helper()
		if got := ok[string](t)(everything(s)); got != want {
			t.Errorf("%s, %s:\n%s", what, how, differences(got, want))
		}
	}
	same("the store", s)
	result, err := s.CheckReplay(t.Context(), func(f db.Finding) { t.Errorf("%s: %v", what, f) })
	must(t, err)
	equal(t, "compared with a replay", result.Compared, true)
	if r.IntN(3) > 0 {
		return
	}
	killed := openMem(t, mem.Clone(), "d", true)
	same("replayed after a kill", killed)
	must(t, killed.Close())
	snap := ok[*db.Store](t)(s.Snapshot(t.Context()))
	same("a snapshot", snap)
	must(t, snap.Close())
	copied := mem.Clone()
	other := openMem(t, copied, "d", false)
	ok[bitcask.BackupResult](t)(other.Backup(t.Context(), "backup"))
	must(t, other.Close())
	backup := openMem(t, copied, "backup", true)
	same("a backup", backup)
	must(t, backup.Close())
}
