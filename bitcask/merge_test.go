package bitcask_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// sealed lists the sealed segments.
func sealed(s *bitcask.Store) (ids []uint32) {
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	return ids
}

// garbage fills a store with overwrites and deletes, many of them random, and returns its final
// content.
func garbage(t *testing.T, s *bitcask.Store, puts int) map[string]string {
	t.Helper()
	r := chance.Rand(t)
	values := map[string]string{}
	for i := range puts {
		key := fmt.Sprint("key", r.IntN(puts/4))
		if r.IntN(8) == 0 {
			if _, err := s.Delete(key); err != nil {
				t.Fatal(err)
			}
			delete(values, key)
			continue
		}
		value := fmt.Sprintf("%d %s", i, strings.Repeat("v", r.IntN(60)))
		put(t, s, key, value)
		values[key] = value
	}
	return values
}

func holds(t *testing.T, s *bitcask.Store, values map[string]string, puts int) {
	t.Helper()
	for i := range puts / 4 {
		key := fmt.Sprint("key", i)
		if value, ok := values[key]; ok {
			want(t, s, key, value)
		} else {
			wantNone(t, s, key)
		}
	}
	check(t, s)
}

// bytesIn is the length of all files in a directory.
func bytesIn(t *testing.T, fs vfs.FS, dir string) (total int64) {
	t.Helper()
	for name, data := range snapshot(t, fs, dir) {
		if name != bitcask.ReserveName { // it comes when it comes
			total += int64(len(data))
		}
	}
	return total
}

// A merge of many segments publishes one output after another and removes what
// it has dealt with, so that it never needs much space.
func TestRewriteNeedsLittleSpace(t *testing.T) {
	const puts, size = 6000, 8 << 10
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{SegmentSize: size}, seam.Options{FS: fs})
	s := open(t, "d", o)
	values := garbage(t, s, puts)
	waitHints(t, s, fs, true) // and no one else makes files
	before := bytesIn(t, fs, "d")
	var most int64
	calls := 0
	r, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{Throttle: func(int) error {
		calls++
		most = max(most, bytesIn(t, fs, "d"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Out) < 3 || calls < 5 {
		t.Fatalf("%d outputs, %d calls of Throttle: too few to say anything", len(r.Out), calls)
	}
	// One output, one input half copied, each with its hint, and inputs that are just being unlinked.
	if limit := before + 4*size; most > limit {
		t.Errorf("the store was %d bytes long before the merge and up to %d meanwhile", before, most)
	}
	holds(t, s, values, puts)
}

// TestSlowRemovalsTakeNoSpace: a merge begins the next output while files are removed, and writes no more of it than
// has been freed.
func TestSlowRemovalsTakeNoSpace(t *testing.T) {
	const size, keys = 1 << 20, 4 << 10
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	o := seam.With(&bitcask.Options{SegmentSize: size}, seam.Options{FS: fault, NoHints: true})
	s := open(t, "d", o)
	values := map[string]string{}
	for i := range keys { // all of it is live, so that nothing is gained
		key := fmt.Sprint("key", i)
		values[key] = strings.Repeat("v", 1<<10)
		put(t, s, key, values[key])
	}
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	inputs := sealed(s)
	length := func() (n int64) {
		names, err := mem.List("d")
		if err != nil {
			t.Error(err)
		}
		for _, name := range names {
			if name == bitcask.ReserveName {
				continue // it comes when it comes
			}
			if f, err := mem.Open("d/"+name, vfs.ReadOnly); err == nil { // it may have gone
				bytes, _ := f.Size()
				n += bytes
				_ = f.Close()
			}
		}
		return n
	}
	before, most, removals := length(), int64(0), 0
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRemove}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) {
		removals++
		time.Sleep(20 * time.Millisecond)
		most = max(most, length())
	}})
	r, err := s.Rewrite(context.Background(), inputs, bitcask.RewriteOptions{})
	if err != nil || len(r.In) != len(inputs) || len(r.Out) < 4 || removals != len(inputs) {
		t.Fatalf("%+v after %d removals: %v", r, removals, err)
	}
	const little = 16 << 10
	if most > before+size+little {
		t.Errorf("the store was %d bytes long before the merge and up to %d meanwhile", before, most)
	}
	for key, value := range values {
		want(t, s, key, value)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A merge that is cancelled at any place keeps what it has published; the rest is as it was, also
// after a kill, and the next merge completes it.
func TestCancelledRewrite(t *testing.T) {
	const puts = 12000
	errStop := errors.New("stop")
	base := vfs.NewMem()
	full := open(t, "d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: base}))
	values := garbage(t, full, puts)
	waitHints(t, full, base, true)
	overlap(t, full)
	published := 0
	for stop := 1; ; stop++ {
		fs := base.Clone()
		s := open(t, "d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs}))
		n, segments := 0, len(sealed(s))
		r, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{Throttle: func(int) error {
			if n++; n == stop {
				return errStop
			}
			return nil
		}})
		if n < stop {
			if err != nil || stop < 5 || published == 0 {
				t.Errorf("the merge calls Throttle less than %d times, %d merges were stopped with something published, and this one: %v", stop, published, err)
			}
			return
		}
		// The output that was being published when it was stopped may have been the last.
		if err != nil && !errors.Is(err, errStop) || err == nil && len(r.In) < segments || n > stop {
			t.Fatalf("stopped at call %d of %d, %d segments of %d removed: %v", stop, n, len(r.In), segments, err)
		}
		published += min(len(r.Out), 1)
		for _, id := range r.In {
			if slices.Contains(sealed(s), id) {
				t.Errorf("stopped at call %d: segment %d is removed and there", stop, id)
			}
		}
		holds(t, s, values, puts)
		killed, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: restore(t, snapshot(t, fs, "d"))}))
		if err != nil {
			t.Fatalf("stopped at call %d, killed: %v", stop, err)
		}
		for _, s := range []*bitcask.Store{s, killed} {
			holds(t, s, values, puts)
			if _, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{}); err != nil {
				t.Fatalf("merging after a stop at call %d: %v", stop, err)
			}
			holds(t, s, values, puts)
		}
		if err := killed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// overlap merges every other segment, so that ranges of sequences overlap.
