package db_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// fullAfter is a writer of a disk that becomes full after some writes.
type fullAfter struct{ left *int }

func (w fullAfter) Write(b []byte) (int, error) {
	if *w.left--; *w.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestFullDiskIsNamed lets the disk become full at each place of every call that writes files, the store's or a copy's: the error
// is an ErrNoSpace, which a caller asks for, and not the operating system's alone.
func TestFullDiskIsNamed(t *testing.T) {
	mem := vfs.NewMem()
	s := ok[*db.Store](t)(db.Open("d", stepOptions(mem, db.SyncAlways)))
	partedRound(t, s, "before", 0)
	partedRound(t, s, "before", 1)
	must(t, first(s.Backup(t.Context(), "e")))
	partedRound(t, s, "after", 0)
	must(t, s.Close())
	killed := ok[*db.Store](t)(db.Open("k", stepOptions(mem, db.SyncAlways)))
	partedRound(t, killed, "before", 0)
	base := mem.Clone()
	must(t, killed.Close())

	// Each call has the file system, a store that is open there unless it is to be opened, and a writer.
	type calls func(fs *vfstest.Fault, s *db.Store, w io.Writer) error
	open := func(dir string) calls {
		return func(fs *vfstest.Fault, _ *db.Store, _ io.Writer) error {
			s, err := db.Open(dir, stepOptions(fs, db.SyncAlways))
			if err == nil {
				err = s.String("new").Put([]byte("v")) // what Open leaves to the first write
			}
			if s != nil {
				fs.Heal()
				must(t, s.Close())
			}
			return err
		}
	}
	for name, call := range map[string]calls{
		"open of a new store":    open("n"),
		"open":                   open("d"),
		"open of a killed store": open("k"),
		"backup":                 func(_ *vfstest.Fault, s *db.Store, _ io.Writer) error { return second(s.Backup(t.Context(), "b")) },
		"backup of another disk": func(fs *vfstest.Fault, s *db.Store, _ io.Writer) error {
			fs.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpLink}, Err: syscall.EXDEV, Sticky: true})
			return second(s.Backup(t.Context(), "b"))
		},
		"incremental backup": func(_ *vfstest.Fault, s *db.Store, _ io.Writer) error {
			return second(s.BackupSince(t.Context(), "b", "e"))
		},
		"archive": func(_ *vfstest.Fault, s *db.Store, w io.Writer) error { return second(s.BackupTo(t.Context(), w)) },
		"merge": func(_ *vfstest.Fault, s *db.Store, _ io.Writer) error {
			return second(s.Merge(t.Context(), db.MergeOptions{All: true, Unlimited: true}))
		},
		"put":   func(_ *vfstest.Fault, s *db.Store, _ io.Writer) error { return s.String("new").Put([]byte("v")) },
		"flush": func(_ *vfstest.Fault, s *db.Store, _ io.Writer) error { return s.FlushAll() },
		"repair": func(fs *vfstest.Fault, _ *db.Store, _ io.Writer) error {
			return second(repair.Salvage(t.Context(), "k", "r", seam.With(&bitcask.Options{SegmentSize: 1 << 10}, seam.Options{FS: fs})))
		},
	} {
		failed := 0
		for n := range 200 {
			mem := base.Clone()
			fault := vfstest.NewFault(mem)
			var s *db.Store
			if name != "repair" && !strings.HasPrefix(name, "open") {
				s = ok[*db.Store](t)(db.Open("d", stepOptions(fault, db.SyncAlways)))
				waitForHints(t, mem, s)
			}
			left := n
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpCreate, vfstest.OpMkdir, vfstest.OpRename}, Skip: n, Sticky: true, Err: syscall.ENOSPC})
			err := call(fault, s, fullAfter{&left})
			if err != nil {
				failed++
				if !errors.Is(err, db.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, db.ErrFailed) {
					t.Errorf("%s, full after %d: %v", name, n, err)
				}
			}
			fault.Heal()
			if s != nil {
				must(t, s.Close())
			}
			if err == nil && fault.Failed() == 0 && left >= 0 {
				break
			}
		}
		if failed == 0 {
			t.Errorf("%s: never full", name)
		}
		t.Log(fmt.Sprint(name, ": ", failed, " times full"))
	}
}
