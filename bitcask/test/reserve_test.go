package bitcask_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

var (
	fullStep = flag.Int64("full.step", 16<<10, "step in bytes between the sizes of disks that are filled")
	fullTell = flag.Bool("full.tell", false, "say what it took to free each disk")
)

const diskPage = 4 << 10

// fullDisk is a store on a disk of some size.
type fullDisk struct {
	t    *testing.T
	name string
	mem  *vfs.Mem
	o    bitcask.Options
	*bitcask.Store
	m         *merge.Merger
	rand      *rand.Rand
	have      map[string]string
	last      int    // key
	note      string // of the last merge
	cause     syscall.Errno
	wasKilled bool // its cause may be unknown
}

func (d *fullDisk) open() {
	d.t.Helper()
	seam.Of(&d.o).FS = d.mem
	s, err := bitcask.Open("d", &d.o)
	if err != nil {
		d.t.Fatalf("%s: open: %v", d.name, err)
	}
	d.Store = s
	if d.m, err = merge.New(s, merge.Policy{}, nil); err != nil {
		d.t.Fatal(err)
	}
}

// put puts a key, a new one mostly.
func (d *fullDisk) put() error {
	if d.rand.IntN(4) > 0 {
		d.last++
	}
	key, value := fmt.Sprintf("key %06d", d.last), strings.Repeat(string(rune('a'+d.rand.IntN(26))), d.rand.IntN(300))
	err := d.Put(key, []byte(value))
	if err == nil {
		d.have[key] = value
	} else if !errors.Is(err, bitcask.ErrNoSpace) || !errors.Is(err, d.cause) && !d.wasKilled || errors.Is(err, bitcask.ErrFailed) {
		d.t.Fatalf("%s: put: %v", d.name, err)
	}
	return err
}

// fill puts until some puts in a row do not fit.
func (d *fullDisk) fill() {
	d.t.Helper()
	for refused := 0; refused < 5; {
		if d.put() != nil {
			refused++
		}
		if len(d.have) > 100_000 {
			d.t.Fatalf("%s: it is never full", d.name)
		}
	}
	if !d.Full() {
		d.t.Fatalf("%s: it does not say that it is full", d.name)
	}
}

// delete deletes a key, with the help of a merge if need be.
func (d *fullDisk) delete(key string) (merges int) {
	d.t.Helper()
	for {
		ok, err := d.Delete(key)
		if err == nil && ok {
			delete(d.have, key)
			return merges
		}
		if !errors.Is(err, bitcask.ErrNoSpace) || merges == 3 {
			d.t.Fatalf("%s: delete %q: %v, %v, after %d merges; %d keys left; reserve %d", d.name, key, ok, err, merges, len(d.have), d.Spare())
		}
		d.merge()
		merges++
	}
}

func (d *fullDisk) merge() {
	d.t.Helper()
	r, err := d.m.Run(d.t.Context(), merge.RunOptions{All: true, Unlimited: true})
	d.note = fmt.Sprintf("merge: %+v, %v", r, err)
	if err != nil && !errors.Is(err, bitcask.ErrNoSpace) {
		d.t.Fatalf("%s: merge: %v", d.name, err)
	}
}

// resumes checks that everything is as it was said, and that writes go on by themselves.
func (d *fullDisk) resumes() {
	d.t.Helper()
	for begin := time.Now(); d.put() != nil; {
		if time.Since(begin) > time.Minute {
			d.t.Fatalf("%s: writes do not go on, with %d keys, %d bytes used, reserve %d, %d segments; %s", d.name, len(d.have), d.mem.Used(diskPage), d.Spare(), len(d.Segments()), d.note)
		}
		time.Sleep(time.Millisecond)
	}
	for range 20 {
		_ = d.put()
	}
	d.holds()
}

func (d *fullDisk) holds() {
	d.t.Helper()
	for key, value := range d.have {
		if got, err := d.Get(key); err != nil || string(got) != value {
			d.t.Fatalf("%s: %s: %q, %v", d.name, key, got, err)
		}
	}
	if n := d.Stats().Keys; n != len(d.have) {
		d.t.Fatalf("%s: %d keys, want %d", d.name, n, len(d.have))
	}
	check(d.t, d.Store)
}

// killed goes on in a process of its own, on a disk as this one leaves it.
func (d *fullDisk) killed() *fullDisk {
	d.t.Helper()
	k := *d
	k.wasKilled = true
	k.name, k.mem, k.have = d.name+", killed", d.mem.Clone(), maps.Clone(d.have)
	k.open()
	k.holds()
	return &k
}

func (d *fullDisk) close() {
	d.t.Helper()
	if err := d.Close(); err != nil {
		d.t.Fatalf("%s: close: %v", d.name, err)
	}
	if left := d.mem.Leaks(); len(left) > 0 {
		d.t.Fatalf("%s: open: %v", d.name, left)
	}
	d.open()
	d.holds()
	if err := d.Close(); err != nil {
		d.t.Fatalf("%s: closed again: %v", d.name, err)
	}
}

// TestFullDiskIsFreed fills disks of all sizes, deletes all or half of the keys, and merges: space comes back and
// writes go on, in the same process and in the next one.
func TestFullDiskIsFreed(t *testing.T) {
	seed := chance.Seed(t)
	step := *fullStep
	if testing.Short() {
		step *= 4
	}
	for _, sync := range []bitcask.SyncMode{bitcask.SyncNone, bitcask.SyncAlways, bitcask.SyncInterval} {
		for _, segment := range []int64{1000, 16 << 10, 64 << 10, 1 << 20} {
			for _, half := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, segments of %d, half %v", sync, segment, half), func(t *testing.T) {
					t.Parallel()
					for size := int64(256 << 10); size < 320<<10; size += step {
						d := &fullDisk{t: t, name: fmt.Sprint("disk of ", size), mem: vfs.NewMem(), have: map[string]string{}, cause: syscall.ENOSPC, rand: rand.New(rand.NewPCG(seed, uint64(size)))}
						d.o = *seam.With(&bitcask.Options{Sync: sync, SegmentSize: segment, Reserve: max(64<<10, segment/8)}, seam.Options{NoMapping: true})
						d.mem.SetLimit(size, diskPage)
						d.open()
						d.fill()
						d.holds()
						for _, d := range []*fullDisk{d.killed(), d} {
							d.free(half)
							d.resumes()
							d.close()
						}
					}
				})
			}
		}
	}
}

// free deletes keys in the order of their names, or at random, and merges.
func (d *fullDisk) free(half bool) {
	d.t.Helper()
	keys := slices.Sorted(maps.Keys(d.have))
	if half {
		d.rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		keys = keys[:len(keys)/2]
	}
	merges := 0
	for i, key := range keys {
		if merges += d.delete(key); i == len(keys)/2 && !d.wasKilled { // in the middle of it
			k := d.killed()
			k.merge()
			k.resumes()
			k.close()
		}
	}
	d.merge()
	if *fullTell {
		d.t.Logf("%s: %d merges before the last; reserve %d", d.name, merges, d.Spare())
	}
}
