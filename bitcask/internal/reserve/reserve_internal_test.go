package reserve

import (
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
)

// started returns a reserve on a disk of its own, in an environment whose lengths are given.
func started(t *testing.T, env Environment) *Reserve {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	env.FS, env.Dir, env.Logger, env.Store, env.SpaceAgain = mem, "d", slog.New(slog.DiscardHandler), func() (id [16]byte) { return id }, func() {}
	r := new(Reserve)
	r.Start(env)
	return r
}

// Each user of the reserve draws down to its own part and no further, and Open's part is there after all others have
// drawn theirs.
func TestParts(t *testing.T) {
	const size = 1 << 20
	r := started(t, Environment{SegmentSize: func() int64 { return size }, Want: size, Longest: func() int64 { return 0 }, LogSize: func() int64 { return 100 * size }})
	r.Begin()
	if r.Bytes() != size || r.Full() {
		t.Fatalf("%d bytes, full %v", r.Bytes(), r.Full())
	}
	full := func() error { return syscall.ENOSPC }
	for _, part := range []struct {
		name  string
		leave int64
		left  int64
	}{
		{"what can wait", LeaveAll, size},
		{"deletes", LeaveHalf, size / 2},
		{"segments for a merge", LeaveFourth, size / 4},
		{"outputs", LeaveFourth, size / 4},
		{"deletes beside an output", LeaveEighth, size / 8},
		{"deletes again", LeaveHalf, size / 8},
		{"Open", LeaveOpen, size / 16},
		{"outputs again", LeaveEighth, size / 16},
	} {
		if err := r.With(part.leave, full); !errors.Is(err, syscall.ENOSPC) || r.Bytes() != part.left {
			t.Errorf("%s: %v, %d bytes left, want %d", part.name, err, r.Bytes(), part.left)
		}
	}
	if err := r.With(LeaveNone, full); !errors.Is(err, syscall.ENOSPC) || r.Bytes() > page {
		t.Errorf("what lets segments go: %v, %d bytes left", err, r.Bytes())
	}
	if !r.Short() || !r.Refill() || r.Full() || r.Bytes() != size {
		t.Errorf("with space again: short %v, full %v, %d bytes", r.Short(), r.Full(), r.Bytes())
	}
}

// TestPreparedStays: what is made for a long commit stays while that is appended and afterwards, though much of the disk was left before.
func TestPreparedStays(t *testing.T) {
	const mb = 1 << 20
	segment, log := int64(100<<10), int64(40*mb)
	r := started(t, Environment{SegmentSize: func() int64 { return segment }, Longest: func() int64 { return segment }, LogSize: func() int64 { return log }})
	r.Measured(segment, 20*mb) // more than a quarter
	adjusted := func() int64 {
		for !r.Adjust() {
		}
		return r.Bytes()
	}
	if short := adjusted(); short >= mb {
		t.Fatalf("%d bytes before", short)
	}
	const commit = 3 * mb
	if err := r.Prepare(commit); err != nil {
		t.Fatal(err)
	}
	made := r.Bytes()
	if made < mb || adjusted() < made {
		t.Errorf("%d bytes while it is appended, of %d", r.Bytes(), made)
	}
	log += commit
	r.Appended(commit)
	if adjusted() < mb {
		t.Errorf("%d bytes afterwards", r.Bytes())
	}
}

// TestWholeAtLess: a reserve that was drawn on, and is long enough for a log whose segments have become shorter, is whole: what
// deletes may have of it is a part of that, and not nothing because it was longer once.
func TestWholeAtLess(t *testing.T) {
	segment := int64(400 << 10)
	r := started(t, Environment{SegmentSize: func() int64 { return segment }, Longest: func() int64 { return 0 }, LogSize: func() int64 { return 100 << 20 }})
	r.low.Store(true)
	for !r.Adjust() {
	}
	full := func() error { return syscall.ENOSPC }
	drawn := func() int64 {
		if err := r.With(LeaveHalf, full); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		return r.Bytes()
	}
	half := drawn()
	if segment /= 4; r.due() > half {
		t.Fatalf("%d bytes are due, and %d left", r.due(), half)
	}
	if !r.Refill() {
		t.Fatal("it is not whole")
	}
	if left := drawn(); left > half/2+page {
		t.Errorf("deletes have drawn %d bytes to %d, %d bytes are due", half, left, r.due())
	}
}
