package db_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

// A survey counts every key once, with what Usage says of it, and the expired ones apart.
func TestSurvey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ok[*db.Store](t)(db.OpenMemory(&db.Options{ExpireEvery: -1, NoMerge: true}))
		defer func() { must(t, s.Close()) }()
		other := ok[*db.Store](t)(s.Use(3))
		for i := range 100 {
			must(t, s.String(fmt.Sprint("user:", i)).Put(make([]byte, i*10)))
			must(t, s.String(fmt.Sprint("user:", i)).Put(make([]byte, i*10))) // the first ones are dead
		}
		for i := range 20 {
			must(t, s.String(fmt.Sprint("session:", i)).Put([]byte("x"), db.TTL(time.Duration(i+1)*time.Hour)))
		}
		ok[bool](t)(other.Hash("h").Put("a", []byte("1")))
		ok[bool](t)(other.Hash("h").Put("b", []byte("2")))
		ok[int](t)(other.Set("plain").Add("m", "n", "o"))
		must(t, other.String("long").Put(make([]byte, 3<<20))) // in chunks
		time.Sleep(5 * time.Hour)

		seen := 0
		got := ok[db.Survey](t)(s.Survey(t.Context(), db.SurveyOptions{Biggest: 3, Prefixes: 2, Progress: func(n int) {
			if n < seen {
				t.Errorf("%d keys seen, after %d", n, seen)
			}
			seen = n
			ok[bool](t)(s.Key("user:1").Exists()) // nothing is locked
		}}))
		if got.Keys != 100+15+3 || got.Expired != 5 || seen != got.Keys+got.Expired {
			t.Errorf("%d keys, %d expired, %d seen", got.Keys, got.Expired, seen)
		}
		var want int64
		for _, ns := range []*db.Store{s, other} {
			for k, err := range ns.Keyspace().All() {
				must(t, err)
				want += ok[db.Usage](t)(ns.Key(k.Key).Usage(0)).Disk
			}
		}
		var types, groups, placed, sizes int64
		for _, of := range got.Types {
			types += of.Bytes
		}
		for _, of := range got.Prefixes {
			groups += of.Bytes
		}
		for _, of := range got.Segments {
			placed += of.Bytes - of.ExpiredBytes
		}
		for _, of := range got.Sizes {
			sizes += int64(of.Keys)
		}
		if got.Bytes != want || types != want || groups != want || placed != want || sizes != int64(got.Keys) {
			t.Errorf("%d bytes, by type %d, by group %d, by segment %d, want %d; %d keys by size", got.Bytes, types, groups, placed, want, sizes)
		}
		if fmt.Sprint(got.Deadlines) != fmt.Sprint([]db.SurveyTTL{{time.Hour, 1}, {24 * time.Hour, 14}, {30 * 24 * time.Hour, 0}, {0, 0}, {-1, 103}}) {
			t.Errorf("deadlines %v", got.Deadlines)
		}
		if b := got.Biggest; len(b) != 3 || b[0].Key != "long" || b[0].Namespace != 3 || b[0].Elements != 0 || !strings.HasPrefix(b[1].Key, "user:9") {
			t.Errorf("biggest %v", b)
		}
		if p := got.Prefixes; len(p) != 3 || p[0].Prefix != "long" || p[1].Prefix != "user:" || p[2].Prefix != "" || p[2].Keys != 17 {
			t.Errorf("groups %v", p)
		}
		if of := got.Types; len(of) != 3 || of[1].Type != "hash" || of[1].Elements != 2 || of[2].Elements != 3 {
			t.Errorf("types %v", of)
		}
	})
}

// A survey ends with its context, and with a store that is closed.
func TestSurveyEnds(t *testing.T) {
	s := ok[*db.Store](t)(db.Open(filepath.Join(t.TempDir(), "d"), nil))
	must(t, s.String("k").Put([]byte("v")))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Survey(ctx, db.SurveyOptions{Progress: func(int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, s.Close())
	if _, err := s.Survey(t.Context(), db.SurveyOptions{}); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
