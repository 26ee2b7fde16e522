package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// A batch takes some ten thousand entries of segments and visits them grouped
// by stripe: a stripe's lock is taken once for many of them, and its part of
// the index is in the processor's cache meanwhile. Taken one by one, in the
// order of the log, every look at the index would miss the cache and every
// lock would be a cold one.
type stripeBatch struct {
	entries []batchEntry
	names   []byte // keys and elements of those in a collection
	order   []uint32
	starts  [keydir.Stripes + 1]uint32
	dropped uint64 // entries that were left out
	bytes   int    // that records may get to, as its owner counts them
	records []byte // of the entries that are kept, one behind the other, but for long ones
}

// batchEntry is an entry in a batch. Strings need no name: hash and location are
// proof of identity.
type batchEntry struct {
	hash            uint64
	seq             uint64
	at, size        uint32
	ns              uint32
	from            uint32 // whatever the owner of the batch wants to know
	name            uint32 // where key and element stand in names
	keyLen, elemLen uint32
	kind            Kind
	typ             keydir.Type
	keep            bool
	empty           bool // a system record that says that there is none
}

const (
	// stripeBatchEntries, and stripeBatchNames and stripeBatchRecords, in bytes, bound a batch.
	stripeBatchEntries = 32 << 10
	stripeBatchNames   = 2 << 20
	stripeBatchRecords = 8 << 20
	// longRecord is the size from which a record is not read ahead.
	longRecord = 64 << 10
	// stripeHold is how many entries are looked at while a stripe is locked:
	// some 10 us' worth.
	stripeHold = 64
)

func (sw *stripeBatch) reset() {
	sw.entries, sw.names, sw.dropped, sw.bytes, sw.records = sw.entries[:0], sw.names[:0], 0, 0, sw.records[:0]
}

func (sw *stripeBatch) full() bool {
	return len(sw.entries) >= stripeBatchEntries || len(sw.names) >= stripeBatchNames || sw.bytes >= stripeBatchRecords
}

// add takes an entry.
func (sw *stripeBatch) add(e *format.Entry, hash uint64, from uint32) *batchEntry {
	sw.entries = append(sw.entries, batchEntry{
		hash: hash, seq: e.Seq, at: e.At, size: e.Size, ns: e.Namespace, from: from,
		name: uint32(len(sw.names)), kind: e.Kind, typ: e.Type,
	})
	x := &sw.entries[len(sw.entries)-1]
	x.empty = e.Kind == KindSystem && len(e.Inline) == 0
	if e.Kind.InCollection() || e.Kind == KindSystem {
		x.keyLen, x.elemLen = uint32(len(e.Key)), uint32(len(e.Elem))
		sw.names = append(append(sw.names, e.Key...), e.Elem...)
	}
	return x
}

// long reports whether its record is left in its segment until it is copied.
func (x *batchEntry) long() bool { return x.size >= longRecord }

// identity is what the entry is about; without names for strings and deadlines.
func (sw *stripeBatch) identity(x *batchEntry) Identity {
	key := sw.names[x.name : x.name+x.keyLen]
	return Identity{Namespace: x.ns, Kind: x.kind, Type: x.typ, Key: key, Elem: sw.names[x.name+x.keyLen:][:x.elemLen]}
}

// visit calls fn for every entry whose keep is not set, under the lock of its stripe, shared or
// exclusive, with the space it belongs to: nil if that is not in use. between
// is called with no lock held, after every few entries; its error ends it.
func (sw *stripeBatch) visit(s *Store, write bool, fn func(sp *namespace.Space, x *batchEntry), between func(n int) error) error {
	sw.group()
	for stripe := range keydir.Stripes {
		group := sw.order[sw.starts[stripe]:sw.starts[stripe+1]]
		for len(group) > 0 {
			n := min(len(group), stripeHold)
			sw.hold(s, stripe, write, group[:n], fn)
			group = group[n:]
			if err := between(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// hold visits the entries of one stripe with its lock held.
func (sw *stripeBatch) hold(s *Store, stripe int, write bool, group []uint32, fn func(sp *namespace.Space, x *batchEntry)) {
	if lock := &s.stripes[stripe]; write {
		lock.Lock()
		defer lock.Unlock()
	} else {
		lock.RLock()
		defer lock.RUnlock()
	}
	// Spaces lose their names under every stripe's lock only.
	ns := sw.entries[group[0]].ns
	sp := s.spaces.ByRecord(ns)
	if sp != nil { // that of all of them, mostly
		var hashes [stripeHold]uint64
		for i, at := range group {
			hashes[i] = sw.entries[at].hash
		}
		sp.Dir.Prefetch(hashes[:len(group)])
	}
	for _, at := range group {
		x := &sw.entries[at]
		if x.ns != ns {
			sp, ns = s.spaces.ByRecord(x.ns), x.ns
		}
		fn(sp, x)
	}
}

// group sorts the numbers of the entries that are to be visited by stripe.
func (sw *stripeBatch) group() {
	clear(sw.starts[:])
	for i := range sw.entries {
		if x := &sw.entries[i]; !x.keep {
			sw.starts[keydir.StripeOf(x.hash)+1]++
		}
	}
	for i := range keydir.Stripes {
		sw.starts[i+1] += sw.starts[i]
	}
	n := int(sw.starts[keydir.Stripes])
	if cap(sw.order) < n {
		sw.order = make([]uint32, max(n, min(stripeBatchEntries, 2*cap(sw.order))))
	}
	sw.order = sw.order[:n]
	next := sw.starts
	for i := range sw.entries {
		if x := &sw.entries[i]; !x.keep {
			stripe := keydir.StripeOf(x.hash)
			sw.order[next[stripe]] = uint32(i)
			next[stripe]++
		}
	}
}
