package bitcask_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

func TestPutGetDeleteReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	wantNone(t, s, "a")
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	put(t, s, "", "empty key")
	put(t, s, "k\x00:\xff", "")
	put(t, s, "gone", "x")
	if ok, err := s.Delete("gone"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := s.Delete("never"); ok || err != nil {
		t.Fatal(ok, err)
	}
	for range 3 {
		want(t, s, "a", "2")
		want(t, s, "", "empty key")
		want(t, s, "k\x00:\xff", "")
		wantNone(t, s, "gone")
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get("a"); !errors.Is(err, bitcask.ErrClosed) {
			t.Fatal(err)
		}
		s = open(t, dir, nil)
	}
	if n := len(s.Segments()); n != 1 {
		t.Fatalf("%d segments after reopenings, want 1", n)
	}
}

func TestLimits(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	put(t, s, strings.Repeat("k", bitcask.MaxKey), "v")
	want(t, s, strings.Repeat("k", bitcask.MaxKey), "v")
	if err := s.Put(strings.Repeat("k", bitcask.MaxKey+1), nil); !errors.Is(err, bitcask.ErrTooLarge) {
		t.Fatal(err)
	}
	if err := s.Put("big", make([]byte, bitcask.MaxValue+1)); !errors.Is(err, bitcask.ErrTooLarge) {
		t.Fatal(err)
	}
	wantNone(t, s, "big")
	check(t, s)
}

func TestValueLargerThanSegment(t *testing.T) {
	dir := t.TempDir()
	o := &bitcask.Options{SegmentSize: 1 << 10}
	s := open(t, dir, o)
	big := bytes.Repeat([]byte("0123456789"), 10_000)
	put(t, s, "before", "1")
	put(t, s, "big", string(big))
	put(t, s, "after", "2")
	for range 2 {
		want(t, s, "before", "1")
		want(t, s, "big", string(big))
		want(t, s, "after", "2")
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, o)
	}
}

func TestBatchIsOneCommit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	put(t, s, "old", "x")
	b := s.NewBatch()
	for i := range 1000 {
		b.Put(fmt.Sprint("key", i), fmt.Append(nil, i))
	}
	b.Put("key7", []byte("seven"))
	b.Delete("old")
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Cut one byte off: nothing of the batch may be left. The manifest knows of
	// the clean close, so this is damage and not a torn tail.
	file := filepath.Join(dir, "000000001.data")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	var corrupt *bitcask.CorruptError
	if _, err := bitcask.Open(dir, nil); !errors.As(err, &corrupt) || corrupt.File != "000000001.data" {
		t.Fatalf("open of a cut file: %v", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, nil)
	want(t, s, "key7", "seven")
	want(t, s, "key999", "999")
	wantNone(t, s, "old")
}

