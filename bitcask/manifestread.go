package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Reading the manifest, and judging its end.

// readManifest opens and replays the manifest, and changes nothing: makeGood does that, once the store is known to open.
// pass is asked about damage that can be mended; nil: none is.
func readManifest(fsys vfs.FS, dir string, mode vfs.Mode, pass func(error) error) (m *manifest, err error) {
	f, err := fsys.Open(filepath.Join(dir, manifestName), mode)
	if err != nil {
		return nil, err
	}
	m = &manifest{
		fs: fsys, dir: dir, file: f, here: vfs.BootOf(fsys, dir),
		sealed: map[uint32]format.SealedInfo{}, collided: map[uint64]bool{}, nextID: 1,
	}
	if err := m.replay(pass); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// makeGood truncates what stands behind the last edit, and makes the others durable, bytes and name, before anything
// relies on them: the last edit of a killed process may be in the page cache only, and Open removes the files that it says
// are gone.
func (m *manifest) makeGood() error {
	if len(m.rest) > 0 {
		if err := m.file.Truncate(m.size); err != nil {
			return fmt.Errorf("%s: truncating what no edit is: %w", manifestName, err)
		}
		m.rest = nil
	}
	if err := writeAgain(m.file, 0, m.size); err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", manifestName, err)
	}
	return m.fs.SyncDir(m.dir)
}

func (m *manifest) replay(pass func(error) error) error {
	size, err := m.file.Size()
	if err != nil {
		return err
	}
	const limit = 64 << 20
	if size > limit {
		return &CorruptError{File: manifestName, Offset: limit, Reason: "longer than any manifest"}
	}
	b := make([]byte, size)
	if _, err := m.file.ReadAt(b, 0); err != nil {
		return fmt.Errorf("reading manifest: %w", err)
	}
	if err := m.parseManifestHeader(b); err != nil && (pass == nil || !m.correctHeader(b) || pass(err) != nil) {
		return err
	}
	pos := manifestHeaderSize
	for pos < len(b) {
		typ, body, ok := m.editAt(b, pos)
		if !ok && pass != nil && m.correctEdit(b, pos) {
			typ, body, _ = m.editAt(b, pos)
			ok = pass(&CorruptError{File: manifestName, Offset: int64(pos), Reason: "edit checksum"}) == nil
		}
		if !ok {
			break
		}
		if typ > lastEdit {
			return unknownEdit(typ, pos)
		}
		if err := m.apply(typ, body); err != nil {
			return &CorruptError{File: manifestName, Offset: int64(pos), Reason: err.Error()}
		}
		pos += editHeaderSize + len(body)
	}
	m.size, m.rest = int64(pos), b[pos:]
	return m.judge(b)
}

// judge decides whether what stands behind the last edit that verifies is an edit that a crash cut short, of which nothing
// remains that anything relied on, or damage.
func (m *manifest) judge(b []byte) error {
	pos := int(m.size)
	if pos == len(b) {
		return nil
	}
	for later := pos + 1; later < len(b); later++ {
		if _, _, ok := m.editAt(b, later); ok {
			return &CorruptError{File: manifestName, Offset: int64(pos), Reason: "edit checksum, with valid edits after it"}
		}
	}
	if m.sameBoot() && len(m.rest) >= editHeaderSize {
		if n := int64(binary.LittleEndian.Uint32(m.rest[4:])); int64(len(m.rest)) >= editHeaderSize+n {
			return &CorruptError{File: manifestName, Offset: int64(pos), Reason: "edit checksum, of an edit that was written as a whole"}
		}
	}
	mended := slices.Clone(b)
	if !m.correctEdit(mended, pos) {
		return nil
	}
	n := editHeaderSize + int(binary.LittleEndian.Uint32(mended[pos+4:]))
	if !m.sameBoot() && lostSector(b[pos:min(pos+n, len(b))], mended[pos:], int64(pos)) {
		return nil
	}
	return &CorruptError{File: manifestName, Offset: int64(pos), Reason: "edit checksum, for one flipped bit"}
}

// diskSector is what a disk writes whole or not at all, in bytes.
const diskSector = 512

// lostSector reports whether a power cut explains where a write at an offset of a file, as it stands there, begins to differ
// from what was to be written: the sector has none of it.
func lostSector(is, was []byte, offset int64) bool {
	i := 0
	for i < len(is) && is[i] == was[i] {
		i++
	}
	from := (offset+int64(i))/diskSector*diskSector - offset
	return i < len(is) && onlyZeros(is[max(from, 0):min(from+diskSector, int64(len(is)))])
}

func (m *manifest) parseManifestHeader(b []byte) error {
	if len(b) < manifestHeaderSize || string(b[:8]) != manifestMagic {
		return &CorruptError{File: manifestName, Offset: 0, Reason: "not a manifest"}
	}
	end := manifestHeaderSize - 4
	if binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return &CorruptError{File: manifestName, Offset: 0, Reason: "header checksum"}
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != manifestVersion {
		return fmt.Errorf("%s: version %d: %w", manifestName, v, ErrVersion)
	}
	m.features = features(binary.LittleEndian.Uint16(b[10:]))
	if err := m.features.check(); err != nil {
		return err
	}
	copy(m.store[:], b[16:])
	m.seed = keydir.Seed{binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint64(b[40:])}
	return nil
}

func (m *manifest) editAt(b []byte, pos int) (typ byte, body []byte, ok bool) {
	if len(b)-pos < editHeaderSize {
		return 0, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b[pos+4:]))
	if int64(len(b)-pos) < editHeaderSize+n {
		return 0, nil, false
	}
	edit := b[pos+4 : pos+editHeaderSize+int(n)]
	if binary.LittleEndian.Uint32(b[pos:]) != m.editSum(int64(pos), edit) {
		return 0, nil, false
	}
	return edit[4], edit[5:], true
}

// correctHeader makes the header of a manifest verify, if it takes one bit.
func (m *manifest) correctHeader(b []byte) bool {
	return anyBit(b[:min(manifestHeaderSize, len(b))], func() bool { return m.parseManifestHeader(b) == nil })
}

// correctEdit makes the edit at pos verify, if it takes one bit. No part of an edit that a crash cut short does.
func (m *manifest) correctEdit(b []byte, pos int) bool {
	return anyBit(b[pos:min(pos+correctLimit, len(b))], func() bool {
		_, _, ok := m.editAt(b, pos)
		return ok
	})
}

// listed is the ids of all segments of the store, in order.
func (m *manifest) listed() []uint32 {
	ids := append(slices.Collect(maps.Keys(m.sealed)), m.tail...)
	slices.Sort(ids)
	return ids
}

// missing is the error for a segment that is listed and not there. If bytes follow the last edit that verifies, they are what
// is left of the edit that took the segment out.
func (m *manifest) missing(name string) error {
	err := fmt.Errorf("%s: %w", name, ErrMissing)
	if len(m.rest) > 0 {
		return fmt.Errorf("%w, and %w", &CorruptError{File: manifestName, Offset: m.size, Reason: "edit checksum"}, err)
	}
	return err
}
