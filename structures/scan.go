package structures

import (
	"unsafe"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/keydir"
)

// DefaultScanCount is how many elements a scan visits by default.
const DefaultScanCount = 10

// A collection is scanned whole by one call if Redis, by default, would keep it in one block, a listpack or an intset:
// anything of up to SmallScan elements, a hash of short fields or a set of integers of up to PackedScan.
const (
	SmallScan  = 128
	PackedScan = 512
	packedElem = 64 // most bytes of a name, and of a value
)

// scannedWhole reports whether one call of scan visits all of a collection.
func scannedWhole(f keydir.Collection) bool {
	n, typ := f.Len(), f.Type()
	if n <= SmallScan || n > PackedScan || typ != keydir.Hash && typ != keydir.Set {
		return n <= SmallScan
	}
	longest := 2*packedElem + len(f.Key()) + recordOverhead
	packed := true
	f.Each(func(elem []byte, loc keydir.Loc) bool {
		if typ == keydir.Set {
			_, packed = number.ParseInt(elem)
		} else {
			packed = len(elem) <= packedElem && int(loc.Size()) <= longest
		}
		return packed
	})
	return packed
}

// recordOverhead is what the record of a field takes at most besides key, field and value, if these are short.
const recordOverhead = 32

// ScanOptions narrow a scan.
type ScanOptions struct {
	// Match is a glob pattern that elements must match. Default: all elements.
	Match string
	// Count is how many elements one call visits, if it does not visit all. Default: 10.
	Count int
	// NoValues leaves the values of a hash's fields unread.
	NoValues bool
}

// cursorBits is how long a cursor is: Redis's are short, so there are clients that read them as signed integers, or as
// JavaScript's numbers, which are exact up to 2^53.
const cursorBits = 53

// CursorOf is the cursor of an element with that hash. Elements with equal cursors belong to one page.
func CursorOf(hash uint64) uint64 { return hash >> (64 - cursorBits) }

// HashOf is the lowest hash with that cursor; ok is false for a cursor that no scan has returned, which is past the
// end.
func HashOf(cursor uint64) (hash uint64, ok bool) {
	return cursor << (64 - cursorBits), cursor < 1<<cursorBits
}

// scan visits elements from the cursor on and returns the cursor after them, 0 at the end. The
// cursor is the beginning of a hash: the elements are in the order of theirs, so it stays valid whatever is added or
// removed in between, and no state is kept. Elements with equal cursors come together, for they cannot be told apart.
// One call visits all that are left of a small collection (scannedWhole), in the collection's own order.
func scan(t Steps, f keydir.Collection, cursor uint64, o ScanOptions, visit func(elem []byte, loc keydir.Loc) error) (next uint64, err error) {
	from, ok := HashOf(cursor)
	if !f.Valid() || !ok {
		return 0, nil
	}
	all := o.Match == "" || o.Match == "*"
	step := func(elem []byte, loc keydir.Loc) bool {
		if all || MatchStep(t, o.Match, elem) {
			err = visit(elem, loc)
		}
		if err == nil {
			err = t.Step(1)
		}
		return err == nil
	}
	if scannedWhole(f) {
		f.Each(func(elem []byte, loc keydir.Loc) bool {
			return from > 0 && f.HashOf(text(elem)) < from || step(elem, loc)
		})
		return 0, err
	}
	count := o.Count
	if count <= 0 {
		count = DefaultScanCount
	}
	seen, last := 0, uint64(0)
	f.Scan(from, func(hash uint64, elem []byte, loc keydir.Loc) bool {
		at := CursorOf(hash)
		if seen >= count && at != last {
			next = at
			return false
		}
		seen, last = seen+1, at
		return step(elem, loc)
	})
	if err != nil {
		return 0, err
	}
	return next, nil
}

// text lets an element of a collection be looked up in another without
// a copy. The string must not outlive the element.
func text(elem []byte) string { return unsafe.String(unsafe.SliceData(elem), len(elem)) }
