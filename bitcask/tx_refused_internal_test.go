package bitcask

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// refusable are calls of the methods of Tx that may add a record. Each is made in a store of fillForRefusals, after the
// transaction has done what prepare does.
var refusable = []struct {
	method, what  string
	prepare, call func(t *Tx) error
}{
	{method: "ClearDeadline", call: func(t *Tx) error { return second(t.ClearDeadline(0, "string")) }},
	{method: "ClearFieldDeadline", call: func(t *Tx) error { return second(t.ClearFieldDeadline(0, "hash", "a")) }},
	{method: "Collection", what: "in the place of one that is emptied", prepare: emptySet, call: func(t *Tx) error { return second(t.Collection(0, "set", keydir.Hash)) }},
	{method: "Commit", what: "of changed counts", prepare: changeCounts, call: prepareCommit},
	{method: "Commit", what: "of an emptied key", prepare: emptySet, call: prepareCommit},
	{method: "DeleteElem", call: func(t *Tx) error { return second(t.DeleteElem(0, "hash", collectionOf(t, "hash"), "a")) }},
	{method: "DeleteElem", what: "of a sorted set", call: func(t *Tx) error { return second(t.DeleteElem(0, "zset", collectionOf(t, "zset"), "a")) }},
	{method: "DeleteEntry", call: func(t *Tx) error {
		return second(t.DeleteEntry(0, "stream", collectionOf(t, "stream"), keydir.StreamID{Ms: 1}))
	}},
	{method: "DeleteGroups", call: func(t *Tx) error {
		return second(t.DeleteGroups(0, "stream", keydir.Collection{}, keydir.GroupElem("group")))
	}},
	{method: "DeleteGroups", what: "of a range", call: func(t *Tx) error {
		return second(t.DeleteGroups(0, "stream", keydir.Collection{}, keydir.GroupRange(1)))
	}},
	{method: "DeleteRange", what: "of one element", call: func(t *Tx) error {
		return second(t.DeleteRange(0, "list", collectionOf(t, "list"), keydir.ListPlace{Index: 1}, keydir.ListPlace{Index: 1}))
	}},
	{method: "DeleteRange", call: func(t *Tx) error {
		return second(t.DeleteRange(0, "list", collectionOf(t, "list"), keydir.ListPlace{}, keydir.ListPlace{Index: 1}))
	}},
	{method: "Drop", call: func(t *Tx) error { return second(t.Drop(0, "string")) }},
	{method: "Drop", what: "of a hash", call: func(t *Tx) error { return second(t.Drop(0, "hash")) }},
	{method: "Flush", call: func(t *Tx) error { _, _, err := t.Flush(0); return err }},
	{method: "FlushWith", call: func(t *Tx) error { _, _, err := t.FlushWith(putMark(t), 0); return err }},
	{method: "Install", call: func(t *Tx) error { _, _, err := t.Install(putMark(t), 8, 2); return err }},
	{method: "PutChunks", call: func(t *Tx) error { return second(t.PutChunks(0, "new", make([]byte, 300), 64)) }},
	{method: "PutElem", call: func(t *Tx) error { return t.PutElem(0, "hash", collectionOf(t, "hash"), "b", []byte("other")) }},
	{method: "PutEntry", call: func(t *Tx) error {
		return t.PutEntry(0, "stream", collectionOf(t, "stream"), keydir.StreamID{Ms: 9}, nil)
	}},
	{method: "PutGroups", call: func(t *Tx) error {
		return putGroups(t, "stream", keydir.PendingElem(1, keydir.StreamID{Ms: 9}), "1 0 1")
	}},
	{method: "PutGroups", what: "of a stream without groups", call: func(t *Tx) error { return putGroups(t, "plain stream", keydir.GroupElem("group"), "1") }},
	{method: "PutPlace", call: func(t *Tx) error {
		return t.PutPlace(0, "list", collectionOf(t, "list"), keydir.ListPlace{Index: 1, Sub: 1}, []byte("other"))
	}},
	{method: "PutIndex", call: func(t *Tx) error { return t.PutIndex(0, "list", collectionOf(t, "list"), 1, []byte("other")) }},
	{method: "PutLibrary", call: func(t *Tx) error { return t.PutLibrary("library", make([]byte, 3*partSize/2)) }},
	{method: "PutScored", call: func(t *Tx) error { return t.PutScored(0, "zset", collectionOf(t, "zset"), "a", 7) }},
	{method: "PutStreamMeta", call: func(t *Tx) error {
		return t.PutStreamMeta(0, "stream", collectionOf(t, "stream"), keydir.StreamMeta{First: keydir.StreamID{Ms: 2}})
	}},
	{method: "PutString", call: func(t *Tx) error { return t.PutString(0, "string", []byte("other")) }},
	{method: "PutString", what: "in the place of a set", call: func(t *Tx) error { return t.PutString(0, "set", []byte("other")) }},
	{method: "PutSystem", call: func(t *Tx) error { return t.PutSystem("name", []byte("value")) }},
	{method: "SetDeadline", call: func(t *Tx) error { return t.SetDeadline(0, "string", 9) }},
	{method: "SetDeadline", what: "of a key that has none", call: func(t *Tx) error { return t.SetDeadline(0, "list", 9) }},
	{method: "SetFieldDeadline", call: func(t *Tx) error { return t.SetFieldDeadline(0, "hash", "c", 9) }},
	{method: "SetFieldDeadline", what: "of the first field that has one", call: func(t *Tx) error { return t.SetFieldDeadline(0, "other hash", "a", 9) }},
	{method: "Swap", call: func(t *Tx) error { return second(t.Swap(0, 1)) }},
	{method: "SwapWith", call: func(t *Tx) error { return second(t.SwapWith(putMark(t), 0, 1)) }},
}

