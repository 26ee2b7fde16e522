package indexfile

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// The file INDEX is the keydir at some moment, written at Close and at intervals, so that opening need not
// replay the log from its beginning. It is optional: one that is missing, damaged, of another store, of a
// state that the log has not been in, or that refers to segments that merges have removed is not used, and
// the log is replayed. A store open for writing removes it before the first write: later it might fit a log
// that has grown (I8).
//
// It is due at Close, and when the log has grown by 64 MiB and by four times its size: it adds at most a
// quarter to what is written, and the replay after a crash stays in proportion to what is loaded. Each stripe
// is dumped under its lock, 64 KiB at a time, alongside writers; the stripe's sequence is read before its
// first piece, and later changes are replayed at Open whether the dump has them or not. No merge runs during
// the dump, so no location leads to a file that is about to be removed. If namespaces are flushed or swapped,
// it is abandoned and repeated later. The log is synced before the file is put in place.
//
//	header:   magic "STAVEIDX" | version u16 | flags u16 | reserved u32 | store id 16 | hash seed 16 |
//	          contents offset u64 | contents length u64 | contents crc u32 | crc u32
//	section:  the dump of one stripe of one space, see keydir.Dump
//	contents: complete up to u64 | complete up to u64, for each stripe | mark of the end, 32 |
//	          fresh space u32 | location of the namespaces record u64 |
//	          n u32 | n times: namespace u32, space u32 |
//	          n u32 | n times: segment id u32, length u64, records u64, min seq u64, max seq u64, end crc u32 |
//	          n u32 | n times: segment id u32, live bytes u64 |
//	          n u32 | n times: space u32, stripe u32, offset u64, length u64, crc u32, keys u32, deadlines u32, hashes with deadlines u32 |
//	          n u32 | n times: sequence u64, location u64, length of name u32, length of value u32, name, value
//
// The checksums of sections and contents are seeded with the store id and the offset. A segment's length is
// how far it had been replayed; end crc is the checksum of its last bytes before there, up to 64. A stripe is
// complete up to its own sequence, or later: the log's records after that are replayed. Everything in the
// sections was written before the mark (format.Mark). Live bytes are what all sections lead to in a segment, and
// the counts of a section are those of its slots: so a store knows its figures before it has loaded any.
// Version 3 has neither, so that all sections are loaded at Open. In versions 3 and 4 the elements of hashes and sets are
// always in order of hash.
const (
	TempName   = FileName + ".new"
	Magic      = "STAVEIDX"
	Version    = 5
	Version3   = 3 // of earlier builds
	Version4   = 4 // of earlier builds
	HeaderSize = 8 + 2 + 2 + 4 + 16 + 16 + 8 + 8 + 4 + 4
)

// Versions are those that are read.
var Versions = []uint16{Version, Version4, Version3}

// FileName is the name of the snapshot of the keydir in a store's directory.
const FileName = "INDEX"

// Contents is what an INDEX says besides its sections.
type Contents struct {
	UpTo      uint64                 // in every stripe nothing before it is missing
	Stripes   [keydir.Stripes]uint64 // nor in this one
	End       format.Mark            // nothing after it is in any of them
	Fresh     uint32
	Record    keydir.Loc
	Moved     map[uint32]uint32
	Segments  []Segment
	Live      map[uint32]int64 // bytes that the sections lead to, by segment
	Sections  []Section
	Promises  bool // Live and the counts of sections are known; not written: it is the version
	System    system.Names
	DataBytes int64 // of the file; not written
}

// Segment is a segment as far as it was replayed.
type Segment struct {
	ID     uint32
	Length uint64
	Foot   format.Footer
	End    uint32
}

// Section is one stripe of one space.
type Section struct {
	Space, Stripe  uint32
	Offset, Length uint64
	Crc            uint32
	Counts         keydir.Counts
}

// before is the order of the sections in the file.
func (s *Section) before(t *Section) bool {
	return s.Stripe < t.Stripe || s.Stripe == t.Stripe && s.Space < t.Space
}

