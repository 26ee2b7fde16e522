package bitcask

import (
	"fmt"
)

// Features of the format that a store uses. Each is a bit in the flags of the
// manifest's header. A writer sets the bit, with a rewrite of the manifest,
// before the store first holds what the bit stands for, and never clears it. A
// reader that does not know a bit refuses the store with ErrVersion, before it
// has changed anything.
type features uint16

// The feature bits. Their numbers are part of the format.
const (
	featureBoot     features = 1 << 0 // edits "boot" may occur
	featureSystem   features = 1 << 1 // records of kind 13 may occur
	featureExtended features = 1 << 2 // records of kind 14 may occur
	featureThrough  features = 1 << 3 // edits "inherited" may have a "through sequence"
	featureOpenings features = 1 << 4 // edits of types 9 and 10 may occur

	// knownFeatures are those that this build reads.
	knownFeatures = featureBoot | featureSystem | featureThrough | featureOpenings
)

// check returns ErrVersion if there is a bit that this build does not know.
func (f features) check() error {
	if unknown := f &^ knownFeatures; unknown != 0 {
		return fmt.Errorf("%s: unknown feature bits %#x: %w", manifestName, uint16(unknown), ErrVersion)
	}
	return nil
}

// need sets a feature bit durably. It costs nothing if the bit is set. The
// caller writes what the bit stands for only after it has returned nil.
func (m *manifest) need(f features) error {
	if m.features&f == f {
		return nil
	}
	if m.failed != nil {
		return m.failed
	}
	before := m.features
	m.features |= f
	err := m.rewrite()
	if isRetryable(err) {
		m.features = before
	}
	return m.fail(err)
}

// unknownEdit is the error for an edit that verifies and whose type this build
// does not know.
func unknownEdit(typ byte, offset int) error {
	return fmt.Errorf("%s at offset %d: edit of type %d: %w", manifestName, offset, typ, ErrVersion)
}

// unknownRecord is the error for a record that verifies and whose kind this
// build does not know. It is for the caller who knows the file to name it.
type unknownRecord struct {
	kind Kind
	at   uint32 // offset in the segment; 0 in a hint
}

func (e *unknownRecord) Error() string {
	return fmt.Sprintf("record of kind %d at offset %d: %v", uint8(e.kind), e.at, ErrVersion)
}

func (e *unknownRecord) Unwrap() error { return ErrVersion }

// firstReservedKind is the lowest kind that an older build may meet without
// knowing it. Records of kinds from here on that a build does not know have
// one of two layouts, so that it can verify them: kind 13 has that of
// KindNamespaces, 14 and 15 that of KindElement with one more byte after the
// sequence. The first part of the name ends with the first colon.
const firstReservedKind = KindSystem

// maxPrefix bounds the first part of a name, colon included.
const maxPrefix = 16

// reserved reports whether a record of this kind and type is one that a newer
// version may have written.
func reserved(tag byte) bool {
	k, t := splitTag(tag)
	return k >= firstReservedKind && !validKind(k, t)
}
