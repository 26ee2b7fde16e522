package codec_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
)

// TestStringThatIsTaken is about what a session cache does.
func TestStringThatIsTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		s := codec.String[point]{String: k.String("session"), Codec: c}
		for name, get := range map[string]func() (point, error){
			"GetAndDelete": s.GetAndDelete, "GetAndPersist": s.GetAndPersist,
			"GetAndExpire": func() (point, error) { return s.GetAndExpire(time.Hour) }, "GetAndExpireAt": func() (point, error) { return s.GetAndExpireAt(time.Now().Add(time.Hour)) },
		} {
			if _, err := get(); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("%s of no key: %v", name, err)
			}
		}
		want := point{1, 2, []string{"a"}}
		res, err := s.Set(want, db.ReturnOld)
		equal(t, "Set", res, err, codec.SetResult[point]{Done: true})
		res, err = s.Set(point{X: 9}, db.ReturnOld, db.IfAbsent)
		equal(t, "Set with IfAbsent", res, err, codec.SetResult[point]{Existed: true, Old: want})
		got, err := s.GetAndExpire(time.Hour)
		equal(t, "GetAndExpire", got, err, want)
		left, err := k.Key("session").TTL()
		equal(t, "it has an hour", left > 59*time.Minute && left <= time.Hour, err, true)
		got, err = s.GetAndPersist()
		equal(t, "GetAndPersist", got, err, want)
		left, err = k.Key("session").TTL()
		equal(t, "TTL", left, err, db.NoTTL)
		got, err = s.GetAndExpireAt(time.Now().Add(time.Minute))
		equal(t, "GetAndExpireAt", got, err, want)
		got, err = s.GetAndDelete()
		equal(t, "GetAndDelete", got, err, want)
		there, err := k.Key("session").Exists()
		equal(t, "it exists", there, err, false)
	})
}

func TestHashThatIsTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		h := codec.Hash[point]{Hash: k.Hash("h"), Codec: c}
		must(t, h.PutWith(map[string]point{"a": {X: 1}, "b": {X: 2}}, db.TTL(time.Hour)))
		if err := h.PutWith(map[string]point{"a": {X: 7}}, db.IfAbsent); !errors.Is(err, db.ErrExists) {
			t.Errorf("PutWith with IfAbsent: %v", err)
		}
		both := map[string]point{"a": {X: 1}, "b": {X: 2}}
		got, err := h.GetAndPersist("a", "b", "none")
		equal(t, "GetAndPersist", got, err, both)
		got, err = h.GetAndExpire(time.Hour, "a", "b")
		equal(t, "GetAndExpire", got, err, both)
		got, err = h.GetAndExpireAt(time.Now().Add(time.Minute), "b")
		equal(t, "GetAndExpireAt", got, err, map[string]point{"b": {X: 2}})
		some, next, err := h.Scan(0, db.ScanOptions{Match: "a"})
		equal(t, "Scan", some, err, []codec.Field[point]{{Name: "a", Value: point{X: 1}}})
		equal(t, "the cursor", next, nil, 0)
		got, err = h.GetAndDelete("a", "none")
		equal(t, "GetAndDelete", got, err, map[string]point{"a": {X: 1}})
		left := []codec.Field[point]{{Name: "b", Value: point{X: 2}}}
		entries, err := h.Entries()
		equal(t, "Entries", entries, err, left)
		entries, err = h.Random(3)
		equal(t, "Random", entries, err, left)
	})
}

