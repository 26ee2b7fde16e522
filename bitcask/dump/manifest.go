package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/keydir"
)

// maxManifest bounds the memory for a MANIFEST or the contents of an INDEX, in bytes. The store takes none that is
// longer.
const maxManifest = 64 << 20

// manifest walks the edits. After one that does not verify it looks for the next that does.
func (d *dumper) manifest() error {
	b, err := d.read(0, maxManifest)
	if err != nil {
		return err
	}
	m, text, err := manifest.ParseHeader(b)
	if errors.Is(err, failure.ErrVersion) {
		head := fmt.Sprintf("version %d, feature bits %#x", binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:]))
		if err := d.later(0, manifest.HeaderSize, head); err != nil || int(binary.LittleEndian.Uint16(b[8:])) != formats["STAVEMAN"].Current {
			return err
		}
	} else if err != nil {
		if err := d.damage(0, min(d.size, manifest.HeaderSize), err.Error()); err != nil || m == nil {
			return err
		}
	} else if err := d.item(Item{Bytes: manifest.HeaderSize, What: "header", Text: text}); err != nil {
		return err
	}
	for pos := manifest.HeaderSize; pos < len(b); {
		typ, body, ok := m.EditAt(b, pos)
		if ok {
			n := manifest.EditHeaderSize + len(body)
			if typ > manifest.LastEdit {
				err = d.later(int64(pos), int64(n), fmt.Sprintf("edit of type %d", typ))
			} else {
				err = d.item(Item{Offset: int64(pos), Bytes: int64(n), What: "edit", Text: editText(typ, body)})
			}
			if err != nil {
				return err
			}
			pos += n
			continue
		}
		from := pos
		for pos++; pos < len(b); pos++ {
			if within(b, pos) {
				if _, _, ok := m.EditAt(b, pos); ok {
					break
				}
			}
			if pos%4096 == 0 && d.ctx.Err() != nil {
				return d.ctx.Err()
			}
		}
		if err := d.damage(int64(from), int64(pos-from), "edit checksum, or an edit that a crash has cut short"); err != nil {
			return err
		}
	}
	return nil
}

// within reports whether an edit of a length that is searched for may stand at a place. Without a bound a long manifest
// of lengths that are wrong would take hours.
func within(b []byte, pos int) bool {
	const longest = 64 << 10
	return len(b)-pos >= manifest.EditHeaderSize && binary.LittleEndian.Uint32(b[pos+4:]) <= longest
}

