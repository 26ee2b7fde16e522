package bitcask

import (
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
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
	manifestName       = "MANIFEST"
	manifestTemp       = "MANIFEST.new"
	manifestMagic      = "STAVEMAN"
	manifestVersion    = 1
	manifestHeaderSize = 8 + 2 + 2 + 4 + 16 + 16 + 4
	editHeaderSize     = 4 + 4 + 1

	// manifestRewriteAt is the length in bytes from which the manifest is
	// written anew as one snapshot; see full.
	manifestRewriteAt = 64 << 10
)

// Types of edits.
const (
	editAdd       = 1  // id u32: segment id joins the unsealed ones, as the last in log order
	editSeal      = 2  // SealedInfo, id u32: that segment is sealed; segment id (0: none) joins the unsealed ones
	editSwap      = 3  // n u32, n ids u32 out; m u32, m SealedInfo in
	editClose     = 4  // id u32 (0: none), length u64, maxSeq u64: everything before length is on disk
	editNextID    = 5  // id u32: ids below are taken (merge output about to be made)
	editCollision = 6  // hash u64: two keys have it
	editInherited = 7  // store id 16, below u32, through u64 or nothing: of a copy: that store made the segments with an id below (lineage.go)
	editBoot      = 8  // boot id 16: a writer has the store open, in this life of the kernel; zeros: it has closed it, and perhaps what close says
	editOpening   = 9  // id u64, first u64: a writer that gives the sequence numbers from first on (openings.go)
	editMerge     = 10 // through u64, then as swap: a merge; every record up to through was on disk (through.go)

	// lastEdit is the highest type that this build knows. Those beyond it are of
	// a newer version.
	lastEdit = editMerge
)

// Bodies of edits, in bytes.
const (
	closeSize = 4 + 8 + 8
	bootSize  = len(vfs.BootID{})
)

// manifest is the decoded state and the open file.
type manifest struct {
	fs   vfs.FS
	dir  string
	file vfs.File
	size int64
	rest []byte     // after Open: what stands behind the edits that verify
	here vfs.BootID // of the directory, when the manifest was read

	failed error // why no more edits are written

	store    [16]byte
	seed     keydir.Seed
	features features // of the format that the store uses: features.go

	sealed map[uint32]format.SealedInfo
	tail   []uint32 // the unsealed segments in log order: being sealed, active, ready to be the next
	nextID uint32
	maxSeq uint64 // highest sequence ever sealed, swapped or closed

	inherited []inheritance   // by ascending below
	openings  []opening       // the last of them, oldest first
	sealedSeq uint64          // highest sequence in any sealed segment since this was read
	through   uint64          // unsealed segments must reach this one; 0: they need hold nothing
	collided  map[uint64]bool // hashes, without the spare bits, that two keys have

	spare *reserve // for edits on a full disk; nil: none

	closedID  uint32 // active segment at the last clean close ...
	closedLen uint64 // ... everything before this offset of it is on disk

	booted bool       // there is an edit of type boot
	boot   vfs.BootID // what the last one says
}

// closed reports whether the last writer has closed the store: everything that it wrote is on disk.
func (m *manifest) closed() bool { return m.booted && m.boot == vfs.BootID{} }

// sameBoot reports whether no power cut can lie between the last writer and now: all that was ever written to the store's
// files is still there, short of a failed sync.
func (m *manifest) sameBoot() bool { return m.booted && m.boot == m.here && m.here != vfs.BootID{} }

// nothingLost reports whether all of the log is there. Besides a writer that was killed that is one that has closed the
// store: the next one writes to the manifest first.
func (m *manifest) nothingLost() bool { return m.closed() || m.sameBoot() }

// editSum is the checksum of an edit at offset, from its length on.
func (m *manifest) editSum(offset int64, edit []byte) uint32 {
	return format.NewChecksumSeed(m.store, 0).Sum(uint32(offset), edit)
}

// createManifest makes the manifest of a new store.
func createManifest(fs vfs.FS, dir string, store [16]byte, seed keydir.Seed) (*manifest, error) {
	m := &manifest{
		fs: fs, dir: dir, here: vfs.BootOf(fs, dir), store: store, seed: seed, features: featureBoot | featureOpenings,
		sealed: map[uint32]format.SealedInfo{}, collided: map[uint64]bool{}, nextID: 1,
	}
	if err := m.rewrite(); err != nil {
		return nil, err
	}
	return m, nil
}

