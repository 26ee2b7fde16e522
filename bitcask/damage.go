package bitcask

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// Reading a damaged store (Options.ReadDamaged). What Open would refuse is passed over, as long as something that verifies
// says which keys the damage is about: those give errors, and all others are as they were. Three things can say so.
//
//   - The hint of a sealed segment, and the manifest: neither header nor footer nor any frame is needed then.
//   - The INDEX, as far as it goes.
//   - The frame itself, if a single flipped bit is all that is wrong with it. The same goes for the manifest.
//
// Where none of them does, a newer value, a delete, a deadline or a flush of any key may be what is lost, so nothing older
// can be trusted: the store is not opened. Salvage copies what is left of it.

// tolerate notes damage that can be done without, if that is what err is and the store is open for that; else it returns err.
func (s *Store) tolerate(err error) error {
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

// tolerance is pass, or nil where that would pass over nothing.
func (s *Store) tolerance() func(error) error {
	if s.opts.ReadDamaged {
		return s.tolerate
	}
	return nil
}

// openSegment opens a segment of the manifest. Its header is not needed to read it: every frame says itself which store,
// segment and offset it is for. Nor is the file, if the manifest says how long it was.
func (s *Store) openSegment(id uint32) (*segment, error) {
	name := format.DataName(id)
	sg, err := (*segment)(nil), s.man.Missing(name)
	if s.present[name] {
		sg, err = openSegment(s.opts.FS, s.dir, s.man.StoreOf(id), id, s.mode())
	}
	if err == nil || !s.opts.ReadDamaged {
		return sg, err
	}
	sg = newSegment(s.man.StoreOf(id), id, missingFile{})
	sg.damaged = true
	refusal, damage, size := err, err, int64(0)
	if !s.present[name] {
		damage = &CorruptError{File: name, Offset: 0, Reason: ErrMissing.Error()}
	} else if !failure.IsDamage(err) {
		return nil, err
	} else if sg.file, err = s.opts.FS.Open(filepath.Join(s.dir, name), vfs.ReadOnly); err != nil {
		return nil, err
	} else if size, err = sg.file.Size(); err != nil {
		return nil, errors.Join(err, sg.close())
	}
	sg.size.Store(size)
	if _, sealed := s.man.Sealed[id]; size < format.SegmentHeaderSize && !sealed && s.man.ClosedID != id {
		return nil, errors.Join(refusal, sg.close())
	}
	return sg, s.tolerate(damage)
}

// bind makes sure that a sealed segment is as the manifest says.
func (s *Store) bind(sg *segment, si format.SealedInfo) error {
	err := sg.readFooter()
	if err == nil && sg.info() != si {
		err = &CorruptError{File: sg.name, Offset: int64(si.Length), Reason: "footer does not agree with the manifest"}
	}
	if err == nil || sg.damaged {
		err = nil
	} else if err = s.tolerate(err); err != nil {
		return err
	} else {
		sg.damaged = true
	}
	if sg.damaged {
		sg.assume(si)
	}
	return nil
}

// assume takes it from the manifest what a sealed segment is, whatever its file says.
func (sg *segment) assume(si format.SealedInfo) {
	sg.damaged = true
	sg.foot = format.Footer{Records: si.Records, MinSeq: si.MinSeq, MaxSeq: si.MaxSeq}
	sg.size.Store(int64(si.Length))
	sg.setSealed()
}

// bindTail makes sure that an unsealed segment is as long as it was at the last clean close.
func (s *Store) bindTail(sg *segment) error {
	if length := int64(s.man.ClosedLen); s.opts.ReadDamaged && s.man.ClosedID == sg.id && sg.size.Load() < length {
		sg.damaged = true
		err := s.tolerate(&CorruptError{File: sg.name, Offset: sg.size.Load(), Reason: "file is shorter than it was"})
		sg.size.Store(length)
		return err
	}
	return nil
}

// vouch passes over that a segment does not end where the INDEX left it with the bytes that it saw, if the manifest itself
// says that the segment was that long.
func (s *Store) vouch(is indexSegment, err error) error {
	known := s.vouches(is)
	if known && s.opts.ReadDamaged && s.segments.Load().find(is.id).damaged {
		return nil // passed over already
	}
	if known {
		return s.tolerate(err)
	}
	return err
}

// vouches reports whether the manifest says that a segment was that long.
func (s *Store) vouches(is indexSegment) bool {
	if si, sealed := s.man.Sealed[is.id]; sealed {
		return is.length <= si.Length
	}
	return s.man.ClosedID == is.id && is.length <= s.man.ClosedLen
}

// missingFile stands for the file of a segment that is not there.
type missingFile struct{}

var errMissingFile = errors.New("BUG: write to a file that is missing")

func (missingFile) ReadAt([]byte, int64) (int, error)  { return 0, io.EOF }
func (missingFile) WriteAt([]byte, int64) (int, error) { return 0, errMissingFile }
func (missingFile) Truncate(int64) error               { return errMissingFile }
func (missingFile) Sync() error                        { return errMissingFile }
func (missingFile) Size() (int64, error)               { return 0, nil }
func (missingFile) Close() error                       { return nil }

// correctFrame reads on in a store open for what is left of it, if err is damage to the frame at an offset and one bit is all
// that is wrong there. The location of a record that is damaged stays what it was: reading it is an error.
func (rp *replayer) correctFrame(fr *frames, at int64, err error) ([]format.Entry, error) {
	if !rp.s.opts.ReadDamaged || !failure.IsDamage(err) {
		return nil, err
	}
	fr.pos = at
	entries, ok := fr.corrected()
	if !ok {
		return nil, err
	}
	rp.mu.Lock()
	defer rp.mu.Unlock()
	return entries, rp.s.tolerate(err)
}

// corrected reads the frame at pos as it was before one of its bits was flipped, if there is a bit that makes all of it verify, and
// continues after it.
func (fr *frames) corrected() ([]format.Entry, bool) {
	raw, h, ok := fr.correctBit()
	if !ok {
		return nil, false
	}
	if h.Footer { // that a crash kept from being listed
		fr.footer = true
		fr.pos += int64(h.Size)
		return nil, true
	}
	entries, _, ok, err := fr.take(raw, &h)
	return entries, ok && err == nil
}

// correctBit returns the frame at pos as it was before one of its bits was flipped, if there is a bit that makes all of it verify.
func (fr *frames) correctBit() (raw []byte, h format.FrameHeader, ok bool) {
	b, err := fr.window(format.FrameHeaderSize)
	if err != nil || len(b) < format.FrameHeaderSize {
		return nil, h, false
	}
	head := slices.Clone(b)
	parse := func() (ok bool) {
		h, ok = format.ParseFrameHeader(head, fr.sg.seal, uint32(fr.pos), fr.end-fr.pos)
		return ok
	}
	whole := parse()
	if !whole && !format.AnyBit(head, parse) {
		return nil, h, false
	}
	if raw, err = fr.window(int64(h.Size)); err != nil || len(raw) < int(h.Size) {
		return nil, h, false
	}
	raw = slices.Clone(raw)
	copy(raw, head)
	switch {
	case h.Footer:
		ok = fr.correctFooter(raw, &h)
	case whole:
		ok = fr.correctRecord(raw, &h)
	default:
		_, ok, err = format.EachRecord(raw, &h, fr.sg.seal, uint32(fr.pos), nil)
		ok = ok && err == nil
	}
	return raw, h, ok
}

// correctFooter makes the body of a footer verify, if it takes one bit at most.
func (fr *frames) correctFooter(raw []byte, h *format.FrameHeader) bool {
	body := raw[format.FrameHeaderSize:]
	verify := func() bool { return h.Sum == fr.sg.seal.Sum(uint32(fr.pos)+format.FrameHeaderSize, body) }
	return verify() || format.AnyBit(body, verify)
}

// correctRecord flips a bit of the first record of a frame that does not verify, so that the frame does.
func (fr *frames) correctRecord(raw []byte, h *format.FrameHeader) bool {
	at := uint32(fr.pos)
	verify := func() (bad uint32, ok bool) {
		bad, ok, err := format.EachRecord(raw, h, fr.sg.seal, at, nil)
		return bad, ok && err == nil
	}
	bad, _ := verify()
	rest := raw[bad-at:]
	if bad == at {
		return false // the records verify, their checksums do not
	}
	n := min(format.RecordHeaderMax, len(rest))
	if head, err := format.ParseHeader(rest); err == nil && head.Total() <= format.CorrectLimit {
		n = min(max(n, head.Total()), len(rest))
	}
	return format.AnyBit(rest[:n], func() bool {
		rec, err := format.ParseRecord(rest)
		if err != nil || binary.LittleEndian.Uint32(rest) != fr.sg.seal.Sum(bad, rest[format.RecordCRCSize:rec.Size]) {
			return false
		}
		_, ok := verify()
		return ok
	})
}
