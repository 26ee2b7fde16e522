package db_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	fullDisks   = flag.Int("full.disks", 8, "how many disks of random sizes are filled and freed")
	fullLargest = flag.Int64("full.largest", 48<<20, "bytes of the largest of them")
	fullNames   = flag.Int("full.names", 10_000, "how many names are put on one of them, at most")
)

// filledDisk is a store that fills a disk, with what is in it.
type filledDisk struct {
	*testing.T
	*rand.Rand
	what  string // all that was drawn
	size  int64
	mem   *vfs.Mem // nil: a real one
	dir   string
	o     db.Options
	store *db.Store

	keyLen, valueLen, batch int
	kinds                   []string
	collection              string // what keys of collections end with
	names                   []name // that have been put, and not deleted
}

// name is something that can be deleted by itself: a key, or an element of a collection.
type name struct{ kind, key string }

func (d *filledDisk) open() {
	d.Helper()
	if d.mem != nil {
		seam.Of(&d.o).FS = d.mem
	}
	var err error
	if d.store, err = db.Open(d.dir, &d.o); err != nil {
		d.Fatalf("%s: open: %v", d.what, err)
	}
}

// upTo draws a number up to most, small ones as often as large ones.
func (d *filledDisk) upTo(most int64) int64 {
	return min(int64(math.Exp(d.Float64()*math.Log(float64(most+1)))), most)
}

// draw draws the disk and what is to be put on it.
func (d *filledDisk) draw() {
	d.size = 16<<20 + d.Int64N(*fullLargest-16<<20)
	d.o = db.Options{Sync: db.SyncMode(d.IntN(3)), NoMerge: d.IntN(4) == 0}
	if d.IntN(2) == 0 {
		d.o.SegmentSize = 64<<10 + d.upTo(512<<20)
	}
	seam.Of(&d.o).NoMapping = d.IntN(2) == 0
	d.keyLen, d.valueLen = int(12+d.upTo(64<<10-100)), int(d.upTo(1<<20))-1
	for _, kind := range []string{"string", "hash", "set", "zset", "list"} {
		if d.IntN(3) == 0 {
			d.kinds = append(d.kinds, kind)
		}
	}
	if len(d.kinds) == 0 {
		d.kinds = []string{"string"}
	}
	if d.IntN(2) == 0 {
		d.collection = strings.Repeat("c", int(d.upTo(64<<10-100)))
	}
	least := int(d.size) / *fullNames
	if slices.Contains(d.kinds, "list") { // whose elements have no names; members of sets have no values
		d.valueLen = max(d.valueLen, least)
	}
	if d.keyLen+d.valueLen < least || slices.Contains(d.kinds, "set") || slices.Contains(d.kinds, "zset") {
		d.keyLen = max(d.keyLen, least)
	}
	d.batch = int(d.upTo(100))
	for d.batch > 1 && d.batch*(len(d.collection)+d.keyLen+d.valueLen) > int(d.size)/400 { // a commit fits a segment
		d.batch /= 2
	}
	d.what = fmt.Sprintf("disk of %d, segments of %d, sync %v, no merge %v, %v in batches of %d, keys of %d, values of %d, in collections of %d", d.size, d.o.SegmentSize, d.o.Sync, d.o.NoMerge, d.kinds, d.batch,
		d.keyLen, d.valueLen, len(d.collection))
}

// put puts the next names in one commit.
func (d *filledDisk) put() error {
	var names []name
	err := d.store.Update(func(tx *db.Tx) error {
		for i := range d.batch {
			n := name{d.kinds[d.IntN(len(d.kinds))], fmt.Sprintf("%011d%s", len(d.names)+i, strings.Repeat("k", d.keyLen-11))}
			value := make([]byte, max(d.valueLen, 0))
			var err error
			switch n.kind {
			case "string":
				err = tx.String(n.key).Put(value)
			case "hash":
				_, err = tx.Hash("the hash"+d.collection).Put(n.key, value)
			case "set":
				_, err = tx.Set("the set" + d.collection).Add(n.key)
			case "zset":
				_, err = tx.SortedSet("the sorted set" + d.collection).Add(db.Scored{Member: n.key, Score: float64(i)})
			case "list":
				_, err = tx.List("the list" + d.collection).PushBack(value)
			}
			if err != nil {
				return err
			}
			names = append(names, n)
		}
		return nil
	})
	if err == nil {
		d.names = append(d.names, names...)
	} else if !errors.Is(err, db.ErrNoSpace) || errors.Is(err, db.ErrFailed) {
		d.Fatalf("%s: put: %v", d.what, err)
	}
	return err
}

func (d *filledDisk) fill() {
	d.Helper()
	for refused := 0; refused < 5; {
		if d.put() != nil {
			refused++
		}
	}
}

