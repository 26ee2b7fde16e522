package mergeinput

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// A batch takes some ten thousand entries of segments and visits them grouped by stripe: a stripe's
// lock is taken once for many of them, with its part of the index in the processor's cache. One by
// one, in the order of the log, every search of the index would miss the cache and every lock would
// be a cold one.
type Batch struct {
	Entries []BatchEntry
	names   []byte // keys and elements of those in a collection
	Order   []uint32
	Starts  [keydir.Stripes + 1]uint32
	Dropped uint64 // entries that were left out
	Bytes   int    // that records may get to, as its owner counts them
	Records []byte // of the entries that are kept, one after the other, without long ones
}

func (sw *Batch) Full() bool {
	return len(sw.Entries) >= stripeBatchEntries || len(sw.names) >= stripeBatchNames || sw.Bytes >= stripeBatchRecords
}

// Add takes an entry.
func (sw *Batch) Add(e *format.Entry, hash uint64, from uint32) *BatchEntry {
	sw.Entries = append(sw.Entries, BatchEntry{
		Hash: hash, Seq: e.Seq, At: e.At, Size: e.Size, Namespace: e.Namespace, From: from,
		name: uint32(len(sw.names)), Kind: e.Kind, Type: e.Type,
	})
	x := &sw.Entries[len(sw.Entries)-1]
	row := e.Row()
	x.Empty = row.Home == format.HomeSystem && len(e.Inline) == 0
	if row.InCollection() || row.Home == format.HomeSystem {
		x.keyLen, x.elemLen = uint32(len(e.Key)), uint32(len(e.Elem))
		sw.names = append(append(sw.names, e.Key...), e.Elem...)
	}
	return x
}

func (sw *Batch) Reset() {
	sw.Entries, sw.names, sw.Dropped, sw.Bytes, sw.Records = sw.Entries[:0], sw.names[:0], 0, 0, sw.Records[:0]
}

// Group sorts the numbers of the entries that are to be visited by stripe.
func (sw *Batch) Group() {
	clear(sw.Starts[:])
	for i := range sw.Entries {
		if x := &sw.Entries[i]; !x.Keep {
			sw.Starts[keydir.StripeOf(x.Hash)+1]++
		}
	}
	for i := range keydir.Stripes {
		sw.Starts[i+1] += sw.Starts[i]
	}
	n := int(sw.Starts[keydir.Stripes])
	if cap(sw.Order) < n {
		sw.Order = make([]uint32, max(n, min(stripeBatchEntries, 2*cap(sw.Order))))
	}
	sw.Order = sw.Order[:n]
	next := sw.Starts
	for i := range sw.Entries {
		if x := &sw.Entries[i]; !x.Keep {
			stripe := keydir.StripeOf(x.Hash)
			sw.Order[next[stripe]] = uint32(i)
			next[stripe]++
		}
	}
}

// Identity is what the entry is about; without names for strings and deadlines.
func (sw *Batch) Identity(x *BatchEntry) format.Identity {
	key := sw.names[x.name : x.name+x.keyLen]
	return format.Identity{Namespace: x.Namespace, Kind: x.Kind, Type: x.Type, Key: key, Elem: sw.names[x.name+x.keyLen:][:x.elemLen]}
}

// BatchEntry is an entry in a batch. Strings need no name: hash and location are
// proof of identity.
type BatchEntry struct {
	Hash            uint64
	Seq             uint64
	At, Size        uint32
	Namespace       uint32
	From            uint32 // whatever the owner of the batch wants to know
	name            uint32 // position of key and element in names
	keyLen, elemLen uint32
	Kind            format.Kind
	Type            keydir.Type
	Keep            bool
	Empty           bool // a system record that says that there is none
}

// Long reports whether its record is left in its segment until it is copied.
func (x *BatchEntry) Long() bool { return x.Size >= longRecord }

const (
	// stripeBatchEntries, and stripeBatchNames and stripeBatchRecords, in bytes, bound a batch.
	stripeBatchEntries = 32 << 10
	stripeBatchNames   = 2 << 20
	stripeBatchRecords = 8 << 20
	// longRecord is the size from which a record is not read ahead.
	longRecord = 64 << 10
	// StripeHold is how many entries are visited while a stripe is locked:
	// some 10 us' worth.
	StripeHold = 64
)
