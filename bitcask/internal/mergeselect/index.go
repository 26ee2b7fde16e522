package mergeselect

import (
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// Index is the index of a store as a merge uses it.
type Index struct {
	Spaces *namespace.Table
	System *system.Records
	Seed   keydir.Seed
	Lock   func(stripe int, write bool) error // the stripe is loaded then, and no transaction claims a part of it
	Unlock func(stripe int, write bool)
}

// Visit calls fn for every entry whose keep is not set, under the lock of its stripe, shared or
// exclusive, with the space it belongs to: nil if that is not in use. between
// is called with no lock held, after every few entries; its error ends it.
func (ix *Index) Visit(sw *mergeinput.Batch, write bool, fn func(sp *namespace.Space, x *mergeinput.BatchEntry), between func(n int) error) error {
	sw.Group()
	for stripe := range keydir.Stripes {
		group := sw.Order[sw.Starts[stripe]:sw.Starts[stripe+1]]
		for len(group) > 0 {
			n := min(len(group), mergeinput.StripeHold)
			if err := ix.holdStripe(sw, stripe, write, group[:n], fn); err != nil {
				return err
			}
			group = group[n:]
			if err := between(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdStripe visits the entries of one stripe with its lock held.
func (ix *Index) holdStripe(sw *mergeinput.Batch, stripe int, write bool, group []uint32, fn func(sp *namespace.Space, x *mergeinput.BatchEntry)) error {
	if err := ix.Lock(stripe, write); err != nil {
		return err
	}
	defer ix.Unlock(stripe, write)
	// Spaces lose their names under every stripe's lock only.
	ns := sw.Entries[group[0]].Namespace
	sp := ix.Spaces.ByRecord(ns)
	if sp != nil { // that of all of them, mostly
		var hashes [mergeinput.StripeHold]uint64
		for i, at := range group {
			hashes[i] = sw.Entries[at].Hash
		}
		sp.Dir.Prefetch(hashes[:len(group)])
	}
	for _, at := range group {
		x := &sw.Entries[at]
		if x.Namespace != ns {
			sp, ns = ix.Spaces.ByRecord(x.Namespace), x.Namespace
		}
		fn(sp, x)
	}
	return nil
}