const (
	indexMovedSize   = 4 + 4
	indexSegmentSize = 4 + 4*8 + 4
	indexLiveSize    = 4 + 8
	indexSectionOld  = 4 + 4 + 8 + 8 + 4 // of version 3
	indexSectionSize = indexSectionOld + 3*4
	indexSystemSize  = 8 + 8 + 4 + 4
)

// EncodeHeader returns the header of an INDEX whose contents stand at offset.
func EncodeHeader(store [16]byte, seed keydir.Seed, offset, length uint64, sum uint32) []byte {
	return encodeHeader(Version, store, seed, offset, length, sum)
}

func encodeHeader(version uint16, store [16]byte, seed keydir.Seed, offset, length uint64, sum uint32) []byte {
	b := make([]byte, 0, HeaderSize)
	b = append(b, Magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
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

// Header is what the header of an INDEX says of its contents.
type Header struct {
	Offset, Length uint64
	Sum            uint32
	Version        uint16
}

// ParseHeader is the inverse of EncodeHeader. A header of another
// store, seed or version is as good as none.
func ParseHeader(b []byte, store [16]byte, seed keydir.Seed) (h Header, ok bool) {
	if len(b) != HeaderSize {
		return h, false
	}
	h.Version = binary.LittleEndian.Uint16(b[8:])
	h.Offset, h.Length = binary.LittleEndian.Uint64(b[48:]), binary.LittleEndian.Uint64(b[56:])
	h.Sum = binary.LittleEndian.Uint32(b[64:])
	return h, slices.Contains(Versions, h.Version) && slices.Equal(b, encodeHeader(h.Version, store, seed, h.Offset, h.Length, h.Sum))
}

func (c *Contents) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.UpTo)
	for _, seq := range c.Stripes {
		b = binary.LittleEndian.AppendUint64(b, seq)
	}
	b = c.End.Append(b)
	b = binary.LittleEndian.AppendUint32(b, c.Fresh)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Record))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Moved)))
	for _, ns := range slices.Sorted(maps.Keys(c.Moved)) {
		b = binary.LittleEndian.AppendUint32(b, ns)
		b = binary.LittleEndian.AppendUint32(b, c.Moved[ns])
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Segments)))
	for _, sg := range c.Segments {
		b = binary.LittleEndian.AppendUint32(b, sg.ID)
		b = binary.LittleEndian.AppendUint64(b, sg.Length)
		b = binary.LittleEndian.AppendUint64(b, sg.Foot.Records)
		b = binary.LittleEndian.AppendUint64(b, sg.Foot.MinSeq)
		b = binary.LittleEndian.AppendUint64(b, sg.Foot.MaxSeq)
		b = binary.LittleEndian.AppendUint32(b, sg.End)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Live)))
	for _, id := range slices.Sorted(maps.Keys(c.Live)) {
		b = binary.LittleEndian.AppendUint32(b, id)
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Live[id]))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Sections)))
	for _, s := range c.Sections {
		b = binary.LittleEndian.AppendUint32(b, s.Space)
		b = binary.LittleEndian.AppendUint32(b, s.Stripe)
		b = binary.LittleEndian.AppendUint64(b, s.Offset)
		b = binary.LittleEndian.AppendUint64(b, s.Length)
		b = binary.LittleEndian.AppendUint32(b, s.Crc)
		b = binary.LittleEndian.AppendUint32(b, s.Counts.Keys)
		b = binary.LittleEndian.AppendUint32(b, s.Counts.Deadlines)
		b = binary.LittleEndian.AppendUint32(b, s.Counts.FieldDeadlines)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.System)))
	for _, name := range slices.Sorted(maps.Keys(c.System)) {
		r := c.System[name]
		b = binary.LittleEndian.AppendUint64(b, r.Seq)
		b = binary.LittleEndian.AppendUint64(b, uint64(r.Loc))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Value)))
		b = append(append(b, name...), r.Value...)
	}
	return b
}

