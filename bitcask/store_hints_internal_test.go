package bitcask

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestHintThatIsNotPlain: a tombstone in a hint that says there is none, so that a merge would drop it unread, makes
// the hint no good. It is removed, but not by a store that is open for reading.
func TestHintThatIsNotPlain(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("d", &Options{seam: seam.Options{FS: fs}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	putting := s.Put("k", []byte("v"))
	_, deleting := s.Delete("k")
	if err := errors.Join(putting, deleting, s.Rotate()); err != nil {
		t.Fatal(err)
	}
	s.DrainDropped()
	sg := s.segments.Load().All()[0]
	for { // until the store has made one itself
		if hs, err := segment.OpenHint(fs, "d", sg); err == nil {
			if err := hs.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, row := range []struct{ lie, readOnly bool }{{}, {lie: true, readOnly: true}, {lie: true}} {
		lie := row.lie
		w, err := segment.NewHintWriter(fs, "d", sg)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddAll(segment.NewFrames(sg), nil); err != nil {
			t.Fatal(err)
		}
		w.Mixed = !lie
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		hs, err := segment.OpenHint(fs, "d", sg)
		if err != nil {
			t.Fatal(err)
		}
		err = hs.Check()
		if hs.Plain != lie || errors.Is(err, segment.ErrHint) != lie {
			t.Errorf("plain %v, %v", hs.Plain, err)
		}
		if err := hs.Close(); err != nil {
			t.Fatal(err)
		}
		env := s.inputEnvironment()
		env.ReadOnly = row.readOnly
		in := &mergeinput.Input{Env: env, Segment: sg, Read: func(int) error { return nil }}
		n := 0
		for in.Next() == nil {
			n++
		}
		if n != 2 || (in.Frames != nil) != lie {
			t.Errorf("%d entries; the hint was given up: %v", n, in.Frames != nil)
		}
		if gone := !hasHint(fs, "d", sg); gone != (lie && !row.readOnly) {
			t.Errorf("lie %v, read-only %v: the hint is gone: %v", lie, row.readOnly, gone)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