// editText says what an edit means.
func editText(typ byte, body []byte) string {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(body[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(body[at:]) }
	const sealed = format.SealedInfoSize
	switch {
	case typ == manifest.EditAdd && len(body) == 4:
		return fmt.Sprintf("add: segment %d", u32(0))
	case typ == manifest.EditSeal && len(body) == sealed+4:
		return fmt.Sprintf("seal: %s; next is segment %d", sealedText(body), u32(sealed))
	case typ == manifest.EditSwap:
		return "swap: " + swapText(body)
	case typ == manifest.EditMerge && len(body) >= 8:
		return fmt.Sprintf("merge: all through sequence %d was on disk; %s", u64(0), swapText(body[8:]))
	case typ == manifest.EditNextID && len(body) == 4:
		return fmt.Sprintf("next id: %d", u32(0))
	case typ == manifest.EditCollision && len(body) == 8:
		return fmt.Sprintf("collision: two keys have the hash %016x", u64(0))
	case typ == manifest.EditInherited && len(body) >= 20:
		text := fmt.Sprintf("inherited: store %x made the segments below %d", body[:16], u32(16))
		if len(body) >= 28 {
			text += fmt.Sprintf(", up to sequence %d", u64(20))
		}
		return text
	case typ == manifest.EditOpening && len(body) == 16:
		return fmt.Sprintf("opening: %016x gives the sequences from %d on", u64(0), u64(8))
	case typ == manifest.EditClose && len(body) == 20:
		return closeText(body)
	case typ == manifest.EditBoot && len(body) == manifest.BootSize:
		return bootText(body)
	case typ == manifest.EditBoot && len(body) == manifest.BootSize+20:
		return bootText(body) + "; " + closeText(body[manifest.BootSize:])
	}
	return fmt.Sprintf("of type %d, with %d bytes: malformed", typ, len(body))
}

func closeText(b []byte) string {
	return fmt.Sprintf("close: segment %d is on disk up to %d; highest sequence %d", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint64(b[12:]))
}

func bootText(b []byte) string {
	if strings.Trim(string(b[:manifest.BootSize]), "\x00") == "" {
		return "boot: the writer has closed the store"
	}
	return fmt.Sprintf("boot: a writer has the store open, in boot %x", b[:manifest.BootSize])
}

func sealedText(b []byte) string {
	si := format.ParseSealedInfo(b)
	return fmt.Sprintf("segment %d has %d bytes, %d records, sequences %d to %d", si.ID, si.Length, si.Records, si.MinSeq, si.MaxSeq)
}

// swapText says which segments a merge has replaced by which.
func swapText(b []byte) string {
	var out, in []string
	n, ok := counted(&b, 4)
	for ; ok && n > 0; n-- {
		out, b = append(out, fmt.Sprint(binary.LittleEndian.Uint32(b))), b[4:]
	}
	n, ok = counted(&b, format.SealedInfoSize)
	for ; ok && n > 0; n-- {
		in, b = append(in, sealedText(b)), b[format.SealedInfoSize:]
	}
	return fmt.Sprintf("out: [%s]; in: [%s]", strings.Join(out, " "), strings.Join(in, "; "))
}

// counted takes a count of things of a size, if so many are there.
func counted(b *[]byte, size int) (n int64, ok bool) {
	if len(*b) < 4 {
		return 0, false
	}
	n = int64(binary.LittleEndian.Uint32(*b))
	*b = (*b)[4:]
	return n, n*int64(size) <= int64(len(*b))
}

// index shows what an INDEX says of itself. Its sections are dumps of the keydir, which name no strings.
func (d *dumper) index() error {
	head, err := d.read(0, indexfile.HeaderSize)
	if err != nil {
		return err
	}
	if len(head) < indexfile.HeaderSize {
		return d.damage(0, d.size, "too short for a header")
	}
	if format.OtherVersion(head, indexfile.Magic, indexfile.Versions...) || format.OtherFlags(head, indexfile.Magic, 0) {
		return d.otherVersion(head)
	}
	store := [16]byte(head[16:])
	seed := keydir.Seed{binary.LittleEndian.Uint64(head[32:]), binary.LittleEndian.Uint64(head[40:])}
	h, ok := indexfile.ParseHeader(head, store, seed)
	if !ok {
		return d.damage(0, d.size, "header checksum")
	}
	if err := d.item(Item{Bytes: indexfile.HeaderSize, What: "header", Text: fmt.Sprintf("INDEX of store %x, version %d", store, h.Version)}); err != nil {
		return err
	}
	at := int64(h.Offset)
	if at < 0 || at > d.size || h.Length != uint64(d.size-at) || h.Length > maxManifest {
		return d.damage(indexfile.HeaderSize, d.size-indexfile.HeaderSize, "the contents are not where the header says")
	}
	b, err := d.read(at, int64(h.Length))
	if err != nil {
		return err
	}
	sums := format.NewChecksumSeed(store, 0)
	if sums.Sum(uint32(at), b) != h.Sum {
		return d.damage(at, d.size-at, "contents checksum")
	}
	c, ok := indexfile.Decode(b, h.Version)
	if !ok {
		return d.damage(at, d.size-at, "malformed contents")
	}
	for i := range c.Sections {
		s := &c.Sections[i]
		if s.Length > uint64(d.size) || s.Offset > uint64(d.size) {
			return d.damage(at, d.size-at, "a section beyond the file")
		}
		raw, err := d.read(int64(s.Offset), int64(s.Length))
		if err != nil {
			return err
		}
		what, text := "section", fmt.Sprintf("stripe %d: %s", s.Stripe, countsText(s.Counts, c.Promises))
		if sums.Sum(uint32(s.Offset), raw) != s.Crc {
			what, text = Damage, text+"; section checksum"
		}
		if err := d.item(Item{Offset: int64(s.Offset), Bytes: int64(s.Length), What: what, Space: s.Space, Text: text}); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("complete up to sequence %d; ends with sequence %d, in segment %d at %d", c.UpTo, c.End.Sequence, c.End.Segment, c.End.Length)
	if err := d.item(Item{Offset: at, Bytes: int64(h.Length), What: "contents", Text: text}); err != nil {
		return err
	}
	for _, s := range c.Segments {
		if err := d.item(Item{Offset: at, What: "segment", Text: fmt.Sprintf("%d, replayed up to %d: %d records, sequences %d to %d, %d bytes live", s.ID, s.Length, s.Foot.Records, s.Foot.MinSeq, s.Foot.MaxSeq, c.Live[s.ID])}); err != nil {
			return err
		}
	}
	return nil
}

func countsText(c keydir.Counts, known bool) string {
	if !known {
		return "counts unknown"
	}
	return fmt.Sprintf("%d keys, %d with a deadline", c.Keys, c.Deadlines)
}
