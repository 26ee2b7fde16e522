package bitcask_test

import (
	"bytes"
	crand "crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// parted are two histories of one store, of which each goes on in a copy of the directory: the same ids, lengths,
// counts and sequence numbers for other commits.
var parted = []struct {
	name string
	// base is what both have; it leaves the store open.
	base func(t *testing.T, s *bitcask.Store)
	// then is what one has: gone is the key that it deletes.
	then func(t *testing.T, s *bitcask.Store, gone string)
	// apart: the second one is sealed this much later.
	apart time.Duration
	// alike: both draw the same nonces, as if there were none.
	alike bool
}{
	{
		name: "the last commit is another",
		then: func(t *testing.T, s *bitcask.Store, gone string) {
			put(t, s, "last but one", "value")
			remove(t, s, gone)
			must(t, s.Rotate())
		},
		alike: true,
	},
	{
		name: "sealed by another writer",
		then: func(t *testing.T, s *bitcask.Store, gone string) {
			remove(t, s, gone)
			put(t, s, "last", strings.Repeat("the same ", 20))
			must(t, s.Rotate())
		},
	},
	{
		name: "sealed at another time",
		then: func(t *testing.T, s *bitcask.Store, gone string) {
			remove(t, s, gone)
			put(t, s, "last", strings.Repeat("the same ", 20))
			must(t, s.Rotate())
		},
		apart: time.Millisecond,
		alike: true,
	},
	{
		name: "begun by another writer",
		base: func(t *testing.T, s *bitcask.Store) { must(t, s.Rotate()) },
		then: func(t *testing.T, s *bitcask.Store, gone string) {
			must(t, s.Rotate()) // whatever had been made ahead is full
			put(t, s, "first", "value")
			must(t, s.Rotate())
			put(t, s, "second", "value")
			must(t, s.Rotate())
			remove(t, s, gone)
			put(t, s, "last", strings.Repeat("the same ", 20))
			must(t, s.Rotate())
		},
	},
	{
		name: "merged",
		base: func(t *testing.T, s *bitcask.Store) {
			put(t, s, "between", strings.Repeat("the same ", 20))
			must(t, s.Rotate())
		},
		then: func(t *testing.T, s *bitcask.Store, gone string) {
			remove(t, s, gone)
			must(t, rewriteAll(s))
		},
	},
}

// TestHintOfAnotherHistory puts the hints of one history next to the segments of the other.
func TestHintOfAnotherHistory(t *testing.T) {
	for _, c := range parted {
		t.Run(c.name, func(t *testing.T) {
			if c.alike {
				random := crand.Reader
				defer func() { crand.Reader = random }()
				crand.Reader = ones{}
			}
			base := vfs.NewMem()
			o := seam.With(&bitcask.Options{}, seam.Options{FS: base, NoIndex: true})
			synctest.Test(t, func(t *testing.T) {
				s := open(t, "d", o)
				put(t, s, "before", "value")
				put(t, s, "a", "value of a")
				put(t, s, "b", "value of b")
				if c.base != nil {
					c.base(t, s)
				}
				must(t, s.Close())
			})
			var histories []map[string][]byte
			for i, gone := range []string{"a", "b"} {
				fs := base.Clone()
				seam.Of(o).FS = fs
				synctest.Test(t, func(t *testing.T) { // each from the same moment on, so that only the intended difference remains
					s := open(t, "d", o)
					time.Sleep(c.apart * time.Duration(i))
					c.then(t, s, gone)
					waitHints(t, s, fs, true)
					must(t, s.Close())
				})
				histories = append(histories, snapshot(t, fs, "d"))
			}
			mixed := histories[1]
			delete(mixed, "LOCK")
			exchanged := 0
			for name, b := range histories[0] {
				if strings.HasSuffix(name, ".hint") && !bytes.Equal(b, mixed[name]) {
					mixed[name] = b
					exchanged++
				}
			}
			if exchanged == 0 {
				t.Fatal("the histories have the same hints")
			}
			wantUnbelieved(t, mixed)
		})
	}
}

// ones is a source of bytes that are all the same.
type ones struct{}

func (ones) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
}