// delete deletes one name, without any error; by hand a merge may come first.
func (d *filledDisk) delete(n name) {
	d.Helper()
	for merges := 0; ; merges++ {
		var err error
		switch n.kind {
		case "string":
			_, err = d.store.Key(n.key).Delete()
		case "hash":
			_, err = d.store.Hash("the hash" + d.collection).Delete(n.key)
		case "set":
			_, err = d.store.Set("the set" + d.collection).Remove(n.key)
		case "zset":
			_, err = d.store.SortedSet("the sorted set" + d.collection).Remove(n.key)
		case "list":
			if d.IntN(2) == 0 {
				_, err = d.store.List("the list" + d.collection).PopFront()
			} else {
				_, err = d.store.List("the list" + d.collection).PopBack()
			}
		}
		if err == nil {
			return
		}
		if merges == 1 || !d.o.NoMerge || !errors.Is(err, db.ErrNoSpace) {
			d.Fatalf("%s: delete of %s, with %d left: %v; %+v; merges: %+v", d.what, n.kind, len(d.names), err, d.store.Stats(), d.store.Merger().Status())
		}
		if _, err := d.store.Merge(d.Context(), db.MergeOptions{All: true, Unlimited: true}); err != nil && !errors.Is(err, db.ErrNoSpace) {
			d.Fatalf("%s: merge: %v", d.what, err)
		}
	}
}

// killed goes on in another process.
func (d *filledDisk) killed() {
	d.Helper()
	earlier := d.store
	if d.mem == nil {
		must(d.T, earlier.Close())
		d.open()
		return
	}
	d.mem = d.mem.Clone()
	d.open()
	must(d.T, earlier.Close())
}

func (d *filledDisk) wantLeft() {
	d.Helper()
	keys := 0
	seen := map[string]bool{}
	for _, n := range d.names {
		if n.kind == "string" || !seen[n.kind] {
			seen[n.kind] = true
			keys++
		}
	}
	if got := d.store.Len(); got != keys {
		d.Fatalf("%s: %d keys, want %d", d.what, got, keys)
	}
	wantSoundStore(d.T, d.store)
}

// TestFullDiskIsFreedByDeletes fills disks of random sizes, and deletes all keys and elements one by one, with a kill at
// some place: no delete is refused, and then writes resume. See package reserve for why.
func TestFullDiskIsFreedByDeletes(t *testing.T) { freeDisks(t, func(*filledDisk) {}) }

// TestFullDiskWithLongStrings is TestFullDiskIsFreedByDeletes with strings in chunks, each of which has the whole of a long name: one may take
// many times the length of a segment.
func TestFullDiskWithLongStrings(t *testing.T) {
	freeDisks(t, func(d *filledDisk) {
		d.kinds, d.batch = []string{"string"}, 1
		d.keyLen, d.valueLen = int(1<<10+d.upTo(63<<10-100)), 64<<10+d.IntN(1<<20)
		d.what += fmt.Sprintf("; long strings with keys of %d, values of %d", d.keyLen, d.valueLen)
	})
}

// freeDisks fills and frees disks in memory, each drawn at random and then changed by change.
func freeDisks(t *testing.T, change func(d *filledDisk)) {
	seed := chance.Seed(t)
	disks := *fullDisks
	if testing.Short() {
		disks = 2
	}
	for i := range disks {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d := &filledDisk{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(i))), mem: vfs.NewMem(), dir: "d"}
			d.draw()
			change(d)
			d.mem.SetLimit(d.size, fullPage)
			d.freed()
		})
	}
}

// freed fills the disk and frees it.
func (d *filledDisk) freed() {
	began := time.Now()
	d.open()
	d.fill()
	all := len(d.names)
	if d.IntN(2) == 0 {
		d.Shuffle(all, func(i, j int) { d.names[i], d.names[j] = d.names[j], d.names[i] })
	}
	for kill := d.IntN(2 * all); len(d.names) > 0; {
		last := len(d.names) - 1
		d.delete(d.names[last])
		if d.names = d.names[:last]; last == kill {
			d.killed()
			d.wantLeft()
		}
	}
	d.wantLeft()
	if d.o.NoMerge {
		_, err := d.store.Merge(d.Context(), db.MergeOptions{All: true, Unlimited: true})
		must(d.T, err)
	}
	for begin := time.Now(); d.put() != nil; {
		if time.Since(begin) > time.Minute {
			d.Fatalf("%s: writes do not resume; %+v", d.what, d.store.Stats())
		}
		time.Sleep(time.Millisecond)
	}
	d.Logf("%s: %d names in %v", d.what, all, time.Since(began))
	must(d.T, d.store.Close())
}
