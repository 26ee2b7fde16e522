package segment

import (
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// Segment is one open data file. Its bytes up to size never change.
type Segment struct {
	ID        uint32
	StoreID   [16]byte // id of the store that made it: not this one if that is a copy (Manifest.StoreOf)
	Seed      format.ChecksumSeed
	File      vfs.File
	Name      string
	Data      []byte       // shared mapping, or nil; may reach past the end of the file; does not change while listed
	Residency residency    // what of data is in memory
	Size      atomic.Int64 // bytes that hold frames (and footer, once sealed)
	LiveBytes atomic.Int64 // estimate of bytes that the keydir points to
	Merged    bool
	Unsettled atomic.Int64 // of a segment that is followed: what was read from here on its writer may truncate; 0: nothing
	Nonce     uint32       // of its header; unknown if damaged

	// Hiding is the tombstones that a merge had to copy here: their bytes, and the
	// sequence of the last. It is set before the segment is listed and not known
	// of one that was there at Open.
	Hiding struct {
		Bytes int64
		Last  uint64
	}

	// Clean is a sequence number at which all that a merge has copied here was live: a tombstone up to that number hides
	// nothing here. It is set before the segment is listed; 0: unknown, as of one that was there at Open.
	Clean uint64

	Footer format.Footer // valid when sealed, and during Open
	sealed atomic.Bool

	appends appends // of who writes to the active segment

	// During Open, of an unsealed segment.
	FramesEnd int64 // where its valid frames end
	Content   int64 // after the last byte of the file that is not zero; 0: not looked for
	DurableTo int64 // so much of it is known to have got to the disk
	Chain     Chain // of the frames that were read
	HasFooter bool  // with a footer
	Damaged   bool  // its file is not what the manifest says: damage.go
	Cut       bool  // it ends where it ended at the moment of a snapshot
	Dropped   bool  // its frames were never part of the durable log
}

func New(store [16]byte, id uint32, file vfs.File) *Segment {
	return &Segment{ID: id, StoreID: store, Seed: format.NewChecksumSeed(store, id), File: file, Name: format.DataName(id)}
}

// Sealed reports whether the segment has its footer and the manifest says so.
func (sg *Segment) Sealed() bool { return sg.sealed.Load() }

// MarkSealed makes it so.
func (sg *Segment) MarkSealed() { sg.sealed.Store(true) }

// drawNonce draws the nonce of a new segment, or of a footer.
func drawNonce() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(crand.Reader, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// Create makes a new segment file whose header and name are durable
// when it returns. A crash before that leaves a file without frames that no
// manifest names; the next Open removes it.
func Create(fs vfs.FS, dir string, store [16]byte, id uint32, mapLen int) (*Segment, error) {
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
	sg := New(store, id, f)
	if sg.Nonce, err = drawNonce(); err == nil {
		_, err = f.WriteAt(format.EncodeSegmentHeader(store, id, sg.Nonce, false), 0)
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
	sg.Size.Store(format.SegmentHeaderSize)
	sg.MapTo(mapLen)
	return sg, nil
}

// Open opens an existing segment and checks its header.
func Open(fs vfs.FS, dir string, store [16]byte, id uint32, mode vfs.Mode) (*Segment, error) {
	name := format.DataName(id)
	f, err := fs.Open(filepath.Join(dir, name), mode)
	if err != nil {
		return nil, err
	}
	sg := New(store, id, f)
	size, err := f.Size()
	sg.Size.Store(size)
	if err == nil {
		err = sg.ReadHeader()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sg, nil
}

// ReadHeader reads and checks the header of a segment whose size is known.
func (sg *Segment) ReadHeader() error {
	b := make([]byte, min(format.SegmentHeaderSize, sg.Size.Load()))
	_, err := sg.File.ReadAt(b, 0)
	if err == nil {
		sg.Nonce, sg.Merged, err = format.CheckSegmentHeader(b, sg.Name, sg.StoreID, sg.ID)
	}
	return err
}

// MapTo maps the file for reading. Without a mapping reads use ReadAt.
func (sg *Segment) MapTo(length int) {
	m, ok := sg.File.(vfs.Mapper)
	if !ok || length <= 0 || strconv.IntSize < 64 {
		return
	}
	if data, err := m.Map(length); err == nil {
		sg.Data = data
		sg.Residency.init(length)
	}
}

// Park releases the descriptor of a sealed segment, of which others there are besides, if they are many: reads of the file open
// it then.
func (sg *Segment) Park(others int) error {
	if others < mostDescriptors {
		return nil
	}
	return vfs.Park(sg.File)
}

const (
	// mostDescriptors is how many segments keep a descriptor: fewer than a process has anywhere.
	mostDescriptors = 64
	// MostHeld is how many segments keep a descriptor in a store that is open for reading, where a live writer may remove
	// them: fewer than processes have by default. With more of them a file that has gone is an error for who reads it.
	MostHeld = 512
	// MostMappings is how many segments are mapped. Linux has 65,530 mappings for a process by default, and Go's heap
	// needs some.
	MostMappings = 30_000
)

func (sg *Segment) Close() error {
	var err error
	if sg.Data != nil {
		err = sg.File.(vfs.Mapper).Unmap(sg.Data) // data stays: a reader without a lock may yet ask for its length
	}
	return errors.Join(err, sg.File.Close())
}

// ReadFooter reads and checks the footer of a sealed segment.
func (sg *Segment) ReadFooter() error {
	size := sg.Size.Load()
	at := size - format.FooterSize
	if at < format.SegmentHeaderSize {
		return &failure.CorruptError{File: sg.Name, Offset: size, Reason: "too short for a footer"}
	}
	b := make([]byte, format.FooterSize)
	if _, err := sg.File.ReadAt(b, at); err != nil {
		return fmt.Errorf("%s: reading footer: %w", sg.Name, err)
	}
	h, ok := format.ParseFrameHeader(b, sg.Seed, uint32(at), format.FooterSize)
	if !ok || !h.Footer || h.Size != format.FooterSize {
		return &failure.CorruptError{File: sg.Name, Offset: at, Reason: "no footer"}
	}
	body := b[format.FrameHeaderSize:]
	if h.Sum != sg.Seed.Sum(uint32(at)+format.FrameHeaderSize, body) {
		return &failure.CorruptError{File: sg.Name, Offset: at, Reason: "footer checksum"}
	}
	sg.Footer = format.ParseFooter(body)
	if sg.Footer.MaxSeq > format.MaxSequence {
		return &failure.CorruptError{File: sg.Name, Offset: at, Reason: "footer with a sequence number that is never given"}
	}
	sg.MarkSealed()
	return nil
}

// encodeFooter returns the footer frame that is to stand at offset at.
func (sg *Segment) encodeFooter(ft format.Footer, at, synced uint32) []byte {
	b := make([]byte, format.FooterSize)
	body := b[format.FrameHeaderSize:]
	binary.LittleEndian.PutUint64(body, ft.Records)
	binary.LittleEndian.PutUint64(body[8:], ft.MinSeq)
	binary.LittleEndian.PutUint64(body[16:], ft.MaxSeq)
	binary.LittleEndian.PutUint64(body[24:], ft.Stamp())
	h := format.FrameHeader{Size: format.FooterSize, Footer: true, Seq: ft.MaxSeq, Synced: synced}
	h.Sum = sg.Seed.Sum(at+format.FrameHeaderSize, body)
	h.Put(b, sg.Seed, at)
	return b
}

// NewFooter gives a footer a nonce of its own, and returns the frame that is to follow the segment's frames.
func (sg *Segment) NewFooter(ft format.Footer) (format.Footer, []byte, error) {
	nonce, err := drawNonce()
	if err != nil {
		return ft, nil, err
	}
	ft.Nonce = uint16(nonce)
	at := uint32(sg.Size.Load())
	return ft, sg.encodeFooter(ft, at, at), nil
}

// AppendFooter appends the footer to a segment whose frames are on disk, and
// makes it durable. A crash before that leaves an unsealed segment, perhaps with
// a torn footer.
func (sg *Segment) AppendFooter(ft format.Footer) error {
	ft, b, err := sg.NewFooter(ft)
	if err != nil {
		return err
	}
	at := sg.Size.Load()
	if _, err := sg.File.WriteAt(b, at); err != nil {
		return files.TruncateTo(sg.File, at, fmt.Errorf("%s: writing footer: %w", sg.Name, err))
	}
	if err := sg.File.Sync(); err != nil {
		return fmt.Errorf("%s: sync of footer: %w", sg.Name, err)
	}
	sg.Footer = ft // before size: a reader that sees the footer may use it
	sg.Size.Store(at + format.FooterSize)
	return nil
}

// reads bounds how many goroutines read records from the disk at once: each has a thread of the system, of which a process may
// have some thousands.
var reads = make(chan struct{}, 256)

// readRecord reads from the file.
func (sg *Segment) readRecord(b []byte, offset int64) (int, error) {
	reads <- struct{}{}
	defer func() { <-reads }()
	return sg.File.ReadAt(b, offset)
}

// bytesAt returns n bytes at offset, from the mapping if they are in memory, else read from the file into buf. If onDisk is not
// nil it is returned instead of such a read, unless the bytes are not mapped: those were written just now, or cannot be mapped.
func (sg *Segment) bytesAt(buf []byte, offset int64, n int, onDisk error) ([]byte, error) {
	if end := sg.Size.Load(); offset < 0 || offset+int64(n) > end {
		return nil, &failure.CorruptError{File: sg.Name, Offset: offset, Reason: "record reaches past the end"}
	}
	if sg.resident(int(offset), int(offset)+n, onDisk != nil) {
		return sg.Data[offset : offset+int64(n)], nil
	}
	if onDisk != nil && offset+int64(n) <= int64(len(sg.Data)) {
		return nil, onDisk
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if got, err := sg.readRecord(buf, offset); err != nil {
		if failure.NoDescriptors(err) && offset+int64(n) <= int64(len(sg.Data)) {
			return sg.Data[offset : offset+int64(n)], nil // better that a thread waits for the disk
		}
		if errors.Is(err, io.EOF) {
			return nil, &failure.CorruptError{File: sg.Name, Offset: offset + int64(got), Reason: "file is shorter than it was"}
		}
		return nil, fmt.Errorf("%s: reading at %d: %w", sg.Name, offset, err)
	}
	sg.hasRead(int(offset), int(offset)+n)
	return buf, nil
}

// Info is what the manifest says of a sealed segment.
func (sg *Segment) Info() format.SealedInfo {
	return format.SealedInfo{
		ID: sg.ID, Length: uint64(sg.Size.Load()),
		MinSeq: sg.Footer.MinSeq, MaxSeq: sg.Footer.MaxSeq, Records: sg.Footer.Records,
	}
}

// EndBytes is how many bytes the checksum of an end covers.
const EndBytes = 64

// EndSum is the checksum of the last bytes before length: what an INDEX, a TTL
// file or a hint says of a segment's end.
func (sg *Segment) EndSum(length int64) (uint32, error) {
	var buf [EndBytes]byte
	b := buf[:min(length, EndBytes)]
	// Not through the mapping: nothing here stops a page fault.
	if _, err := sg.File.ReadAt(b, length-int64(len(b))); err != nil {
		return 0, err
	}
	return crc32.ChecksumIEEE(b), nil
}

// Hidable is the lowest sequence number that a tombstone must have to hide something here; first is that of the first record.
func (sg *Segment) Hidable(first uint64) uint64 { return max(first, sg.Clean+1) }

// Kept estimates how many bytes a merge of this segment alone would write; others is the lowest
// Hidable of all others. What a merge cannot remove must not look like garbage, or merges would
// never end: header and footer, and the tombstones that a merge had to keep as long as it would
// have to again: hiding.
func (sg *Segment) Kept(others uint64, sealed bool) (bytes, hiding int64) {
	live := max(sg.LiveBytes.Load(), 0)
	if sg.Hiding.Bytes > 0 && sg.Hiding.Last >= others {
		hiding = sg.Hiding.Bytes
		live += hiding
	}
	if live > 0 && sealed {
		live += format.SegmentHeaderSize + format.FrameHeaderSize + format.FooterSize
	}
	return min(live, sg.Size.Load()), hiding
}

func Remove(fs vfs.FS, dir string, sg *Segment) error {
	err := fs.Remove(filepath.Join(dir, format.HintName(sg.ID)))
	if failure.IsNotExist(err) {
		err = nil
	}
	return errors.Join(err, fs.Remove(filepath.Join(dir, sg.Name)))
}

// Assume takes it from the manifest what a sealed segment is, whatever its file says.
func (sg *Segment) Assume(si format.SealedInfo) {
	sg.Damaged = true
	sg.Footer = format.Footer{Records: si.Records, MinSeq: si.MinSeq, MaxSeq: si.MaxSeq}
	sg.Size.Store(int64(si.Length))
	sg.MarkSealed()
}