// wantUnbelieved opens the second history, whose hints are those of the first.
func wantUnbelieved(t *testing.T, files map[string][]byte) {
	t.Helper()
	fs := restore(t, files)
	for _, mode := range []string{"read-only", "merging", "hints made anew"} {
		s := open(t, "d", seam.With(&bitcask.Options{ReadOnly: mode == "read-only"}, seam.Options{FS: fs, NoIndex: true}))
		want(t, s, "a", "value of a")
		if v, err := s.Get("b"); !errors.Is(err, bitcask.ErrNotFound) {
			t.Errorf("%s: b is %q, %v", mode, v, err)
		}
		switch r := s.Recovery(); mode {
		case "read-only":
			if after := snapshot(t, fs, "d"); r.Scanned == 0 || !maps.EqualFunc(after, files, bytes.Equal) {
				t.Errorf("%d segments scanned; files %q", r.Scanned, slices.Sorted(maps.Keys(after)))
			}
		case "merging":
			if r.Scanned == 0 || len(r.Stale) != r.Scanned {
				t.Errorf("%d segments scanned; stale: %q", r.Scanned, r.Stale)
			}
			waitHints(t, s, fs, true)
			must(t, rewriteAll(s))
			want(t, s, "a", "value of a")
		default:
			if r.Scanned > 0 {
				t.Errorf("%d segments scanned", r.Scanned)
			}
		}
		if mode != "read-only" {
			check(t, s)
		}
		must(t, s.Close())
	}
}

// TestHintBesideADamagedEnd: the hint names the key of the damaged record also where that is the last one of its
// segment.
func TestHintBesideADamagedEnd(t *testing.T) {
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{}, seam.Options{FS: fs, NoIndex: true})
	s := open(t, "d", o)
	put(t, s, "first", "value")
	put(t, s, "last", "the last value")
	must(t, s.Rotate())
	waitHints(t, s, fs, true)
	must(t, s.Close())
	damage(t, fs, "lastthe last value")
	s = open(t, "d", o)
	want(t, s, "first", "value")
	if v, err := s.Get("last"); !isDamage(err) {
		t.Errorf("%q, %v", v, err)
	}
	if r := s.Recovery(); r.Scanned > 0 || len(r.Stale) > 0 {
		t.Errorf("%+v", r)
	}
	must(t, s.Close())
}

func remove(t *testing.T, s *bitcask.Store, key string) {
	t.Helper()
	if there, err := s.Delete(key); err != nil || !there {
		t.Fatal(there, err)
	}
}

// TestHintOfASegmentSealedByOpen: the manifest does not know yet of a footer that is on disk. The hint that Open's
// writer makes of the segment is that of this footer, time included.
func TestHintOfASegmentSealedByOpen(t *testing.T) {
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{}, seam.Options{FS: fs, NoIndex: true})
	s := open(t, "d", o)
	put(t, s, "key", "value")
	before := snapshot(t, fs, "d")
	must(t, s.Rotate())
	s.DrainDropped()
	files := snapshot(t, fs, "d")
	must(t, s.Close())
	files["MANIFEST"] = before["MANIFEST"]
	seam.Of(o).FS = restore(t, files)
	for _, when := range []string{"sealed", "opened once more"} {
		s := open(t, "d", o)
		waitHints(t, s, seam.Of(o).FS, true)
		for _, sg := range s.Segments() {
			if sg.Sealed == sg.Time.IsZero() {
				t.Errorf("%s: %+v", when, sg)
			}
		}
		if r := s.Recovery(); r.Scanned > 0 || len(r.Stale) > 0 {
			t.Errorf("%s: %+v", when, r)
		}
		check(t, s)
		must(t, s.Close())
	}
}