// TestTornTail cuts the file of a store that was not closed at every length:
// each opens, and holds exactly the commits that were whole.
func TestTornTail(t *testing.T) {
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fs, NoHints: true})
	s := open(t, "d", o)
	ends := []int64{s.Segments()[0].Bytes}
	for i := range 5 {
		put(t, s, fmt.Sprint("k", i), strings.Repeat("v", i*20))
		ends = append(ends, s.Segments()[0].Bytes)
	}
	files := snapshot(t, fs, "d")
	whole := files["000000001.data"]
	for cut := ends[0]; cut < ends[5]; cut++ {
		for _, zeros := range []bool{false, true} {
			tail := append([]byte(nil), whole[:cut]...)
			if zeros {
				tail = append(tail, make([]byte, ends[5]-cut)...)
			}
			files["000000001.data"] = tail
			c := restore(t, files)
			s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: c, NoHints: true}))
			if err != nil {
				t.Fatalf("cut at %d, zeros %v: %v", cut, zeros, err)
			}
			for i := range 5 {
				if got, err := s.Get(fmt.Sprint("k", i)); (err == nil) != (ends[i+1] <= cut) {
					t.Fatalf("cut at %d, zeros %v: k%d = %q, %v", cut, zeros, i, got, err)
				}
			}
			put(t, s, "more", "m")
			check(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, err = bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: c, NoHints: true}))
			if err != nil {
				t.Fatal(err)
			}
			want(t, s, "more", "m")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRotationHintsAndDamagedHints(t *testing.T) {
	dir := t.TempDir()
	o := seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{NoIndex: true}) // with it the hints are not read
	s := open(t, dir, o)
	for i := range 500 {
		put(t, s, fmt.Sprint("key", i%100), fmt.Sprint("value", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, o)
	if err := s.Close(); err != nil { // waits for the hints
		t.Fatal(err)
	}
	hints, err := filepath.Glob(filepath.Join(dir, "*.hint"))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(when string) {
		s := open(t, dir, o)
		for i := 400; i < 500; i++ {
			want(t, s, fmt.Sprint("key", i%100), fmt.Sprint("value", i))
		}
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(when, err)
		}
	}
	verify("as they are")
	for i, hint := range hints {
		b, err := os.ReadFile(hint)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 0:
			err = os.Remove(hint)
		case 1:
			b[len(b)/2] ^= 4
			err = os.WriteFile(hint, b, 0o600)
		case 2:
			err = os.WriteFile(hint, b[:len(b)-3], 0o600)
		case 3:
			err = os.Rename(hint, hints[0]) // of another segment
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	verify("damaged")
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	put(t, s, "a", "1")
	if _, err := bitcask.Open(dir, nil); !errors.Is(err, bitcask.ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	r := open(t, dir, &bitcask.Options{ReadOnly: true})
	want(t, r, "a", "1")
	if err := r.Put("b", nil); !errors.Is(err, bitcask.ErrReadOnly) {
		t.Fatal(err)
	}
	put(t, s, "b", "2")
}

func TestConcurrentWritersGroupCommit(t *testing.T) {
	s := open(t, t.TempDir(), &bitcask.Options{Sync: bitcask.SyncAlways, SegmentSize: 16 << 10})
	const writers, each = 16, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := s.Put(fmt.Sprintf("w%d-%d", w, i), []byte("value of some length")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		for i := range each {
			want(t, s, fmt.Sprintf("w%d-%d", w, i), "value of some length")
		}
	}
	if st := s.Stats(); st.Syncs >= writers*each {
		t.Errorf("%d syncs for %d writes: no group commit", st.Syncs, writers*each)
	}
	check(t, s)
}

func TestRewriteWhileWriting(t *testing.T) {
	dir := t.TempDir()
	o := &bitcask.Options{SegmentSize: 8 << 10}
	s := open(t, dir, o)
	value := func(i, round int) string { return fmt.Sprintf("value %d of round %d", i, round) }
	const keys, rounds = 200, 20
	written := make(chan struct{})
	go func() {
		defer close(written)
		for round := range rounds {
			for i := range keys {
				put(t, s, fmt.Sprint("key", i), value(i, round))
				if i%10 == 3 {
					if _, err := s.Delete(fmt.Sprint("key", i)); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}()
	merges := 0
	for done := false; !done; {
		var ids []uint32
		for _, sg := range s.Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		if len(ids) > 3 {
			if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
				t.Fatal(err)
			}
			merges++
		}
		select {
		case <-written:
			done = true
		default:
		}
	}
	if merges == 0 {
		t.Error("no merge ran beside the writer")
	}
	verify := func(s *bitcask.Store) {
		for i := range keys {
			if key := fmt.Sprint("key", i); i%10 == 3 {
				wantNone(t, s, key)
			} else {
				want(t, s, key, value(i, rounds-1))
			}
		}
		check(t, s)
	}
	verify(s)
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	r, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Copied != keys*9/10 {
		t.Errorf("copied %d records, want %d: tombstones have nothing left to hide", r.Copied, keys*9/10)
	}
	verify(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, o)
	verify(s)
}

func TestCommitOverhead(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fs, NoHints: true}))
	before := s.Segments()[0].Bytes
	key, value := strings.Repeat("k", 16), strings.Repeat("v", 128)
	put(t, s, key, value)
	got := s.Segments()[0].Bytes - before
	if over := got - int64(len("string:")+len(key)+len(value)); over > 32 {
		t.Errorf("a one-record commit costs %d bytes beyond name and value, want at most 32", over)
	}
}
