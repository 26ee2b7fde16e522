package bitcask

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Remains are what recovery has truncated: the rest of a write that a crash cut short, and whatever stood after it. They are
// kept in a file of their own, synced before the truncation, unless they are all zeros. Nothing in the store refers to them:
// they can be deleted at any time. Salvage reads them.
//
//	header: magic "STAVETRN" | version u16 | flags u16 | segment id u32 (0: MANIFEST) | store id 16 | offset u64 |
//	        next sequence u64 | length u64 | crc u32
//	bytes:  as they stood from offset on
//
// The store id is that of whoever made the segment, as in its header. Next sequence is the one that the log went on with: it
// has been given twice, to a record in the remains and to one in the log.
const (
	remainsMagic      = "STAVETRN"
	remainsVersion    = 1
	remainsHeaderSize = 8 + 2 + 2 + 4 + 16 + 8 + 8 + 8 + 4
	remainsTemp       = "TORN.new"
	remainsInfix      = ".torn-"
)

// Remains is a stretch of a file that recovery has truncated, or, in a store that is open for reading, would truncate.
type Remains struct {
	File   string // it was part of
	Offset int64  // it began at
	Bytes  int64
	Kept   string // the file that holds it now; empty if it was all zeros, or still stands where it was
}

func (r Remains) String() string {
	s := fmt.Sprintf("%s: %d bytes from offset %d on are not part of any commit that was on disk", r.File, r.Bytes, r.Offset)
	if r.Kept != "" {
		s += "; they are kept in " + r.Kept
	}
	return s
}

// remainsName names the remains of a file from an offset on. The higher n is, the later they were kept: one more than the
// highest of those that were there before.
func remainsName(id uint32, offset int64, n int) string {
	name := manifest.FileName
	if id != 0 {
		name = strings.TrimSuffix(format.DataName(id), format.DataSuffix)
	}
	name += remainsInfix + strconv.FormatInt(offset, 10)
	if n > 1 {
		name += "." + strconv.Itoa(n)
	}
	return name
}

// parseRemainsName is the inverse of remainsName.
func parseRemainsName(name string) (id uint32, offset int64, n int, ok bool) {
	file, rest, found := strings.Cut(name, remainsInfix)
	at, number, many := strings.Cut(rest, ".")
	n = 1
	offset, err := strconv.ParseInt(at, 10, 64)
	if many && err == nil {
		n, err = strconv.Atoi(number)
	}
	if file != manifest.FileName && err == nil {
		id, _, found = format.ParseName(file + format.DataSuffix)
	}
	if !found || err != nil || remainsName(id, offset, n) != name {
		return 0, 0, 0, false
	}
	return id, offset, n, true
}

// remainsHeader is what a file of remains says about its bytes.
type remainsHeader struct {
	id      uint32
	store   [16]byte
	offset  int64
	nextSeq uint64
	length  int64
}

func (h *remainsHeader) encode() []byte {
	b := make([]byte, 0, remainsHeaderSize)
	b = append(b, remainsMagic...)
	b = binary.LittleEndian.AppendUint16(b, remainsVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, h.id)
	b = append(b, h.store[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.offset))
	b = binary.LittleEndian.AppendUint64(b, h.nextSeq)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.length))
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// parseRemainsHeader is the inverse of encode, for a file of size bytes.
func parseRemainsHeader(b []byte, name string, size int64) (h remainsHeader, err error) {
	end := remainsHeaderSize - 4
	if len(b) < remainsHeaderSize || string(b[:8]) != remainsMagic || binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return h, &CorruptError{File: name, Offset: 0, Reason: "not a header of remains"}
	}
	if v, flags := binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:]); v != remainsVersion || flags != 0 {
		return h, fmt.Errorf("%s: version %d, flags %#x: %w", name, v, flags, ErrVersion)
	}
	h = remainsHeader{
		id: binary.LittleEndian.Uint32(b[12:]), store: [16]byte(b[16:]), offset: int64(binary.LittleEndian.Uint64(b[32:])),
		nextSeq: binary.LittleEndian.Uint64(b[40:]), length: int64(binary.LittleEndian.Uint64(b[48:])),
	}
	if h.offset < 0 || h.length < 0 || h.length > size-remainsHeaderSize || h.offset > maxSegmentLength-h.length || h.nextSeq == 0 {
		return h, &CorruptError{File: name, Offset: 0, Reason: "header of remains with impossible lengths"}
	}
	return h, nil
}

// maxSegmentLength is what an offset of 32 bits can reach.
const maxSegmentLength = 1<<32 - 1