// putMark puts a system record into a commit of the namespace map.
func putMark(t *Tx) func() error {
	return func() error { return t.PutSystem("mark", []byte("value")) }
}

// notRefusable are the methods that return an error and add no record.
var notRefusable = []string{"EachKey", "EachName", "FailOnDisk", "FieldDeadlines", "Find", "Gather", "LastEntryID", "Page", "RandomKey", "RollbackTo", "StreamGroups", "StreamMeta",
	"Usage", "UsageByPlace", "Value", "ValueLen", "ValuePart", "Values", "Weight"}

// TestRefusedRecordChangesNothing: a call whose record has no room in the commit, or one of whose records has none, leaves
// the index and the transaction as they were, so that a caller who goes on commits nothing that the log does not say.
func TestRefusedRecordChangesNothing(t *testing.T) {
	refuses := map[string]bool{}
	for _, c := range refusable {
		refuses[c.method] = true
	}
	for m := range reflect.TypeFor[*Tx]().Methods() {
		n := m.Type.NumOut()
		if n > 0 && m.Type.Out(n-1) == reflect.TypeFor[error]() && refuses[m.Name] == slices.Contains(notRefusable, m.Name) {
			t.Errorf("%s is to be in one of the two lists", m.Name)
		}
	}
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	commitNewer(t, s, func(tx *Tx) { must(t, fillForRefusals(tx)) })
	for _, c := range refusable {
		refused := 0
		for room := 0; ; room += 1 + room/16 {
			tx, err := s.BeginAll(true)
			must(t, err)
			if c.prepare != nil {
				must(t, c.prepare(tx))
			}
			before := stateOf(tx)
			taken := MaxCommit - tx.outOfLine - len(tx.buf) - room
			tx.outOfLine += taken
			err = c.call(tx)
			tx.outOfLine -= taken
			after := stateOf(tx)
			tx.End()
			if err == nil {
				break
			}
			refused++
			if !errors.Is(err, ErrTooLarge) || after != before {
				t.Errorf("%s %s, with room for %d bytes: %v; leaves %v, which was %v", c.method, c.what, room, err, after.savepoint, before.savepoint)
				break
			}
			if slices.Contains([]string{"Flush", "FlushWith", "Install", "Swap", "SwapWith"}, c.method) && room > 10 {
				break // with more they commit
			}
		}
		if refused == 0 {
			t.Errorf("%s %s was not refused", c.method, c.what)
		}
	}
	must(t, s.Close())
}

