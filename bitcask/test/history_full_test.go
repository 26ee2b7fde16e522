package bitcask_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// TestHistoryOnAFullDisk: a store that notes its history opens on a full disk, too, and is freed through the store.
func TestHistoryOnAFullDisk(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		for _, how := range []string{"killed", "closed"} {
			t.Run(fmt.Sprint(how, " ", drawn), func(t *testing.T) {
				d := &fullDisk{t: t, name: "history", mem: vfs.NewMem(), have: map[string]string{}, rand: chance.Rand(t), cause: syscall.ENOSPC}
				d.o = *seam.With(&bitcask.Options{SegmentSize: 16 << 10, Reserve: 64 << 10}, seam.Options{NoMapping: true})
				d.mem.SetLimit(512<<10, diskPage)
				d.open()
				if _, err := d.BeginHistory(); err != nil {
					t.Fatal(err)
				}
				d.fill()
				if drawn {
					for key := range d.have {
						if d.Spare() < 64<<10 {
							break
						}
						d.delete(key)
					}
				}
				if how == "killed" {
					d.mem, d.wasKilled = d.mem.Clone(), true
				}
				if err := d.Close(); err != nil { // of the killed one, too, which is not used any more
					t.Fatal(err)
				}
				for i := range 3 {
					d.open()
					if i < 2 {
						if err := d.Close(); err != nil {
							t.Fatal(err)
						}
					}
				}
				d.free(true)
				d.resumes()
				d.close()
			})
		}
	}
}
