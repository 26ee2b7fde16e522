package bitcask

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/files"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// The remains of files that recovery truncates. What a crash leaves as whole files is removed: store_segments.go.

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

// keepRemains copies the end of a file, which is about to be truncated at h.Offset, into a file of its own, and makes
// that durable but for its name. It returns the name; none if there are only zeros. The same bytes are not kept twice.
//
// A crash leaves TORN.new, which the next Open removes, or the whole copy alongside the file that still has the bytes.
func (s *opener) keepRemains(f vfs.File, h format.RemainsHeader) (name string, err error) {
	zeros, err := files.AllZeros(f, h.Offset, h.Length)
	if err != nil || zeros {
		return "", err
	}
	n := 1
	for _, name := range s.recovery.Remains {
		id, offset, before, _ := format.ParseRemainsName(name)
		if id == h.ID && offset == h.Offset {
			if same, err := s.sameRemains(name, f, h); same || err != nil {
				return name, err
			}
		}
		if id != 0 || h.ID == 0 {
			n = max(n, before+1)
		}
	}
	name = format.RemainsName(h.ID, h.Offset, n)
	temp := filepath.Join(s.dir, format.RemainsTemp)
	s.leftover = slices.DeleteFunc(s.leftover, func(name string) bool { return name == format.RemainsTemp })
	out, err := vfs.Temporary(s.opts.seam.FS, temp)
	if err != nil {
		return "", err
	}
	_, err = out.WriteAt(h.Encode(), 0)
	if err == nil {
		err = files.EachPiece(f, h.Offset, h.Length, func(b []byte, at int64) error {
			_, err := out.WriteAt(b, format.RemainsHeaderSize+at-h.Offset)
			return err
		})
	}
	if err := vfs.Publish(s.opts.seam.FS, out, temp, filepath.Join(s.dir, name), err); err != nil {
		return "", err
	}
	return name, nil
}

// sameRemains reports whether a file of remains holds exactly what is to be kept: an earlier Open was interrupted here.
func (s *opener) sameRemains(name string, f vfs.File, h format.RemainsHeader) (same bool, err error) {
	kept, err := s.opts.seam.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly)
	if err != nil {
		return false, err
	}
	size, err := kept.Size()
	if same = err == nil && size == format.RemainsHeaderSize+h.Length; same {
		head := make([]byte, format.RemainsHeaderSize)
		_, err = kept.ReadAt(head, 0)
		same = err == nil && bytes.Equal(head, h.Encode())
	}
	if same {
		err = files.EachPiece(f, h.Offset, h.Length, func(b []byte, at int64) error {
			there := make([]byte, len(b))
			_, err := kept.ReadAt(there, format.RemainsHeaderSize+at-h.Offset)
			same = same && bytes.Equal(b, there)
			return err
		})
	}
	return same, errors.Join(err, kept.Close())
}

// remains lists what is to be truncated of the log, and of the manifest.
func (s *opener) remains() (list []tornEnd) {
	for _, sg := range s.tail {
		if n := sg.TornBytes(); n > 0 {
			list = append(list, tornEnd{sg.Name, sg.File, format.RemainsHeader{ID: sg.ID, Store: sg.StoreID, Offset: sg.FramesEnd, NextSeq: s.log.Next(), Length: n}})
		}
	}
	if n := len(s.man.Rest); n > 0 {
		list = append(list, tornEnd{manifest.FileName, s.man.File, format.RemainsHeader{ID: 0, Store: s.man.Store, Offset: s.man.Size, NextSeq: s.log.Next(), Length: int64(n)}})
	}
	return list
}

// tornEnd is the end of a file that is about to be truncated.
type tornEnd struct {
	name string
	file vfs.File
	h    format.RemainsHeader
}

// keepAllRemains keeps everything that is about to be truncated, durably. Where the disk is too full for that, an
// unfinished write with no readable record in it is dropped; anything else is not.
func (s *opener) keepAllRemains() error {
	kept := false
	for _, torn := range s.remains() {
		var name string
		err := s.reserve.With(reserve.LeaveEighth, func() (err error) {
			name, err = s.keepRemains(torn.file, torn.h)
			return err
		})
		if err != nil && failure.IsTransient(err) && torn.h.ID != 0 {
			readable, rerr := s.readable(torn.h.ID)
			if err = errors.Join(err, rerr); !readable && rerr == nil {
				s.opts.Logger.Warn("no room to keep an unfinished write", "file", torn.name, "offset", torn.h.Offset, "bytes", torn.h.Length, "err", err)
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("%s: keeping %d bytes from %d on, which are to be truncated: %w", torn.name, torn.h.Length, torn.h.Offset, err)
		}
		kept = kept || name != ""
		s.noteTruncated(torn, name)
	}
	if !kept {
		return nil
	}
	return s.opts.seam.FS.SyncDir(s.dir)
}

// readable reports whether anything after the end of an unsealed segment verifies.
func (s *opener) readable(id uint32) (bool, error) {
	for _, sg := range s.tail {
		if sg.ID == id {
			_, valid, err := segment.NewFrames(sg).Resync(sg.FramesEnd)
			return valid, segment.IgnoreBad(err)
		}
	}
	return false, nil
}

// foreseeTruncation notes, in a store that is open for reading, what a writer would truncate.
func (s *opener) foreseeTruncation() {
	for _, torn := range s.remains() {
		if zeros, err := files.AllZeros(torn.file, torn.h.Offset, torn.h.Length); err != nil || !zeros {
			s.noteTruncated(torn, "")
		}
	}
	for _, sg := range s.tail {
		s.recovery.TornBytes += sg.TornBytes()
		sg.EndAtFrames()
	}
}

func (s *opener) noteTruncated(torn tornEnd, kept string) {
	r := Remains{torn.name, torn.h.Offset, torn.h.Length, kept}
	if kept != "" || s.opts.ReadOnly {
		s.recovery.Truncated = append(s.recovery.Truncated, r)
	}
	if !s.opts.ReadOnly {
		s.opts.Logger.Warn("torn tail truncated", "file", r.File, "offset", r.Offset, "bytes", r.Bytes, "kept", r.Kept)
	}
}
