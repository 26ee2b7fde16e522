package manifest

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// Features of the format that a store uses. Each is a bit in the flags of the manifest's header. A
// writer sets the bit, with a rewrite of the manifest, before the store first holds what the bit
// announces, and never clears it. A reader that does not know a bit refuses the store with
// ErrVersion, before it has changed anything.
type Features uint16

// The feature bits. Their numbers are part of the format.
const (
	FeatureBoot     Features = 1 << 0 // edits "boot" may occur
	FeatureSystem   Features = 1 << 1 // records of kind 13 may occur
	FeatureExtended Features = 1 << 2 // records of kind 14 may occur
	FeatureThrough  Features = 1 << 3 // edits "inherited" may have a "through sequence"
	FeatureOpenings Features = 1 << 4 // edits of types 9 and 10 may occur
	FeatureRanges   Features = 1 << 5 // tombstones of ranges of a list may occur
	FeaturePlaces   Features = 1 << 6 // lists may have holes, and elements with a sub-index

	// knownFeatures are those that this build reads.
	knownFeatures = FeatureBoot | FeatureSystem | FeatureExtended | FeatureThrough | FeatureOpenings | FeatureRanges | FeaturePlaces
)

// FeatureOf is the bits that announce a record; 0: none.
func FeatureOf(id *format.Identity) Features {
	return [...]Features{
		format.NeedsSystem: FeatureSystem, format.NeedsExtended: FeatureExtended, format.NeedsRanges: FeatureRanges,
		format.NeedsPlaces: FeaturePlaces, format.NeedsPlaceRanges: FeatureRanges | FeaturePlaces,
	}[id.Needs()]
}

// check returns ErrVersion if there is a bit that this build does not know.
func (f Features) check() error {
	if unknown := f &^ knownFeatures; unknown != 0 {
		return fmt.Errorf("%s: unknown feature bits %#x: %w", FileName, uint16(unknown), failure.ErrVersion)
	}
	return nil
}

// Has reports whether the manifest says that all of these may be used.
func (m *Manifest) Has(f Features) bool { return m.Features&f == f }

// Need sets a feature bit durably. It costs nothing if the bit is set. The caller writes what the
// bit announces only after it has returned nil.
func (m *Manifest) Need(f Features) error {
	if m.Features&f == f {
		return nil
	}
	if m.failed != nil {
		return m.failed
	}
	before := m.Features
	m.Features |= f
	err := m.Rewrite()
	if failure.IsRetryable(err) {
		m.Features = before
	}
	return m.fail(err)
}

// unknownEdit is the error for an edit that verifies and whose type this build
// does not know.
func unknownEdit(typ byte, offset int) error {
	return fmt.Errorf("%s at offset %d: edit of type %d: %w", FileName, offset, typ, failure.ErrVersion)
}
