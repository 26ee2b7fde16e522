package db_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/golden"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

var updateCapture = flag.Bool("update-capture", false, "rewrite testdata/capture.txt")

// commandLines are the commands of captured text, one a line.
func commandLines(t *testing.T, resp []byte) (lines []string) {
	t.Helper()
	for len(resp) > 0 {
		var args, size int
		header, rest, _ := bytes.Cut(resp, []byte("\r\n"))
		if _, err := fmt.Sscanf(string(header), "*%d", &args); err != nil {
			t.Fatalf("%q: %v", resp, err)
		}
		var words []string
		for range args {
			header, rest, _ = bytes.Cut(rest, []byte("\r\n"))
			if _, err := fmt.Sscanf(string(header), "$%d", &size); err != nil || string(rest[size:size+2]) != "\r\n" {
				t.Fatalf("%q: %v", resp, err)
			}
			word := fmt.Sprintf("%q", rest[:size])
			words, rest = append(words, strings.Trim(word, `"`)), rest[size+2:]
		}
		lines, resp = append(lines, strings.Join(words, " ")), rest
	}
	return lines
}

// TestCaptureGolden compares what a fixed sequence of calls amounts to with a file.
func TestCaptureGolden(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("data", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem(), ChunkSize: 16, Clock: func() time.Time { return future(0) }})))
	defer func() { must(t, s.Close()) }()
	var got []byte
	next := uint64(0)
	stop := ok[func()](t)(serverside.DB.Capture(s, serverside.Capture{FieldDeadlines: true, Written: func(c serverside.Commit) {
		if c.Next <= next {
			t.Errorf("sequence %d after %d", c.Next, next)
		}
		next = c.Next
		got = fmt.Appendf(got, "  [%d -> %d]\n", c.First, c.Last)
		for _, line := range commandLines(t, c.RESP) {
			got = fmt.Appendf(got, "  %s\n", line)
		}
	}}))
	for _, step := range captureScript {
		got = fmt.Appendln(got, step.name)
		must(t, step.run(s))
	}
	equal(t, "sequence", serverside.DB.NextSequence(s), next)
	stop()
	must(t, s.String("after").Put([]byte("stop")))
	golden.Compare(t, "testdata/capture.txt", got, *updateCapture)
}

// TestCaptureSlots compares the keys that a commit has slots of with the changes that others are told of.
func TestCaptureSlots(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("data", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem(), ChunkSize: 16, Clock: func() time.Time { return future(0) }})))
	defer func() { must(t, s.Close()) }()
	slot := map[string]uint16{}
	slotOf := func(key string) uint16 {
		if _, known := slot[key]; !known {
			slot[key] = uint16(len(slot))
		}
		return slot[key]
	}
	commits := map[uint64]serverside.Commit{}
	stop := ok[func()](t)(serverside.DB.Capture(s, serverside.Capture{FieldDeadlines: true, SlotOf: slotOf, Written: func(c serverside.Commit) { commits[c.Next] = c }}))
	defer stop()
	changed := 0
	serverside.DB.OnChangesAndReads(s, func(changes []serverside.Change, ticket uint64) {
		c, captured := commits[ticket]
		if ticket == 0 { // of Store.Flush
			c, captured = commits[serverside.DB.NextSequence(s)]
		}
		for _, change := range changes {
			changed++
			if !captured || !c.Whole && (change.Whole || !slices.Contains(c.Slots, slotOf(change.Key))) {
				t.Errorf("ticket %d: change %+v is not in the slots of %q", ticket, change, c.RESP)
			}
		}
	})
	for _, step := range captureScript {
		must(t, step.run(s))
	}
	must(t, s.Flush())
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range 600 {
			if err := tx.String(fmt.Sprint("many:", i)).Put([]byte("v")); err != nil {
				return err
			}
		}
		return nil
	}))
	if c := commits[serverside.DB.NextSequence(s)]; !c.Whole || len(c.Slots) > 0 {
		t.Errorf("a commit of 600 keys has %d slots, whole %t", len(c.Slots), c.Whole)
	}
	if changed < 100 {
		t.Errorf("%d changes: too few to say anything", changed)
	}
}

func future(s int) time.Time { return time.Unix(4_000_000_000+int64(s), 0) }

func id(ms uint64) db.StreamID { return db.StreamID{Ms: ms} }

