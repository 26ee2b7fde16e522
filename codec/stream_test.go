package codec_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
)

func TestStreamOfEveryCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		s := codec.Stream[point]{Stream: k.Stream("x"), Codec: c}
		if _, err := s.Get(db.StreamID{Ms: 1}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("of no entry: %v", err)
		}
		one, err := s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 1}}, point{X: 1})
		equal(t, "AddWith", one, err, db.StreamID{Ms: 1})
		two, err := s.Add(point{X: 2})
		must(t, err)
		first, second := codec.Entry[point]{ID: one, Value: point{X: 1}}, codec.Entry[point]{ID: two, Value: point{X: 2}}
		e, err := s.Get(two)
		equal(t, "Get", e, err, second)
		list, err := s.Range(db.StreamID{}, db.MaxStreamID, 0)
		equal(t, "Range", list, err, []codec.Entry[point]{first, second})
		list, err = s.RangeReverse(db.StreamID{}, db.MaxStreamID, 1)
		equal(t, "RangeReverse", list, err, []codec.Entry[point]{second})
		list, err = s.ReadWait(t.Context(), one, 0)
		equal(t, "ReadWait", list, err, []codec.Entry[point]{second})
		list = nil
		for e, err := range s.All(db.StreamID{}) {
			must(t, err)
			list = append(list, e)
		}
		equal(t, "All", list, nil, []codec.Entry[point]{first, second})
		n, err := s.Len()
		equal(t, "Len", n, err, 2)
	})
}

func TestGroupOfEveryCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		s := codec.Stream[point]{Stream: k.Stream("x"), Codec: c}
		g := s.Group("workers")
		must(t, g.Create(db.StreamGroupStart{Make: true}))
		one, err := s.Add(point{X: 1})
		must(t, err)
		two, err := s.Add(point{X: 2})
		must(t, err)
		first, second := codec.Entry[point]{ID: one, Value: point{X: 1}}, codec.Entry[point]{ID: two, Value: point{X: 2}}
		list, err := g.Read("a", 1)
		equal(t, "Read", list, err, []codec.Entry[point]{first})
		list, err = g.ReadWait(t.Context(), "a", 1)
		equal(t, "ReadWait", list, err, []codec.Entry[point]{second})
		list, err = g.History("a", db.StreamID{}, 0)
		equal(t, "History", list, err, []codec.Entry[point]{first, second})
		list, err = g.Claim(db.StreamClaim{Consumer: "b"}, one)
		equal(t, "Claim", list, err, []codec.Entry[point]{first})
		list, err = g.Claim(db.StreamClaim{Consumer: "b", JustID: true}, one)
		equal(t, "Claim of ids", list, err, []codec.Entry[point]{{ID: one, NoValue: true}})
		list, next, gone, err := g.AutoClaim(db.StreamAutoClaim{Consumer: "b", Count: 9})
		equal(t, "AutoClaim", list, err, []codec.Entry[point]{first, second})
		equal(t, "and where to go on", next, nil, db.StreamID{})
		equal(t, "and what is gone", len(gone), nil, 0)
		_, err = s.Delete(two)
		must(t, err)
		list, err = g.History("b", db.StreamID{}, 0)
		equal(t, "History of an entry that is gone", list, err, []codec.Entry[point]{first, {ID: two, NoValue: true}})
		n, err := g.Ack(one, two)
		equal(t, "Ack", n, err, 2)
	})
}

// TestEntryThatIsNoValue: a reader gets nothing with the error; a consumer gets the other entries, and the id of that
// one, which it can acknowledge.
func TestEntryThatIsNoValue(t *testing.T) {
	for what, field := range map[string]db.Field{"other bytes": {Name: codec.ValueField, Value: []byte("no JSON")}, "another field": {Name: "other", Value: []byte("{}")}} {
		store := open(t)
		s := codec.StreamOf[point](store.Stream("x"))
		must(t, s.Group("g").Create(db.StreamGroupStart{Make: true}))
		good, err := s.Add(point{X: 1})
		must(t, err)
		bad, err := store.Stream("x").Add(field)
		must(t, err)
		says := func(call string, err error) {
			t.Helper()
			var which *codec.EntryError
			var failed *codec.DecodeError
			if !errors.As(err, &which) || which.ID != bad || !errors.As(err, &failed) {
				t.Errorf("%s, %s: %v", what, call, err)
			}
		}
		_, err = s.Get(bad)
		says("Get", err)
		list, err := s.Range(db.StreamID{}, db.MaxStreamID, 0)
		says("Range", err)
		equal(t, "Range", len(list), nil, 0)
		for e, failed := range s.All(db.StreamID{}) {
			if err = failed; err == nil {
				equal(t, "All", e.ID, nil, good)
			}
		}
		says("All", err)
		list, err = s.Group("g").Read("c", 0)
		says("Read", err)
		equal(t, "Read", list, nil, []codec.Entry[point]{{ID: good, Value: point{X: 1}}})
		n, err := s.Group("g").Ack(good, bad)
		equal(t, "Ack", n, err, 2)
	}
}

func TestReadsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := codec.StreamOf[point](open(t).Stream("x"))
		must(t, s.Group("g").Create(db.StreamGroupStart{Make: true}))
		got := make(chan []codec.Entry[point], 2)
		for _, read := range []func() ([]codec.Entry[point], error){
			func() ([]codec.Entry[point], error) { return s.ReadWait(t.Context(), db.StreamID{}, 1) },
			func() ([]codec.Entry[point], error) { return s.Group("g").ReadWait(t.Context(), "c", 1) },
		} {
			go func() {
				list, err := read()
				if err != nil {
					t.Error(err)
				}
				got <- list
			}()
		}
		synctest.Wait()
		id, err := s.Add(point{X: 7})
		must(t, err)
		for range 2 {
			equal(t, "what came", <-got, nil, []codec.Entry[point]{{ID: id, Value: point{X: 7}}})
		}
	})
}
