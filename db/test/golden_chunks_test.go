package db_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// goldenV1b is a store with what version 1 of the format got before its first
// release: strings in chunks, deadlines of fields, and an INDEX. It is made by
// go test ./db/test -run 'TestGoldenChunksAndFields$' -update
var goldenV1b = golden{
	dir: "testdata/golden-v1b", chunkSize: 32, // strings of more than 256 bytes
	fill: fillGoldenV1b, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile},
}

// goldenV1c is the same with INDEX and hints of version 2. It is made by
// go test ./db/test -run 'TestGoldenCompact$' -update
var goldenV1c = golden{
	dir: "testdata/golden-v1c", chunkSize: 32, fill: fillGoldenV1b, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile},
}

// goldenV1d is the same with INDEX of version 3 and TTL of version 2, which name a state of the log, and openings and
// merges in the manifest (edits 8 to 10). It is made by go test ./db/test -run 'TestGoldenMarks$' -update
var goldenV1d = golden{
	dir: "testdata/golden-v1d", chunkSize: 32, fill: fillGoldenV1b, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true,
}

// goldenV1f is the same with hints of version 3, and nonces in the headers of segments. It is made by
// go test ./db/test -run 'TestGoldenBoundHints$' -update
var goldenV1f = golden{
	dir: "testdata/golden-v1f", chunkSize: 32, fill: fillGoldenV1b, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

// goldenV1h is the same with INDEX of version 4, which says how many keys are in each part of it. It is made by
// go test ./db/test -run 'TestGoldenPromises$' -update
var goldenV1h = golden{
	dir: "testdata/golden-v1h", chunkSize: 32, fill: fillGoldenV1b, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

func TestGoldenPromises(t *testing.T) {
	goldenV1h.test(t)
	goldenV1h.wantRecords(t)
}

func TestGoldenBoundHints(t *testing.T) {
	goldenV1f.test(t)
	goldenV1f.wantRecords(t)
}

func TestGoldenMarks(t *testing.T) {
	goldenV1d.test(t)
	goldenV1d.wantRecords(t)
}

func TestGoldenCompact(t *testing.T) {
	goldenV1c.test(t)
	goldenV1c.wantRecords(t)
}

func TestGoldenChunksAndFields(t *testing.T) {
	goldenV1b.test(t)
	goldenV1b.wantRecords(t)
	t.Run("edited", func(t *testing.T) {
		dir := goldenV1b.copy(t)
		o := &db.Options{Namespaces: modelNamespaces} // with chunks of another size
		s, err := db.Open(dir, o)
		must(t, err)
		want, err := readModel(s)
		must(t, err)
		n, err := s.String("appended").Append([]byte("more"))
		must(t, err)
		_, err = s.String("appended").SetRange(int64(n)-40, []byte("over"))
		must(t, err)
		text := []byte(want[0]["appended"].str + "more")
		copy(text[n-40:], "over")
		want[0]["appended"].str = string(text)
		_, err = s.Hash("fields").PersistFields("f1")
		must(t, err)
		delete(want[0]["fields"].until, "f1")
		must(t, s.Close())
		s, err = db.Open(dir, o)
		must(t, err)
		wantDump(t, s, want.String())
		must(t, s.Close())
	})
}

// fillGoldenV1b does all that leaves another kind of trace of strings in chunks
// and of deadlines of fields.
func fillGoldenV1b(t *testing.T, s *db.Store) {
	never := time.UnixMilli(70_000_000_000_000) // in the year 4188; deadlines of fields end in 4199
	long := goldenText(1, 300)
	for _, key := range []string{"whole", "appended", "edited", "shortened", "deleted", "to be renamed", "", "a:b:__len__"} {
		must(t, s.String(key).Put([]byte(long)))
	}
	must(t, s.String("timed").Put([]byte(goldenText(2, 290)), db.ExpireAt(never)))
	must(t, s.String("soon gone").Put([]byte(long), db.TTL(time.Hour)))
	_, err := s.String("zeros in front").SetRange(1000, []byte("the only chunks are the last"))
	must(t, err)
	fields := []string{"", "f1", "f2", "f3", "f4", "f5", "f6", "__len__", "a:b"}
	for _, key := range []string{"fields", "fields untouched", "fields of the past", "fields to be renamed"} {
		h := s.Hash(key)
		for i, field := range fields {
			_, err := h.Put(field, []byte(strconv.Itoa(i)))
			must(t, err)
		}
		_, err = h.ExpireFieldsAt(never, fields[:6])
		must(t, err)
	}
	_, err = s.Hash("fields of the past").ExpireFields(time.Hour, fields) // all of them: the key expires
	must(t, err)
	must(t, s.Hash("fields").PutWith([]db.Field{{Name: "with", Value: []byte("x")}}, db.ExpireAt(never.Add(time.Second))))
	many := make([]db.Field, 200) // more than a small collection takes
	names := make([]string, len(many))
	for i := range many {
		names[i] = "field" + strconv.Itoa(i)
		many[i] = db.Field{Name: names[i], Value: []byte{byte(i)}}
	}
	_, err = s.Hash("many").PutAll(many...)
	must(t, err)
	_, err = s.Hash("many").ExpireFieldsAt(never, names[:150])
	must(t, err)
	_, err = s.Merge(context.Background(), merge.RunOptions{All: true})
	must(t, err)
	changeGoldenV1b(t, s)
	synctest.Wait() // for the hints
}

// changeGoldenV1b changes merged keys: tombstones of chunks and of deadlines, and new versions.
func changeGoldenV1b(t *testing.T, s *db.Store) {
	_, err := s.String("appended").Append([]byte(goldenText(3, 100)))
	must(t, err)
	_, err = s.String("edited").SetRange(100, []byte("two chunks have changed, and none of the others"))
	must(t, err)
	_, err = s.String("edited").SetRange(400, []byte("behind a gap"))
	must(t, err)
	must(t, s.String("shortened").Put([]byte("one record")))
	must(t, s.Key("to be renamed").Rename("renamed"))
	must(t, s.Key("fields to be renamed").Rename("fields renamed"))
	_, err = s.Keyspace().Delete("deleted")
	must(t, err)
	h := s.Hash("fields")
	_, err = h.Put("f1", []byte("a value anew, without a deadline"))
	must(t, err)
	_, err = h.ExpireFieldsAt(time.UnixMilli(65_000_000_000_000), []string{"f1", "f6"}) // one anew, one for the first time
	must(t, err)
	_, err = h.Incr("f2", 40) // keeps the deadline
	must(t, err)
	_, err = h.PersistFields("f3")
	must(t, err)
	_, err = h.Delete("f4")
	must(t, err)
	_, err = h.ExpireFields(time.Hour, []string{"f5"}) // expires, unreaped
	must(t, err)
	other, err := s.Use(1)
	must(t, err)
	must(t, other.Update(func(tx *db.Tx) error {
		if err := tx.String("in a batch").Put([]byte(goldenText(4, 280))); err != nil {
			return err
		}
		if _, err := tx.Hash("in a batch too").Put("f", nil); err != nil {
			return err
		}
		_, err := tx.Hash("in a batch too").ExpireFieldsAt(time.UnixMilli(70_000_000_000_000), []string{"f"})
		return err
	}))
}

func lastOfGoldenV1b(t *testing.T, s *db.Store) {
	must(t, s.String("active").Put([]byte(goldenText(5, 270))))
	_, err := s.Hash("active fields").Put("f", []byte("x"))
	must(t, err)
	_, err = s.Hash("active fields").ExpireFieldsAt(time.UnixMilli(60_000_000_000_000), []string{"f"})
	must(t, err)
}

// goldenText is a text whose chunks differ.
func goldenText(seed uint64, length int) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < length {
		b.WriteByte('a' + byte(rng.IntN(26)))
	}
	return b.String()
}

// wantRecords makes sure that the golden store has the records it is for.
func (g golden) wantRecords(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(g.dir, "store", "*.data"))
	must(t, err)
	var log []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		log = append(log, b...)
	}
	// docs/FORMAT.md, section 1.
	for _, name := range []string{"string:whole:__len__", "string:active:8000002000000000", "ttl:fields untouched:f2", "ttl:active fields:f"} {
		if !bytes.Contains(log, []byte(name)) {
			t.Errorf("no record is called %q", name)
		}
	}
}

