package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// segment walks a data file. Store and id, without which no checksum can be verified, are those of the header, or, if
// that is damaged, of the MANIFEST next to it and of the file's name.
func (d *dumper) segment(id uint32) error {
	head, err := d.read(0, format.SegmentHeaderSize)
	if err != nil {
		return err
	}
	var store [16]byte
	if len(head) == format.SegmentHeaderSize {
		store = [16]byte(head[16:])
		id = uint32(head[12]) | uint32(head[13])<<8 | uint32(head[14])<<16 | uint32(head[15])<<24
	}
	nonce, merged, err := format.CheckSegmentHeader(head, filepath.Base(d.path), store, id)
	switch {
	case errors.Is(err, failure.ErrVersion):
		return d.later(0, int64(len(head)), fmt.Sprintf("version %d, flags %#x", binary.LittleEndian.Uint16(head[8:]), binary.LittleEndian.Uint16(head[10:])))
	case err != nil:
		if err := d.damage(0, int64(len(head)), err.Error()); err != nil {
			return err
		}
		var known bool
		if store, id, known = d.listed(); !known {
			return d.damage(int64(len(head)), d.size-int64(len(head)), "no checksum can be verified without the header, or the MANIFEST and the name of the file")
		}
	default:
		how := "written by commits"
		if merged {
			how = "written by a merge"
		}
		if err := d.item(Item{Bytes: int64(len(head)), What: "header", Text: fmt.Sprintf("segment %d of store %x, nonce %08x, %s", id, store, nonce, how)}); err != nil {
			return err
		}
	}
	sg := segment.New(store, id, d.file)
	sg.Size.Store(d.size)
	return d.frames(sg)
}

// listed is the store and the id of the file as the directory has it.
func (d *dumper) listed() (store [16]byte, id uint32, ok bool) {
	id, _, ok = format.ParseName(filepath.Base(d.path))
	if !ok {
		return store, 0, false
	}
	m, err := manifest.Read(vfs.OS(), filepath.Dir(d.path), vfs.ReadOnly, nil)
	if err != nil {
		return store, 0, false
	}
	return m.StoreOf(id), id, m.Close() == nil
}