// encodeHeader is the inverse of the first part of readManifest.
func (m *manifest) encodeHeader() []byte {
	b := make([]byte, 0, manifestHeaderSize)
	b = append(b, manifestMagic...)
	b = binary.LittleEndian.AppendUint16(b, manifestVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.features))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, m.store[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.seed[0])
	b = binary.LittleEndian.AppendUint64(b, m.seed[1])
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// appendEdit appends an edit to b, which begins at offset base of the file.
func (m *manifest) appendEdit(b []byte, base int64, typ byte, body []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, typ)
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[at:], m.editSum(base+int64(at), b[at+4:]))
	return b
}

// rewrite replaces the file by a snapshot of the state: temporary file, sync,
// rename, directory sync. A crash before the rename leaves the old manifest
// and a MANIFEST.new that the next Open removes.
func (m *manifest) rewrite() error {
	b := m.encodeHeader()
	for _, in := range m.inherited {
		b = m.appendEdit(b, 0, editInherited, in.encode())
	}
	b = m.appendEdit(b, 0, editNextID, binary.LittleEndian.AppendUint32(nil, m.nextID))
	ids := make([]uint32, 0, len(m.sealed))
	for id := range m.sealed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	infos, highest := make([]format.SealedInfo, len(ids)), uint64(0)
	for i, id := range ids {
		infos[i] = m.sealed[id]
		highest = max(highest, infos[i].MaxSeq)
	}
	b = m.appendEdit(b, 0, editSwap, swapBody(nil, infos))
	for _, id := range m.tail {
		b = m.appendEdit(b, 0, editAdd, binary.LittleEndian.AppendUint32(nil, id))
	}
	for _, h := range slices.Sorted(maps.Keys(m.collided)) {
		b = m.appendEdit(b, 0, editCollision, binary.LittleEndian.AppendUint64(nil, h<<format.SpareHashBits))
	}
	if m.through != 0 {
		b = m.appendEdit(b, 0, editMerge, mergeBody(m.through, nil, nil))
	}
	for _, o := range m.openings {
		b = m.appendEdit(b, 0, editOpening, o.body())
	}
	if m.closedID != 0 || m.maxSeq > highest {
		b = m.appendEdit(b, 0, editClose, m.closeBody(m.closedID, m.closedLen, m.maxSeq))
	}
	if m.booted {
		b = m.appendEdit(b, 0, editBoot, m.boot[:])
	}
	temp, name := filepath.Join(m.dir, manifestTemp), filepath.Join(m.dir, manifestName)
	if err := m.fs.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := m.fs.Open(temp, vfs.Create)
	if err != nil && failure.IsTransient(err) {
		return failure.NewRetryable(err)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err != nil && failure.IsTransient(err) {
		return errors.Join(failure.NewRetryable(fmt.Errorf("writing manifest: %w", err)), f.Close(), m.fs.Remove(temp))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = m.fs.Rename(temp, name)
	}
	if err == nil {
		err = m.fs.SyncDir(m.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing manifest: %w", err), f.Close())
	}
	if m.file != nil {
		err = m.file.Close()
	}
	m.file, m.size = f, int64(len(b))
	return err
}

// log appends one edit and makes it durable, then applies it to the state. A
// crash during the sync leaves the old state or the new one.
func (m *manifest) log(typ byte, body []byte) error {
	if m.failed != nil {
		return m.failed
	}
	err := m.append(typ, body)
	if err == nil && m.full() && !m.spare.full() {
		if err = m.rewrite(); failure.IsRetryable(err) {
			return nil // the old one says it all; the next edit has it tried again
		}
	}
	return m.fail(err)
}

// append writes one edit behind the others, and syncs it.
func (m *manifest) append(typ byte, body []byte) error {
	b := m.appendEdit(nil, m.size, typ, body)
	if err := m.spare.with(leaveOf(typ), func() error { return m.write(b) }); err != nil {
		return err
	}
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("syncing manifest: %w", err)
	}
	m.size += int64(len(b))
	return m.apply(typ, body)
}

// fail keeps an error after which nobody knows what the file holds: there may be an edit at its end, which another one, at the
// same place, would overwrite in part. Then no more are written.
func (m *manifest) fail(err error) error {
	if err != nil && !failure.IsRetryable(err) {
		m.failed = err
	}
	return err
}

// leaveOf is what an edit leaves of the reserve.
func leaveOf(typ byte) int64 {
	switch typ {
	case editClose: // of an idle store
		return leaveAll
	case editAdd, editSeal, editCollision:
		return leaveHalf
	case editBoot:
		return leaveOpen
	case editSwap, editMerge:
		return leaveNone
	}
	return leaveEighth
}

// write writes an edit behind the others. What a full disk has left of it is off the disk when write returns: the files that
// the edit names are about to be removed, and a power cut must not bring it back.
func (m *manifest) write(edit []byte) error {
	_, err := m.file.WriteAt(edit, m.size)
	if err == nil {
		return nil
	}
	if err = cutOff(m.file, m.size, fmt.Errorf("writing manifest: %w", err)); failure.IsRetryable(err) {
		if failed := m.file.Sync(); failed != nil {
			return fmt.Errorf("syncing manifest, of which an edit was cut off: %w", failed)
		}
	}
	return err
}

// full reports whether the manifest is to be written anew: once it is long, and
// twice as long as its snapshot. That of a store of thousands of segments is
// long itself, and each edit would be a new one.
func (m *manifest) full() bool {
	snapshot := int64(len(m.sealed)) * format.SealedInfoSize
	return m.size > max(manifestRewriteAt, 2*snapshot)
}

func (m *manifest) closeBody(id uint32, length, maxSeq uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = binary.LittleEndian.AppendUint64(b, length)
	return binary.LittleEndian.AppendUint64(b, maxSeq)
}

var errEdit = errors.New("malformed manifest edit")

// apply changes the state as an edit says.
func (m *manifest) apply(typ byte, body []byte) error {
	if err := m.change(typ, body); err != nil {
		return err
	}
	return m.checkNumbers()
}

func (m *manifest) change(typ byte, body []byte) error {
	switch {
	case typ == editAdd && len(body) == 4:
		m.addUnsealed(binary.LittleEndian.Uint32(body))
	case typ == editNextID && len(body) == 4:
		m.nextID = max(m.nextID, binary.LittleEndian.Uint32(body))
	case typ == editCollision && len(body) == 8:
		m.collided[binary.LittleEndian.Uint64(body)>>format.SpareHashBits] = true
	case typ == editInherited && (len(body) == inheritedSize || len(body) == inheritedThroughSize):
		m.inherited = append(m.inherited, parseInheritance(body))
	case typ == editOpening && len(body) == openingSize:
		m.addOpening(body)
	case typ == editSeal && len(body) == format.SealedInfoSize+4:
		m.addSealed(format.ParseSealedInfo(body))
		m.addUnsealed(binary.LittleEndian.Uint32(body[format.SealedInfoSize:]))
	case typ == editSwap && len(body) >= 8:
		return m.applySwap(body)
	case typ == editMerge && len(body) >= 8+8:
		return m.applyMerge(body)
	case typ == editBoot && len(body) == bootSize+closeSize:
		m.booted, m.boot = true, vfs.BootID(body)
		return m.change(editClose, body[bootSize:])
	case typ == editBoot && len(body) == bootSize:
		m.booted, m.boot = true, vfs.BootID(body)
	case typ == editClose && len(body) == closeSize:
		m.closedID = binary.LittleEndian.Uint32(body)
		m.closedLen = binary.LittleEndian.Uint64(body[4:])
		m.maxSeq = max(m.maxSeq, binary.LittleEndian.Uint64(body[12:]))
	default:
		return errEdit
	}
	return nil
}

// addUnsealed puts a segment behind the unsealed ones, if it is not there yet.
func (m *manifest) addUnsealed(id uint32) {
	if id == 0 || slices.Contains(m.tail, id) {
		return
	}
	m.tail = append(m.tail, id)
	m.nextID = max(m.nextID, format.Following(id))
}

func (m *manifest) addSealed(si format.SealedInfo) {
	m.tail = slices.DeleteFunc(m.tail, func(id uint32) bool { return id == si.ID })
	m.sealed[si.ID] = si
	m.nextID = max(m.nextID, format.Following(si.ID))
	m.maxSeq = max(m.maxSeq, si.MaxSeq)
	m.sealedThrough(si.MaxSeq)
}

func (m *manifest) applySwap(body []byte) error {
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
		delete(m.sealed, binary.LittleEndian.Uint32(out))
	}
	for ; len(in) > 0; in = in[format.SealedInfoSize:] {
		m.addSealed(format.ParseSealedInfo(in))
	}
	return nil
}

func sealBody(si format.SealedInfo, next uint32) []byte {
	return binary.LittleEndian.AppendUint32(si.Append(nil), next)
}

func swapBody(out []uint32, in []format.SealedInfo) []byte {
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

func (m *manifest) close() error { return m.file.Close() }

// newIdentity makes the id and the hash seed of a new store.
func newIdentity() (store [16]byte, seed keydir.Seed, err error) {
	var random [32]byte
	_, err = io.ReadFull(crand.Reader, random[:])
	copy(store[:], random[:])
	return store, keydir.Seed{binary.LittleEndian.Uint64(random[16:]), binary.LittleEndian.Uint64(random[24:])}, err
}
