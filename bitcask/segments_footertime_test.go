package bitcask_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// The time in a footer lies between the last commit of its segment and the next
// one, also in a copy, and that of a merge is the latest of what went into it.
func TestTimeOfSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs}))
		if err != nil {
			t.Fatal(err)
		}
		commits := map[uint64]time.Time{}
		for range 30 {
			time.Sleep(time.Hour)
			if err := s.Put("key"+time.Now().String(), make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
			commits[s.Sequence()] = time.Now()
		}
		check := func(s *bitcask.Store, what string, most int) {
			sealed := 0
			for _, sg := range s.Segments() {
				if !sg.Sealed {
					if !sg.Time.IsZero() {
						t.Errorf("%s: segment %d is not sealed, and has the time %v", what, sg.ID, sg.Time)
					}
					continue
				}
				sealed++
				last, next := commits[sg.MaxSeq], commits[sg.MaxSeq+1]
				if sg.Time.Before(last) || !next.IsZero() && sg.Time.After(next) {
					t.Errorf("%s: segment %d has the time %v; want one from %v to %v", what, sg.ID, sg.Time, last, next)
				}
			}
			if sealed < 1 || sealed > most {
				t.Errorf("%s: %d sealed segments", what, sealed)
			}
		}
		check(s, "store", 30)
		if _, err := s.Backup(context.Background(), "copy"); err != nil {
			t.Fatal(err)
		}
		c, err := bitcask.Open("copy", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: fs}))
		if err != nil {
			t.Fatal(err)
		}
		check(c, "copy", 30)
		var ids []uint32
		for _, sg := range s.Segments() {
			if sg.Sealed && len(ids) < 3 {
				ids = append(ids, sg.ID)
			}
		}
		if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
			t.Fatal(err)
		}
		check(s, "merged", 30)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