// TestListThatIsTaken is about what a queue does.
func TestListThatIsTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, k keys, c codec.Codec) {
		at := func(x float64) point { return point{X: x, Tags: []string{"t"}} }
		l, doing := codec.List[point]{List: k.List("jobs"), Codec: c}, codec.List[point]{List: k.List("doing"), Codec: c}
		n, err := l.PushWith(db.Back, []point{at(1), at(2), at(3), at(2)})
		equal(t, "PushWith", n, err, 4)
		n, err = l.InsertBefore(at(3), at(4))
		equal(t, "InsertBefore", n, err, 5)
		n, err = l.InsertAfter(at(3), at(5))
		equal(t, "InsertAfter", n, err, 6)
		where, err := l.Positions(at(2), db.PositionOptions{})
		equal(t, "Positions", where, err, []int64{1, 5})
		all, err := l.Range(0, -1)
		equal(t, "Range", all, err, []point{at(1), at(2), at(4), at(3), at(5), at(2)})
		job, err := l.Move("doing", db.Front, db.Back)
		equal(t, "Move", job, err, at(1))
		job, err = l.MoveWait(t.Context(), "doing", db.Front, db.Back)
		equal(t, "MoveWait", job, err, at(2))
		n, err = doing.Remove(1, job)
		equal(t, "Remove", n, err, 1)
		all, err = doing.PopFrontN(9)
		equal(t, "PopFrontN", all, err, []point{at(1)})
		all, err = l.PopBackN(2)
		equal(t, "PopBackN", all, err, []point{at(2), at(5)})
		all, err = l.MoveMany("doing", db.Front, db.Back, db.ListMove{Count: 2})
		equal(t, "MoveMany", all, err, []point{at(4), at(3)})
		if _, err := l.MoveMany("doing", db.Front, db.Back, db.ListMove{Count: 1}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("MoveMany of nothing: %v", err)
		}
		all, err = doing.PopFrontN(2)
		equal(t, "PopFrontN of what was moved", all, err, []point{at(4), at(3)})
		if _, err := doing.Move("jobs", db.Front, db.Back); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("Move of nothing: %v", err)
		}
	})
}

func TestMoveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := codec.ListOf[point](open(t).List("jobs"))
		got := make(chan point, 1)
		go func() {
			job, err := jobs.MoveWait(t.Context(), "doing", db.Front, db.Back)
			if err != nil {
				t.Error(err)
			}
			got <- job
		}()
		synctest.Wait()
		_, err := jobs.PushBack(point{X: 7})
		must(t, err)
		equal(t, "the job", <-got, nil, point{X: 7})
	})
}

// TestTakenIsNotLost: of several values that a call has taken out, those that can be decoded are returned, and the bytes
// of each other one are in the error.
func TestTakenIsNotLost(t *testing.T) {
	const bad, worse = `{"X":"a"}`, `"b"`
	for _, tt := range []struct {
		name string
		take func(s *db.Store) (got any, err error)
		want any
	}{
		{"Hash.GetAndDelete", func(s *db.Store) (any, error) {
			return codec.HashOf[point](s.Hash("h")).GetAndDelete("bad", "good", "worse")
		}, map[string]point{"good": {}}},
		{"Hash.GetAndExpireAt", func(s *db.Store) (any, error) {
			return codec.HashOf[point](s.Hash("h")).GetAndExpireAt(time.Unix(1, 0), "bad", "good", "worse")
		}, map[string]point{"good": {}}},
		{"List.PopFrontN", func(s *db.Store) (any, error) { return codec.ListOf[point](s.List("l")).PopFrontN(9) }, []point{{}}},
		{"List.PopBackN", func(s *db.Store) (any, error) { return codec.ListOf[point](s.List("l")).PopBackN(9) }, []point{{}}},
		{"StreamGroup.Read", func(s *db.Store) (any, error) {
			return codec.StreamOf[point](s.Stream("x")).Group("g").Read("c", 0)
		}, []codec.Entry[point]{{ID: db.StreamID{Ms: 2}}}},
	} {
		s := open(t)
		_, err := s.Hash("h").PutAll(db.Field{Name: "bad", Value: []byte(bad)}, db.Field{Name: "good", Value: []byte("{}")}, db.Field{Name: "worse", Value: []byte(worse)})
		must(t, err)
		_, err = s.List("l").PushBack([]byte(bad), []byte("{}"), []byte(worse))
		must(t, err)
		for i, text := range []string{bad, "{}", worse} {
			_, err = s.Stream("x").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1)}}, db.Field{Name: codec.ValueField, Value: []byte(text)})
			must(t, err)
		}
		must(t, s.Stream("x").Group("g").Create(db.StreamGroupStart{}))
		got, err := tt.take(s)
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		lost := map[string]bool{bad: true, worse: true}
		for _, err := range split(err) {
			var failed *codec.DecodeError
			if !errors.As(err, &failed) {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			delete(lost, string(failed.Data))
		}
		if len(lost) > 0 {
			t.Errorf("%s: the error has nothing of %v: %v", tt.name, lost, err)
		}
	}
}

// split are the errors that errors.Join has joined.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	return joined.Unwrap()
}
