package bitcask

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// The file INDEX is the keydir as of some moment, written at Close and now and
// then, so that opening need not replay the log from its beginning. It is
// optional: one that is missing, damaged, of another store, of a state that the
// log has not been in, or that refers to segments that merges have taken away is
// not used, and the log says it all. A store open for writing removes it before
// the first write: later it might fit a log that has grown.
//
//	header:   magic "STAVEIDX" | version u16 | flags u16 | reserved u32 | store id 16 | hash seed 16 |
//	          contents offset u64 | contents length u64 | contents crc u32 | crc u32
//	section:  the dump of one stripe of one space, see keydir.Dump
//	contents: complete up to u64 | complete up to u64, for each stripe | mark of the end, 32 |
//	          fresh space u32 | location of the namespaces record u64 |
//	          n u32 | n times: namespace u32, space u32 |
//	          n u32 | n times: segment id u32, length u64, records u64, min seq u64, max seq u64, end crc u32 |
//	          n u32 | n times: space u32, stripe u32, offset u64, length u64, crc u32 |
//	          n u32 | n times: sequence u64, location u64, length of name u32, length of value u32, name, value
//
// The checksums of sections and contents are seeded with the store id and the
// offset. A segment's length is how far it had been replayed; end crc is the
// checksum of its last bytes before there, up to 64. A stripe is complete up
// to its own sequence, or later: what the log has after it is replayed. All that
// the sections know comes before the mark (mark.go).
const (
	indexTemp       = IndexFile + ".new"
	indexMagic      = "STAVEIDX"
	indexVersion    = 3
	indexHeaderSize = 8 + 2 + 2 + 4 + 16 + 16 + 8 + 8 + 4 + 4
)

// IndexFile is the name of the snapshot of the keydir in a store's directory.
const IndexFile = "INDEX"

// indexContents is what an INDEX says besides its sections.
type indexContents struct {
	upTo      uint64                 // in every stripe nothing before it is missing
	stripes   [keydir.Stripes]uint64 // nor in this one
	end       Mark                   // nothing after it is in any of them
	fresh     uint32
	record    keydir.Loc
	moved     map[uint32]uint32
	segments  []indexSegment
	sections  []indexSection
	system    systemNames
	dataBytes int64 // of the file; not written
}

// indexSegment is a segment as far as it was replayed.
type indexSegment struct {
	id     uint32
	length uint64
	foot   format.Footer
	end    uint32
}

// indexSection is one stripe of one space.
type indexSection struct {
	space, stripe  uint32
	offset, length uint64
	crc            uint32
}

// before is the order of the sections in the file.
func (s *indexSection) before(t *indexSection) bool {
	return s.stripe < t.stripe || s.stripe == t.stripe && s.space < t.space
}

const (
	indexMovedSize   = 4 + 4
	indexSegmentSize = 4 + 4*8 + 4
	indexSectionSize = 4 + 4 + 8 + 8 + 4
	indexSystemSize  = 8 + 8 + 4 + 4
)

func encodeIndexHeader(store [16]byte, seed keydir.Seed, offset, length uint64, sum uint32) []byte {
	b := make([]byte, 0, indexHeaderSize)
	b = append(b, indexMagic...)
	b = binary.LittleEndian.AppendUint16(b, indexVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, store[:]...)
	b = binary.LittleEndian.AppendUint64(b, seed[0])
	b = binary.LittleEndian.AppendUint64(b, seed[1])
	b = binary.LittleEndian.AppendUint64(b, offset)
	b = binary.LittleEndian.AppendUint64(b, length)
	b = binary.LittleEndian.AppendUint32(b, sum)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// parseIndexHeader is the inverse of encodeIndexHeader. A header of another
// store, seed or version is as good as none.
func parseIndexHeader(b []byte, store [16]byte, seed keydir.Seed) (offset, length uint64, sum uint32, ok bool) {
	if len(b) != indexHeaderSize {
		return 0, 0, 0, false
	}
	offset, length = binary.LittleEndian.Uint64(b[48:]), binary.LittleEndian.Uint64(b[56:])
	sum = binary.LittleEndian.Uint32(b[64:])
	return offset, length, sum, slices.Equal(b, encodeIndexHeader(store, seed, offset, length, sum))
}

func (c *indexContents) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.upTo)
	for _, seq := range c.stripes {
		b = binary.LittleEndian.AppendUint64(b, seq)
	}
	b = c.end.append(b)
	b = binary.LittleEndian.AppendUint32(b, c.fresh)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.record))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.moved)))
	for _, ns := range slices.Sorted(maps.Keys(c.moved)) {
		b = binary.LittleEndian.AppendUint32(b, ns)
		b = binary.LittleEndian.AppendUint32(b, c.moved[ns])
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.segments)))
	for _, sg := range c.segments {
		b = binary.LittleEndian.AppendUint32(b, sg.id)
		b = binary.LittleEndian.AppendUint64(b, sg.length)
		b = binary.LittleEndian.AppendUint64(b, sg.foot.Records)
		b = binary.LittleEndian.AppendUint64(b, sg.foot.MinSeq)
		b = binary.LittleEndian.AppendUint64(b, sg.foot.MaxSeq)
		b = binary.LittleEndian.AppendUint32(b, sg.end)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.sections)))
	for _, s := range c.sections {
		b = binary.LittleEndian.AppendUint32(b, s.space)
		b = binary.LittleEndian.AppendUint32(b, s.stripe)
		b = binary.LittleEndian.AppendUint64(b, s.offset)
		b = binary.LittleEndian.AppendUint64(b, s.length)
		b = binary.LittleEndian.AppendUint32(b, s.crc)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.system)))
	for _, name := range slices.Sorted(maps.Keys(c.system)) {
		r := c.system[name]
		b = binary.LittleEndian.AppendUint64(b, r.seq)
		b = binary.LittleEndian.AppendUint64(b, uint64(r.loc))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.value)))
		b = append(append(b, name...), r.value...)
	}
	return b
}