// Decode is the inverse of Encode, for contents under a header of a version. It takes no more
// memory than in proportion to b, whatever b says.
func Decode(b []byte, version uint16) (*Contents, bool) {
	f := format.Fields{B: b}
	c := &Contents{UpTo: f.U64(), Moved: map[uint32]uint32{}, Live: map[uint32]int64{}, Promises: version != Version3}
	for i := range c.Stripes {
		c.Stripes[i] = f.U64()
		f.Bad = f.Bad || c.Stripes[i] < c.UpTo
	}
	c.End = format.ReadMark(&f)
	f.Bad = f.Bad || c.End.Sequence < slices.Max(c.Stripes[:])
	c.Fresh, c.Record = f.U32(), keydir.Loc(f.U64())
	f.Bad = f.Bad || c.Fresh < namespace.FirstFreshSpace
	for range f.Count(indexMovedSize) {
		ns, space := f.U32(), f.U32()
		c.Moved[ns] = space
		f.Bad = f.Bad || ns >= namespace.MaxNamespaces
	}
	for range f.Count(indexSegmentSize) {
		c.Segments = append(c.Segments, Segment{
			ID: f.U32(), Length: f.U64(), Foot: format.Footer{Records: f.U64(), MinSeq: f.U64(), MaxSeq: f.U64()}, End: f.U32(),
		})
	}
	sectionSize := indexSectionOld
	if c.Promises {
		sectionSize = indexSectionSize
		c.readLive(&f)
	}
	for i := range f.Count(sectionSize) {
		s := Section{Space: f.U32(), Stripe: f.U32(), Offset: f.U64(), Length: f.U64(), Crc: f.U32()}
		if c.Promises {
			s.Counts = keydir.Counts{Keys: f.U32(), Deadlines: f.U32(), FieldDeadlines: f.U32()}
		}
		f.Bad = f.Bad || s.Stripe >= keydir.Stripes || i > 0 && !c.Sections[i-1].before(&s)
		c.Sections = append(c.Sections, s)
	}
	c.System = system.Names{}
	last := ""
	for range f.Count(indexSystemSize) {
		r := system.Record{Seq: f.U64(), Loc: keydir.Loc(f.U64())}
		n, m := int(f.U32()), int(f.U32())
		name := string(f.Bytes(n))
		r.Value = slices.Clone(f.Bytes(m))
		f.Bad = f.Bad || !format.ValidSystem(n, m) || name <= last
		c.System[name], last = r, name
	}
	return c, !f.Bad && len(f.B) == 0
}

func (c *Contents) readLive(f *format.Fields) {
	last := int64(-1)
	for range f.Count(indexLiveSize) {
		id, n := f.U32(), f.U64()
		f.Bad = f.Bad || int64(id) <= last || n > 1<<62
		c.Live[id], last = int64(n), int64(id)
	}
}

// SegmentOf is how far a segment was replayed; no further than its header if it
// is not listed.
func (c *Contents) SegmentOf(id uint32) Segment {
	for _, is := range c.Segments {
		if is.ID == id {
			return is
		}
	}
	return Segment{ID: id, Length: format.SegmentHeaderSize}
}

// Fits reports whether the contents agree with the files there are: every segment is still listed,
// holds the same bytes, and its end is there. pass may tolerate an end that cannot be read.
func (c *Contents) Fits(ss *segment.Set, pass func(Segment, error) error) bool {
	for _, is := range c.Segments {
		if sg := ss.Find(is.ID); sg != nil && sg.Sealed() && int64(is.Length) == sg.Size.Load() && !sg.Footer.Same(is.Foot) {
			return false
		}
		if !is.Fits(ss, pass) {
			return false
		}
	}
	return PlaceOf(c.End).Fits(ss, pass)
}

// Fits reports whether a segment is listed and holds the same bytes.
func (is Segment) Fits(ss *segment.Set, pass func(Segment, error) error) bool {
	sg := ss.Find(is.ID)
	if sg == nil || is.Length < format.SegmentHeaderSize || int64(is.Length) > sg.Size.Load() {
		return false
	}
	end, err := sg.EndSum(int64(is.Length))
	if err == nil && end != is.End {
		err = &failure.CorruptError{File: sg.Name, Offset: max(int64(is.Length)-segment.EndBytes, 0), Reason: "not what the index has seen"}
	}
	return err == nil || pass(is, err) == nil
}

// PlaceOf is where the state of a mark ends.
func PlaceOf(m format.Mark) Segment { return Segment{ID: m.Segment, Length: m.Length, End: m.Sum} }
