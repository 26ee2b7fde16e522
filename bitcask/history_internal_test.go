package bitcask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/history"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// orders notes which commit each sequence number of each history was given to.
type orders struct {
	t     *testing.T
	given map[string]string
	next  int
}

// put commits something that no other commit says.
func (o *orders) put(s *Store) {
	o.t.Helper()
	o.next++
	value := fmt.Sprint("commit ", o.next)
	must(o.t, s.Put("key", []byte(value)))
	o.note(s, value)
}

func (o *orders) note(s *Store, what string) {
	o.t.Helper()
	h, err := s.History()
	must(o.t, err)
	at := fmt.Sprint(h.ID, " ", s.Sequence())
	if was, ok := o.given[at]; ok && was != what {
		o.t.Errorf("%s is %q and %q", at, was, what)
	}
	o.given[at] = what
}

// A sequence number of a history is given once, whatever of the unsynced end of the log is lost, and whichever copies
// go on from it. No time passes meanwhile: a store that is left alone notes what is synced, which is never lost.
func TestSequencesAreGivenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &orders{t: t, given: map[string]string{}}
		mem := vfs.NewMem()
		opts := Options{Sync: SyncNone, seam: seam.Options{FS: mem, NoIndex: true, NoHints: true}}
		s, err := Open("d", &opts)
		must(t, err)
		must(t, s.Put("before", nil))
		h, err := s.BeginHistory()
		must(t, err)
		if h.Term != 1 || len(h.Past) != 1 || h.Past[0].Last != 1 {
			t.Errorf("%+v", h)
		}
		o.cut(s, mem, opts, 1)
		must(t, s.Close())
		s, err = Open("d", &opts)
		must(t, err)
		o.cut(s, mem, opts, 1)
		o.copies(s, mem, opts)
	})
}

// cut commits, and goes on from each place where a power cut may have cut that off; at the end it is a killed process.
func (o *orders) cut(s *Store, mem *vfs.Mem, opts Options, term uint64) {
	t, from := o.t, s.log.Active().Size.Load()
	for range 3 {
		o.put(s)
	}
	end := s.log.Active().Size.Load()
	for cut := from; cut <= end; cut++ {
		fs := mem.Clone()
		f, err := fs.Open("d/"+format.DataName(1), vfs.ReadWrite)
		must(t, err)
		must(t, errors.Join(f.Truncate(cut), f.Close()))
		lost := opts
		lost.seam.FS = fs
		c, err := Open("d", &lost)
		must(t, err)
		o.put(c)
		if h, err := c.History(); err != nil || h.Term != term+1 || len(h.Past) != int(term+1) {
			t.Errorf("cut at %d: %+v, %v", cut, h, err)
		}
		must(t, c.Close())
		c, err = Open("d", &lost)
		must(t, err)
		o.put(c)
		if h, err := c.History(); err != nil || h.Term != term+1 {
			t.Errorf("after a clean close: %+v, %v", h, err)
		}
		must(t, c.Close())
	}
}

// copies makes copies of the store, in every way there is, and goes on from them.
func (o *orders) copies(s *Store, mem *vfs.Mem, opts Options) {
	t, copies := o.t, []string{"of the live store", "of the closed one"}
	_, err := s.Backup(context.Background(), copies[0])
	must(t, err)
	o.put(s)
	must(t, s.Close())
	r, err := Open("d", &Options{ReadOnly: true, seam: seam.Options{FS: mem}})
	must(t, err)
	_, err = r.Backup(context.Background(), copies[1])
	must(t, errors.Join(err, r.Close()))
	for _, dir := range append(copies, "d") {
		s, err := Open(dir, &opts)
		must(t, err)
		o.put(s)
		must(t, s.Close())
	}
	_, err = salvage(context.Background(), "d", "salvaged", &Options{seam: seam.Options{FS: mem}})
	must(t, err)
	for _, dir := range []string{"salvaged", "d"} {
		s, err := Open(dir, &opts)
		must(t, err)
		o.put(s)
		must(t, s.Close())
	}
}

// What a store says of itself before it has noted a history is the same at each
// Open and costs no record.
func TestHistoryOfAStoreAlone(t *testing.T) {
	fs := vfs.NewMem()
	var ids [2]HistoryID
	for i := range ids {
		s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
		must(t, err)
		h, err := s.History()
		must(t, err)
		if ids[i] = h.ID; h.Term != 0 || h.Past != nil || s.Sequence() != 0 || s.man.Features&manifest.FeatureSystem != 0 {
			t.Errorf("%+v, sequence %d", h, s.Sequence())
		}
		must(t, s.Close())
	}
	if ids[0] != ids[1] || ids[0] == (HistoryID{}) || ids[0].String() != fmt.Sprintf("%x", ids[0][:]) {
		t.Errorf("%v", ids)
	}
	s, err := Open("other", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	if h, err := s.History(); err != nil || h.ID == ids[0] {
		t.Errorf("%+v, %v", h, err)
	}
	must(t, s.Close())
}

// The newest past histories are kept.
func TestPastHistories(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	first, err := s.History()
	must(t, err)
	past := []PastHistory{{ID: first.ID}}
	for i := range MaxPast + 5 {
		h, err := s.BeginHistory()
		must(t, err)
		if h.Term != uint64(i+1) || time.Since(h.Began) > time.Minute {
			t.Fatalf("%+v", h)
		}
		want := past[max(len(past)-MaxPast, 0):]
		if fmt.Sprint(h.Past) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", h.Past, want)
		}
		past = append(past, PastHistory{ID: h.ID, Last: s.Sequence()})
	}
	must(t, s.Close())
}

// A record that this build cannot read is of a newer version.
func TestNewerEpoch(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	must(t, err)
	commitNewer(t, s, func(tx *Tx) {
		must(t, tx.PutSystem(history.RecordName, append(history.First(s.man.Store).Encode(), 0)))
	})
	must(t, s.Sync())
	for _, o := range []Options{{}, {ReadOnly: true}} {
		o.seam.FS = fs.Clone()
		if _, err := Open("d", &o); !errors.Is(err, ErrVersion) || failure.IsDamage(err) {
			t.Errorf("%v", err)
		}
	}
	must(t, s.Close())
}

// FuzzEpoch decodes arbitrary bytes: they are refused, or encode to the same.
func FuzzEpoch(f *testing.F) {
	e := history.First([16]byte{1})
	f.Add(e.Encode())
	for range 3 {
		var err error
		if e, err = e.Next([16]byte{2}, 7); err != nil {
			f.Fatal(err)
		}
		f.Add(e.Encode())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := history.Decode(b); err == nil && !bytes.Equal(e.Encode(), b) {
			t.Errorf("%+v", e)
		}
	})
}
