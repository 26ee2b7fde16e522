package bitcask

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// Reading a damaged store (Options.ReadDamaged). Damage that Open would refuse is tolerated as long as something that
// verifies names the keys concerned: those give errors, and all others are intact. Three things can name them:
//
//   - The hint of a sealed segment, and the manifest: neither header nor footer nor any frame is needed then.
//   - The INDEX, as far as it goes.
//   - The frame itself, if a single flipped bit is all that is wrong with it. The same goes for the manifest.
//
// Where none of them does, the loss may be a newer value, a delete, a deadline or a flush of any key, so nothing older
// can be trusted: the store is not opened. Salvage copies the rest of it.

// tolerate notes damage that can be done without, if that is what err is and the store is open for that; else it
// returns err.
func (s *opener) tolerate(err error) error {
	c := (*CorruptError)(nil)
	if !s.opts.ReadDamaged || !errors.As(err, &c) {
		return err
	}
	if slices.Contains(s.recovery.Damage, *c) {
		return nil // the log is being read again
	}
	s.opts.Logger.Warn("damage", "file", c.File, "offset", c.Offset, "reason", c.Reason)
	s.recovery.Damage = append(s.recovery.Damage, *c)
	return nil
}

// tolerance is pass, or nil where pass would tolerate nothing.
func (s *opener) tolerance() func(error) error {
	if s.opts.ReadDamaged {
		return s.tolerate
	}
	return nil
}

// openSegment opens a segment of the manifest. Its header is not needed to read it: every frame says itself which
// store, segment and offset it is for. Nor is the file, if the manifest says how long it was.
func (s *opener) openSegment(id uint32) (*segment.Segment, error) {
	name := format.DataName(id)
	sg, err := (*segment.Segment)(nil), s.man.Missing(name)
	if s.present[name] {
		sg, err = segment.Open(s.opts.seam.FS, s.dir, s.man.StoreOf(id), id, s.opts.mode())
	}
	if err == nil || !s.opts.ReadDamaged {
		return sg, err
	}
	sg = segment.New(s.man.StoreOf(id), id, segment.MissingFile{})
	sg.Damaged = true
	refusal, damage, size := err, err, int64(0)
	if !s.present[name] {
		damage = &CorruptError{File: name, Offset: 0, Reason: ErrMissing.Error()}
	} else if !failure.IsDamage(err) {
		return nil, err
	} else if sg.File, err = s.opts.seam.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly); err != nil {
		return nil, err
	} else if size, err = sg.File.Size(); err != nil {
		return nil, errors.Join(err, sg.Close())
	}
	sg.Size.Store(size)
	if _, sealed := s.man.Sealed[id]; size < format.SegmentHeaderSize && !sealed && s.man.ClosedID != id {
		return nil, errors.Join(refusal, sg.Close())
	}
	return sg, s.tolerate(damage)
}

// bind makes sure that a sealed segment is as the manifest says.
func (s *opener) bind(sg *segment.Segment, si format.SealedInfo) error {
	err := sg.ReadFooter()
	if err == nil && sg.Info() != si {
		err = &CorruptError{File: sg.Name, Offset: int64(si.Length), Reason: "footer does not agree with the manifest"}
	}
	if err == nil || sg.Damaged {
		err = nil
	} else if err = s.tolerate(err); err != nil {
		return err
	} else {
		sg.Damaged = true
	}
	if sg.Damaged {
		sg.Assume(si)
	}
	return nil
}

// bindTail makes sure that an unsealed segment is as long as it was at the last clean close.
func (s *opener) bindTail(sg *segment.Segment) error {
	if length := int64(s.man.ClosedLen); s.opts.ReadDamaged && s.man.ClosedID == sg.ID && sg.Size.Load() < length {
		sg.Damaged = true
		err := s.tolerate(&CorruptError{File: sg.Name, Offset: sg.Size.Load(), Reason: "file is shorter than it was"})
		sg.Size.Store(length)
		return err
	}
	return nil
}

// vouch tolerates a tail whose checksum or length differs from the INDEX's if the manifest confirms the length.
func (s *opener) vouch(is indexfile.Segment, err error) error {
	known := s.man.vouches(is)
	if known && s.opts.ReadDamaged && s.segments.Load().Find(is.ID).Damaged {
		return nil // already reported
	}
	if known {
		return s.tolerate(err)
	}
	return err
}