// TestGoldenHintsOfBefore: hints of an older version stay until new ones take their names, so that a store which cannot
// be opened now has what the older version needs.
func TestGoldenHintsOfBefore(t *testing.T) {
	hints := func(dir string) map[string]string {
		t.Helper()
		m := map[string]string{}
		names, err := filepath.Glob(filepath.Join(dir, "*.hint"))
		must(t, err)
		for _, name := range names {
			b, err := os.ReadFile(name)
			must(t, err)
			m[name] = string(b[8:10]) // the version
		}
		return m
	}
	dir := goldenV1b.copy(t)
	name := filepath.Join(dir, "000000012.data")
	sound, err := os.ReadFile(name)
	must(t, err)
	damaged := bytes.Clone(sound)
	damaged[600] ^= 1
	must(t, os.WriteFile(name, damaged, 0o600))
	before := hints(dir)
	if _, err := db.Open(dir, goldenV1b.options()); !errors.As(err, new(*bitcask.CorruptError)) {
		t.Fatal(err)
	}
	if after := hints(dir); !maps.Equal(after, before) || len(before) == 0 {
		t.Errorf("%q; before %q", after, before)
	}
	must(t, os.WriteFile(name, sound, 0o600))
	s, err := db.Open(dir, goldenV1b.options())
	must(t, err)
	for made := false; !made; time.Sleep(time.Millisecond) {
		made = !slices.Contains(slices.Collect(maps.Values(hints(dir))), "\x01\x00")
	}
	must(t, s.Close())
}
