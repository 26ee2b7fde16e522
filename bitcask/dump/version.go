package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stavedb/stave/internal/vfs"
)

// FormatVersion is the version of the format of one file.
type FormatVersion struct {
	Kind    string // segment, hint, MANIFEST, INDEX or TTL
	Version int
	Current int  // that this program writes
	Derived bool // the file is made again from the log whenever it is not good
}

// formats are the kinds of files by their magic, with the versions that this program writes. A test compares them with
// a new store.
var formats = map[string]FormatVersion{
	"STAVESEG": {Kind: "segment", Current: 1},
	"STAVEMAN": {Kind: "MANIFEST", Current: 1},
	"STAVEHNT": {Kind: "hint", Current: 3, Derived: true},
	"STAVEIDX": {Kind: "INDEX", Current: 4, Derived: true},
	"STAVETTL": {Kind: "TTL", Current: 2, Derived: true},
}

// VersionOf reads which version a file has. It fails with ErrUnknown for a file of another kind.
func VersionOf(path string) (v FormatVersion, err error) {
	f, err := vfs.OS().Open(path, vfs.ReadOnly)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 10)
	if n, err := f.ReadAt(head, 0); err != nil && !(errors.Is(err, io.EOF) && n < len(head)) {
		return v, err
	}
	v, known := formats[string(head[:8])]
	if !known {
		return v, fmt.Errorf("%s: %w", filepath.Base(path), ErrUnknown)
	}
	v.Version = int(binary.LittleEndian.Uint16(head[8:]))
	return v, nil
}