var captureScript = []struct {
	name string
	run  func(s *db.Store) error
}{
	{"string", func(s *db.Store) error { return s.String("s").Put([]byte("value")) }},
	{"string with a deadline", func(s *db.Store) error {
		return first(s.String("s").Set([]byte("v"), db.ExpireAt(future(1))))
	}},
	{"string that keeps it", func(s *db.Store) error { return first(s.String("s").Append([]byte("w"))) }},
	{"string without it", func(s *db.Store) error { return s.String("s").Put([]byte{}) }},
	{"long string", func(s *db.Store) error { return s.String("long").Put(bytes.Repeat([]byte("x"), 140)) }},
	{"its end", func(s *db.Store) error { return first(s.String("long").Append([]byte("end"))) }},
	{"hash", func(s *db.Store) error {
		return first(s.Hash("h").PutAll(db.Field{Name: "f", Value: []byte("1")}, db.Field{Name: "g", Value: []byte("2")}))
	}},
	{"field with a deadline", func(s *db.Store) error { return first(s.Hash("h").ExpireFieldsAt(future(2), []string{"f"})) }},
	{"which a sum keeps", func(s *db.Store) error { return first(s.Hash("h").Incr("f", 5)) }},
	{"and a new value does not", func(s *db.Store) error { return first(s.Hash("h").Put("f", []byte("x"))) }},
	{"a deadline that is taken away", func(s *db.Store) error {
		return errors.Join(first(s.Hash("h").ExpireFieldsAt(future(2), []string{"f", "g"})), first(s.Hash("h").PersistFields("f", "g")))
	}},
	{"fields less", func(s *db.Store) error { return first(s.Hash("h").Delete("f", "g")) }},
	{"set", func(s *db.Store) error { return first(s.Set("set").Add("a", "b", "c")) }},
	{"members less", func(s *db.Store) error { return first(s.Set("set").Remove("a", "c", "d")) }},
	{"sorted set", func(s *db.Store) error {
		return first(s.SortedSet("z").Add(db.Scored{Member: "a", Score: 0.1}, db.Scored{Member: "b", Score: 1e300}))
	}},
	{"list", func(s *db.Store) error { return first(s.List("l").PushBack([]byte("a"), []byte("b"), []byte("c"))) }},
	{"in front", func(s *db.Store) error { return first(s.List("l").PushFront([]byte("d"), []byte("a"))) }},
	{"by position", func(s *db.Store) error { return s.List("l").Set(-1, []byte("e")) }},
	{"inserted", func(s *db.Store) error { return first(s.List("l").InsertAfter([]byte("d"), []byte("i"))) }},
	{"removed", func(s *db.Store) error { return first(s.List("l").Remove(0, []byte("a"))) }},
	{"trimmed", func(s *db.Store) error { return s.List("l").Trim(1, -2) }},
	{"popped", func(s *db.Store) error { return first(s.List("l").PopBack()) }},
	{"popped from the back, of elements at one index", func(s *db.Store) error {
		l := s.List("inserted")
		long := slices.Repeat([][]byte{[]byte("b")}, 40) // in a short one all would get indexes
		if err := cmp.Or(first(l.PushBack([]byte("a"))), first(l.PushBack(long...))); err != nil {
			return err
		}
		for _, value := range []string{"y", "x"} { // a x y b
			if err := first(l.InsertAfter([]byte("a"), []byte(value))); err != nil {
				return err
			}
		}
		if err := cmp.Or(l.Trim(0, 3), first(l.PopBackN(2))); err != nil {
			return err
		}
		return cmp.Or(first(l.PopBack()), first(l.PopFront()))
	}},
	{"stream", func(s *db.Store) error {
		for i := range uint64(4) {
			if _, err := s.Stream("x").AddWith(db.StreamAddOptions{ID: id(i + 1)}, db.Field{Name: "f", Value: []byte("v")}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"empty stream, and a group", func(s *db.Store) error {
		return s.Stream("y").Group("g").Create(structures.StreamGroupStart{Make: true})
	}},
	{"group", func(s *db.Store) error { return s.Stream("x").Group("g").Create(structures.StreamGroupStart{}) }},
	{"group reads", func(s *db.Store) error {
		return first(s.Stream("x").Group("g").Read("c", 3))
	}},
	{"acknowledged", func(s *db.Store) error { return first(s.Stream("x").Group("g").Ack(id(1), id(2), id(9))) }},
	{"entry less", func(s *db.Store) error { return first(s.Stream("x").Delete(id(3))) }},
	{"stream trimmed", func(s *db.Store) error { return first(s.Stream("x").Trim(db.StreamTrim{MaxLen: 1})) }},
	{"stream with a pending entry that is gone, copied", func(s *db.Store) error { return s.Key("x").CopyTo(1, "copy") }},
	{"group with a pending entry that is gone, restored", func(s *db.Store) error {
		return s.Stream("x").RestoreGroup(db.StreamGroupState{Name: "restored", Last: id(3), Consumers: []db.StreamConsumer{{Name: "c"}},
			Pending: []db.StreamPending{{ID: id(2), Consumer: "c", Delivered: 1, Deliveries: 1}}})
	}},
	{"stream emptied and set back", func(s *db.Store) error {
		if _, err := s.Stream("x").Trim(db.StreamTrim{}); err != nil {
			return err
		}
		return s.Stream("x").SetID(id(3), db.StreamSetID{})
	}},
	{"consumer less", func(s *db.Store) error { return first(s.Stream("x").Group("g").DeleteConsumer("c")) }},
	{"group less", func(s *db.Store) error { return first(s.Stream("x").Group("g").Destroy()) }},
	{"library", func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, "lib", "#!lua name=lib\n...") })
	}},
	{"library less", func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, "lib", "") })
	}},
	{"several databases, and a part rolled back", func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error {
			other, err := tx.Use(3)
			if err != nil {
				return err
			}
			if err := tx.String("a").Put([]byte("1")); err != nil {
				return err
			}
			sp := tx.Savepoint()
			if err := other.String("b").Put([]byte("2")); err != nil {
				return err
			}
			if err := tx.RollbackTo(sp); err != nil {
				return err
			}
			if err := tx.String("c").Put([]byte("3")); err != nil {
				return err
			}
			return other.String("d").Put([]byte("4"))
		})
	}},
	{"swapped and emptied in a transaction", func(s *db.Store) error {
		return s.Update(func(tx *db.Tx) error {
			if err := tx.Swap(0, 3); err != nil {
				return err
			}
			other, err := tx.Use(3)
			if err != nil {
				return err
			}
			return other.Flush()
		})
	}},
	{"swapped", func(s *db.Store) error { return s.Swap(0, 3) }},
	{"emptied", func(s *db.Store) error { return s.Flush() }},
	{"all emptied", func(s *db.Store) error { return s.FlushAll() }},
}