// frames walks the commits.
func (d *dumper) frames(sg *segment.Segment) error {
	fr := segment.NewFrames(sg)
	for {
		at := fr.Pos
		raw, h, _, err := fr.NextFrameInFile() // a writer alongside may truncate the zeros that it has reserved
		d.size = fr.End
		bad := (*segment.BadFrame)(nil)
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad), errors.Is(err, failure.ErrVersion):
			fr.Pos = at
			err = d.bad(fr, err)
		case err != nil:
			return err
		case h.Footer:
			err = d.footer(at, int64(h.Size), fr.Foot)
		default:
			err = d.frame(raw, &h, sg.Seed, at, "")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// frame shows a commit and its records, as far as they verify. reason says why the frame does not, if it does not.
func (d *dumper) frame(raw []byte, h *format.FrameHeader, seed format.ChecksumSeed, at int64, reason string) error {
	text := fmt.Sprintf("synced through %d", h.Synced)
	if err := d.item(Item{Offset: at, Bytes: int64(h.Size), What: "commit", Sequence: h.Seq, Text: text}); err != nil {
		return err
	}
	end := at + int64(h.Records())
	_, _, err := format.EachRecord(raw, h, seed, uint32(at), func(pos uint32, seq uint64, rec format.Record) error {
		i := recordItem(&rec.Identity, int64(pos), int64(rec.Size), seq)
		i.Value = rec.Value
		end = int64(pos) + int64(rec.Size)
		return d.item(i)
	})
	if errors.Is(err, failure.ErrVersion) {
		reason, err = err.Error(), nil
	}
	if err == nil && reason != "" {
		err = d.rest(raw, h, seed, at, int(end-at), reason)
	}
	return err
}

// rest shows what verifies of a commit from a record on that does not. The sequence numbers of records after a lost one
// are not known, unless they carry their own.
func (d *dumper) rest(raw []byte, h *format.FrameHeader, seed format.ChecksumSeed, at int64, from int, reason string) error {
	lost := from
	flush := func(to int) error {
		if to == lost {
			return nil
		}
		return d.damage(at+int64(lost), int64(to-lost), reason)
	}
	for pos := from; pos < len(raw); {
		rec, err := format.ParseRecord(raw[pos:])
		if err != nil || !seed.Verifies(raw[pos:pos+rec.Size], uint32(at)+uint32(pos)) {
			pos++
			continue
		}
		if err := flush(pos); err != nil {
			return err
		}
		if rec.Unknown {
			if err := d.later(at+int64(pos), int64(rec.Size), fmt.Sprintf("record of kind %d", uint8(rec.Kind))); err != nil {
				return err
			}
			pos += rec.Size
			lost = pos
			continue
		}
		seq := uint64(0)
		if rec.HasSeq {
			seq = h.Seq + rec.SeqDelta
		}
		i := recordItem(&rec.Identity, at+int64(pos), int64(rec.Size), seq)
		i.Value = rec.Value
		if err := d.item(i); err != nil {
			return err
		}
		pos += rec.Size
		lost = pos
	}
	if lost == from { // only the checksum over all of them is wrong, or nothing verifies
		return d.damage(at+int64(from), int64(len(raw)-from), reason)
	}
	return flush(len(raw))
}

// bad shows a place where no commit verifies: what verifies of one whose header does, the zeros that a writer has
// reserved, or bytes up to the next header. It returns io.EOF where nothing follows.
func (d *dumper) bad(fr *segment.Frames, why error) error {
	at := fr.Pos
	b, err := fr.Window(format.FrameHeaderSize)
	if err != nil {
		return err
	}
	if h, ok := format.ParseFrameHeader(b, fr.Segment.Seed, uint32(at), fr.Reach-at); ok && !h.Footer && !fr.HasFooter {
		raw, err := fr.Window(int64(h.Size))
		if err != nil {
			return err
		}
		if len(raw) == int(h.Size) {
			fr.Pos += int64(h.Size)
			return d.frame(raw, &h, fr.Segment.Seed, at, why.Error())
		}
	}
	zeros, err := d.zerosFrom(at)
	if err != nil {
		return err
	}
	if zeros {
		return errors.Join(d.item(Item{Offset: at, Bytes: d.size - at, What: "zeros", Text: "reserved for commits"}), io.EOF)
	}
	if err := fr.Skip(); err != nil {
		return err
	}
	return d.damage(at, fr.Pos-at, why.Error())
}

// zerosFrom reports whether the rest of the file is zeros.
func (d *dumper) zerosFrom(at int64) (bool, error) {
	for ; at < d.size; at += 1 << 20 {
		b, err := d.read(at, 1<<20)
		if err != nil {
			return false, err
		}
		for _, c := range b {
			if c != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

func (d *dumper) footer(at, n int64, ft format.Footer) error {
	when := "unknown"
	if ft.Time != 0 {
		when = time.UnixMilli(ft.Time).UTC().Format(time.RFC3339)
	}
	return d.item(Item{Offset: at, Bytes: n, What: "footer", Text: fmt.Sprintf("%d records, sequences %d to %d, sealed at %s", ft.Records, ft.MinSeq, ft.MaxSeq, when)})
}

// hint walks a hint file. It shows a damaged one up to there: what follows depends on it.
func (d *dumper) hint() error {
	hs, info, err := segment.ReadHint(d.file, d.size)
	if errors.Is(err, failure.ErrVersion) {
		head, err := d.read(0, 12)
		if err != nil {
			return err
		}
		return d.otherVersion(head)
	}
	if err != nil {
		return d.damage(0, d.size, err.Error())
	}
	if err := d.item(Item{What: "header", Bytes: hs.Position(), Text: fmt.Sprintf("hint of segment %d: %d bytes, %d records, sequences %d to %d", info.ID, info.Length, info.Records, info.MinSeq, info.MaxSeq)}); err != nil {
		return err
	}
	for {
		at := hs.Position()
		entries, err := hs.Next()
		if err == io.EOF {
			return nil
		}
		if errors.Is(err, failure.ErrVersion) {
			return d.later(at, d.size-at, "an entry of a kind of record")
		}
		if err != nil {
			return d.damage(at, d.size-at, err.Error())
		}
		if err := d.item(Item{Offset: at, Bytes: hs.Position() - at, What: "block", Text: fmt.Sprintf("%d entries; offsets below are those in the segment", len(entries))}); err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			shown := recordItem(&e.Identity, int64(e.At), int64(e.Size), e.Seq)
			shown.Value = e.Inline
			if err := d.item(shown); err != nil {
				return err
			}
		}
	}
}