// decodeIndex is the inverse of encode. It takes no more memory than in
// proportion to b, whatever b says.
func decodeIndex(b []byte) (*indexContents, bool) {
	f := format.Fields{B: b}
	c := &indexContents{upTo: f.U64(), moved: map[uint32]uint32{}}
	for i := range c.stripes {
		c.stripes[i] = f.U64()
		f.Bad = f.Bad || c.stripes[i] < c.upTo
	}
	c.end = readMark(&f)
	f.Bad = f.Bad || c.end.Sequence < slices.Max(c.stripes[:])
	c.fresh, c.record = f.U32(), keydir.Loc(f.U64())
	f.Bad = f.Bad || c.fresh < firstFreshSpace
	for range f.Count(indexMovedSize) {
		ns, space := f.U32(), f.U32()
		c.moved[ns] = space
		f.Bad = f.Bad || ns >= MaxNamespaces
	}
	for range f.Count(indexSegmentSize) {
		c.segments = append(c.segments, indexSegment{
			id: f.U32(), length: f.U64(), foot: format.Footer{Records: f.U64(), MinSeq: f.U64(), MaxSeq: f.U64()}, end: f.U32(),
		})
	}
	for i := range f.Count(indexSectionSize) {
		s := indexSection{space: f.U32(), stripe: f.U32(), offset: f.U64(), length: f.U64(), crc: f.U32()}
		f.Bad = f.Bad || s.stripe >= keydir.Stripes || i > 0 && !c.sections[i-1].before(&s)
		c.sections = append(c.sections, s)
	}
	c.system = systemNames{}
	last := ""
	for range f.Count(indexSystemSize) {
		r := systemRecord{seq: f.U64(), loc: keydir.Loc(f.U64())}
		n, m := int(f.U32()), int(f.U32())
		name := string(f.Bytes(n))
		r.value = slices.Clone(f.Bytes(m))
		f.Bad = f.Bad || !format.ValidSystem(n, m) || name <= last
		c.system[name], last = r, name
	}
	return c, !f.Bad && len(f.B) == 0
}

func readMark(f *format.Fields) Mark {
	return Mark{Opening: f.U64(), Sequence: f.U64(), Segment: f.U32(), Length: f.U64(), Sum: f.U32()}
}

// segment is how far a segment was replayed; no further than its header if it
// is not listed.
func (c *indexContents) segment(id uint32) indexSegment {
	for _, is := range c.segments {
		if is.id == id {
			return is
		}
	}
	return indexSegment{id: id, length: format.SegmentHeaderSize}
}

// fits reports whether the contents agree with the files there are: every
// segment is still listed, and holds what it held, and the end is there. If that
// cannot be read, it can be passed over.
func (c *indexContents) fits(ss *segmentSet, pass func(indexSegment, error) error) bool {
	for _, is := range c.segments {
		if sg := ss.find(is.id); sg != nil && sg.Sealed() && int64(is.length) == sg.Size.Load() && !sg.Footer.Same(is.foot) {
			return false
		}
		if !is.fits(ss, pass) {
			return false
		}
	}
	return c.end.place().fits(ss, pass)
}

// fits reports whether a segment is listed, and holds what it held.
func (is indexSegment) fits(ss *segmentSet, pass func(indexSegment, error) error) bool {
	sg := ss.find(is.id)
	if sg == nil || is.length < format.SegmentHeaderSize || int64(is.length) > sg.Size.Load() {
		return false
	}
	end, err := sg.EndSum(int64(is.length))
	if err == nil && end != is.end {
		err = &CorruptError{File: sg.Name, Offset: max(int64(is.length)-segment.EndBytes, 0), Reason: "not what the index has seen"}
	}
	return err == nil || pass(is, err) == nil
}
