package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Reading the manifest. What stands after the last edit that verifies is judged in damagedend.go.

// Read opens and replays the manifest, and changes nothing: MakeGood does that, once the store is known to open.
// pass is asked about damage that can be corrected; nil: none is.
func Read(fsys vfs.FS, dir string, mode vfs.Mode, pass func(error) error) (m *Manifest, err error) {
	f, err := fsys.Open(filepath.Join(dir, FileName), mode)
	if err != nil {
		return nil, err
	}
	m = &Manifest{
		FS: fsys, Dir: dir, File: f, Here: vfs.BootOf(fsys, dir),
		Sealed: map[uint32]format.SealedInfo{}, Collided: map[uint64]bool{}, NextID: 1,
	}
	if err := m.replay(pass); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// MakeGood truncates the bytes after the last edit, and makes the others durable, bytes and name, before anything
// relies on them: the last edit of a killed process may be in the page cache only, and Open removes the files that it
// retires.
func (m *Manifest) MakeGood() error {
	if len(m.Rest) > 0 {
		if err := m.File.Truncate(m.Size); err != nil {
			return fmt.Errorf("%s: truncating what no edit is: %w", FileName, failure.Retryable(err))
		}
		m.Rest = nil
	}
	if err := files.WriteAgain(m.File, 0, m.Size); err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	if err := m.File.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", FileName, err)
	}
	return m.FS.SyncDir(m.Dir)
}

func (m *Manifest) replay(pass func(error) error) error {
	size, err := m.File.Size()
	if err != nil {
		return err
	}
	const limit = 64 << 20
	if size > limit {
		return &failure.CorruptError{File: FileName, Offset: limit, Reason: "longer than any manifest"}
	}
	b := make([]byte, size)
	if _, err := m.File.ReadAt(b, 0); err != nil {
		return fmt.Errorf("reading manifest: %w", err)
	}
	if err := m.parseHeader(b); err != nil && (pass == nil || !m.correctHeader(b) || pass(err) != nil) {
		return err
	}
	pos := HeaderSize
	end := damagedEnd{m: m, b: b}
	for pos < len(b) {
		typ, body, ok := end.editAt(pos)
		if !ok && pass != nil && end.correctEdit(b, pos) {
			typ, body, _ = m.EditAt(b, pos)
			ok = pass(&failure.CorruptError{File: FileName, Offset: int64(pos), Reason: "edit checksum"}) == nil
		}
		if !ok {
			break
		}
		if typ > LastEdit {
			return unknownEdit(typ, pos)
		}
		if err := m.Apply(typ, body); err != nil {
			return &failure.CorruptError{File: FileName, Offset: int64(pos), Reason: err.Error()}
		}
		pos += EditHeaderSize + len(body)
	}
	m.Size, m.Rest = int64(pos), b[pos:]
	return m.judge(&end)
}

func (m *Manifest) parseHeader(b []byte) error {
	if len(b) < HeaderSize || string(b[:8]) != magic {
		return &failure.CorruptError{File: FileName, Offset: 0, Reason: "not a manifest"}
	}
	end := HeaderSize - 4
	if binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return &failure.CorruptError{File: FileName, Offset: 0, Reason: "header checksum"}
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != version {
		return fmt.Errorf("%s: version %d: %w", FileName, v, failure.ErrVersion)
	}
	m.Features = Features(binary.LittleEndian.Uint16(b[10:]))
	if err := m.Features.check(); err != nil {
		return err
	}
	copy(m.Store[:], b[16:])
	m.Seed = keydir.Seed{binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint64(b[40:])}
	return nil
}

// ParseHeader reads the header at the beginning of b, for who looks at the file alone. The manifest can verify edits;
// with an error it can if the bytes of the store's id are right. It is nil if there are none.
func ParseHeader(b []byte) (*Manifest, string, error) {
	if len(b) < HeaderSize {
		return nil, "", &failure.CorruptError{File: FileName, Offset: 0, Reason: "shorter than a header"}
	}
	m := &Manifest{Store: [16]byte(b[16:])}
	err := m.parseHeader(b)
	return m, fmt.Sprintf("MANIFEST of store %x, feature bits %#x", m.Store, uint16(m.Features)), err
}

func (m *Manifest) EditAt(b []byte, pos int) (typ byte, body []byte, ok bool) {
	if len(b)-pos < EditHeaderSize {
		return 0, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b[pos+4:]))
	if int64(len(b)-pos) < EditHeaderSize+n {
		return 0, nil, false
	}
	edit := b[pos+4 : pos+EditHeaderSize+int(n)]
	if binary.LittleEndian.Uint32(b[pos:]) != m.editSum(int64(pos), edit) {
		return 0, nil, false
	}
	return edit[4], edit[5:], true
}

// correctHeader makes the header of a manifest verify, if it takes one bit.
func (m *Manifest) correctHeader(b []byte) bool {
	return format.AnyBit(b[:min(HeaderSize, len(b))], func() bool { return m.parseHeader(b) == nil })
}

// Listed is the ids of all segments of the store, in order.
func (m *Manifest) Listed() []uint32 {
	ids := append(slices.Collect(maps.Keys(m.Sealed)), m.Tail...)
	slices.Sort(ids)
	return ids
}

// Missing is the error for a segment that is listed and not there. If bytes follow the last edit that verifies, they
// are what is left of the edit that took the segment out.
func (m *Manifest) Missing(name string) error {
	err := fmt.Errorf("%s: %w", name, failure.ErrMissing)
	if len(m.Rest) > 0 {
		return fmt.Errorf("%w, and %w", &failure.CorruptError{File: FileName, Offset: m.Size, Reason: "edit checksum"}, err)
	}
	return err
}