func overlap(t *testing.T, s *bitcask.Store) {
	t.Helper()
	var ids []uint32
	for i, id := range sealed(s) {
		if i%2 == 0 {
			ids = append(ids, id)
		}
	}
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A live record that does not verify ends a merge with an error that names the place; nothing else
// is lost, and its segment stays. A dead one is no loss.
func TestRewriteMeetsDamage(t *testing.T) {
	for _, hints := range []bool{true, false} {
		t.Run(fmt.Sprint("hints ", hints), func(t *testing.T) {
			for what, fails := range map[string]bool{"string:key70new value of key70": true, "string:key70old value of key70": false} {
				fs := vfs.NewMem()
				s := open(t, "d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs, NoHints: !hints}))
				for i := range 100 {
					put(t, s, fmt.Sprint("key", i), fmt.Sprintf("old value of key%d", i))
					put(t, s, fmt.Sprint("key", i), fmt.Sprintf("new value of key%d", i))
				}
				if err := s.Rotate(); err != nil {
					t.Fatal(err)
				}
				waitHints(t, s, fs, hints)
				name, at := damage(t, fs, what)
				_, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{})
				var corrupt *bitcask.CorruptError
				switch {
				case !fails && hints && err != nil:
					t.Errorf("damage to a dead record ends a merge: %v", err)
				case fails && (!errors.As(err, &corrupt) || corrupt.File != name || corrupt.Offset > at || corrupt.Offset < at-64):
					t.Errorf("a damaged live record in %s before %d: %v", name, at, err)
				case fails && !slices.Contains(slices.Collect(maps.Keys(snapshot(t, fs, "d"))), name):
					t.Errorf("%s is gone", name)
				}
				for i := range 100 {
					key := fmt.Sprint("key", i)
					if _, err := s.Get(key); fails && i == 70 {
						if !errors.As(err, &corrupt) {
							t.Errorf("the damaged record: %v", err)
						}
						continue
					}
					want(t, s, key, "new value of "+key)
				}
			}
		})
	}
}

// waitHints waits until every sealed segment has its hint.
func waitHints(t *testing.T, s *bitcask.Store, fs vfs.FS, hints bool) {
	t.Helper()
	for hints {
		names, err := fs.List("d")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(sealed(s), func(id uint32) bool { return !slices.Contains(names, fmt.Sprintf("%09d.hint", id)) }) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// damage flips a bit of the last byte of a record, given by name and value. The value alone would
// not do: the end of a shorter one and the checksum after it are sometimes equal.
func damage(t *testing.T, fs vfs.FS, record string) (name string, at int64) {
	t.Helper()
	found := 0
	for file, data := range snapshot(t, fs, "d") {
		if !strings.HasSuffix(file, ".data") {
			continue
		}
		if i := bytes.Index(data, []byte(record)); i >= 0 {
			name, at = file, int64(i+len(record)-1)
		}
		found += bytes.Count(data, []byte(record))
	}
	if found != 1 {
		t.Fatalf("%d records read %q", found, record)
	}
	flip(t, fs, "d/"+name, at)
	return name, at
}

// flip flips a bit of a file.
func flip(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.Open(name, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Damaged hints cost a merge time and nothing else.
func TestRewriteMeetsDamagedHints(t *testing.T) {
	const puts = 1000
	fs := vfs.NewMem()
	o := *seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs})
	s := open(t, "d", &o)
	values := garbage(t, s, puts)
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	waitHints(t, s, fs, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	hints := 0
	for name := range snapshot(t, fs, "d") {
		if !strings.HasSuffix(name, ".hint") {
			continue
		}
		for i := 0; ; i += 97 {
			files := snapshot(t, fs, "d")
			if i >= len(files[name]) {
				break
			}
			hints++
			damaged := restore(t, files)
			seam.Of(&o).FS = damaged
			s := open(t, "d", &o) // from INDEX, so that the hint is not looked at
			flip(t, damaged, "d/"+name, int64(i))
			if _, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{}); err != nil {
				t.Fatalf("%s damaged at %d: %v", name, i, err)
			}
			holds(t, s, values, puts)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if hints < 10 {
		t.Errorf("only %d damaged hints were tried", hints)
	}
}

// TestRemovalFails: a merge that cannot remove a file ends with an error when it next looks, and the store then has the
// segments that the manifest has.
func TestRemovalFails(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	o := seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fault})
	s := open(t, "d", o)
	const puts = 400
	values := garbage(t, s, puts)
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	waitHints(t, s, mem, true)
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRemove}, Path: "*.data", Err: syscall.EIO})
	r, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{})
	if !errors.Is(err, syscall.EIO) || strings.Count(err.Error(), syscall.EIO.Error()) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, s, values, puts)
	is := sealed(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "d", o)
	if !slices.Equal(sealed(s), is) || !s.Recovery().Indexed {
		t.Errorf("segments %v, reopened %v, with INDEX: %v", is, sealed(s), s.Recovery().Indexed)
	}
	holds(t, s, values, puts)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
