package bitcask

import (
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// segment is one open data file. Its bytes up to size never change.
type segment struct {
	id        uint32
	store     [16]byte // id of the store that made it: not this one if that is a copy (manifest.storeOf)
	seal      format.ChecksumSeed
	file      vfs.File
	name      string
	data      []byte       // shared mapping, or nil; may reach past the end of the file; does not change while listed
	residency residency    // what of data is in memory
	size      atomic.Int64 // bytes that hold frames (and footer, once sealed)
	liveBytes atomic.Int64 // estimate of bytes that the keydir points to
	merged    bool
	nonce     uint32 // of its header; unknown if damaged

	// hiding is the tombstones that a merge had to copy here: their bytes, and the
	// sequence of the last. It is set before the segment is listed and not known
	// of one that was there at Open.
	hiding struct {
		bytes int64
		last  uint64
	}

	foot format.Footer // valid when sealed, and during Open
	done atomic.Bool

	// During Open, of an unsealed segment.
	end     int64 // where its valid frames end
	sure    int64 // so much of it is known to have got to the disk
	footed  bool  // with a footer
	damaged bool  // its file is not what the manifest says: damage.go
	dropped bool  // what it holds was never on disk as far as the log is concerned
}

func newSegment(store [16]byte, id uint32, file vfs.File) *segment {
	return &segment{id: id, store: store, seal: format.NewChecksumSeed(store, id), file: file, name: format.DataName(id)}
}

// sealed reports whether the segment has its footer and the manifest says so.
func (sg *segment) sealed() bool { return sg.done.Load() }

// setSealed makes it so.
func (sg *segment) setSealed() { sg.done.Store(true) }

// drawNonce draws the nonce of a new segment, or of a footer.
func drawNonce() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(crand.Reader, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// createSegment makes a new segment file whose header and name are durable
// when it returns. A crash before that leaves a file without frames that no
// manifest names; the next Open removes it.
func createSegment(fs vfs.FS, dir string, store [16]byte, id uint32, mapLen int) (*segment, error) {
	if err := format.CheckID(id); err != nil {
		return nil, err
	}
	name := format.DataName(id)
	f, err := fs.Open(filepath.Join(dir, name), vfs.Create)
	if err != nil && failure.IsTransient(err) {
		err = failure.NewRetryable(err)
	}
	if err != nil {
		return nil, err
	}
	sg := newSegment(store, id, f)
	if sg.nonce, err = drawNonce(); err == nil {
		_, err = f.WriteAt(format.EncodeSegmentHeader(store, id, sg.nonce, false), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		// A sync that failed is not made again: the file goes, and another one comes.
		if left := errors.Join(f.Close(), fs.Remove(filepath.Join(dir, name))); left != nil || !failure.IsTransient(err) {
			return nil, errors.Join(err, left)
		}
		return nil, failure.NewRetryable(err)
	}
	sg.size.Store(format.SegmentHeaderSize)
	sg.mapTo(mapLen)
	return sg, nil
}

// openSegment opens an existing segment and checks its header.
func openSegment(fs vfs.FS, dir string, store [16]byte, id uint32, mode vfs.Mode) (*segment, error) {
	name := format.DataName(id)
	f, err := fs.Open(filepath.Join(dir, name), mode)
	if err != nil {
		return nil, err
	}
	sg := newSegment(store, id, f)
	size, err := f.Size()
	sg.size.Store(size)
	if err == nil {
		err = sg.readHeader()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sg, nil
}

// readHeader reads and checks the header of a segment whose size is known.
func (sg *segment) readHeader() error {
	b := make([]byte, min(format.SegmentHeaderSize, sg.size.Load()))
	_, err := sg.file.ReadAt(b, 0)
	if err == nil {
		sg.nonce, sg.merged, err = format.CheckSegmentHeader(b, sg.name, sg.store, sg.id)
	}
	return err
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
	at := size - format.FooterSize
	if at < format.SegmentHeaderSize {
		return &CorruptError{File: sg.name, Offset: size, Reason: "too short for a footer"}
	}
	b := make([]byte, format.FooterSize)
	if _, err := sg.file.ReadAt(b, at); err != nil {
		return fmt.Errorf("%s: reading footer: %w", sg.name, err)
	}
	h, ok := format.ParseFrameHeader(b, sg.seal, uint32(at), format.FooterSize)
	if !ok || !h.Footer || h.Size != format.FooterSize {
		return &CorruptError{File: sg.name, Offset: at, Reason: "no footer"}
	}
	body := b[format.FrameHeaderSize:]
	if h.Sum != sg.seal.Sum(uint32(at)+format.FrameHeaderSize, body) {
		return &CorruptError{File: sg.name, Offset: at, Reason: "footer checksum"}
	}
	sg.foot = format.ParseFooter(body)
	if sg.foot.MaxSeq > format.MaxSequence {
		return &CorruptError{File: sg.name, Offset: at, Reason: "footer with a sequence number that is never given"}
	}
	sg.setSealed()
	return nil
}

// encodeFooter returns the footer frame that is to stand at offset at.
func (sg *segment) encodeFooter(ft format.Footer, at, synced uint32) []byte {
	b := make([]byte, format.FooterSize)
	body := b[format.FrameHeaderSize:]
	binary.LittleEndian.PutUint64(body, ft.Records)
	binary.LittleEndian.PutUint64(body[8:], ft.MinSeq)
	binary.LittleEndian.PutUint64(body[16:], ft.MaxSeq)
	binary.LittleEndian.PutUint64(body[24:], ft.Stamp())
	h := format.FrameHeader{Size: format.FooterSize, Footer: true, Seq: ft.MaxSeq, Synced: synced}
	h.Sum = sg.seal.Sum(at+format.FrameHeaderSize, body)
	h.Put(b, sg.seal, at)
	return b
}

// appendFooter appends the footer to a segment whose frames are on disk, and
// makes it durable. A crash before that leaves an unsealed segment, perhaps with
// a torn footer.
func (sg *segment) appendFooter(ft format.Footer) error {
	nonce, err := drawNonce()
	if err != nil {
		return err
	}
	ft.Nonce = uint16(nonce)
	at := sg.size.Load()
	b := sg.encodeFooter(ft, uint32(at), uint32(at))
	if _, err := sg.file.WriteAt(b, at); err != nil {
		return files.TruncateTo(sg.file, at, fmt.Errorf("%s: writing footer: %w", sg.name, err))
	}
	if err := sg.file.Sync(); err != nil {
		return fmt.Errorf("%s: sync of footer: %w", sg.name, err)
	}
	sg.foot = ft // before size: whoever sees the footer may look at it
	sg.size.Store(at + format.FooterSize)
	return nil
}

// bytesAt returns n bytes at offset, from the mapping if they are in memory, else into buf.
func (sg *segment) bytesAt(buf []byte, offset int64, n int) ([]byte, error) {
	if end := sg.size.Load(); offset < 0 || offset+int64(n) > end {
		return nil, &CorruptError{File: sg.name, Offset: offset, Reason: "record reaches past the end"}
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
			return nil, &CorruptError{File: sg.name, Offset: offset + int64(got), Reason: "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", sg.name, offset, err)
	}
	return buf, nil
}

// info is what the manifest says of a sealed segment.
func (sg *segment) info() format.SealedInfo {
	return format.SealedInfo{
		ID: sg.id, Length: uint64(sg.size.Load()),
		MinSeq: sg.foot.MinSeq, MaxSeq: sg.foot.MaxSeq, Records: sg.foot.Records,
	}
}
