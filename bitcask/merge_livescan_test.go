package bitcask_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestSurveyFindsWhatLookingUpFinds: merges of stores with everything in them write the same files, byte for byte,
// whether a survey says what is live, or several, or every entry is looked up.
func TestSurveyFindsWhatLookingUpFinds(t *testing.T) {
	rng := chance.Rand(t)
	copied, dropped := uint64(0), uint64(0)
	for range 60 {
		base := vfs.NewMem()
		o := *seam.With(&bitcask.Options{SegmentSize: 1 << 10}, seam.Options{FS: base, NoHints: rng.IntN(4) == 0})
		s := open(t, "d", &o)
		change := scribble
		if rng.IntN(3) == 0 {
			change = scribblePlain
		}
		for range 200 {
			change(t, s, rng)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ways := []bitcask.RewriteOptions{{}, bitcask.SurveyingLittle(bitcask.RewriteOptions{}), bitcask.LookingUp(bitcask.RewriteOptions{})}
		files, results := make([]map[string][]byte, len(ways)), make([]bitcask.RewriteResult, len(ways))
		pick := rng.Uint64()
		for i := range files {
			seam.Of(&o).FS = base.Clone()
			s := open(t, "d", &o)
			var ids []uint32
			for k, id := range sealed(s) {
				if pick>>(k%64)&1 == 0 {
					ids = append(ids, id)
				}
			}
			var err error
			if results[i], err = s.Rewrite(context.Background(), ids, ways[i]); err != nil {
				t.Fatal(err)
			}
			check(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			files[i] = snapshot(t, seam.Of(&o).FS, "d")
			maps.DeleteFunc(files[i], func(name string, _ []byte) bool { return !strings.HasSuffix(name, ".data") }) // hints come in their own time
			for _, b := range files[i] {
				clear(b[32:40]) // nonce and checksum of the header
			}
		}
		for i := range ways {
			if fmt.Sprint(results[i]) != fmt.Sprint(results[0]) || !maps.EqualFunc(files[i], files[0], bytes.Equal) {
				t.Fatalf("way %d: %+v, %q; way 0: %+v, %q", i, results[i], slices.Sorted(maps.Keys(files[i])), results[0], slices.Sorted(maps.Keys(files[0])))
			}
		}
		copied += results[0].Copied
		dropped += results[0].Dropped
	}
	if t.Logf("%d copied, %d dropped", copied, dropped); copied == 0 || dropped == 0 {
		t.Error("nothing was copied, or nothing was dropped")
	}
}

// scribble does something to a random key.
func scribble(t *testing.T, s *bitcask.Store, rng *rand.Rand) {
	t.Helper()
	ns, key := rng.IntN(3), fmt.Sprint("k", rng.IntN(9))
	value := []byte(strings.Repeat("v", rng.IntN(60)))
	change := func(tx *bitcask.Tx) error {
		if rng.IntN(3) == 0 {
			if _, err := tx.Drop(ns, key); err != nil {
				return err
			}
		}
		slot, coll, err := tx.Find(ns, key)
		switch kind := rng.IntN(5); {
		case err != nil:
			return err
		case kind == 0 && slot.Type != keydir.None:
			return tx.SetDeadline(ns, key, 4e12+int64(rng.IntN(99)))
		case kind == 1 && slot.Type != keydir.None:
			_, err := tx.ClearDeadline(ns, key)
			return err
		case slot.Type == keydir.None && kind == 2:
			coll, err = tx.Collection(ns, key, keydir.Hash)
			fallthrough
		case coll.Valid():
			if err != nil {
				return err
			}
			return tx.PutElem(ns, key, coll, fmt.Sprint("f", rng.IntN(4)), value)
		}
		return tx.PutString(ns, key, value)
	}
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	switch rng.IntN(60) {
	case 0:
		_, _, err = tx.Flush(ns)
	case 1:
		_, err = tx.Swap(ns, (ns+1)%3)
	default:
		if err = change(tx); err == nil {
			_, err = tx.Commit()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scribblePlain does something that a slot of the index is about.
func scribblePlain(t *testing.T, s *bitcask.Store, rng *rand.Rand) {
	t.Helper()
	key := fmt.Sprint("k", rng.IntN(9))
	put(t, s, key, strings.Repeat("v", rng.IntN(60)))
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	if err := tx.SetDeadline(0, key, 4e12+int64(rng.IntN(99))); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestMergeMissesRecord: a hint that verifies and leaves a live record out, which only a bug can write, ends a merge
// with an error that says where. Nothing is lost, and the next merge does without the hint.
func TestMergeMissesRecord(t *testing.T) {
	for missing := range 3 {
		fs := vfs.NewMem()
		o := seam.With(&bitcask.Options{}, seam.Options{FS: fs})
		s := open(t, "d", o)
		for i := range 3 {
			put(t, s, fmt.Sprint("k", i), "value")
		}
		if err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
		waitHints(t, s, fs, true)
		ids := sealed(s)
		if err := s.RewriteHint(ids[0], missing); err != nil {
			t.Fatal(err)
		}
		r, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), "000000001.hint: no entry for offset") || len(r.In) > 0 {
			t.Errorf("a hint without entry %d: %+v, %v", missing, r, err)
		}
		if corrupt := (*bitcask.CorruptError)(nil); errors.As(err, &corrupt) {
			t.Errorf("the data is not damaged: %v", err) // the merger would leave the file alone from now on
		}
		for range 2 {
			for i := range 3 {
				want(t, s, fmt.Sprint("k", i), "value")
			}
			if _, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{}); err != nil { // from the data
				t.Error(err)
			}
		}
		check(t, s)
	}
}

// TestDeadSegmentsAreNotRead: a merge reads no entry of a segment in which only strings and deadlines stood, all of
// them dead by now; one that has a tombstone is read, since that may have to stay.
func TestDeadSegmentsAreNotRead(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		fs := vfs.NewMem()
		var log strings.Builder
		s := open(t, "d", seam.With(&bitcask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, seam.Options{FS: fs}))
		const keys = 100
		put(t, s, "older", "value")
		if err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			put(t, s, fmt.Sprint("k", i), "first")
		}
		if deleted {
			if _, err := s.Delete("older"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			put(t, s, fmt.Sprint("k", i), "second")
		}
		waitHints(t, s, fs, true)
		ids := sealed(s)
		dead := ids[len(ids)-1]
		flipByte(t, fs, fmt.Sprintf("d/%09d.hint", dead), 0.5)
		var passed int64
		r, err := s.Rewrite(context.Background(), []uint32{dead}, bitcask.RewriteOptions{Progress: func(bytes int64) { passed += bytes }})
		if err != nil {
			t.Fatal(err)
		}
		if r.Dropped != keys || passed == 0 || deleted != (r.Copied == 1) {
			t.Errorf("deleted %v: %+v after %d bytes", deleted, r, passed)
		}
		if noticed := strings.Contains(log.String(), "hint not used"); noticed != deleted {
			t.Errorf("deleted %v: entries were read: %v", deleted, noticed)
		}
		for i := range keys {
			want(t, s, fmt.Sprint("k", i), "second")
		}
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