// keepRemains copies the end of a file, which is about to be truncated at h.offset, into a file of its own, and makes that
// durable but for its name. It returns the name; none if there are only zeros. The same bytes are not kept twice.
//
// A crash leaves TORN.new, which the next Open removes, or the whole copy beside the file that still has the bytes.
func (s *Store) keepRemains(f vfs.File, h remainsHeader) (name string, err error) {
	zeros, err := files.AllZeros(f, h.offset, h.length)
	if err != nil || zeros {
		return "", err
	}
	n := 1
	for _, name := range s.recovery.Remains {
		id, offset, before, _ := parseRemainsName(name)
		if id == h.id && offset == h.offset {
			if same, err := s.sameRemains(name, f, h); same || err != nil {
				return name, err
			}
		}
		if id != 0 || h.id == 0 {
			n = max(n, before+1)
		}
	}
	name = remainsName(h.id, h.offset, n)
	temp := filepath.Join(s.dir, remainsTemp)
	s.leftover = slices.DeleteFunc(s.leftover, func(name string) bool { return name == remainsTemp })
	if err := s.opts.FS.Remove(temp); err != nil && !failure.IsNotExist(err) {
		return "", err
	}
	out, err := s.opts.FS.Open(temp, vfs.Create)
	if err != nil {
		return "", err
	}
	_, err = out.WriteAt(h.encode(), 0)
	if err == nil {
		err = files.EachPiece(f, h.offset, h.length, func(b []byte, at int64) error {
			_, err := out.WriteAt(b, remainsHeaderSize+at-h.offset)
			return err
		})
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = s.opts.FS.Rename(temp, filepath.Join(s.dir, name))
	}
	if err != nil {
		return "", errors.Join(err, failure.IgnoreNotExist(s.opts.FS.Remove(temp)))
	}
	return name, nil
}

// sameRemains reports whether a file of remains holds just what is to be kept: an Open before this one has got no further.
func (s *Store) sameRemains(name string, f vfs.File, h remainsHeader) (same bool, err error) {
	kept, err := s.opts.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly)
	if err != nil {
		return false, err
	}
	size, err := kept.Size()
	if same = err == nil && size == remainsHeaderSize+h.length; same {
		head := make([]byte, remainsHeaderSize)
		_, err = kept.ReadAt(head, 0)
		same = err == nil && bytes.Equal(head, h.encode())
	}
	if same {
		err = files.EachPiece(f, h.offset, h.length, func(b []byte, at int64) error {
			there := make([]byte, len(b))
			_, err := kept.ReadAt(there, remainsHeaderSize+at-h.offset)
			same = same && bytes.Equal(b, there)
			return err
		})
	}
	return same, errors.Join(err, kept.Close())
}

// remains lists what is to be truncated of the log, and of the manifest.
func (s *Store) remains() (list []tornEnd) {
	for _, sg := range s.tail {
		if n := sg.Size.Load() - sg.FramesEnd; n > 0 {
			list = append(list, tornEnd{sg.Name, sg.File, remainsHeader{sg.ID, sg.StoreID, sg.FramesEnd, s.log.nextSeq, n}})
		}
	}
	if n := len(s.man.Rest); n > 0 {
		list = append(list, tornEnd{manifest.FileName, s.man.File, remainsHeader{0, s.man.Store, s.man.Size, s.log.nextSeq, int64(n)}})
	}
	return list
}

// tornEnd is the end of a file that is about to be truncated.
type tornEnd struct {
	name string
	file vfs.File
	h    remainsHeader
}

// keepAllRemains keeps what is about to be truncated, durably. Where the disk is too full for that, an unfinished write with
// nothing readable in it is given up; anything else is not.
func (s *Store) keepAllRemains() error {
	kept := false
	for _, torn := range s.remains() {
		var name string
		err := s.reserve.With(reserve.LeaveEighth, func() (err error) {
			name, err = s.keepRemains(torn.file, torn.h)
			return err
		})
		if err != nil && failure.IsTransient(err) && torn.h.id != 0 {
			readable, rerr := s.readable(torn.h.id)
			if err = errors.Join(err, rerr); !readable && rerr == nil {
				s.opts.Logger.Warn("no room to keep an unfinished write", "file", torn.name, "offset", torn.h.offset, "bytes", torn.h.length, "err", err)
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("%s: keeping %d bytes from %d on, which are to be truncated: %w", torn.name, torn.h.length, torn.h.offset, err)
		}
		kept = kept || name != ""
		s.noteTruncated(torn, name)
	}
	if !kept {
		return nil
	}
	return s.opts.FS.SyncDir(s.dir)
}

// readable reports whether anything behind the end of an unsealed segment verifies.
func (s *Store) readable(id uint32) (bool, error) {
	for _, sg := range s.tail {
		if sg.ID == id {
			_, valid, err := segment.NewFrames(sg).Resync(sg.FramesEnd)
			return valid, segment.IgnoreBad(err)
		}
	}
	return false, nil
}

// foreseeTruncation notes, in a store that is open for reading, what a writer would truncate.
func (s *Store) foreseeTruncation() {
	for _, torn := range s.remains() {
		if zeros, err := files.AllZeros(torn.file, torn.h.offset, torn.h.length); err != nil || !zeros {
			s.noteTruncated(torn, "")
		}
	}
	for _, sg := range s.tail {
		s.recovery.TornBytes += sg.Size.Load() - sg.FramesEnd
		sg.Size.Store(sg.FramesEnd)
	}
}

func (s *Store) noteTruncated(torn tornEnd, kept string) {
	r := Remains{torn.name, torn.h.offset, torn.h.length, kept}
	if kept != "" || s.opts.ReadOnly {
		s.recovery.Truncated = append(s.recovery.Truncated, r)
	}
	if !s.opts.ReadOnly {
		s.opts.Logger.Warn("torn tail truncated", "file", r.File, "offset", r.Offset, "bytes", r.Bytes, "kept", r.Kept)
	}
}
