package bitcask_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestThrottleWhileTimeIsStopped has a rewrite sleep in a bubble, where time advances only if no
// other goroutine keeps it: the hint builder, a check and Close all wait for the rewrite to end.
func TestThrottleWhileTimeIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 1 << 10}, seam.Options{FS: vfs.NewMem()}))
		if err != nil {
			t.Fatal(err)
		}
		fill := func() {
			for i := range 100 {
				put(t, s, fmt.Sprint("k", i%20), "some value")
			}
		}
		fill()
		var ids []uint32
		for _, info := range s.Segments() {
			if info.Sealed {
				ids = append(ids, info.ID)
			}
		}
		begun, done := make(chan bool, 1), make(chan error)
		go func() {
			_, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{Throttle: func(int) error {
				select {
				case begun <- true:
				default:
				}
				time.Sleep(time.Second)
				return nil
			}})
			done <- err
		}()
		<-begun
		fill() // rotates: the hint builder wants its turn
		if _, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) }); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
