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
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// The manifest is the only truth about which segments make up the store. It
// is a small log: a header, then edits, each synced before anything relies on
// it.
//
//	header:  magic "STAVEMAN" | version u16 | feature bits u16 | reserved u32 | store id 16 | hash seed 16 | crc u32
//	edit:    crc u32 | length u32 | type u8 | body
//
// The crc of an edit covers length, type and body and is seeded with the store
// id and the offset of the edit. A tail that does not verify is an edit that
// was never relied upon, if a crash can have cut it short: manifest.judge.
const (
	FileName       = format.ManifestName
	TempName       = FileName + ".new"
	magic          = "STAVEMAN"
	version        = 1
	HeaderSize     = 8 + 2 + 2 + 4 + 16 + 16 + 4
	EditHeaderSize = 4 + 4 + 1

	// rewriteAt is the length in bytes from which the manifest is rewritten as one snapshot; see
	// full.
	rewriteAt = 64 << 10
)

// Types of edits.
const (
	EditAdd       = 1  // id u32: segment id joins the unsealed ones, as the last in log order
	EditSeal      = 2  // SealedInfo, id u32: that segment is sealed; segment id (0: none) joins the unsealed ones
	EditSwap      = 3  // n u32, n ids u32 out; m u32, m SealedInfo in
	EditClose     = 4  // id u32 (0: none, and no length), length u64, maxSeq u64: everything before length is on disk
	EditNextID    = 5  // id u32: ids below are in use (a merge output is about to be made)
	EditCollision = 6  // hash u64: two keys have it
	EditInherited = 7  // store id 16, below u32, through u64 or nothing: of a copy: that store made the segments with an id below (origins.go)
	EditBoot      = 8  // boot id 16: a writer has the store open, in this life of the kernel; zeros: it has closed it, and perhaps what close says
	EditOpening   = 9  // id u64, first u64: a writer that gives the sequence numbers from first on (openings.go)
	EditMerge     = 10 // through u64, then as swap: a merge; every record up to through was on disk (through.go)

	// LastEdit is the highest type that this build knows. Those beyond it are of
	// a newer version.
	LastEdit = EditMerge
)

// Bodies of edits, in bytes.
const (
	closeSize = 4 + 8 + 8
	BootSize  = len(vfs.BootID{})
)

// Manifest is the decoded state and the open file.
type Manifest struct {
	FS   vfs.FS
	Dir  string
	File vfs.File
	Size int64
	Rest []byte     // after Open: the bytes after the last edit that verifies
	Here vfs.BootID // of the directory, when the manifest was read

	failed error // why no more edits are written

	Store    [16]byte
	Seed     keydir.Seed
	Features Features // of the format that the store uses: features.go

	Sealed map[uint32]format.SealedInfo
	Tail   []uint32 // the unsealed segments in log order: being sealed, active, ready to be the next
	NextID uint32
	MaxSeq uint64 // highest sequence ever sealed, swapped or closed

	Origins   []Origin        // by ascending below
	Openings  []Opening       // the last of them, oldest first
	sealedSeq uint64          // highest sequence in any sealed segment since this was read
	Through   uint64          // unsealed segments must reach this one; 0: they need hold nothing
	Collided  map[uint64]bool // hashes, without the spare bits, that two keys have

	Spare *reserve.Reserve // for edits on a full disk; nil: none

	ClosedID  uint32 // active segment at the last clean close ...
	ClosedLen uint64 // ... everything before this offset of it is on disk

	Booted bool       // there is an edit of type boot
	Boot   vfs.BootID // what the last one says
}

// ClosedUpTo is how much of an unsealed segment was on disk at the last close or pause.
func (m *Manifest) ClosedUpTo(id uint32) int64 {
	if m.ClosedID != id {
		return 0
	}
	return int64(m.ClosedLen)
}

// editSum is the checksum of an edit at offset, from its length on.
func (m *Manifest) editSum(offset int64, edit []byte) uint32 {
	return format.NewChecksumSeed(m.Store, 0).Sum(uint32(offset), edit)
}

// Create makes the manifest of a new store.
func Create(fs vfs.FS, dir string, store [16]byte, seed keydir.Seed) (*Manifest, error) {
	m := &Manifest{
		FS: fs, Dir: dir, Here: vfs.BootOf(fs, dir), Store: store, Seed: seed, Features: FeatureBoot | FeatureOpenings,
		Sealed: map[uint32]format.SealedInfo{}, Collided: map[uint64]bool{}, NextID: 1,
	}
	if err := m.Rewrite(); err != nil {
		return nil, err
	}
	return m, nil
}

// EncodeHeader is the inverse of the first part of Read.
func (m *Manifest) EncodeHeader() []byte {
	b := make([]byte, 0, HeaderSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.Features))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, m.Store[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.Seed[0])
	b = binary.LittleEndian.AppendUint64(b, m.Seed[1])
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// AppendEdit appends an edit to b, which begins at offset base of the file.
func (m *Manifest) AppendEdit(b []byte, base int64, typ byte, body []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, typ)
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[at:], m.editSum(base+int64(at), b[at+4:]))
	return b
}

