package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/vfs"
)

// FormatVersion is the version of the format of one file.
type FormatVersion struct {
	Kind    string // segment, hint, MANIFEST, INDEX or TTL
	Version int
	Current int  // that this program writes
	Derived bool // the file is made again from the log whenever it is not good
	Damaged bool // the version is not what was written: it is another one, and the header does not verify

	heads []int // lengths of headers that end with their checksum, of all versions
}

// formats are the kinds of files by their magic, with the versions that this program writes. A test compares them with
// a new store.
var formats = map[string]FormatVersion{
	"STAVESEG": {Kind: "segment", Current: 1, heads: []int{format.SegmentHeaderSize}},
	"STAVEMAN": {Kind: "MANIFEST", Current: 1, heads: []int{manifest.HeaderSize}},
	"STAVEHNT": {Kind: "hint", Current: 3, Derived: true, heads: []int{84, 68}},
	"STAVEIDX": {Kind: "INDEX", Current: indexfile.Version, Derived: true, heads: []int{indexfile.HeaderSize}},
	"STAVETTL": {Kind: "TTL", Current: 2, Derived: true, heads: []int{80, 48}},
}

const longestHead = 128 // bytes

// VersionOf reads which version a file has. It fails with ErrUnknown for a file of another kind.
func VersionOf(path string) (v FormatVersion, err error) {
	f, err := vfs.OS().Open(path, vfs.ReadOnly)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, longestHead)
	n, err := f.ReadAt(head, 0)
	if err != nil && !(errors.Is(err, io.EOF) && n < len(head)) {
		return v, err
	}
	v, known := formats[string(head[:8])]
	if !known {
		return v, fmt.Errorf("%s: %w", filepath.Base(path), ErrUnknown)
	}
	v.Version = int(binary.LittleEndian.Uint16(head[8:]))
	if v.Kind == "TTL" {
		v.Version = int(binary.LittleEndian.Uint32(head[8:]))
	}
	v.Damaged = v.Version != v.Current && !slices.ContainsFunc(v.heads, func(size int) bool {
		return size <= n && binary.LittleEndian.Uint32(head[size-4:]) == crc32.ChecksumIEEE(head[:size-4])
	})
	return v, nil
}