// TestFailedCommitChangesNothing: what Commit adds, the counts of collections and tombstones of emptied ones, is gone when
// the log does not take it, and a caller who goes on commits the counts of then.
func TestFailedCommitChangesNothing(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s, err := Open("d", &Options{seam: seam.Options{FS: fault}})
	must(t, err)
	commitNewer(t, s, func(tx *Tx) { must(t, fillForRefusals(tx)) })
	tx, err := s.BeginAll(true)
	must(t, err)
	must(t, emptySet(tx))
	must(t, tx.PutElem(0, "hash", collectionOf(tx, "hash"), "d", make([]byte, 200<<10)))
	before := stateOf(tx)
	fault.Inject(vfstest.Rule{Err: syscall.ENOSPC, Sticky: true, Ops: []vfstest.Op{vfstest.OpWrite}})
	_, err = tx.Commit()
	after := stateOf(tx) // the log has put checksums into the commit
	if !NoSpace(err) || after.savepoint != before.savepoint || after.index != before.index {
		t.Errorf("a full disk: %v; leaves %v, which was %v", err, after.savepoint, before.savepoint)
	}
	fault.Heal()
	must(t, second(tx.DeleteElem(0, "hash", collectionOf(tx, "hash"), "d")))
	must(t, second(tx.Commit()))
	tx.End()

	tx, err = s.Begin(true, "single")
	must(t, err)
	value := strings.Repeat("v", 200<<10)
	must(t, tx.PutString(0, "single", []byte(value)))
	fault.Inject(vfstest.Rule{Err: syscall.ENOSPC, Sticky: true, Ops: []vfstest.Op{vfstest.OpWrite}})
	if _, err = tx.Commit(); !NoSpace(err) {
		t.Errorf("a full disk: %v", err)
	}
	fault.Heal()
	must(t, second(tx.Commit()))
	tx.End()
	if got, err := s.Get("single"); string(got) != value || err != nil {
		t.Errorf("a put whose second Commit succeeds: %d bytes, %v", len(got), err)
	}
	_, err = s.Check(t.Context(), func(f Finding) { t.Error(f) })
	must(t, err)
	must(t, s.Close())
}

// fillForRefusals puts one key of each type into a store.
func fillForRefusals(t *Tx) error {
	if err := errors.Join(t.PutString(0, "string", []byte("value")), t.SetDeadline(0, "string", 5), t.PutString(1, "of another", nil)); err != nil {
		return err
	}
	for key, typ := range map[string]keydir.Type{"hash": keydir.Hash, "other hash": keydir.Hash, "set": keydir.Set, "zset": keydir.ZSet,
		"list": keydir.List, "stream": keydir.Stream, "plain stream": keydir.Stream} {
		coll, err := t.Collection(0, key, typ)
		if err != nil {
			return err
		}
		for i, elem := range []string{"a", "b", "c"} {
			id := keydir.StreamID{Ms: uint64(i) + 1}
			switch typ {
			case keydir.ZSet:
				err = t.PutScored(0, key, coll, elem, uint64(i))
			case keydir.List:
				err = t.PutIndex(0, key, coll, int64(i)+1, []byte("value"))
			case keydir.Stream:
				if err = t.PutEntry(0, key, coll, id, []byte("value")); err == nil && key == "stream" {
					err = putGroups(t, key, keydir.PendingElem(1, id), "1 0 1")
				}
			default:
				err = t.PutElem(0, key, coll, elem, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(t.SetFieldDeadline(0, "hash", "a", 5), t.SetFieldDeadline(0, "hash", "b", 6),
		putGroups(t, "stream", keydir.GroupElem("group"), "1"), putGroups(t, "stream", keydir.ConsumerElem(1, "consumer"), "1"))
}

func putGroups(t *Tx, key, elem, value string) error {
	return t.PutGroups(0, key, keydir.Collection{}, elem, []byte(value))
}

// changeCounts changes the counts and bounds of collections.
func changeCounts(t *Tx) error {
	return errors.Join(
		t.PutIndex(0, "list", collectionOf(t, "list"), 4, []byte("value")),
		t.PutElem(0, "hash", collectionOf(t, "hash"), "d", nil),
		second(t.PutChunks(0, "chunks", make([]byte, 300), 64)))
}

// prepareCommit is what Commit does before it writes.
func prepareCommit(t *Tx) error {
	t.call = t.here()
	return t.addMeta()
}

// emptySet removes all members of a set.
func emptySet(t *Tx) (err error) {
	for _, elem := range []string{"a", "b", "c"} {
		err = errors.Join(err, second(t.DeleteElem(0, "set", collectionOf(t, "set"), elem)))
	}
	return err
}

// txState is what a refused call leaves as it was.
type txState struct {
	savepoint     Savepoint
	commit, index string // the bytes of the commit so far, a dump
}

func stateOf(tx *Tx) txState {
	st := txState{savepoint: tx.Savepoint()}
	st.commit = string(tx.buf)
	var index []byte
	ids := tx.s.spaces.Now.Load().ByID
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		for stripe := range keydir.Stripes {
			for d := ids[id].Dir.Dump(stripe); !d.Done(); {
				index = d.Append(index, 1<<20)
			}
		}
	}
	st.index = string(index)
	return st
}

func collectionOf(t *Tx, key string) keydir.Collection {
	_, coll, err := t.Find(0, key)
	if err != nil || !coll.Valid() {
		panic(fmt.Sprint(key, ": ", err))
	}
	return coll
}

func second[T any](_ T, err error) error { return err }
