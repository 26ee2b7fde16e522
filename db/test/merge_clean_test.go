package db_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// TestMergesThenKill: steps of all histories in any order, merges of any segments, in the middle of which there are more of
// them, and kills at any moment: what the log says is always what the store holds. So no tombstone has gone that something
// still needed, though merges let those go that hide nothing in what was copied after them.
func TestMergesThenKill(t *testing.T) {
	var steps []step
	for _, name := range slices.Sorted(maps.Keys(keyHistories)) {
		steps = append(steps, keyHistories[name]...)
	}
	for i := range budget.Rounds(t, 6, 200) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := chance.Rand(t)
			k := killedStore{t: t, r: r, mem: vfs.NewMem()}
			// A few of the steps, or hardly any would find what another has left; and long strings, for merges to stop within.
			from := r.IntN(len(steps))
			k.steps = slices.Concat(steps, steps)[from : from+10+r.IntN(30)]
			k.open()
			for range 30 {
				k.act()
				must(t, k.s.Log().Rotate())
				if r.IntN(3) == 0 {
					k.merge()
				}
				if k.compare(); t.Failed() {
					break
				}
				if r.IntN(15) == 0 { // and goes on from there
					left := k.mem.Clone()
					must(t, k.s.Close())
					k.mem = left
					k.open()
				}
			}
			must(t, k.s.Close())
		})
	}
}

// killedStore is a store that is killed at any moment, as what a copy of its files is.
type killedStore struct {
	t     *testing.T
	r     *rand.Rand
	mem   *vfs.Mem
	s     *db.Store
	steps []step
}

// open opens the store, which makes a merge have several outputs.
func (k *killedStore) open() {
	o := &db.Options{SegmentSize: 200_000, NoMerge: true, ExpireEvery: -1}
	k.s = ok[*db.Store](k.t)(db.Open("d", seam.With(o, seam.Options{FS: k.mem, NoIndex: true, Copies: seam.CopiesOff})))
}

// act does something. Steps that do not fit the keys as they are fail, which is as good.
func (k *killedStore) act() {
	for range 1 + k.r.IntN(4) {
		if k.r.IntN(4) == 0 {
			_ = putString(fmt.Sprint("long", k.r.IntN(3)), 60_000+k.r.IntN(60_000))(k.s)
			continue
		}
		_ = k.steps[k.r.IntN(len(k.steps))](k.s)
	}
}

// merge merges some segments, not always to the end, and acts and compares in the middle.
func (k *killedStore) merge() {
	ids := sealed(k.s)
	one := k.r.IntN(3) + 1 // in so many
	ids = slices.DeleteFunc(ids, func(uint32) bool { return k.r.IntN(one) > 0 })
	_, err := k.s.Log().Rewrite(k.t.Context(), ids, bitcask.RewriteOptions{Throttle: func(int) error {
		if k.r.IntN(2) == 0 {
			k.act()
		}
		if k.r.IntN(4) == 0 {
			k.compare()
		}
		if k.r.IntN(16) == 0 {
			return errEnough
		}
		return nil
	}})
	if !errors.Is(err, errEnough) {
		must(k.t, err)
	}
}

var errEnough = errors.New("enough")

// compare opens what a kill would leave now.
func (k *killedStore) compare() {
	want, err := everything(k.s)
	must(k.t, err)
	killed := openMem(k.t, k.mem.Clone(), "d", true)
	got, err := everything(killed)
	must(k.t, err)
	must(k.t, killed.Close())
	if got != want {
		k.t.Errorf("after a kill:\n%s", differences(got, want))
	}
}
