package bitcask

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// A segment file begins with
//
//	 0        8         10      12      16          32         36       40
//	+--------+---------+-------+-------+-----------+----------+--------+
//	| magic  | version | flags | id u32| store id  | reserved | crc u32|
//	+--------+---------+-------+-------+-----------+----------+--------+
//
// goes on with frames, and, once sealed, ends with a footer frame. The crc
// covers bytes 0 to 36.
const (
	segmentMagic      = "STAVESEG"
	segmentVersion    = 1
	segmentHeaderSize = 40
	flagMerged        = 1 // written by a merge

	// maxSegmentID keeps the id of pending locations free.
	maxSegmentID = keydir.PendingSegment - 1
)

// footer is the body of the footer frame.
//
//	 0            8           16           24
//	+------------+-----------+------------+------------+
//	| records u64| minSeq u64| maxSeq u64 | time i64   |
//	+------------+-----------+------------+------------+
//
// time, in Unix ms, is not before the last commit in the segment and not after
// the first one of a later segment; 0: unknown. Only the clock says so: nothing
// relies on it.
type footer struct {
	records        uint64
	minSeq, maxSeq uint64
	time           int64
}

// same reports whether two footers are about the same records.
func (ft footer) same(other footer) bool {
	return ft.records == other.records && ft.minSeq == other.minSeq && ft.maxSeq == other.maxSeq
}

const (
	footerBodySize = 32
	footerSize     = frameHeaderSize + footerBodySize
)

// Names of files. Each has one maker and one parser, here.
const (
	dataSuffix = ".data"
	hintSuffix = ".hint"
)

func dataName(id uint32) string { return fmt.Sprintf("%09d%s", id, dataSuffix) }
func hintName(id uint32) string { return fmt.Sprintf("%09d%s", id, hintSuffix) }