// Rewrite replaces the file by a snapshot of the state: temporary file, sync,
// rename, directory sync. A crash before the rename leaves the old manifest
// and a MANIFEST.new that the next Open removes.
func (m *Manifest) Rewrite() error {
	b := m.EncodeHeader()
	for _, in := range m.Origins {
		b = m.AppendEdit(b, 0, EditInherited, in.Encode())
	}
	b = m.AppendEdit(b, 0, EditNextID, binary.LittleEndian.AppendUint32(nil, m.NextID))
	ids := make([]uint32, 0, len(m.Sealed))
	for id := range m.Sealed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	infos, highest := make([]format.SealedInfo, len(ids)), uint64(0)
	for i, id := range ids {
		infos[i] = m.Sealed[id]
		highest = max(highest, infos[i].MaxSeq)
	}
	b = m.AppendEdit(b, 0, EditSwap, SwapBody(nil, infos))
	for _, id := range m.Tail {
		b = m.AppendEdit(b, 0, EditAdd, binary.LittleEndian.AppendUint32(nil, id))
	}
	for _, h := range slices.Sorted(maps.Keys(m.Collided)) {
		b = m.AppendEdit(b, 0, EditCollision, binary.LittleEndian.AppendUint64(nil, h<<format.SpareHashBits))
	}
	if m.Through != 0 {
		b = m.AppendEdit(b, 0, EditMerge, MergeBody(m.Through, nil, nil))
	}
	for _, o := range m.Openings {
		b = m.AppendEdit(b, 0, EditOpening, o.Body())
	}
	if m.ClosedID != 0 || m.MaxSeq > highest {
		b = m.AppendEdit(b, 0, EditClose, CloseBody(m.ClosedID, m.ClosedLen, m.MaxSeq))
	}
	if m.Booted {
		b = m.AppendEdit(b, 0, EditBoot, m.Boot[:])
	}
	temp, name := filepath.Join(m.Dir, TempName), filepath.Join(m.Dir, FileName)
	f, err := vfs.Temporary(m.FS, temp)
	if err != nil && failure.IsTransient(err) {
		return failure.NewRetryable(err)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err != nil && failure.IsTransient(err) {
		err = failure.NewRetryable(err)
	}
	if err = vfs.PublishOpen(m.FS, f, temp, name, err); err != nil {
		return fmt.Errorf("writing manifest: %w", err)
	}
	if err := m.FS.SyncDir(m.Dir); err != nil {
		return errors.Join(fmt.Errorf("writing manifest: %w", err), f.Close())
	}
	if m.File != nil {
		err = m.File.Close()
	}
	m.File, m.Size = f, int64(len(b))
	return err
}

// Log appends one edit and makes it durable, then applies it to the state. A
// crash during the sync leaves the old state or the new one.
func (m *Manifest) Log(typ byte, body []byte) error {
	if m.failed != nil {
		return m.failed
	}
	err := m.append(typ, body)
	if err == nil && m.rewriteDue() && !m.Spare.Full() {
		if err = m.Rewrite(); failure.IsRetryable(err) {
			return nil // the old one says it all; the next edit has it tried again
		}
	}
	return m.fail(err)
}

// append writes one edit after the others, and syncs it.
func (m *Manifest) append(typ byte, body []byte) error {
	b := m.AppendEdit(nil, m.Size, typ, body)
	if err := m.Spare.With(reserveFloor(typ), func() error { return m.write(b) }); err != nil {
		return err
	}
	if err := m.File.Sync(); err != nil {
		return fmt.Errorf("syncing manifest: %w", err)
	}
	m.Size += int64(len(b))
	return m.Apply(typ, body)
}

// fail keeps an error that leaves the file's content in doubt: there may be an edit at its end, which another one, at
// the same place, would overwrite in part. After it no edit is written.
func (m *Manifest) fail(err error) error {
	if err != nil && !failure.IsRetryable(err) {
		m.failed = err
	}
	return err
}

// reserveFloor is what an edit leaves of the reserve.
func reserveFloor(typ byte) int64 {
	switch typ {
	case EditClose: // of an idle store
		return reserve.LeaveAll
	case EditAdd, EditSeal, EditCollision:
		return reserve.LeaveHalf
	case EditBoot:
		return reserve.LeaveOpen
	case EditSwap, EditMerge:
		return reserve.LeaveNone
	}
	return reserve.LeaveEighth
}

// write writes an edit after the others. What a full disk has left of it is off the disk when write returns: the files
// that the edit names will be removed, and a power cut must not bring it back.
func (m *Manifest) write(edit []byte) error {
	_, err := m.File.WriteAt(edit, m.Size)
	if err == nil {
		return nil
	}
	if err = files.TruncateTo(m.File, m.Size, fmt.Errorf("writing manifest: %w", err)); failure.IsRetryable(err) {
		if failed := m.File.Sync(); failed != nil {
			return fmt.Errorf("syncing manifest, of which an edit was cut off: %w", failed)
		}
	}
	return err
}

// rewriteDue reports whether the manifest is due for a rewrite: when it is long, and twice as long as its
// snapshot. That of a store of thousands of segments is long itself, and each edit would cause a
// rewrite.
func (m *Manifest) rewriteDue() bool {
	snapshot := int64(len(m.Sealed)) * format.SealedInfoSize
	return m.Size > max(rewriteAt, 2*snapshot)
}

// CloseBody is the body of an edit that says: the active segment is on disk up to a length, and all sequence numbers up
// to maxSeq are taken.
func CloseBody(id uint32, length, maxSeq uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = binary.LittleEndian.AppendUint64(b, length)
	return binary.LittleEndian.AppendUint64(b, maxSeq)
}

var errEdit = errors.New("malformed manifest edit")

// Apply changes the state as an edit says.
func (m *Manifest) Apply(typ byte, body []byte) error {
	if err := m.change(typ, body); err != nil {
		return err
	}
	return m.checkNumbers()
}

func (m *Manifest) change(typ byte, body []byte) error {
	switch {
	case typ == EditAdd && len(body) == 4:
		return m.addUnsealed(binary.LittleEndian.Uint32(body))
	case typ == EditNextID && len(body) == 4:
		m.NextID = max(m.NextID, binary.LittleEndian.Uint32(body))
	case typ == EditCollision && len(body) == 8:
		m.Collided[binary.LittleEndian.Uint64(body)>>format.SpareHashBits] = true
	case typ == EditInherited && (len(body) == InheritedSize || len(body) == inheritedThroughSize):
		m.Origins = append(m.Origins, parseInheritance(body))
	case typ == EditOpening && len(body) == openingSize:
		m.addOpening(body)
	case typ == EditSeal && len(body) == format.SealedInfoSize+4:
		if err := m.addSealed(format.ParseSealedInfo(body)); err != nil {
			return err
		}
		return m.addUnsealed(binary.LittleEndian.Uint32(body[format.SealedInfoSize:]))
	case typ == EditSwap && len(body) >= 8:
		return m.applySwap(body)
	case typ == EditMerge && len(body) >= 8+8:
		return m.applyMerge(body)
	case typ == EditBoot && len(body) == BootSize+closeSize:
		m.Booted, m.Boot = true, vfs.BootID(body)
		return m.change(EditClose, body[BootSize:])
	case typ == EditBoot && len(body) == BootSize:
		m.Booted, m.Boot = true, vfs.BootID(body)
	case typ == EditClose && len(body) == closeSize:
		m.ClosedID = binary.LittleEndian.Uint32(body)
		m.ClosedLen = binary.LittleEndian.Uint64(body[4:])
		if m.ClosedID == 0 && m.ClosedLen != 0 {
			return errEdit // a length of no segment, which nobody writes
		}
		m.MaxSeq = max(m.MaxSeq, binary.LittleEndian.Uint64(body[12:]))
	default:
		return errEdit
	}
	return nil
}

// addUnsealed appends a segment to the unsealed ones, if it is not there yet.
func (m *Manifest) addUnsealed(id uint32) error {
	if id == 0 || slices.Contains(m.Tail, id) {
		return nil
	}
	if _, sealed := m.Sealed[id]; sealed {
		return errEdit
	}
	m.Tail = append(m.Tail, id)
	m.NextID = max(m.NextID, format.Following(id))
	return nil
}

func (m *Manifest) addSealed(si format.SealedInfo) error {
	if si.Length < format.SegmentHeaderSize+format.FooterSize || si.Length > format.MaxSegmentLength {
		return errEdit
	}
	m.Tail = slices.DeleteFunc(m.Tail, func(id uint32) bool { return id == si.ID })
	m.Sealed[si.ID] = si
	m.NextID = max(m.NextID, format.Following(si.ID))
	m.MaxSeq = max(m.MaxSeq, si.MaxSeq)
	m.sealedThrough(si.MaxSeq)
	return nil
}

func (m *Manifest) applySwap(body []byte) error {
	n := int64(binary.LittleEndian.Uint32(body))
	body = body[4:]
	if int64(len(body)) < 4*n+4 {
		return errEdit
	}
	out, in := body[:4*n], body[4*n+4:]
	if count := int64(binary.LittleEndian.Uint32(body[4*n:])); int64(len(in)) != count*format.SealedInfoSize {
		return errEdit
	}
	for ; len(out) > 0; out = out[4:] {
		delete(m.Sealed, binary.LittleEndian.Uint32(out))
	}
	for ; len(in) > 0; in = in[format.SealedInfoSize:] {
		if err := m.addSealed(format.ParseSealedInfo(in)); err != nil {
			return err
		}
	}
	return nil
}

func SealBody(si format.SealedInfo, next uint32) []byte {
	return binary.LittleEndian.AppendUint32(si.Append(nil), next)
}

func SwapBody(out []uint32, in []format.SealedInfo) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(out)))
	for _, id := range out {
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(in)))
	for _, si := range in {
		b = si.Append(b)
	}
	return b
}

func (m *Manifest) Close() error {
	if m.File == nil { // of a snapshot
		return nil
	}
	return m.File.Close()
}
