package structures

import (
	"unsafe"

	"github.com/stavedb/stave/keydir"
)

// DefaultScanCount is how many elements a scan visits by default.
const DefaultScanCount = 10

// SmallScan is the number of elements up to which a collection is scanned whole
// by one call, as Redis does with those it keeps in one block.
const SmallScan = 128

// ScanOptions narrow a scan.
type ScanOptions struct {
	// Match is a glob pattern that elements must match. Default: all elements.
	Match string
	// Count is how many elements one call visits. Default: 10.
	Count int
	// NoValues leaves the values of a hash's fields unread.
	NoValues bool
}

// scan visits elements from the cursor on and returns the cursor after them, 0 at the end. The
// cursor is a hash: the elements are in the order of theirs, so it stays valid whatever is added or
// removed in between, and no state is kept. Elements with equal hashes come together, for a cursor
// cannot separate them.
func scan(f keydir.Collection, cursor uint64, o ScanOptions, visit func(elem []byte, loc keydir.Loc) error) (next uint64, err error) {
	if !f.Valid() {
		return 0, nil
	}
	count := o.Count
	switch {
	case f.Len() <= SmallScan:
		count = f.Len()
	case count <= 0:
		count = DefaultScanCount
	}
	all := o.Match == "" || o.Match == "*"
	seen, last := 0, uint64(0)
	f.Scan(cursor, func(hash uint64, elem []byte, loc keydir.Loc) bool {
		if seen >= count && hash != last {
			next = hash
			return false
		}
		seen, last = seen+1, hash
		if all || Match(o.Match, elem) {
			err = visit(elem, loc)
		}
		return err == nil
	})
	if err != nil {
		return 0, err
	}
	return next, nil
}

// text lets an element of a collection be looked up in another without
// a copy. The string must not outlive the element.
func text(elem []byte) string { return unsafe.String(unsafe.SliceData(elem), len(elem)) }