// parseName is the inverse of dataName and hintName.
func parseName(name string) (id uint32, suffix string, ok bool) {
	for _, suffix := range []string{dataSuffix, hintSuffix} {
		digits, found := strings.CutSuffix(name, suffix)
		if !found || len(digits) < 9 {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || n == 0 || n > maxSegmentID || fmt.Sprintf("%09d", n) != digits {
			return 0, "", false
		}
		return uint32(n), suffix, true
	}
	return 0, "", false
}

// segment is one open data file. Its bytes up to size never change.
type segment struct {
	id        uint32
	store     [16]byte // id of the store that made it: not this one if that is a copy (manifest.storeOf)
	seal      seal
	file      vfs.File
	name      string
	data      []byte       // shared mapping, or nil; may reach past the end of the file; does not change while listed
	residency residency    // what of data is in memory
	size      atomic.Int64 // bytes that hold frames (and footer, once sealed)
	liveBytes atomic.Int64 // estimate of bytes that the keydir points to
	merged    bool

	// hiding is the tombstones that a merge had to copy here: their bytes, and the
	// sequence of the last. It is set before the segment is listed and not known
	// of one that was there at Open.
	hiding struct {
		bytes int64
		last  uint64
	}

	foot footer // valid when sealed, and during Open
	done atomic.Bool

	// During Open, of an unsealed segment.
	end     int64 // where its valid frames end
	sure    int64 // so much of it is known to have got to the disk
	footed  bool  // with a footer
	damaged bool  // its file is not what the manifest says: damage.go
	dropped bool  // what it holds was never on disk as far as the log is concerned
}

func newSegment(store [16]byte, id uint32, file vfs.File) *segment {
	return &segment{id: id, store: store, seal: makeSeal(store, id), file: file, name: dataName(id)}
}

// sealed reports whether the segment has its footer and the manifest says so.
func (sg *segment) sealed() bool { return sg.done.Load() }

// setSealed makes it so.
func (sg *segment) setSealed() { sg.done.Store(true) }

func encodeSegmentHeader(store [16]byte, id uint32, merged bool) []byte {
	b := make([]byte, segmentHeaderSize)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint16(b[8:], segmentVersion)
	if merged {
		binary.LittleEndian.PutUint16(b[10:], flagMerged)
	}
	binary.LittleEndian.PutUint32(b[12:], id)
	copy(b[16:32], store[:])
	binary.LittleEndian.PutUint32(b[36:], crc32.ChecksumIEEE(b[:36]))
	return b
}

func checkSegmentHeader(b []byte, name string, store [16]byte, id uint32) (merged bool, err error) {
	if len(b) < segmentHeaderSize || string(b[:8]) != segmentMagic {
		return false, &CorruptError{name, 0, "not a segment header"}
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != segmentVersion {
		if binary.LittleEndian.Uint32(b[36:]) == crc32.ChecksumIEEE(b[:36]) {
			return false, fmt.Errorf("%s: version %d: %w", name, v, ErrVersion)
		}
	}
	if binary.LittleEndian.Uint32(b[36:]) != crc32.ChecksumIEEE(b[:36]) {
		return false, &CorruptError{name, 0, "segment header checksum"}
	}
	flags := binary.LittleEndian.Uint16(b[10:])
	if flags&^flagMerged != 0 {
		return false, fmt.Errorf("%s: unknown flags %#x: %w", name, flags, ErrVersion)
	}
	if !bytes.Equal(b[16:32], store[:]) {
		return false, fmt.Errorf("%s: %w", name, ErrForeign)
	}
	if got := binary.LittleEndian.Uint32(b[12:]); got != id {
		return false, &CorruptError{name, 12, fmt.Sprintf("header of segment %d", got)}
	}
	return flags&flagMerged != 0, nil
}

// createSegment makes a new segment file whose header and name are durable
// when it returns. A crash before that leaves a file without frames that no
// manifest names; the next Open removes it.
func createSegment(fs vfs.FS, dir string, store [16]byte, id uint32, mapLen int) (*segment, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	name := dataName(id)
	f, err := fs.Open(filepath.Join(dir, name), vfs.Create)
	if err != nil && isTransient(err) {
		err = retryable{err}
	}
	if err != nil {
		return nil, err
	}
	sg := newSegment(store, id, f)
	_, err = f.WriteAt(encodeSegmentHeader(store, id, false), 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		// A sync that failed is not made again: the file goes, and another one comes.
		if left := errors.Join(f.Close(), fs.Remove(filepath.Join(dir, name))); left != nil || !isTransient(err) {
			return nil, errors.Join(err, left)
		}
		return nil, retryable{err}
	}
	sg.size.Store(segmentHeaderSize)
	sg.mapTo(mapLen)
	return sg, nil
}

// openSegment opens an existing segment and checks its header.
func openSegment(fs vfs.FS, dir string, store [16]byte, id uint32, mode vfs.Mode) (*segment, error) {
	name := dataName(id)
	f, err := fs.Open(filepath.Join(dir, name), mode)
	if err != nil {
		return nil, err
	}
	sg := newSegment(store, id, f)
	size, err := f.Size()
	if err == nil {
		b := make([]byte, min(segmentHeaderSize, size))
		if _, err = f.ReadAt(b, 0); err == nil {
			sg.merged, err = checkSegmentHeader(b, name, store, id)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	sg.size.Store(size)
	return sg, nil
}

// mapTo maps the file for reading. Without a mapping reads use ReadAt.
func (sg *segment) mapTo(length int) {
	m, ok := sg.file.(vfs.Mapper)
	if !ok || length <= 0 || strconv.IntSize < 64 {
		return
	}
	if data, err := m.Map(length); err == nil {
		sg.data = data
		sg.residency.init(length)
	}
}

func (sg *segment) close() error {
	var err error
	if sg.data != nil {
		err = sg.file.(vfs.Mapper).Unmap(sg.data) // data stays: a reader without a lock may yet ask for its length
	}
	return errors.Join(err, sg.file.Close())
}

// readFooter reads and checks the footer of a sealed segment.
func (sg *segment) readFooter() error {
	size := sg.size.Load()
	at := size - footerSize
	if at < segmentHeaderSize {
		return &CorruptError{sg.name, size, "too short for a footer"}
	}
	b := make([]byte, footerSize)
	if _, err := sg.file.ReadAt(b, at); err != nil {
		return fmt.Errorf("%s: reading footer: %w", sg.name, err)
	}
	h, ok := parseFrameHeader(b, sg.seal, uint32(at), footerSize)
	if !ok || !h.footer || h.size != footerSize {
		return &CorruptError{sg.name, at, "no footer"}
	}
	body := b[frameHeaderSize:]
	if h.sum != sg.seal.sum(uint32(at)+frameHeaderSize, body) {
		return &CorruptError{sg.name, at, "footer checksum"}
	}
	sg.foot = footer{
		records: binary.LittleEndian.Uint64(body),
		minSeq:  binary.LittleEndian.Uint64(body[8:]),
		maxSeq:  binary.LittleEndian.Uint64(body[16:]),
		time:    int64(binary.LittleEndian.Uint64(body[24:])),
	}
	if sg.foot.maxSeq > maxSequence {
		return &CorruptError{sg.name, at, "footer with a sequence number that is never given"}
	}
	sg.setSealed()
	return nil
}

// encodeFooter returns the footer frame that is to stand at offset at.
func (sg *segment) encodeFooter(ft footer, at, synced uint32) []byte {
	b := make([]byte, footerSize)
	body := b[frameHeaderSize:]
	binary.LittleEndian.PutUint64(body, ft.records)
	binary.LittleEndian.PutUint64(body[8:], ft.minSeq)
	binary.LittleEndian.PutUint64(body[16:], ft.maxSeq)
	binary.LittleEndian.PutUint64(body[24:], uint64(ft.time))
	h := frameHeader{size: footerSize, footer: true, seq: ft.maxSeq, synced: synced}
	h.sum = sg.seal.sum(at+frameHeaderSize, body)
	h.put(b, sg.seal, at)
	return b
}

// appendFooter appends the footer to a segment whose frames are on disk, and
// makes it durable. A crash before that leaves an unsealed segment, perhaps with
// a torn footer.
func (sg *segment) appendFooter(ft footer) error {
	at := sg.size.Load()
	b := sg.encodeFooter(ft, uint32(at), uint32(at))
	if _, err := sg.file.WriteAt(b, at); err != nil {
		return cutOff(sg.file, at, fmt.Errorf("%s: writing footer: %w", sg.name, err))
	}
	if err := sg.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync of footer: %w", sg.name, err)
	}
	sg.foot = ft // before size: whoever sees the footer may look at it
	sg.size.Store(at + footerSize)
	return nil
}

// writeAgain writes what stands from an offset to the end of a file once more.
// The sync of a process that came before may have failed: the kernel then calls
// the bytes clean that it could not write, and no later sync writes them, but they
// are still there to be read.
func writeAgain(f vfs.File, from, end int64) error {
	err := eachPiece(f, from, end-from, func(b []byte, at int64) error {
		_, err := f.WriteAt(b, at)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing again what may not be on disk: %w", err)
	}
	return nil
}

// cutOff takes away what a failed write may have left behind size.
func cutOff(f vfs.File, size int64, cause error) error {
	if err := f.Truncate(size); err != nil || !isTransient(cause) {
		return errors.Join(cause, err)
	}
	return retryable{cause}
}

// bytesAt returns n bytes at offset, from the mapping if they are in memory, else into buf.
func (sg *segment) bytesAt(buf []byte, offset int64, n int) ([]byte, error) {
	if end := sg.size.Load(); offset < 0 || offset+int64(n) > end {
		return nil, &CorruptError{sg.name, offset, "record reaches past the end"}
	}
	if sg.resident(int(offset), int(offset)+n) {
		return sg.data[offset : offset+int64(n)], nil
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if got, err := sg.file.ReadAt(buf, offset); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &CorruptError{sg.name, offset + int64(got), "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", sg.name, offset, err)
	}
	return buf, nil
}

// info is what the manifest says of a sealed segment.
func (sg *segment) info() sealedInfo {
	return sealedInfo{
		id: sg.id, length: uint64(sg.size.Load()),
		minSeq: sg.foot.minSeq, maxSeq: sg.foot.maxSeq, records: sg.foot.records,
	}
}
